//===- CrashingFiles.h - Files that fail, and forget what was not synced -----------------===//
//
// The operations are done for real, without real syncs. What each file had when it was last synced, and which
// changes of a directory came before its last sync, is remembered. A loss of power then takes back what it
// may: of a file that was not synced any part of the rest, or turns it to zeros; of a directory the latest
// changes, any number of those that no sync has made safe.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CHECKPOINT_CRASHINGFILES_H
#define DS_UNITTESTS_RUNTIME_CHECKPOINT_CRASHINGFILES_H

#include "ds/Runtime/Files/FileLayer.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <random>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace ds::rt::test {

/// What happens at one operation.
enum class Fault { None, Error, NoSpace, ShortWrite, Stop };

inline ino_t inodeOf(const std::string &path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}
inline ino_t inodeOf(int file) {
  struct stat info;
  return ::fstat(file, &info) == 0 ? info.st_ino : 0;
}
/// A name in an open directory, as a path.
inline std::string pathIn(int directory, const std::string &name) {
  return "/proc/self/fd/" + std::to_string(directory) + "/" + name;
}
inline ino_t parent(const std::string &path) { return inodeOf(path.substr(0, path.rfind('/'))); }
inline std::string name(const std::string &path) { return path.substr(path.rfind('/') + 1); }

/// What has been done to files below `root`, and which of it a sync has made safe.
class UnsafeChanges {
public:
  struct Change {
    enum Kind { Create, MakeDirectory, Rename, Exchange, Remove } kind;
    ino_t directory;
    std::string name, to, buried;
    bool safe = false;
  };

  explicit UnsafeChanges(std::string root)
      : root(std::move(root)), grave(this->root + ".grave-" + std::to_string(numMade++)) {
    std::filesystem::create_directory(grave);
  }
  ~UnsafeChanges() { std::filesystem::remove_all(grave); }

  /// A place for what is removed next.
  std::string newGrave() const { return grave + "/" + std::to_string(changes.size()); }
  void note(Change change) { changes.push_back(std::move(change)); }
  /// So many bytes of the file are safe.
  void keep(ino_t file, uint64_t bytes) { synced[file] = bytes; }
  int makeSafe(ino_t directory) {
    for (Change &change : changes)
      change.safe |= change.directory == directory;
    return directory ? 0 : ENOENT;
  }
  /// Takes back what a loss of power now may take.
  void takeBack(std::mt19937_64 &random) {
    std::map<ino_t, size_t> kept; // by directory: how many of its unsafe changes stay
    std::map<ino_t, size_t> unsafe;
    for (const Change &change : changes)
      unsafe[change.directory] += !change.safe;
    for (const auto &[directory, number] : unsafe)
      kept[directory] = random() % (number + 1);
    for (size_t i = changes.size(); i-- > 0;) {
      const Change &change = changes[i];
      if (!change.safe && unsafe[change.directory]-- > kept[change.directory])
        undo(change);
    }
    for (const auto &entry : std::filesystem::recursive_directory_iterator(root))
      if (entry.is_regular_file())
        loseData(entry.path(), random);
  }

private:
  /// Where a directory is now; empty: nowhere.
  std::string find(ino_t directory) const {
    if (inodeOf(root) == directory)
      return root;
    for (const auto &entry : std::filesystem::directory_iterator(root))
      if (entry.is_directory() && inodeOf(entry.path()) == directory)
        return entry.path();
    return "";
  }
  void undo(const Change &change) {
    const std::string directory = find(change.directory);
    if (directory.empty())
      return; // gone with the directory
    const std::string path = directory + "/" + change.name, to = directory + "/" + change.to;
    switch (change.kind) {
    case Change::Create:
    case Change::MakeDirectory:
      std::filesystem::remove_all(path);
      break;
    case Change::Rename:
      ::rename(to.c_str(), path.c_str());
      break;
    case Change::Exchange:
      ::renameat2(AT_FDCWD, path.c_str(), AT_FDCWD, to.c_str(), RENAME_EXCHANGE);
      break;
    case Change::Remove:
      ::rename(change.buried.c_str(), path.c_str());
      break;
    }
  }
  void loseData(const std::string &path, std::mt19937_64 &random) const {
    struct stat info;
    ::lstat(path.c_str(), &info);
    const auto found = synced.find(info.st_ino);
    if (found == synced.end() || found->second >= static_cast<uint64_t>(info.st_size))
      return;
    const uint64_t left =
        found->second + random() % (static_cast<uint64_t>(info.st_size) - found->second + 1);
    ::truncate(path.c_str(), static_cast<off_t>(left));
    if (random() % 2)
      ::truncate(path.c_str(), info.st_size); // the size was written, the data were not
  }

