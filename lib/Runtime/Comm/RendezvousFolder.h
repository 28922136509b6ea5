//===- RendezvousFolder.h - Where the ranks of one launcher meet ------------------===//
//
// A folder for temporary files that only this user can look into, locked (flock) by the launcher for as long
// as it lives and removed by it. A launcher that was killed leaves its folder behind without a lock: the next
// one that starts removes it.
//
// The lock belongs to the open directory, so that it ends with the process, however that ends, and tells the
// truth across containers that share the directory. Where the file system is shared by machines but their
// locks are not, the name of the machine, which lies inside, keeps others away. What cannot be locked is
// never removed by another.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_RENDEZVOUSFOLDER_H
#define DS_LIB_RUNTIME_COMM_RENDEZVOUSFOLDER_H

#include "Control/Socket.h"

#include "ds/Support/Error.h"

#include <string>

namespace ds::rt {

class RendezvousFolder {
public:
  /// Makes one in $TMPDIR, or in /tmp, after removing what dead launchers left there.
  static Result<RendezvousFolder> create();
  RendezvousFolder(RendezvousFolder &&) = default;
  ~RendezvousFolder();

  const std::string &path() const { return folder; }

private:
  RendezvousFolder(std::string folder, Socket lock) : folder(std::move(folder)), lock(std::move(lock)) {}

  std::string folder;
  Socket lock; ///< the folder itself; invalid once moved from
};

/// Removes the folders in `directory` whose launchers, of this user and on this machine, are gone. Follows no
/// links, and leaves alone whatever it is not sure of.
void removeAbandonedFolders(const std::string &directory);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_RENDEZVOUSFOLDER_H
