//===- Bufferize.cpp - Replaces tensors by buffers, views and commands -----------===//
#include "FunctionBufferizer.h"
#include "LiveCount.h"
#include "NormParts.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_BUFFERIZE
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// What `func`, if a step runs it, takes as it was counted.
static std::optional<int64_t> countOf(func::FuncOp func, const SymbolTable &symbols) {
  const bool isOfStep = SegmentAttr::of(func) && !func.isExternal();
  return isOfStep ? std::optional(countValues(func, symbols)) : std::nullopt;
}

/// Says where `func` does not take what was `counted`: its plan is right, but was chosen by another figure.
static void compare(func::FuncOp func, int64_t counted) {
  if (const int64_t placed = countAllocations(func); placed != counted)
    func.emitWarning() << "holds " << placed << " bytes at once in buffers, but " << counted
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
      const std::optional<int64_t> counted = countOf(func, symbols);
      const FailureOr<bool> isWithoutCopies = FunctionBufferizer(func, symbols, kernels, staging).run();
      if (failed(isWithoutCopies))
        return signalPassFailure();
      if (counted && *isWithoutCopies)
        compare(func, *counted);
      takeNormsApart(func);
    }
    setPhase(module, Phase::Scheduled);
  }
};
} // namespace
