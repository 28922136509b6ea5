//===- JoinColumnSums.cpp - One launch for parts of columns and their sums -------------===//
//
// ds-split-columns shares long columns out to more blocks: one kernel adds up parts, a second the parts, and
// the second is over before the next launch has begun. Here both become one kernel, whose body is both
// bodies:
//
//     launch @parts ins(x) outs(p)     p = reduce x                launch @parts_sum ins(x) outs(p, s)
//     launch @sum   ins(p) outs(s)     s = reduce p          ->    p = reduce x; s = reduce p
//
// The block that ends the last part of a strip of columns goes on with the second body (KernelStages.h). On
// buffers, because until then the sums of a bias can be a product's work, whoever makes the parts: that pair
// is looked for as launches. The parts stay memory of the launch, so no value lives elsewhere or longer than
// before, but for what the first kernel reads, which the second's results cannot overwrite any more.
//
//===---------------------------------------------------------------------------===//
#include "Support/JoinKernels.h"
#include "ds/Codegen/KernelStages.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>

namespace mlir::ds {
#define GEN_PASS_DEF_JOINCOLUMNSUMS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// Whether the second launch has to do with what the first reads and writes by its `sources` alone.
static bool areOtherwiseApart(LaunchOp first, LaunchOp second, const Sources &sources) {
  SmallVector<BufferAccess> others = readsBeside(second, sources);
  for (Value output : second.getOutputs()) {
    others.push_back(windowOf(output));
    others.back().isWrite = true;
  }
  return !conflict(accessesOf(first), others);
}

namespace {
/// Joins the launches of a module.
class SumsJoiner {
public:
  explicit SumsJoiner(ModuleOp module) : module(module), symbols(module) {}
  void joinIn(func::FuncOp func);
  /// Removes the kernels that nobody launches any more.
  void dropKernels() { eraseIdle(replaced, module, symbols); }

private:
  KernelOp getKernel(LaunchOp first, LaunchOp second, const Sources &sources);
  bool join(LaunchOp first, LaunchOp second);

  ModuleOp module;
  SymbolTable symbols;
  llvm::SetVector<Operation *> replaced; ///< kernels of launches that have been joined
  /// What two kernels with these sources are together; null where they stay two.
  std::map<std::tuple<Operation *, Operation *, Sources>, KernelOp> joined;
};
} // namespace

/// The kernel of both launches, null where code generation has none.
KernelOp SumsJoiner::getKernel(LaunchOp first, LaunchOp second, const Sources &sources) {
  auto parts = symbols.lookup<KernelOp>(first.getKernel()),
       sums = symbols.lookup<KernelOp>(second.getKernel());
  auto [place, isNew] = joined.try_emplace({parts, sums, sources});
  if (!isNew)
    return place->second;
  KernelOp kernel = joinKernels(parts, sums, sources);
  if (std::string reason; !canLaunchStages(kernel, reason)) {
    kernel.erase();
    return {};
  }
  symbols.insert(kernel);
  replaced.insert(parts);
  replaced.insert(sums);
  return place->second = kernel;
}

bool SumsJoiner::join(LaunchOp first, LaunchOp second) {
  const Sources sources = findSources(first, second);
  if (llvm::none_of(sources, [](std::optional<size_t> source) { return source.has_value(); }) ||
      !areOtherwiseApart(first, second, sources))
    return false;
  KernelOp kernel = getKernel(first, second, sources);
  if (kernel)
    joinLaunches(first, second, sources, kernel);
  return bool(kernel);
}

void SumsJoiner::joinIn(func::FuncOp func) {
  bool any = false;
  SmallVector<LaunchOp> launches = llvm::to_vector(func.getOps<LaunchOp>());
  for (size_t k = 0; k + 1 < launches.size(); ++k)
    if (findNext(launches[k]) == launches[k + 1] && join(launches[k], launches[k + 1])) {
      any = true;
      ++k; // both are gone
    }
  if (any)
    placeBuffers(func);
}

namespace {
struct JoinColumnSums : mlir::ds::impl::JoinColumnSumsBase<JoinColumnSums> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    if (!isForCuda(getOperation()))
      return;
    SumsJoiner joiner(getOperation());
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        joiner.joinIn(func);
    joiner.dropKernels();
  }
};
} // namespace
