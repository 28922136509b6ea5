//===- TemporaryFile.h - A file without a name until it is whole --------------------===//
//
// Where the file system knows files without a name (O_TMPFILE), nothing is left of one, however the process
// ends. Elsewhere, and for the moment in which a new file takes the place of an old one, there is a name; it
// stands in a list that a signal handler walks through.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_SUPPORT_TEMPORARYFILE_H
#define DS_SUPPORT_TEMPORARYFILE_H

#include <string>

namespace ds {

/// An open file that will be named `target`, made in that file's directory. Destroyed without `keep` it
/// leaves nothing behind. Errors are errno numbers, 0 for none. One thread at a time.
class TemporaryFile {
public:
  TemporaryFile() = default;
  TemporaryFile(TemporaryFile &&other) noexcept { *this = static_cast<TemporaryFile &&>(other); }
  TemporaryFile &operator=(TemporaryFile &&other) noexcept;
  ~TemporaryFile() { drop(); }

  /// Opens it for reading and writing, with the rights of any new file. `allowNameless` is for tests.
  int open(const std::string &target, bool allowNameless = true);

  /// Makes it the file `target`, in the directory in which it was made; what has that name is replaced. The
  /// descriptor stays open.
  int keep(const std::string &target);

  /// Closes and removes it.
  void drop();

  /// -1 where none is open.
  int fd() const { return descriptor; }
  bool isNameless() const { return slot < 0; }

private:
  int descriptor = -1;
  std::string name; ///< empty: it has none
  int slot = -1;    ///< in the list for signals
};

/// The directory part of `path`, "." where it has none.
std::string directoryOf(const std::string &path);

/// Removes what temporary files of this process have names. May be called by a signal handler.
void removeTemporaryFiles() noexcept;

/// Makes SIGHUP, SIGINT, SIGQUIT and SIGTERM remove temporary files before they end the process; those that
/// are ignored stay so.
void removeTemporaryFilesOnSignals();

} // namespace ds

#endif // DS_SUPPORT_TEMPORARYFILE_H
