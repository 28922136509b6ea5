//===- TorchFile.cpp - Files of torch.save --------------------------------------===//

#include "ds/Runtime/Formats/TorchFile.h"

#include "Files/OpenFile.h"
#include "Files/Text.h"
#include "TorchArchive.h"

#include <cassert>
#include <cstring>
#include <mutex>
#include <new>

#include <sys/stat.h>

using namespace ds;
using namespace ds::rt;

namespace {

/// The storage's elements that a tensor reaches, where these are not in its order.
struct LoadedTensor {
  std::string storage;
  uint64_t begin = 0; ///< byte of the storage
  std::vector<std::byte> bytes;
};

} // namespace

struct TorchFile::Contents {
  std::string path;
  TorchFileIdentity identity;
  TorchArchive archive;
  Pickle pickle;
  std::mutex reading; ///< guards the archive, whose entries are opened and sought, and `loaded`
  LoadedTensor loaded;

  Status readPacked(TorchArchive::Entry &entry, const PickleTensor &tensor, uint64_t first, uint64_t count,
                    void *to);
  Status load(TorchArchive::Entry &entry, const PickleTensor &tensor);
  void gather(const PickleTensor &tensor, uint64_t first, uint64_t count, void *to) const;
};

TorchFile::TorchFile(std::unique_ptr<Contents> contents) : contents(std::move(contents)) {}
TorchFile::TorchFile(TorchFile &&) noexcept = default;
TorchFile &TorchFile::operator=(TorchFile &&) noexcept = default;
TorchFile::~TorchFile() = default;

const std::string &TorchFile::path() const { return contents->path; }
const TorchFileIdentity &TorchFile::identity() const { return contents->identity; }
PickleValue TorchFile::root() const { return contents->pickle.root(); }

/// Whether each storage of the pickle is an entry of the right size.
static Status checkStorages(const Pickle &pickle, TorchArchive &archive, const std::string &path) {
  for (const Pickle::Storage &storage : pickle.storages()) {
    TorchArchive::Entry *entry = archive.find("data/" + std::string(storage.key));
    if (!entry || entry->bytes != storage.bytes)
      return Error{ExitCode::Corrupt,
                   quote(path) + ": expects " + std::to_string(storage.bytes) + " bytes in entry 'data/" +
                       std::string(storage.key.substr(0, 100)) + "', but " +
                       (entry ? "it has " + std::to_string(entry->bytes) : "there is none"),
                   "copy the file again, or save it again with torch.save"};
  }
  return {};
}

Result<TorchFile> TorchFile::adopt(int fd, const std::string &path) try {
  struct stat info = {};
  fstat(fd, &info);
  Result<TorchArchive> archive = TorchArchive::open(fd, path);
  if (!archive)
    return archive.error();
  TorchArchive::Entry &entry = *archive->find("data.pkl");
  if (entry.bytes > kMaxPickleBytes)
    return Error{ExitCode::Corrupt,
                 quote(path) + ": the pickle has " + std::to_string(entry.bytes) + " bytes; the limit is " +
                     std::to_string(kMaxPickleBytes),
                 "save values of that size as tensors"};
  Result<std::string> bytes = archive->readAll(entry);
  if (!bytes)
    return bytes.error();
  Result<Pickle> pickle = Pickle::read(std::move(*bytes), path);
  if (!pickle)
    return pickle.error();
  if (Status status = checkStorages(*pickle, *archive, path); !status)
    return status.error();
  TorchFileIdentity identity = {info.st_dev, info.st_ino, uint64_t(info.st_size),
                                int64_t(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec};
  return TorchFile(std::unique_ptr<Contents>(
      new Contents{path, identity, std::move(*archive), std::move(*pickle), {}, {}}));
} catch (const std::bad_alloc &) {
  return Error{ExitCode::Io, "no memory for the index of " + quote(path), "free memory"};
}

Result<TorchFile> TorchFile::open(const std::string &path) {
  Result<int> fd = openFile(path);
  return fd ? adopt(*fd, path) : Result<TorchFile>(fd.error());
}

Result<TorchFile> TorchFile::openBeneath(const std::string &directory, std::string_view name) {
  Result<int> fd = openFileBeneath(directory, name);
  return fd ? adopt(*fd, directory + "/" + std::string(name)) : Result<TorchFile>(fd.error());
}

Status TorchFile::Contents::readPacked(TorchArchive::Entry &entry, const PickleTensor &tensor, uint64_t first,
                                       uint64_t count, void *to) {
  uint64_t width = bitSize(tensor.dtype) / 8;
  return archive.readAt(entry, (tensor.offset + first) * width, to, count * width);
}

/// Loads all that the tensor reaches into `loaded`, unless that is there already.
Status TorchFile::Contents::load(TorchArchive::Entry &entry, const PickleTensor &tensor) {
  uint64_t width = bitSize(tensor.dtype) / 8, elements = 1;
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    elements += uint64_t(tensor.shape[i] - 1) * uint64_t(tensor.strides[i]);
  uint64_t begin = tensor.offset * width, bytes = elements * width;
  if (loaded.storage == tensor.storage && loaded.begin == begin && loaded.bytes.size() == bytes)
    return {};
  loaded = {};
  std::vector<std::byte> values(bytes);
  if (Status status = archive.readAt(entry, begin, values.data(), bytes); !status)
    return status;
  loaded = {tensor.storage, begin, std::move(values)};
  return {};
}

/// Copies elements of row-major order out of `loaded`.
void TorchFile::Contents::gather(const PickleTensor &tensor, uint64_t first, uint64_t count, void *to) const {
  uint64_t width = bitSize(tensor.dtype) / 8;
  size_t rank = tensor.shape.size();
  std::vector<uint64_t> index(rank); // of element `first`, then of each that follows
  uint64_t at = 0;                   // its place, in elements
  for (size_t i = rank; i-- > 0; first /= uint64_t(tensor.shape[i])) {
    index[i] = first % uint64_t(tensor.shape[i]);
    at += index[i] * uint64_t(tensor.strides[i]);
  }
  auto *out = static_cast<std::byte *>(to);
  for (; count > 0; --count, out += width) {
    memcpy(out, loaded.bytes.data() + at * width, width);
    for (size_t i = rank; i-- > 0;) {
      at += uint64_t(tensor.strides[i]);
      if (++index[i] < uint64_t(tensor.shape[i]))
        break;
      at -= index[i] * uint64_t(tensor.strides[i]);
      index[i] = 0;
    }
  }
}

Status TorchFile::read(const PickleTensor &tensor, uint64_t first, uint64_t count, void *to) const try {
  assert(first <= tensor.numElements() && count <= tensor.numElements() - first && "reads past the tensor");
  if (count == 0)
    return {};
  std::lock_guard<std::mutex> lock(contents->reading);
  TorchArchive::Entry *entry = contents->archive.find("data/" + tensor.storage);
  assert(entry && "a tensor of another file");
  if (tensor.isPacked())
    return contents->readPacked(*entry, tensor, first, count, to);
  if (Status status = contents->load(*entry, tensor); !status)
    return status;
  contents->gather(tensor, first, count, to);
  return {};
} catch (const std::bad_alloc &) {
  return Error{ExitCode::Io, "no memory for a tensor of " + quote(path()) + " that is not in row-major order",
               "save it with .contiguous()"};
}
