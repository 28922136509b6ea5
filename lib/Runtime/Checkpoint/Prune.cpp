//===- Prune.cpp - Removes checkpoints that are needed no more ----------------------===//
//
// A user may have moved a checkpoint to an archive and left a link in its place, mounted a disk there, or put
// notes beside its files. None of that was made by a save, and none of it goes. So a directory is opened
// once, without following a link, all that is in it is looked at, and only then each file is removed by its
// name within the open directory: a path that is looked up again could lead elsewhere by then.
//
//===---------------------------------------------------------------------------===//

#include "Files/Text.h"

#include "ds/Runtime/Checkpoint/Store.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::rt {
namespace {

struct CloseDirectory {
  void operator()(DIR *directory) const { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

/// A directory that was to be removed, and what is in it.
struct Opened {
  Directory parent, self;
  std::string name; ///< in the parent
  std::vector<std::string> files;
};

Error refusal(const std::string &path, const std::string &why) {
  return Error{ExitCode::Invalid, quote(path) + " stays: " + why, ""};
}

/// Whether `name` is `pattern`, in which each '#' stands for digits.
bool isNumbered(std::string_view name, std::string_view pattern) {
  const auto isDigit = [](char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; };
  for (const char expected : pattern) {
    const auto digits =
        static_cast<size_t>(std::find_if_not(name.begin(), name.end(), isDigit) - name.begin());
    if (expected == '#' ? digits == 0 : name.empty() || name.front() != expected)
      return false;
    name.remove_prefix(expected == '#' ? digits : 1);
  }
  return name.empty();
}

/// Whether a save gives this name to a file.
bool isNameOfSave(std::string_view name) {
  return name == kManifestName || isNumbered(name, "manifest-#-of-#.json") ||
         isNumbered(name, "shard-#-model-#-of-#.safetensors");
}

/// Fills `opened.files`; refuses what no save has made.
Status listFiles(Opened &opened, const std::string &path) {
  errno = 0;
  while (const dirent *entry = ::readdir(opened.self.get())) {
    const std::string name = entry->d_name;
    struct stat info;
    if (name == "." || name == "..")
      continue;
    if (::fstatat(::dirfd(opened.self.get()), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return ioError("look at", path + "/" + name, errno);
    if (!S_ISREG(info.st_mode) || !isNameOfSave(name))
      return refusal(path, "no save has made " + quote(name) + ", which is in it");
    opened.files.push_back(name);
    errno = 0;
  }
  if (errno)
    return ioError("look through", path, errno);
  std::ranges::sort(opened.files);
  return {};
}

/// Opens what is to be removed, where a save has made all of it.
Result<Opened> openOwn(const std::string &path) {
  const std::filesystem::path whole(path);
  Opened opened;
  opened.name = whole.filename();
  const std::string parent = whole.parent_path();
  opened.parent.reset(::opendir(parent.empty() ? "." : parent.c_str()));
  if (!opened.parent)
    return ioError("look through", parent, errno);
  const int above = ::dirfd(opened.parent.get());
  const int self = ::openat(above, opened.name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (self < 0 && (errno == ELOOP || errno == ENOTDIR))
    return refusal(path, "it is no directory of its own, but a link or a file");
  opened.self.reset(self < 0 ? nullptr : ::fdopendir(self));
  if (!opened.self) {
    const Error error = ioError("look through", path, errno);
    if (self >= 0)
      ::close(self);
    return error;
  }
  struct stat own, around;
  if (::fstat(self, &own) != 0 || ::fstat(above, &around) != 0)
    return ioError("look at", path, errno);
  if (own.st_dev != around.st_dev)
    return refusal(path, "another file system is mounted there");
  if (Status status = listFiles(opened, path); !status)
    return status.error();
  return opened;
}

} // namespace

Status checkRemovable(const std::string &directory) {
  const Result<Opened> opened = openOwn(directory);
  return opened ? Status() : Status(opened.error());
}

Status removeCheckpoint(FileLayer &layer, const std::string &directory) {
  const Result<Opened> opened = openOwn(directory);
  if (!opened)
    return opened.error();
  const int self = ::dirfd(opened->self.get());
  for (const bool manifests : {true, false}) {
    for (const std::string &name : opened->files)
      if (isManifestName(name) == manifests)
        if (const int failure = layer.remove(self, name); failure && failure != ENOENT)
          return ioError("remove", directory + "/" + name, failure);
    if (manifests)
      if (const int failure = layer.syncDirectory(self))
        return ioError("sync", directory, failure);
  }
  if (const int failure = layer.removeDirectory(::dirfd(opened->parent.get()), opened->name))
    return ioError("remove", directory, failure);
  return {};
}

Status pruneCheckpoints(FileLayer &layer, const std::string &root, const KeepRule &rule,
                        const std::set<std::string> *everywhere, const StaysNotice &stays) {
  const Result<StoreListing> listing = listCheckpoints(root);
  if (!listing)
    return listing.error();
  const auto remove = [&](const std::string &name) -> Status {
    Status status = removeCheckpoint(layer, root + "/" + name);
    if (status || status.error().code != ExitCode::Invalid)
      return status;
    if (stays)
      stays(status.error());
    return {}; // what is not ours keeps nothing else
  };
  const auto isEverywhere = [everywhere](const StoredCheckpoint &checkpoint) {
    return !everywhere || checkpoint.save.empty() || everywhere->contains(checkpoint.save);
  };
  const std::set<std::string> forGood = keptForGood(*listing, rule, isEverywhere);
  uint32_t whole = 0;
  for (const StoredCheckpoint &checkpoint : listing->checkpoints) {
    if (!checkpoint.isWholeHere()) // somebody may want to know why, or has put it there
      continue;
    const bool useless = !isEverywhere(checkpoint);
    whole += !useless;
    if (whole + useless > rule.atLeast() && !forGood.contains(checkpoint.name))
      if (Status status = remove(checkpoint.name); !status)
        return status;
  }
  for (const std::string &name : listing->leftovers)
    if (whole > 0)
      if (Status status = remove(name); !status)
        return status;
  return {};
}

} // namespace ds::rt
