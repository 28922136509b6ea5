//===- Bufferize.cpp - Replaces tensors by buffers, views and commands -----------===//
#include "FunctionBufferizer.h"
#include "LiveCount.h"
#include "NormParts.h"
#include "PrepareFunction.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_BUFFERIZE
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// What `func`, if a step runs it, takes as it was counted.
static std::optional<LiveBytes> countOf(func::FuncOp func, const DenseMap<Value, Space> &elsewhere,
                                        const SymbolTable &symbols) {
  const bool isOfStep = SegmentAttr::of(func) && !func.isExternal();
  return isOfStep ? std::optional(countValues(func, elsewhere, symbols)) : std::nullopt;
}

/// Says where `func` does not take what was `counted`: its plan is right, but was chosen by another figure.
static void compare(func::FuncOp func, const LiveBytes &counted, const LiveBytes &placed) {
  for (uint32_t space = 0; space < counted.size(); ++space)
    if (placed[space] != counted[space])
      func.emitWarning() << "holds " << placed[space] << " bytes at once in buffers of the "
                         << stringifySpace(Space(space)) << ", but " << counted[space]
                         << " were counted to choose what is kept";
}

namespace {
struct Bufferize : mlir::ds::impl::BufferizeBase<Bufferize> {
  using BufferizeBase::BufferizeBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Resident)))
      return signalPassFailure();
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    KernelTable kernels(module);
    SmallVector<func::FuncOp> functions = llvm::to_vector(module.getOps<func::FuncOp>());
    for (func::FuncOp func : functions) {
      DenseMap<Value, Space> elsewhere = dissolveHostRegions(func);
      const std::optional<LiveBytes> counted = countOf(func, elsewhere, symbols);
      const FailureOr<Bufferized> done =
          FunctionBufferizer(func, std::move(elsewhere), symbols, kernels, staging).run();
      if (failed(done))
        return signalPassFailure();
      if (counted && done->isWithoutCopies)
        compare(func, *counted, countAllocations(func, done->staging));
      takeNormsApart(func);
    }
    setPhase(module, Phase::Scheduled);
  }
};
} // namespace
