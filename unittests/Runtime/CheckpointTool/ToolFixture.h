//===- ToolFixture.h - Checkpoints of chosen tensors -----------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CHECKPOINTTOOL_TOOLFIXTURE_H
#define DS_UNITTESTS_RUNTIME_CHECKPOINTTOOL_TOOLFIXTURE_H

#include "Checkpoint/CheckpointFixture.h"
#include "CheckpointTool/WriteWhole.h"

namespace ds::rt::test {

/// A tensor with its elements' bytes.
struct Given {
  CheckpointTensor tensor;
  std::string bytes;
};

template <class T>
Given given(const std::string &name, FileDType dtype, std::vector<int64_t> shape,
            const std::vector<T> &values, Role role = Role::Parameter) {
  CheckpointTensor tensor;
  tensor.name = name;
  tensor.role = role;
  tensor.dtype = tensor.held = dtype;
  tensor.shape = std::move(shape);
  return {tensor, std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T))};
}

inline Given givenFloats(const std::string &name, const std::vector<float> &values) {
  return given(name, FileDType::F32, {static_cast<int64_t>(values.size())}, values);
}

class ToolFixture : public CheckpointFixture {
protected:
  ToolFixture() : CheckpointFixture(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") {}

  /// Writes them as one rank would, and returns the checkpoint's directory.
  std::string write(uint64_t step, const std::vector<Given> &tensors, uint64_t chunkBytes = 4096,
                    const std::string &modelConfig = "") {
    Manifest manifest;
    manifest.step = step;
    manifest.writer = "test";
    manifest.chunkBytes = chunkBytes;
    manifest.modelConfig = modelConfig;
    for (const Given &each : tensors)
      manifest.tensors.push_back(each.tensor);
    const Result<std::string> path = writeWhole(
        root, manifest, [&](size_t tensor, uint64_t first, uint64_t count, std::byte *to) -> Status {
          const uint64_t size = bitSize(tensors[tensor].tensor.dtype) / 8;
          std::memcpy(to, tensors[tensor].bytes.data() + first * size, count * size);
          return {};
        });
    EXPECT_TRUE(path) << path.error().message;
    return path ? *path : std::string();
  }

  static Checkpoint open(const std::string &path) {
    Result<Checkpoint> checkpoint = Checkpoint::open(path);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message;
    return std::move(*checkpoint);
  }

  /// Writes a manifest back as a stranger may: changed, with a digest that fits.
  static void rewriteManifest(const std::string &directory, const Manifest &manifest) {
    writeText(directory + "/manifest.json", spellManifest(manifest));
  }

  static constexpr const char *kFile = "/shard-00000-model-00001-of-00001.safetensors";
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_CHECKPOINTTOOL_TOOLFIXTURE_H
