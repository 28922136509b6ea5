//===- GroupLaunches.cpp - One launch for lists of tensors -----------------------===//
//
// The update of a model is one short kernel for each parameter, most of them so small that a GPU takes longer
// to start them than to run them. Launches of one kernel that follow one another and touch nothing of each
// other's become one, which knows the buffers of all its items (what others call multi-tensor or
// horizontally fused kernels). Only launches that write in place are grouped, so that no value lives longer
// than before. What the step computes of scalars is one launch first (ScalarLaunches.h).
//
//===---------------------------------------------------------------------------===//
#include "ScalarLaunches.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Runtime/Program/Program.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {
#define GEN_PASS_DEF_GROUPLAUNCHES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

static bool isScalar(Value buffer) { return cast<BufferType>(buffer.getType()).getTensor().getRank() == 0; }

/// The inputs that all items of a group must share.
static SmallVector<Value> scalarsOf(LaunchOp launch) {
  return llvm::to_vector(llvm::make_filter_range(launch.getInputs(), isScalar));
}

/// How many items one launch of `launch`'s kernel can have.
static int64_t mostItems(LaunchOp launch) {
  uint64_t scalars = llvm::count_if(launch->getOperands(), isScalar);
  return ::ds::rt::ItemTable::mostItems(launch->getNumOperands() - scalars, scalars);
}

/// True when `launch` may come earlier in the step without lengthening a value's life: it serves any size and
/// writes nothing but what lives always.
static bool canBeItem(LaunchOp launch) {
  return launch.getExtents() && launch.getNumItems() == 1 && launch.getStream() == StreamKind::Compute &&
         llvm::all_of(launch.getOutputs(), [](Value output) {
           return isa<BlockArgument>(rootOfBuffer(output)) && !isScalar(output);
         });
}

namespace {
/// Launches with no other command between them.
class LaunchRun {
public:
  void add(LaunchOp launch) { launches.push_back({launch, accessesOf(launch)}); }
  /// Replaces what can be grouped; the kernels are told how many items they have at most.
  void group(const SymbolTable &symbols);

private:
  struct Entry {
    LaunchOp launch;
    SmallVector<BufferAccess> accesses;
  };
  bool canJoin(ArrayRef<unsigned> group, unsigned index) const;
  void merge(ArrayRef<unsigned> group, const SymbolTable &symbols);

  SmallVector<Entry> launches;
};
} // namespace

/// True when launch `index` can come as early as the group's first: it commutes with all in between.
bool LaunchRun::canJoin(ArrayRef<unsigned> group, unsigned index) const {
  LaunchOp first = launches[group.front()].launch, launch = launches[index].launch;
  if (first.getKernelAttr() != launch.getKernelAttr() || scalarsOf(first) != scalarsOf(launch) ||
      static_cast<int64_t>(group.size()) >= mostItems(first))
    return false;
  return llvm::none_of(llvm::seq(group.front(), index), [&](unsigned between) {
    return conflict(launches[between].accesses, launches[index].accesses);
  });
}

void LaunchRun::merge(ArrayRef<unsigned> group, const SymbolTable &symbols) {
  LaunchOp first = launches[group.front()].launch;
  SmallVector<Value> inputs, outputs;
  SmallVector<int64_t> extents;
  SmallVector<Location> locations;
  for (unsigned index : group) {
    LaunchOp launch = launches[index].launch;
    llvm::append_range(inputs, launch.getInputs());
    llvm::append_range(outputs, launch.getOutputs());
    extents.push_back(launch.getExtents()->front());
    locations.push_back(launch.getLoc());
  }
  // Behind the last, where all operands are defined; placed afterwards.
  OpBuilder builder(launches[group.back()].launch);
  auto merged =
      builder.create<LaunchOp>(FusedLoc::get(builder.getContext(), locations), first.getKernel(), inputs,
                               outputs, builder.getDenseI64ArrayAttr(extents), StreamKind::Compute);
  copyWork(first, merged);
  merged->moveBefore(first);
  auto kernel = symbols.lookup<KernelOp>(first.getKernel());
  kernel.setItems(std::max<int64_t>(kernel.getItems().value_or(0), group.size()));
  for (unsigned index : group)
    launches[index].launch.erase();
}

void LaunchRun::group(const SymbolTable &symbols) {
  SmallVector<SmallVector<unsigned>> groups;
  for (unsigned index = 0; index < launches.size(); ++index) {
    if (!canBeItem(launches[index].launch))
      continue;
    auto joined = llvm::find_if(groups, [&](ArrayRef<unsigned> group) { return canJoin(group, index); });
    (joined == groups.end() ? groups.emplace_back() : *joined).push_back(index);
  }
  for (ArrayRef<unsigned> group : groups)
    if (group.size() > 1)
      merge(group, symbols);
}

namespace {
struct GroupLaunches : mlir::ds::impl::GroupLaunchesBase<GroupLaunches> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    if (!isForCuda(getOperation()))
      return;
    SymbolTable symbols(getOperation());
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        groupIn(func, symbols);
  }

  static void groupIn(func::FuncOp func, SymbolTable &symbols) {
    joinScalarLaunches(func, symbols);
    SmallVector<LaunchRun> runs(1);
    for (Operation &op : func.getBody().front())
      if (auto launch = dyn_cast<LaunchOp>(op))
        runs.back().add(launch);
      else if (isa<ScheduledOpInterface>(op))
        runs.emplace_back();
    for (LaunchRun &run : runs)
      run.group(symbols);
    placeBuffers(func);
  }
};
} // namespace