  static inline unsigned numMade = 0;
  const std::string root, grave;    ///< what is removed goes to a place of this object
  std::map<ino_t, uint64_t> synced; ///< bytes of files made here that are safe
  std::vector<Change> changes;
};

class CrashingFiles : public FileLayer {
public:
  /// `root` is where all files are; `when` counts operations from 1.
  CrashingFiles(std::string root, Fault fault = Fault::None, uint64_t when = 0)
      : changes(std::move(root)), fault(fault), when(when) {}
  ~CrashingFiles() override { closeAll(); }

  uint64_t operations() const { return count; }

  int create(const std::string &path) override {
    if (const int failure = strike())
      return -failure;
    const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0)
      return -errno;
    open[file] = inodeOf(path);
    changes.keep(open[file], 0);
    changes.note({Change::Create, parent(path), name(path), "", ""});
    return file;
  }
  int reserve(int, uint64_t) override { return strike(); }
  int64_t write(int file, uint64_t offset, const void *data, size_t bytes) override {
    const int failure = strike(/*writes=*/true);
    if (failure == kShort)
      return ::pwrite(file, data, (bytes + 1) / 2, static_cast<off_t>(offset));
    return failure ? -failure : ::pwrite(file, data, bytes, static_cast<off_t>(offset));
  }
  int setDirect(int, bool) override { return EINVAL; } // as in memory
  int sync(int file) override {
    if (const int failure = strike())
      return failure;
    struct stat info;
    ::fstat(file, &info);
    changes.keep(info.st_ino, static_cast<uint64_t>(info.st_size));
    return 0;
  }
  int close(int file) override {
    const int failure = strike();
    if (open.erase(file))
      ::close(file);
    return failure;
  }
  int makeDirectory(const std::string &path) override {
    if (const int failure = strike())
      return failure;
    if (::mkdir(path.c_str(), 0777) != 0)
      return errno;
    changes.note({Change::MakeDirectory, parent(path), name(path), "", ""});
    return 0;
  }
  int syncDirectory(const std::string &path) override {
    if (const int failure = strike())
      return failure;
    return changes.makeSafe(inodeOf(path));
  }
  int syncDirectory(int directory) override {
    if (const int failure = strike())
      return failure;
    return changes.makeSafe(inodeOf(directory));
  }
  int rename(const std::string &from, const std::string &to) override {
    if (const int failure = strike())
      return failure;
    if (::rename(from.c_str(), to.c_str()) != 0)
      return errno;
    changes.note({Change::Rename, parent(to), name(from), name(to), ""});
    return 0;
  }
  int exchange(const std::string &one, const std::string &other) override {
    if (const int failure = strike())
      return failure;
    if (::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) != 0)
      return errno;
    changes.note({Change::Exchange, parent(one), name(one), name(other), ""});
    return 0;
  }
  int remove(int directory, const std::string &file) override { return bury(directory, file, S_IFREG); }
  int removeDirectory(int parent, const std::string &name) override {
    const std::string path = pathIn(parent, name);
    if (!dead && std::filesystem::exists(path) && !std::filesystem::is_empty(path))
      return strike() ? EIO : ENOTEMPTY;
    return bury(parent, name, S_IFDIR);
  }

  /// Takes back what a loss of power now may take.
  void losePower(std::mt19937_64 &random) {
    closeAll();
    changes.takeBack(random);
  }

private:
  static constexpr int kShort = -1;
  using Change = UnsafeChanges::Change;

  void closeAll() {
    for (const auto &[file, inode] : open)
      ::close(file);
    open.clear();
  }
  /// The failure of this operation. A stopped process does nothing any more.
  int strike(bool writes = false) {
    if (dead)
      return EIO;
    if (++count != when || fault == Fault::None || (fault == Fault::ShortWrite && !writes))
      return 0;
    dead = fault == Fault::Stop;
    return fault == Fault::NoSpace ? ENOSPC : fault == Fault::ShortWrite ? kShort : EIO;
  }
  int bury(int directory, const std::string &file, mode_t kind) {
    if (const int failure = strike())
      return failure;
    const std::string path = pathIn(directory, file);
    struct stat info;
    if (::lstat(path.c_str(), &info) != 0)
      return errno;
    if ((info.st_mode & S_IFMT) != kind)
      return EISDIR;
    const std::string place = changes.newGrave();
    ::rename(path.c_str(), place.c_str());
    changes.note({Change::Remove, inodeOf(directory), file, "", place});
    return 0;
  }

  UnsafeChanges changes;
  const Fault fault;
  const uint64_t when;
  uint64_t count = 0;
  bool dead = false;
  std::map<int, ino_t> open;
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_CHECKPOINT_CRASHINGFILES_H
