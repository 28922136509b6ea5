//===- VerifyFile.cpp - Whether one file of a checkpoint is what was written -----------===//
//
// Read in pieces that do not depend on the size of chunks, which a stranger may have chosen. Which tensors
// lie in a chunk is asked of the header, even of a file that is cut off behind it; a header that is damaged
// itself is believed as far as it can be read, for it only names what may be lost.
//
//===---------------------------------------------------------------------------===//

#include "VerifyFile.h"

#include "Files/Text.h"
#include "Formats/SafeTensorsHeader.h"
#include "ds/Support/Descriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::rt {
namespace {

constexpr uint64_t kPieceBytes = uint64_t(1) << 20;
/// A header that is longer is not searched for names.
constexpr uint64_t kMostHeaderBytes = uint64_t(64) << 20;

/// Reads up to bytes.size() bytes; fewer at the end of the file. -errno.
int64_t readAt(int file, uint64_t offset, std::span<std::byte> bytes) {
  uint64_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return -errno;
    if (count == 0)
      break;
    done += static_cast<uint64_t>(count);
  }
  return static_cast<int64_t>(done);
}

class Verifier {
public:
  Verifier(std::string path, const CheckpointFile &file, uint64_t chunkBytes)
      : path(std::move(path)), file(file), chunkBytes(chunkBytes), buffer(kPieceBytes) {}

  Status run() {
    descriptor = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat info;
    if (!descriptor && errno != ENOENT && errno != ELOOP)
      return ioError("read", path, errno);
    if (!descriptor || ::fstat(descriptor.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      add(0, 0, !descriptor && errno == ENOENT ? "is missing" : "is not a regular file");
      return {};
    }
    size = static_cast<uint64_t>(info.st_size);
    for (uint64_t chunk = 0; chunk < file.digests.size(); ++chunk)
      if (Status status = check(chunk); !status)
        return status;
    if (size > file.bytes)
      add(file.bytes, size - file.bytes, "are after the end that the manifest says");
    return nameTensors();
  }

  std::vector<Damage> damages;

private:
  void add(uint64_t first, uint64_t bytes, std::string what) {
    damages.push_back({path, first, bytes, std::move(what), {}});
  }

  Status check(uint64_t chunk) {
    const uint64_t first = chunk * chunkBytes, bytes = std::min(chunkBytes, file.bytes - first);
    if (first + bytes > size) { // whatever is left of the chunk cannot be compared
      add(first, bytes, fmt::format("are not all there: the file ends at byte {}", size));
      return {};
    }
    for (uint64_t done = 0; done < bytes;) {
      const std::span<std::byte> piece(buffer.data(), std::min(kPieceBytes, bytes - done));
      const int64_t count = readAt(descriptor.get(), first + done, piece);
      if (count < 0)
        return ioError("read", path, static_cast<int>(-count));
      if (count == 0)
        return Error{ExitCode::Io, quote(path) + " became shorter while it was read", ""};
      digester.add(piece.first(static_cast<size_t>(count)));
      done += static_cast<uint64_t>(count);
    }
    if (digester.finish() != file.digests[chunk])
      add(first, bytes, "are not what was written");
    return {};
  }

  /// The header as JSON; empty where it cannot be had.
  std::string readHeader() const {
    uint64_t length = 0;
    if (readAt(descriptor.get(), 0, std::as_writable_bytes(std::span(&length, 1))) != 8 || length > size ||
        length > kMostHeaderBytes)
      return {};
    std::string json(length, '\0');
    const int64_t count = readAt(descriptor.get(), 8, std::as_writable_bytes(std::span(json)));
    return count == static_cast<int64_t>(length) ? json : std::string();
  }

  Status nameTensors() {
    if (damages.empty())
      return {};
    const std::string json = readHeader();
    HeaderTables header;
    std::string unused;
    if (json.empty() || !parseHeader(json, header, unused))
      return {};
    const uint64_t data = 8 + json.size();
    for (Damage &damage : damages)
      for (const HeaderTables::Tensor &tensor : header.tensors)
        if (data + tensor.begin < damage.first + damage.bytes && damage.first < data + tensor.end)
          damage.tensors.emplace_back(header.view(tensor.name));
    return {};
  }

  const std::string path;
  const CheckpointFile &file;
  const uint64_t chunkBytes;
  std::vector<std::byte> buffer;
  Digester digester;
  Descriptor descriptor;
  uint64_t size = 0; ///< of the file as it is
};

} // namespace

Result<std::vector<Damage>> verifyFile(const std::string &directory, const CheckpointFile &file,
                                       uint64_t chunkBytes) {
  Verifier verifier(directory + "/" + file.name, file, chunkBytes);
  if (Status status = verifier.run(); !status)
    return status.error();
  return std::move(verifier.damages);
}

} // namespace ds::rt
