//===- SetMachine.cpp - For which machine a module is compiled -----------------------===//
#include "ds/Dialect/Machine.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Passes.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SETMACHINE
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {
struct SetMachine : mlir::ds::impl::SetMachineBase<SetMachine> {
  using SetMachineBase::SetMachineBase;

  void runOnOperation() override {
    Machine machine = getMachine(getOperation());
    if (cluster.hasValue())
      machine.cluster = cluster;
    if (threads.hasValue())
      machine.threads = threads;
    if (memory.hasValue())
      machine.memory.device = memory;
    if (attentionBytes.hasValue())
      machine.attentionBytes = attentionBytes;
    if (failed(setMachine(getOperation(), machine)) || failed(readRates(getOperation())))
      signalPassFailure();
  }
};
} // namespace
