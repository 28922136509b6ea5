//===- Store.cpp - The directory that a run's checkpoints are in ---------------------===//

#include "ds/Runtime/Checkpoint/Store.h"

#include "Formats/Text.h"
#include "ds/Runtime/Formats/MappedFile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <random>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::rt {

namespace fs = std::filesystem;

static constexpr std::string_view kPrefix = "step-";

//===----------------------------------------------------------------------===//
// Looking
//===----------------------------------------------------------------------===//

/// The step of "step-100", and of "step-100.tmp-ab12" with `leftover` set; nothing of other names.
static std::optional<uint64_t> parseName(std::string_view name, bool &leftover) {
  if (!name.starts_with(kPrefix))
    return std::nullopt;
  name.remove_prefix(kPrefix.size());
  uint64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  const std::string_view rest = name.substr(static_cast<size_t>(end - name.data()));
  leftover = rest.starts_with(".tmp-") || rest.starts_with(".old-");
  const bool known = error == std::errc() && (rest.empty() || leftover);
  return known ? std::optional(step) : std::nullopt;
}

Result<Manifest> readManifestAlone(const std::string &directory) {
  const std::string path = directory + "/" + kManifestName;
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 && errno == ENOENT)
    return Error{ExitCode::Corrupt,
                 quote(directory) + " has no " + kManifestName + ": its save was not finished", ""};
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  const auto bytes = file->bytes();
  return parseManifest({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, path);
}

Status checkFile(const std::string &directory, const CheckpointFile &file) {
  const std::string name = directory + "/" + file.name;
  struct stat info;
  if (::lstat(name.c_str(), &info) != 0)
    return Error{ExitCode::Corrupt, quote(name) + " is missing: " + std::strerror(errno), ""};
  if (!S_ISREG(info.st_mode))
    return Error{ExitCode::Corrupt, quote(name) + " is not a regular file", ""};
  if (static_cast<uint64_t>(info.st_size) != file.bytes)
    return Error{
        ExitCode::Corrupt,
        fmt::format("{} has {} bytes, but the manifest says {}", quote(name), info.st_size, file.bytes), ""};
  return {};
}

Result<Manifest> readManifest(const std::string &directory) {
  Result<Manifest> manifest = readManifestAlone(directory);
  if (!manifest)
    return manifest;
  for (const CheckpointFile &each : manifest->files)
    if (Status status = checkFile(directory, each); !status)
      return status.error();
  return manifest;
}

/// What keeps a directory from being a checkpoint.
static std::string problemOf(const std::string &directory, uint64_t step) {
  const Result<Manifest> manifest = readManifest(directory);
  if (!manifest)
    return manifest.error().message;
  return manifest->step == step ? std::string()
                                : fmt::format("{} is of step {}", quote(directory), manifest->step);
}

Result<StoreListing> listCheckpoints(const std::string &root) {
  StoreListing listing;
  std::error_code error;
  fs::directory_iterator entries(root, error);
  if (error == std::errc::no_such_file_or_directory)
    return listing;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename();
    bool leftover = false;
    const std::optional<uint64_t> step = parseName(name, leftover);
    if (step && leftover)
      listing.leftovers.push_back(name);
    else if (step)
      listing.checkpoints.push_back({name, *step, problemOf(root + "/" + name, *step)});
  }
  if (error)
    return ioError("look through", root, error.value());
  std::sort(listing.checkpoints.begin(), listing.checkpoints.end(), [](const auto &a, const auto &b) {
    return a.step != b.step ? a.step > b.step : a.name < b.name;
  });
  std::sort(listing.leftovers.begin(), listing.leftovers.end());
  return listing;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Letters that no other save has.
static std::string uniqueLetters() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

static std::string parentOf(const std::string &path) {
  const std::string parent = fs::path(path).lexically_normal().parent_path();
  return parent.empty() ? "." : parent;
}

/// Makes the directory and those above it that are missing, durably.
static Status makeDirectories(FileLayer &layer, const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0)
    return S_ISDIR(info.st_mode) ? Status() : Status(ioError("save to", path, ENOTDIR));
  const std::string parent = parentOf(path);
  if (parent != path)
    if (Status status = makeDirectories(layer, parent); !status)
      return status;
  if (const int failure = layer.makeDirectory(path); failure && failure != EEXIST)
    return ioError("make", path, failure);
  if (const int failure = layer.syncDirectory(parent))
    return ioError("sync", parent, failure);
  return {};
}

Result<std::string> beginSave(FileLayer &layer, const std::string &root, uint64_t step) {
  if (Status status = makeDirectories(layer, root); !status)
    return status.error();
  const std::string path = fmt::format("{}/step-{}.tmp-{}", root, step, uniqueLetters());
  if (const int failure = layer.makeDirectory(path))
    return ioError("make", path, failure);
  return path;
}

