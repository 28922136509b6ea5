//===- ReadersFuzz.cpp - Every reader of untrusted files under libFuzzer -------===//
//
// The first byte of the input chooses the reader, the rest is the file, or what an index and its tokens are
// cut from. Whatever is accepted is read to its last byte, so that a wrong size is found by the address
// sanitizer.
//
//===---------------------------------------------------------------------------===//

#include "Data/BlendFile.h"
#include "ds/Runtime/Data/DataSource.h"
#include "ds/Runtime/Data/IndexedTokens.h"
#include "ds/Runtime/Data/TokenStream.h"
#include "ds/Runtime/Formats/Npy.h"
#include "ds/Runtime/Formats/SafeTensors.h"
#include "ds/Runtime/Formats/TorchFile.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

using namespace ds;
using namespace ds::rt;

namespace {

/// The bytes as a file without a disk. Its name must end as the readers expect, hence a link beside it.
class FuzzFile {
public:
  FuzzFile(const uint8_t *bytes, size_t size, const char *extension) {
    fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, size) != ssize_t(size))
      abort();
    static const std::string directory = [] {
      char name[] = "/tmp/ds-formats-fuzz-XXXXXX";
      return std::string(mkdtemp(name));
    }();
    path = directory + "/f" + extension;
    unlink(path.c_str());
    if (symlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.c_str()) != 0)
      abort();
  }
  ~FuzzFile() {
    unlink(path.c_str());
    close(fd);
  }
  std::string path;

private:
  int fd;
};

/// Reads every byte in a way that is not optimised away.
void touch(const std::byte *data, uint64_t bytes) {
  volatile unsigned sum = 0;
  for (uint64_t i = 0; i < bytes; ++i)
    sum = sum + unsigned(data[i]);
}

void readTensors(const std::string &path) {
  Result<SafeTensorsFile> file = SafeTensorsFile::open(path);
  if (!file)
    return;
  for (const TensorEntry &entry : file->entries()) {
    touch(entry.data, entry.bytes);
    if (file->find(entry.name) != &entry)
      abort();
  }
}

/// Two steps of training on the file, for inputs that a small file can fill.
void readData(const std::string &path, size_t numInputs) {
  DataOptions options;
  options.path = path;
  if (path.ends_with(".bin"))
    options.tokenWidth = TokenWidth::U16;
  if (path.ends_with(".bin") || path.ends_with(".idx"))
    options.documentToken = 3;
  options.shuffle = true;
  std::vector<InputSpec> inputs = {{"x", DType::I64, {1, 2}, 100},
                                   {"y", DType::I64, {1, 2}, 100, true, -100}};
  inputs.resize(numInputs);
  Result<DataSource> source = DataSource::open(options, inputs);
  int64_t x[2], y[2];
  void *destinations[] = {x, y};
  for (uint64_t step = 0; source && step < 2; ++step)
    (void)source->fill(step, 0, 0, std::span(destinations, numInputs));
}

/// What can be asked of a value, and of what it holds some steps deep; tensors are read.
void readValue(const PickleValue &value, const TorchFile *file, unsigned depth) {
  (void)value.find("a"), (void)value.describe(), (void)value.asBytes();
  if (std::optional<PickleTensor> tensor = value.asTensor();
      tensor && file && tensor->numElements() < 100'000) {
    std::vector<std::byte> elements(tensor->numElements() * bitSize(tensor->dtype) / 8);
    (void)file->read(*tensor, 0, tensor->numElements(), elements.data());
  }
  for (size_t i = 0; i < value.size() && i < 20 && depth > 0; ++i)
    readValue(value.isMap() ? value.value(i) : value[i], file, depth - 1);
}

void readTorch(const std::string &path) {
  if (Result<TorchFile> file = TorchFile::open(path))
    readValue(file->root(), &*file, 3);
}

/// An index, whose length is in the first byte, and its tokens.
void readIndexed(const uint8_t *bytes, size_t size) {
  const size_t length = size == 0 ? 0 : std::min<size_t>(bytes[0], size - 1);
  FuzzFile index(bytes + 1, length, ".idx"),
      data(bytes + 1 + length, size == 0 ? 0 : size - 1 - length, ".bin");
  if (Result<IndexedTokens> pair = IndexedTokens::open(index.path, data.path))
    touch(pair->data().data(), pair->size() * (bitSize(pair->dtype()) / 8));
  readData(index.path, 2);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  if (size == 0)
    return 0;
  static constexpr const char *kExtensions[] = {".safetensors", ".npy", ".bin", ".json"};
  unsigned reader = bytes[0] % 9;
  if (reader == 7) {
    readIndexed(bytes + 1, size - 1);
    return 0;
  }
  FuzzFile file(bytes + 1, size - 1, reader == 8 ? ".json" : kExtensions[reader % 4]);
  switch (reader) {
  case 0:
    readTensors(file.path);
    break;
  case 1: // .npy
    readData(file.path, 1);
    break;
  case 3: // .json
    (void)WeightFiles::open(file.path);
    break;
  case 5: // torch.save
    readTorch(file.path);
    break;
  case 6:
    if (Result<Pickle> pickle = Pickle::read({reinterpret_cast<const char *>(bytes) + 1, size - 1}, "p"))
      readValue(pickle->root(), nullptr, 3);
    break;
  case 8: // patterns are not looked for: they would lead anywhere
    (void)readBlendFile(file.path);
    break;
  default: // .bin, and .safetensors as data
    readData(file.path, 2);
    break;
  }
  return 0;
}
