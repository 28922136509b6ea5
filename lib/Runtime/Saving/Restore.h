//===- Restore.h - From a checkpoint's tensors to a program's states -----------------===//
//
// Tensors are matched by name, and so are moments by the name of their parameter and their own; how the ranks
// that wrote them held them does not matter. A rank reads what it holds: a master the exact value, its 16-bit
// parameter the same value rounded, whatever was 16 bits wide when it was saved.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_SAVING_RESTORE_H
#define DS_LIB_RUNTIME_SAVING_RESTORE_H

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Runtime/Engine/Executor.h"

namespace ds::rt {

/// Where elements of a tensor belong in the memory of a rank.
struct Destination {
  uint32_t state = 0; ///< of the program
  uint64_t at = 0;    ///< first element in the state's buffer
  FileDType from = FileDType::F32;
};

/// What one rank has to read, and what there is to say about it.
struct RestorePlan {
  std::vector<WantedBytes> wanted;       ///< tagged with destinations
  std::vector<Destination> destinations; ///< by tag
  uint64_t bytes = 0;                    ///< of all that is wanted
  std::vector<std::string> notes;        ///< what starts anew, and what is not used
};

/// How `rank` takes its states from `checkpoint`. Invalid: it is not of this model, or lacks what a run needs
/// to go on, with all names.
Result<RestorePlan> planRestore(const Program &program, uint32_t rank, const Checkpoint &checkpoint);

/// Reads it. States that the plan does not name stay as they are. Fails as Checkpoint::read does.
Status restoreStates(Executor &executor, const Checkpoint &checkpoint, const RestorePlan &plan);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_RESTORE_H
