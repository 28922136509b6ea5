//===- SaveNode.h - Which ranks keep their checkpoints in one place ------------------===//
//
// `--save DIR` is one directory for all ranks, or one of each node that the others do not see. Names of hosts
// do not tell which: disks are shared between hosts, and containers of one host are not. So every rank leaves
// a file, and looks whose files it sees: ranks that see the same are a node. What the file system says is
// asked for by name, for lists of directories are cached by file systems of networks.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_SAVING_SAVENODE_H
#define DS_LIB_RUNTIME_SAVING_SAVENODE_H

#include "Job/Team.h"

#include "ds/Runtime/Checkpoint/Manifest.h"

#include <set>
#include <string>
#include <vector>

namespace ds::rt {

/// The ranks that see this rank's directory of saves.
struct SaveNode {
  uint32_t number = 0;               ///< among the nodes, which are in the order of their first ranks
  std::vector<CheckpointNode> nodes; ///< none: there is one directory, which all ranks see
  bool leads = false;                ///< this rank makes the checkpoints of its directory visible

  bool isShared() const { return nodes.empty(); }
  /// Those of this node; none where all ranks are.
  std::span<const uint32_t> ranks() const {
    return isShared() ? std::span<const uint32_t>() : std::span<const uint32_t>(nodes[number].ranks);
  }
  /// The one of this node that leads.
  uint32_t leader() const { return isShared() ? 0 : nodes[number].ranks.front(); }
};

/// Asks the file system, which makes `directory` where it is missing. Collective. Io: a directory cannot be
/// written to, or ranks do not all see it though they `mustShare` it.
Result<SaveNode> findSaveNode(const std::string &directory, bool mustShare, Team &team);

/// Letters of the saves of which the directory has a part, with blanks between them. Io: it cannot be read.
Result<std::string> spellSaves(const std::string &directory);
/// The saves that the lists of all nodes have. `lists` has a text for each rank, of which those of the ranks
/// that lead a node count: letters of saves, with blanks between them.
std::set<std::string> savesOfAll(const SaveNode &node, const std::vector<std::string> &lists);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_SAVENODE_H