static Status writeManifest(FileLayer &layer, const std::string &directory, const Manifest &manifest) {
  const std::string path = directory + "/" + kManifestName, text = spellManifest(manifest);
  const int file = layer.create(path);
  if (file < 0)
    return ioError("make", path, -file);
  int failure = 0;
  for (std::string_view rest = text; !rest.empty() && failure == 0;) {
    const int64_t count = layer.write(file, text.size() - rest.size(), rest.data(), rest.size());
    if (count < 0)
      failure = static_cast<int>(-count);
    else
      rest.remove_prefix(static_cast<size_t>(count));
  }
  if (failure == 0)
    failure = layer.sync(file);
  const int closing = layer.close(file);
  if (failure == 0)
    failure = closing;
  if (failure == 0)
    failure = layer.syncDirectory(directory);
  return failure ? Status(ioError("write", path, failure)) : Status();
}

Result<std::string> commitSave(FileLayer &layer, const std::string &root, const std::string &unfinished,
                               const Manifest &manifest) {
  if (Status status = writeManifest(layer, unfinished, manifest); !status)
    return status.error();
  const std::string path = fmt::format("{}/step-{}", root, manifest.step);
  int failure = layer.rename(unfinished, path);
  const bool taken = failure == EEXIST || failure == ENOTEMPTY;
  std::string replaced = unfinished;
  if (taken) { // an earlier one of this step
    failure = layer.exchange(unfinished, path);
    if (failure == ENOSYS || failure == EINVAL) {
      replaced = fmt::format("{}.old-{}", path, uniqueLetters());
      failure = layer.rename(path, replaced);
      if (failure == 0)
        failure = layer.rename(unfinished, path);
    }
  }
  if (failure)
    return ioError("give its name to", path, failure);
  if ((failure = layer.syncDirectory(root)))
    return ioError("sync", root, failure);
  if (taken)
    if (Status status = removeCheckpoint(layer, replaced); !status)
      return status.error();
  return path;
}

//===----------------------------------------------------------------------===//
// Removing
//===----------------------------------------------------------------------===//

Status removeCheckpoint(FileLayer &layer, const std::string &directory) {
  const std::string manifest = directory + "/" + kManifestName;
  if (const int failure = layer.remove(manifest); failure && failure != ENOENT)
    return ioError("remove", manifest, failure);
  if (const int failure = layer.syncDirectory(directory))
    return ioError("sync", directory, failure);
  std::error_code error;
  std::vector<std::string> files;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    files.push_back(entry->path());
  if (error)
    return ioError("look through", directory, error.value());
  for (const std::string &file : files)
    if (const int failure = layer.remove(file))
      return ioError("remove", file, failure);
  if (const int failure = layer.removeDirectory(directory))
    return ioError("remove", directory, failure);
  return {};
}

Status pruneCheckpoints(FileLayer &layer, const std::string &root, uint32_t keep) {
  const Result<StoreListing> listing = listCheckpoints(root);
  if (!listing)
    return listing.error();
  uint32_t whole = 0;
  for (const StoredCheckpoint &checkpoint : listing->checkpoints) {
    const bool damaged = !checkpoint.problem.empty(); // somebody may want to know why
    if (!damaged && ++whole > std::max(keep, 2u))
      if (Status status = removeCheckpoint(layer, root + "/" + checkpoint.name); !status)
        return status;
  }
  for (const std::string &name : listing->leftovers)
    if (whole > 0)
      if (Status status = removeCheckpoint(layer, root + "/" + name); !status)
        return status;
  return {};
}

//===----------------------------------------------------------------------===//
// The lock
//===----------------------------------------------------------------------===//

Result<StoreLock> StoreLock::take(const std::string &root) {
  if (Status status = makeDirectories(systemFiles(), root); !status)
    return status.error();
  const std::string path = root + "/.lock";
  const int file = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  if (file < 0)
    return ioError("write to", root, errno);
  if (::flock(file, LOCK_EX | LOCK_NB) == 0 || errno == ENOSYS || errno == EOPNOTSUPP)
    return StoreLock(file); // file systems without locks cannot be asked
  const int failure = errno;
  ::close(file);
  if (failure == EWOULDBLOCK)
    return Error{ExitCode::Io, quote(root) + " is in use: another run saves its checkpoints there",
                 "name another directory with --save, or end that run"};
  return ioError("lock", path, failure);
}

StoreLock::~StoreLock() {
  if (file >= 0)
    ::close(file);
}

} // namespace ds::rt
