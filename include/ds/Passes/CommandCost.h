//===- CommandCost.h - How long commands take, as far as schedules must know -----===//
//
// The cost model's figures for commands. They decide where collectives are issued and
// waited for, never what is computed: wrong ones cost time.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_COMMANDCOST_H
#define DS_PASSES_COMMANDCOST_H

#include "ds/Codegen/KernelWork.h"
#include "ds/Cost/Rates.h"
#include "ds/Runtime/Program/PackedRows.h"

#include "mlir/IR/SymbolTable.h"

namespace mlir::ds {

/// Seconds to wake a stream: a futex and a switch to another thread.
inline constexpr double kIssueSeconds = 20e-6;

/// The rates of the machine that the module of `op` is compiled for (Machine.h). Fails with a diagnostic at
/// `op` where its cluster cannot be read.
FailureOr<::ds::cost::Rates> readRates(Operation *op);

/// The copies that `call` could be made on, where it is a product with odd rows (PackedRows.h).
std::optional<::ds::rt::PackedRows> findPackedRows(CallOp call);
/// The copies on which the product `call` is predicted to take less time, they included, than on its operands
/// as they lie; nothing where it is not, or has no such copies.
std::optional<::ds::rt::PackedRows> choosePackedRows(CallOp call, const ::ds::cost::Rates &rates);

/// Seconds of a gradient of attention that cuDNN computes, were it fast or not.
double attentionGradientSeconds(CallOp call, const ::ds::cost::Rates &rates, bool isFast);
/// Lets contexts of `registry` read each cluster once, and not for each pass that asks for its rates.
void registerRates(DialectRegistry &registry);

/// Seconds that a collective on tensors takes when its stream is free.
double collectiveSeconds(CollectiveOpInterface op, const ::ds::cost::Rates &rates);

/// Ranks of `module` on one node, which share its host.
int64_t ranksOnNode(ModuleOp module, const ::ds::cost::Rates &rates);

/// Seconds that a copy between the host and the device takes when nothing else is on its link, of one of
/// `sharing` ranks of a node that copy at the same time.
double hostCopySeconds(double bytes, const ::ds::cost::Rates &rates, int64_t sharing = 1);

/// What becomes of updates that ds-speculate-updates has made early: they stand, all are repeated, or, for
/// comparison, they are all made once, when the norm is known.
enum class EarlyUpdates : uint8_t { Stand, Redone, Waiting };

/// The times of a module's commands. Keeps what it has found out about kernels, many
/// of which are launched hundreds of times: they must not change meanwhile.
class CommandCosts {
public:
  CommandCosts(ModuleOp module, const ::ds::cost::Rates &rates);
  CommandCosts(ModuleOp module, const ::ds::cost::Rates &rates, EarlyUpdates early);

  /// Seconds that `command` takes when its stream is free and nobody else has what it takes; 0 for events.
  /// `distances` are those of its operands (ReuseDistance.h), where they are known.
  double seconds(ScheduledOpInterface command, ArrayRef<double> distances = {});
  /// Whether copies between host and device go over a link, which carries both ways at once; a CPU's go
  /// through its one memory.
  bool hasHostLink() const { return hasHostCores; }

private:
  double computeSeconds(ScheduledOpInterface command, ArrayRef<double> distances);
  double collectiveSeconds(CommunicateOp op) const;
  double transferSeconds(TransferOp op) const;
  bool isPassedOver(ScheduledOpInterface command) const;
  struct KernelFacts {
    KernelWork work;
    int64_t columnUnits = 0; ///< that share the columns which the kernel adds down; 0 in other kernels
    int64_t rowUnits = 0;    ///< rows, where one unit takes each; 0 in other kernels
    size_t numParts = 0;     ///< results of the first of two stages (KernelStages.h); 0 in other kernels
  };
  ::ds::cost::KernelLoad loadOf(LaunchOp launch, ArrayRef<double> distances);
  const KernelFacts *factsOf(LaunchOp launch);

  SymbolTable symbols;
  const ::ds::cost::Rates rates;
  const bool hasHostCores; ///< the host stream runs on other cores than compute
  const EarlyUpdates early;
  const int64_t sharing; ///< ranks of a node, which share its memory, links and disks
  DenseMap<std::pair<Operation *, int64_t>, KernelFacts> facts; ///< by kernel and elements
};

} // namespace mlir::ds

#endif // DS_PASSES_COMMANDCOST_H
