//===- Store.cpp - The directory that a run's checkpoints are in ---------------------===//

#include "ds/Runtime/Checkpoint/Store.h"

#include "Files/Text.h"
#include "ds/Runtime/Files/MappedFile.h"

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

namespace {

/// What a name in the directory stands for.
struct StoreName {
  enum class Kind { Checkpoint, Leftover, Aside } kind = Kind::Checkpoint;
  uint64_t step = 0;
};

/// Of "step-100", "step-100.tmp-ab12", "step-100.old-ab12" and "step-100.aside-ab12"; nothing of other names.
std::optional<StoreName> parseName(std::string_view name) {
  if (!name.starts_with(kPrefix))
    return std::nullopt;
  name.remove_prefix(kPrefix.size());
  StoreName parsed;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), parsed.step);
  if (error != std::errc())
    return std::nullopt;
  const std::string_view rest = name.substr(static_cast<size_t>(end - name.data()));
  if (rest.starts_with(".tmp-") || rest.starts_with(".old-"))
    parsed.kind = StoreName::Kind::Leftover;
  else if (rest.starts_with(".aside-"))
    parsed.kind = StoreName::Kind::Aside;
  else if (!rest.empty())
    return std::nullopt;
  return parsed;
}

} // namespace

std::vector<std::string> manifestsIn(const std::string &directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error); !error && entry != fs::directory_iterator();
       entry.increment(error))
    if (std::string name = entry->path().filename(); isManifestName(name))
      names.push_back(std::move(name));
  std::sort(names.begin(), names.end());
  return names;
}

