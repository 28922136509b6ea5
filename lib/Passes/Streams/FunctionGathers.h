//===- FunctionGathers.h - The gathers of one function, as values with uses ------===//
//
// Gathers of one shard that does not change in between are one value with several uses. What
// ds-schedule-communication joins to the problem of Analysis/GatherSchedule, function by function.
//
// Example: a shard is gathered at command 2 for the products 4 and 5, and again at 20 for 22. That is one
// value with the uses [4, 6) and [22, 23). Were the shard updated at 10, there would be two values, the
// second of which may be gathered from command 11 on.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STREAMS_FUNCTIONGATHERS_H
#define DS_LIB_PASSES_STREAMS_FUNCTIONGATHERS_H

#include "ds/Analysis/Gathers/GatherSchedule.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/ComputeMemory.h"

namespace mlir::ds {

/// The gathers of one value, use by use; those of one use share its memory.
struct GatheredValue {
  bool isSameAs(const GatheredValue &other) const {
    return state == other.state && shard.begin == other.shard.begin && shard.end == other.shard.end &&
           type == other.type;
  }
  /// What the report calls it.
  StringRef getName() const { return state ? state.getValue() : StringRef(); }

  BufferAccess shard;
  FlatSymbolRefAttr state;       ///< that the shard is a window of; null where it is of something else
  BufferType type;               ///< of all shards together
  double seconds = 0;            ///< one gather takes
  int64_t earliest = 0;          ///< the compute command behind the last one that changes the shard before
  Operation *replacer = nullptr; ///< the first command behind that changes the shard; null where none does
  bool hasPlace = false;         ///< it is gathered into a state's memory
  int64_t loadedBytes = 0;       ///< of the shard, where that is loaded for each gather
  std::vector<::ds::analysis::GatherUse> uses; ///< in compute commands
  SmallVector<SmallVector<CommunicateOp>> gathers;
};

class FunctionGathers {
public:
  /// `costs`, of the function's module, outlive this. `limits` say what calls will take for their
  /// workspaces where `memory` bytes have room for it (nothing: no limit); of their room they say nothing.
  FunctionGathers(func::FuncOp func, CommandCosts &costs, const WorkspaceLimits &limits,
                  std::optional<int64_t> memory);

  /// True where a command changes the shard of `value`.
  bool changes(const GatheredValue &value) const;
  /// Lets one gather, issued before compute command `issue`, serve the uses [firstUse, lastUse] of `value`.
  void joinUses(const GatheredValue &value, uint32_t firstUse, uint32_t lastUse, int64_t issue);
  /// Makes all uses of `value` read `place`, an argument; of its gathers only the first stays, and that only
  /// where `isGathered`.
  void moveTo(const GatheredValue &value, Value place, bool isGathered, int64_t issue);

  func::FuncOp func;
  std::vector<double> seconds;    ///< of each compute command
  std::vector<int64_t> liveBytes; ///< at each, its workspace to come included, without gathered values
  std::vector<GatheredValue> values;

private:
  struct Write {
    Operation *command;
    BufferAccess access;
  };
  void findCommands();
  void addGather(CommunicateOp gather);
  ::ds::analysis::GatherUse useOf(CommunicateOp gather, Operation *replacer) const;
  TransferOp findLoad(CommunicateOp gather) const;
  int64_t earliestIssue(CommunicateOp gather) const;
  Operation *findReplacer(CommunicateOp gather) const;
  void issueBefore(const GatheredValue &value, CommunicateOp gather, int64_t command);

  CommandCosts &costs;
  SmallVector<Operation *> compute;
  SmallVector<SmallVector<BufferAccess>> accesses; ///< of compute
  DenseMap<Value, SmallVector<Write>> writes;      ///< of all commands, by root, in order
  DenseMap<Operation *, int64_t> position;         ///< command -> number of compute commands before it
};

/// True for a gather whose result is memory of its own, or the place that a gathered value has for the whole
/// step: not one that happens in a state's place.
bool isMovableGather(CommunicateOp op);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STREAMS_FUNCTIONGATHERS_H
