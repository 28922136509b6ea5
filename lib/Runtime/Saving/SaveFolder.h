//===- SaveFolder.h - The directory of a run's checkpoints -----------------------------===//
//
// What the rank that leads a node does there: makes what is written a checkpoint, sets aside what the run has
// gone back before, removes the oldest ones. The others know where it is.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_SAVING_SAVEFOLDER_H
#define DS_LIB_RUNTIME_SAVING_SAVEFOLDER_H

#include "SaveNode.h"

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/Checkpoint/Store.h"
#include "ds/Runtime/Files/FileLayer.h"
#include "ds/Runtime/Job/TrainOptions.h"

#include <optional>
#include <set>

namespace ds::rt {

class SaveFolder {
public:
  SaveFolder(const TrainOptions &options, FileLayer &layer) : options(options), layer(layer) {}

  /// Finds the node, and locks the directory where this rank leads it, which then is this run's: refuses one
  /// that is in use or of another run than `from`. Collective.
  Status take(const Program &program, const Checkpoint *from, Team &team);
  /// That the run goes on behind this step.
  void resumesAt(uint64_t step) { begunAt = step; }

  const SaveNode &node() const { return mine; }
  std::string pathOf(uint64_t step) const;

  /// Makes the directory of a save, where this rank leads.
  Result<std::string> begin(uint64_t step);
  /// Makes what all ranks have written a checkpoint; only when it reads well the oldest ones go.
  Result<std::string> commit(const std::string &unfinished, const Manifest &whole);
  /// Of several nodes, in their order: all but the name; the name, which gives the saves of which the node
  /// has a part; what goes once all have theirs.
  Status stage(const std::string &unfinished, const Manifest &whole);
  Result<std::string> publish(const std::string &unfinished, uint64_t step);
  void tidy(const std::set<std::string> &everywhere, uint64_t saved);
  /// Removes what was written of a save that has failed.
  void discard(const std::string &unfinished);

private:
  void prune(const std::set<std::string> *everywhere);

  const TrainOptions &options;
  FileLayer &layer;
  SaveNode mine;
  std::optional<StoreLock> lock;     ///< of who leads
  std::optional<uint64_t> begunAt;   ///< step of the checkpoint that the run goes on from; none: it is new
  bool hasSetAside = false;          ///< what the run has gone back before is set aside
  std::set<std::string> toldOfStays; ///< why something in the directory is not removed
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_SAVEFOLDER_H
