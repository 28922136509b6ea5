//===- Manifest.h - What a checkpoint says of itself -----------------------------===//
//
// A checkpoint is a directory `step-N` of safetensors files and `manifest.json`. The files hold boxes of
// tensors, in the form in which PyTorch's distributed checkpoints keep them, so that others read them. The
// manifest is written last: it names every file, its size and digests, says what the tensors are, how ranks
// held them, and what a run needs beside tensors to go on as if it had never stopped. A directory without a
// manifest, or whose files are not those that it names, is no checkpoint.
//
// The first line of the file is a digest of all that follows it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINT_MANIFEST_H
#define DS_RUNTIME_CHECKPOINT_MANIFEST_H

#include "ds/Runtime/Checkpoint/Digest.h"
#include "ds/Runtime/Formats/FileDType.h"
#include "ds/Runtime/Layout.h"
#include "ds/Runtime/Program.h"
#include "ds/Support/Error.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

/// Version of the form that this build writes, and the newest that it reads.
inline constexpr uint64_t kCheckpointFormat = 1;
inline constexpr const char *kManifestName = "manifest.json";
/// A larger one is refused: reading takes some ten times as much memory. A million tensors need less.
inline constexpr uint64_t kMaxManifestBytes = 300'000'000;

/// One tensor of a checkpoint.
struct CheckpointTensor {
  std::string name;                 ///< in the files; for a master that of its parameter
  Role role = Role::Parameter;      ///< Parameter, Buffer, Moment or Scalar
  std::string owner;                ///< of a moment: the parameter
  FileDType dtype = FileDType::F32; ///< the exact one: a 16-bit parameter with a master is kept as the master
  std::vector<int64_t> shape;
  std::vector<std::string> aliases; ///< other names of the same tensor
  bool trainable = false;
  Layout layout;                   ///< how the ranks that wrote it held it, on the manifest's mesh
  FileDType held = FileDType::F32; ///< type in which the model used it: 16 bits where there was a master
};

/// One file of a checkpoint.
struct CheckpointFile {
  std::string name; ///< plain: no directory
  uint64_t bytes = 0;
  std::vector<std::string> digests; ///< of each chunk of Manifest::chunkBytes, the last one shorter
};

/// Where the data stand.
struct DataCursor {
  std::string sign;     ///< what the data are: see DataSource::sign; empty: no data have been read
  uint64_t samples = 0; ///< consumed by all ranks together, since the first step
  uint64_t tokens = 0;  ///< likewise; 0 where the model has none
  bool shuffle = false;
  uint64_t seed = 0; ///< of the order
};

/// A manifest has no more digests than this, by way of larger chunks.
inline constexpr uint64_t kMostChunks = uint64_t(1) << 16;

struct Manifest {
  uint64_t step = 0;  ///< finished
  std::string writer; ///< who has written it: "ds-run"
  std::string planHash, target, configText;
  std::string modelConfig; ///< the Hugging Face config.json that the model came from; empty: from elsewhere
  Mesh mesh;
  uint32_t microBatch = 1, accumulation = 1;
  uint64_t seed = 0; ///< of initialisation and dropout
  DataCursor data;
  std::vector<CheckpointTensor> tensors;
  uint64_t chunkBytes = uint64_t(4) << 20;
  std::vector<CheckpointFile> files;
};

/// The text of manifest.json.
std::string spellManifest(const Manifest &manifest);

/// Reads it. Corrupt: damaged, not a manifest, of a newer form, or names what may not be named. `path` is for
/// messages.
Result<Manifest> parseManifest(std::string_view text, const std::string &path);

/// The files of one rank as text for the others, and back; for messages between ranks.
std::string spellFiles(std::span<const CheckpointFile> files);
Result<std::vector<CheckpointFile>> parseFiles(std::string_view text);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINT_MANIFEST_H
