//===- ShareKernels.cpp - One name for equal kernels of several stages ------------===//
//
// Stages are planned one by one, and each counts its kernels from 0. Kernels are compared by their text, as
// within one stage, and get numbers anew, in the order of stages: the first of equal ones keeps the others'
// code out of the program.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Stages.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "llvm/ADT/StringSet.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SHAREKERNELS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// What `kernel` says but for its name.
static std::string textOf(KernelOp kernel) {
  OwningOpRef<KernelOp> nameless = kernel.clone();
  nameless->setSymName("kernel");
  std::string text;
  llvm::raw_string_ostream stream(text);
  nameless->print(stream, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
  return text;
}

/// Gives the kernels of `stage` the names that `names` has for them; of two that get one name one is left.
static void rename(ModuleOp stage, const DenseMap<StringAttr, StringAttr> &names) {
  DenseSet<StringAttr> given;
  for (KernelOp kernel : llvm::make_early_inc_range(stage.getOps<KernelOp>())) {
    kernel.setSymNameAttr(names.lookup(kernel.getSymNameAttr()));
    if (!given.insert(kernel.getSymNameAttr()).second)
      kernel.erase();
  }
  stage.walk([&](LaunchOp launch) {
    launch.setKernelAttr(FlatSymbolRefAttr::get(names.lookup(launch.getKernelAttr().getAttr())));
  });
}

namespace {
struct ShareKernels : mlir::ds::impl::ShareKernelsBase<ShareKernels> {
  void runOnOperation() override {
    if (!hasStages(getOperation()))
      return markAllAnalysesPreserved();
    SmallVector<ModuleOp> stages = getStages(getOperation());
    for (ModuleOp stage : stages)
      if (failed(requirePhase(stage, getArgument(), {Phase::Scheduled, Phase::Planned})))
        return signalPassFailure();
    llvm::StringSet<> taken; // a parameter may be called kernel_0
    for (ModuleOp stage : stages)
      for (Operation &op : *stage.getBody())
        if (auto name = op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
            name && !isa<KernelOp>(op))
          taken.insert(name.getValue());
    llvm::StringMap<StringAttr> known; // by text
    unsigned next = 0;
    for (ModuleOp stage : stages) {
      DenseMap<StringAttr, StringAttr> names;
      for (KernelOp kernel : stage.getOps<KernelOp>()) {
        StringAttr &name = known[textOf(kernel)];
        while (!name)
          if (std::string number = "kernel_" + std::to_string(next++); !taken.contains(number))
            name = StringAttr::get(&getContext(), number);
        names[kernel.getSymNameAttr()] = name;
      }
      rename(stage, names);
    }
  }
};
} // namespace
