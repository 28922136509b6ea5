//===- OutputPath.cpp - What the names of outputs lead to -----------------------===//
//
// Two names are of one file when device and number of its inode agree, or, for files that do not exist yet,
// those of the directory and the name. Devices and pipes may be given as often as anybody likes.
//
//===---------------------------------------------------------------------------===//
#include "OutputPath.h"

#include "Text.h"
#include "ds/Runtime/Files/Outputs.h"
#include "ds/Support/TemporaryFile.h"

#include <cerrno>
#include <climits>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <optional>
#include <unistd.h>

namespace ds::rt {

std::string resolveLinks(std::string path) {
  for (int hops = 0; hops < 40; ++hops) {
    char link[PATH_MAX];
    ssize_t length = readlink(path.c_str(), link, sizeof(link));
    if (length < 0 || length == ssize_t(sizeof(link)))
      break; // not a link (or one that open will complain about)
    std::string next(link, size_t(length));
    path = next.starts_with('/') ? next : directoryOf(path).append("/").append(next);
  }
  return path;
}

int standardStreamOf(const struct stat &info) {
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat open;
    const int flags = fcntl(stream, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && fstat(stream, &open) == 0 &&
        open.st_dev == info.st_dev && open.st_ino == info.st_ino)
      return stream;
  }
  return -1;
}

namespace {

struct Identity {
  dev_t device;
  ino_t inode;
  std::string name; ///< in the directory `inode`, of a file that is yet to be made

  bool operator==(const Identity &other) const {
    return device == other.device && inode == other.inode && name == other.name;
  }
};

/// Of a regular file, or of the place of one; nothing for what may be shared.
std::optional<Identity> identify(const std::string &path) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0)
    return S_ISREG(info.st_mode) ? std::optional<Identity>({info.st_dev, info.st_ino, ""}) : std::nullopt;
  const std::string target = resolveLinks(path);
  if (stat(directoryOf(target).c_str(), &info) != 0)
    return std::nullopt;
  return Identity{info.st_dev, info.st_ino, target.substr(target.rfind('/') + 1)};
}

std::string spell(const FileArgument &argument) {
  return argument.option + (argument.path.empty() ? "" : " " + quote(argument.path));
}

Error clash(const FileArgument &output, const std::string &what) {
  return {ExitCode::Usage, spell(output) + ": is " + what,
          "nothing was written; give each output a name of its own"};
}

/// The weights in a model's directory.
void addDirectory(const FileArgument &input, std::vector<FileArgument> &files) {
  DIR *directory = opendir(input.path.c_str());
  if (!directory)
    return;
  while (const dirent *entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name.ends_with(".safetensors") || name.ends_with(".json"))
      files.push_back({input.option, input.path + "/" + name});
  }
  closedir(directory);
}

/// An output spelt as this is meant to go where standard output goes.
bool isSpeltAsStream(const std::string &path) {
  return path.starts_with("/dev/") || path.starts_with("/proc/");
}

} // namespace

Status checkOutputPath(const FileArgument &output) {
  const std::string &path = output.path;
  auto refuse = [&](const std::string &what, int error) {
    return Error{ExitCode::Io, spell(output) + ": " + what + ": " + std::strerror(error),
                 error == EISDIR ? "name a file in that directory"
                                 : "name a file in a directory that exists and can be written"};
  };
  if (path.empty() || path.ends_with('/'))
    return refuse("cannot write", EISDIR);
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    if (S_ISDIR(info.st_mode))
      return refuse("cannot write", EISDIR);
    if (standardStreamOf(info) < 0 && access(path.c_str(), W_OK) != 0)
      return refuse("cannot write", errno);
    return {};
  }
  const std::string directory = directoryOf(resolveLinks(path));
  if (stat(directory.c_str(), &info) != 0)
    return refuse("cannot write into " + quote(directory), errno);
  if (!S_ISDIR(info.st_mode))
    return refuse("cannot write into " + quote(directory), ENOTDIR);
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    return refuse("cannot write into " + quote(directory), errno);
  return {};
}

Status checkOutputs(std::vector<FileArgument> inputs, std::vector<FileArgument> outputs) {
  for (size_t i = 0, count = inputs.size(); i < count; ++i)
    addDirectory(FileArgument(inputs[i]), inputs);
  inputs.push_back({"the running program", "/proc/self/exe"});
  struct Known {
    Identity identity;
    std::string what;
  };
  std::vector<Known> known;
  for (const FileArgument &input : inputs)
    if (std::optional<Identity> identity = identify(input.path); identity && !input.path.empty())
      known.push_back({*identity, input.path == "/proc/self/exe"
                                      ? input.option
                                      : "the file that " + spell(input) + " reads"});
  for (const char *stream : {"/dev/stdout", "/dev/stderr"})
    if (std::optional<Identity> identity = identify(stream))
      known.push_back({*identity, std::string("the file behind ") + stream});
  for (const FileArgument &output : outputs) {
    if (Status status = checkOutputPath(output); !status)
      return status;
    const std::optional<Identity> identity = identify(output.path);
    if (!identity || isSpeltAsStream(output.path))
      continue;
    for (const Known &other : known)
      if (other.identity == *identity)
        return clash(output, other.what);
    known.push_back({*identity, "the file that " + spell(output) + " writes"});
  }
  return {};
}

} // namespace ds::rt
