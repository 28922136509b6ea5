//===- ChunkReader.cpp - Reads and digests chunks ahead of who uses them --------------===//

#include "ChunkReader.h"

#include "Files/AlignedBlock.h"
#include "Files/Text.h"
#include "StartThreads.h"

#include "ds/Runtime/Files/FileLayer.h"
#include "ds/Support/Descriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace ds::rt {
namespace {

constexpr size_t kThreads = 3, kSlots = 6;

/// The files of a checkpoint, each opened when it is first read.
class OpenFiles {
public:
  OpenFiles(const std::string &directory, const Manifest &manifest)
      : directory(directory), manifest(manifest) {}
  std::string path(uint32_t number) const { return directory + "/" + manifest.files[number].name; }

  Result<int> get(uint32_t number) {
    const std::lock_guard lock(mutex);
    Descriptor &file = open[number];
    if (file)
      return file.get();
    const bool aligned = manifest.chunkBytes % kDirectUnit == 0;
    if (aligned)
      file = Descriptor(::open(path(number).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_DIRECT));
    if (!file && (!aligned || errno == EINVAL)) // a file system without
      file = Descriptor(::open(path(number).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (!file)
      return ioError("read", path(number), errno);
    return file.get();
  }

private:
  const std::string &directory;
  const Manifest &manifest;
  std::mutex mutex;
  std::map<uint32_t, Descriptor> open;
};

/// Where one chunk is read to.
struct Slot {
  AlignedBlock data;
  ReadChunk chunk;
  Status status;
  bool ready = false;
};

class Reader {
public:
  Reader(const std::string &directory, const Manifest &manifest, const std::vector<ChunkNumber> &chunks)
      : manifest(manifest), chunks(chunks), files(directory, manifest),
        slots(std::min(kSlots, std::max<size_t>(chunks.size(), 1))) {
    uint64_t most = 0;
    for (const ChunkNumber &each : chunks)
      most = std::max(most, bytesOf(each));
    most = (most + kDirectUnit - 1) / kDirectUnit * kDirectUnit;
    for (Slot &slot : slots)
      slot.data = allocateBlock(std::max<size_t>(most, kDirectUnit));
    threads = startThreads(std::min(kThreads, slots.size()), [this] { work(); });
  }
  ~Reader() { endThreads(threads, mutex, changed, ending); }

  Status forEach(const std::function<Status(const ReadChunk &)> &use) {
    for (size_t i = 0; i < chunks.size(); ++i) {
      Slot &slot = slots[i % slots.size()];
      if (threads.empty()) {
        slot.status = read(chunks[i], slot);
      } else {
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return slot.ready; });
      }
      Status status = slot.status ? use(slot.chunk) : slot.status;
      if (!status)
        return status;
      const std::lock_guard lock(mutex);
      slot.ready = false;
      used = i + 1;
      changed.notify_all();
    }
    return {};
  }

private:
  uint64_t bytesOf(const ChunkNumber &each) const {
    const uint64_t all = manifest.files[each.file].bytes;
    return std::min(manifest.chunkBytes, all - each.chunk * manifest.chunkBytes);
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return ending || next == chunks.size() || next < used + slots.size(); });
      if (ending || next == chunks.size())
        return;
      const size_t number = next++;
      Slot &slot = slots[number % slots.size()];
      lock.unlock();
      slot.status = read(chunks[number], slot);
      lock.lock();
      slot.ready = true;
      changed.notify_all();
    }
  }

  Status read(const ChunkNumber &which, Slot &slot) {
    const Result<int> file = files.get(which.file);
    if (!file)
      return file.error();
    const uint64_t bytes = bytesOf(which), offset = which.chunk * manifest.chunkBytes;
    const uint64_t asked = (bytes + kDirectUnit - 1) / kDirectUnit * kDirectUnit;
    uint64_t done = 0;
    while (done < bytes) {
      // What is left of a direct read that ended between two units is read again from the unit's start.
      const uint64_t from = done / kDirectUnit * kDirectUnit;
      const ssize_t count =
          ::pread(*file, slot.data.get() + from, asked - from, static_cast<off_t>(offset + from));
      if (count < 0 && errno == EINTR)
        continue;
      if (count < 0)
        return ioError("read", files.path(which.file), errno);
      if (from + static_cast<uint64_t>(count) <= done)
        return Error{ExitCode::Corrupt,
                     fmt::format("{} ends at byte {}, but has {} in the manifest",
                                 quote(files.path(which.file)), offset + done,
                                 manifest.files[which.file].bytes),
                     ""};
      done = from + static_cast<uint64_t>(count);
    }
    slot.chunk = {which.file, offset, {slot.data.get(), static_cast<size_t>(bytes)}, false};
    slot.chunk.good = digestOf(slot.chunk.bytes) == manifest.files[which.file].digests[which.chunk];
    return {};
  }

  const Manifest &manifest;
  const std::vector<ChunkNumber> &chunks;
  OpenFiles files;
  std::mutex mutex; ///< guards what follows; a slot is its reader's until it is ready, then the caller's
  std::condition_variable changed;
  std::vector<Slot> slots;
  size_t next = 0, used = 0; ///< chunks that threads have taken; that the caller has done with
  bool ending = false;
  std::vector<std::thread> threads;
};

} // namespace

Status readChunks(const std::string &directory, const Manifest &manifest,
                  const std::vector<ChunkNumber> &chunks,
                  const std::function<Status(const ReadChunk &)> &use) {
  return chunks.empty() ? Status() : Reader(directory, manifest, chunks).forEach(use);
}

} // namespace ds::rt
