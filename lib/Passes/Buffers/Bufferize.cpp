//===- Bufferize.cpp - Replaces tensors by buffers, views and commands -----------===//
#include "FunctionBufferizer.h"
#include "NormParts.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_BUFFERIZE
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

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
      if (failed(FunctionBufferizer(func, symbols, kernels, staging).run()))
        return signalPassFailure();
      takeNormsApart(func);
    }
    setPhase(module, Phase::Scheduled);
  }
};
} // namespace