static Result<Manifest> readOneManifest(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  const auto bytes = file->bytes();
  return parseManifest({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, path);
}

Result<Manifest> readManifestAlone(const std::string &directory) {
  const std::vector<std::string> names = manifestsIn(directory);
  if (names.empty())
    return Error{ExitCode::Corrupt,
                 quote(directory) + " has no " + kManifestName + ": its save was not finished", ""};
  Result<Manifest> whole = readOneManifest(directory + "/" + names.front());
  for (size_t i = 1; whole && i < names.size(); ++i) {
    const std::string path = directory + "/" + names[i];
    Result<Manifest> part = readOneManifest(path);
    if (!part)
      return part;
    if (whole->nodes.empty() || part->nodes.empty())
      return Error{
          ExitCode::Corrupt,
          quote(path) + " is not of the checkpoint that " + quote(names.front()) + " beside it is of", ""};
    if (Status status = addPart(*whole, std::move(*part), path); !status)
      return status.error();
  }
  return whole;
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

static bool isLink(const std::string &path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

/// What keeps a directory from being a checkpoint, and of which save it is a part.
static StoredCheckpoint look(const std::string &root, const std::string &name, uint64_t step) {
  const std::string directory = root + "/" + name;
  StoredCheckpoint found;
  found.name = name;
  found.step = step;
  found.isLink = isLink(directory);
  const Result<Manifest> manifest = readManifest(directory);
  found.hasManifest = manifest || !manifestsIn(directory).empty();
  if (!manifest) {
    found.problem = manifest.error().message;
    return found;
  }
  found.run = manifest->run;
  found.evaluations = manifest->evaluations;
  if (manifest->step != step)
    found.problem = fmt::format("{} is of step {}", quote(directory), manifest->step);
  else if (!manifest->isWhole())
    found.save = manifest->save;
  return found;
}

/// Whether a removal has taken the manifest and was ended then: there is nothing but some shards, or nothing.
/// What cannot be read, or lies behind a link, is not said to be that.
static bool isHalfRemoved(const std::string &directory) {
  std::error_code error;
  if (fs::symlink_status(directory, error).type() != fs::file_type::directory)
    return false;
  fs::directory_iterator entry(directory, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    if (const std::string name = entry->path().filename();
        !name.starts_with("shard-") || !name.ends_with(".safetensors"))
      return false;
  return !error;
}

/// Moves checkpoints of before the newest whole one that are half removed to the leftovers.
static void findHalfRemoved(const std::string &root, StoreListing &listing) {
  std::vector<StoredCheckpoint> kept;
  bool isBefore = false; // a newer whole one
  for (StoredCheckpoint &each : listing.checkpoints)
    if (isBefore && !each.hasManifest && isHalfRemoved(root + "/" + each.name)) {
      listing.leftovers.push_back(std::move(each.name));
    } else {
      isBefore |= each.problem.empty();
      kept.push_back(std::move(each));
    }
  listing.checkpoints = std::move(kept);
}

const char *spellOrigin(std::string_view leftover) {
  return leftover.find(".tmp-") == std::string_view::npos ? "left by an unfinished removal"
                                                          : "left by an unfinished save";
}

Result<StoreListing> listCheckpoints(const std::string &root) {
  StoreListing listing;
  std::error_code error;
  fs::directory_iterator entries(root, error);
  if (error == std::errc::no_such_file_or_directory)
    return listing;
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename();
    const std::optional<StoreName> parsed = parseName(name);
    if (!parsed)
      continue;
    if (parsed->kind == StoreName::Kind::Checkpoint)
      listing.checkpoints.push_back(look(root, name, parsed->step));
    else
      (parsed->kind == StoreName::Kind::Leftover ? listing.leftovers : listing.aside).push_back(name);
  }
  if (error)
    return ioError("look through", root, error.value());
  std::sort(listing.checkpoints.begin(), listing.checkpoints.end(), [](const auto &a, const auto &b) {
    return a.step != b.step ? a.step > b.step : a.name < b.name;
  });
  findHalfRemoved(root, listing);
  std::sort(listing.leftovers.begin(), listing.leftovers.end());
  std::sort(listing.aside.begin(), listing.aside.end());
  return listing;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string uniqueLetters() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

static std::string parentOf(const std::string &path) {
  const std::string parent = fs::path(path).lexically_normal().parent_path();
  return parent.empty() ? "." : parent;
}

Status makeDirectories(FileLayer &layer, const std::string &path) {
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
  if (const std::string taken = fmt::format("{}/step-{}", root, step); isLink(taken))
    return Error{ExitCode::Io, quote(taken) + " is a symbolic link, which no save replaces",
                 "move the link away, or save in another directory"};
  const std::string path = fmt::format("{}/step-{}.tmp-{}", root, step, uniqueLetters());
  if (const int failure = layer.makeDirectory(path))
    return ioError("make", path, failure);
  return path;
}

Status writeManifest(FileLayer &layer, const std::string &directory, const Manifest &manifest) {
  const std::string path = directory + "/" + manifestName(manifest), text = spellManifest(manifest);
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
  return publishSave(layer, root, unfinished, manifest.step);
}

Result<std::string> publishSave(FileLayer &layer, const std::string &root, const std::string &unfinished,
                                uint64_t step) {
  const std::string path = fmt::format("{}/step-{}", root, step);
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
  if (taken) // where it cannot be removed the next prune says why; the save has succeeded
    static_cast<void>(removeCheckpoint(layer, replaced));
  return path;
}

//===----------------------------------------------------------------------===//
// Setting aside
//===----------------------------------------------------------------------===//

Result<std::vector<std::pair<std::string, std::string>>>
setAside(FileLayer &layer, const std::string &root,
         const std::function<bool(const StoredCheckpoint &)> &isAbandoned) {
  const Result<StoreListing> listing = listCheckpoints(root);
  if (!listing)
    return listing.error();
  std::vector<std::pair<std::string, std::string>> renamed;
  for (const StoredCheckpoint &each : listing->checkpoints) {
    if (!isAbandoned(each))
      continue;
    const std::string aside = fmt::format("{}.aside-{}", each.name, uniqueLetters());
    if (const int failure = layer.rename(root + "/" + each.name, root + "/" + aside))
      return ioError("set aside", root + "/" + each.name, failure);
    renamed.emplace_back(each.name, aside);
  }
  if (!renamed.empty())
    if (const int failure = layer.syncDirectory(root))
      return ioError("sync", root, failure);
  return renamed;
}

//===----------------------------------------------------------------------===//
// The lock
//===----------------------------------------------------------------------===//

Result<StoreLock> StoreLock::take(const std::string &root) {
  if (Status status = makeDirectories(systemFiles(), root); !status)
    return status.error();
  const std::string path = root + "/.lock";
  // Behind a link it would be made, or held, in a place that is not this store's; a pipe would block.
  Descriptor file(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  if (!file && errno != ELOOP)
    return ioError("write to", root, errno);
  if (struct stat info; !file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return Error{ExitCode::Io, quote(path) + " is no regular file: no run has left it",
                 "remove it, or name another directory with --save"};
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0 || errno == ENOSYS || errno == EOPNOTSUPP)
    return StoreLock(std::move(file)); // file systems without locks cannot be asked
  const int failure = errno;
  if (failure == EWOULDBLOCK)
    return Error{ExitCode::Io, quote(root) + " is in use: another run saves its checkpoints there",
                 "name another directory with --save, or end that run"};
  return ioError("lock", path, failure);
}

} // namespace ds::rt
