//===- JoinKernels.cpp - Two launches that follow one another as one ------------===//
#include "JoinKernels.h"

#include "ds/Codegen/KernelStages.h"
#include "ds/Dialect/Work.h"

#include "mlir/IR/IRMapping.h"

namespace mlir::ds {

Sources findSources(LaunchOp first, LaunchOp second) {
  Sources sources;
  OperandRange made = first.getOutputs();
  for (Value input : second.getInputs()) {
    auto place = llvm::find(made, input);
    sources.push_back(place == made.end() ? std::nullopt : std::optional<size_t>(place - made.begin()));
  }
  return sources;
}

SmallVector<BufferAccess> readsBeside(LaunchOp second, const Sources &sources) {
  SmallVector<BufferAccess> reads;
  for (auto [input, source] : llvm::zip_equal(second.getInputs(), sources))
    if (!source) {
      reads.push_back(windowOf(input));
      reads.back().isRead = true;
    }
  return reads;
}

bool isPlain(LaunchOp launch) {
  return launch.getStream() == StreamKind::Compute && !launch.getExtents() && !launch.getPredicate() &&
         !launch.getSpeculative();
}

LaunchOp findNext(LaunchOp first) {
  Operation *op = first->getNextNode();
  while (op && !isa<ScheduledOpInterface>(op))
    op = op->getNextNode();
  auto next = dyn_cast_or_null<LaunchOp>(op);
  return next && isPlain(first) && isPlain(next) && getWork(first) == getWork(next) ? next : LaunchOp();
}

/// What is left of `values`, one for each of `sources`, without those that have one.
template <class T>
static void appendOthers(SmallVectorImpl<T> &list, auto values, const Sources &sources) {
  for (auto [value, source] : llvm::zip_equal(values, sources))
    if (!source)
      list.push_back(value);
}

/// Copies the ops of `body` to the end of `to`; returns what `body` yields there.
static SmallVector<Value> cloneOps(Block &body, Block &to, IRMapping &mapping) {
  OpBuilder inside = OpBuilder::atBlockEnd(&to);
  for (Operation &op : body.without_terminator())
    inside.clone(op, mapping);
  return llvm::map_to_vector(body.getTerminator()->getOperands(),
                             [&](Value value) { return mapping.lookup(value); });
}

/// The name of a kernel of both: kernel_1 and kernel_2 are kernel_1_2.
static std::string nameOf(KernelOp first, KernelOp second) {
  StringRef rest = second.getSymName();
  rest.consume_front("kernel_");
  return (first.getSymName() + "_" + rest).str();
}

KernelOp joinKernels(KernelOp first, KernelOp second, const Sources &sources) {
  OpBuilder builder(first.getContext());
  const size_t firstInputs = first.getNumInputs(), secondInputs = second.getNumInputs();
  ArrayRef<Attribute> firstTypes = first.getBuffers().getValue(),
                      secondTypes = second.getBuffers().getValue();
  SmallVector<Attribute> types(firstTypes.take_front(firstInputs));
  appendOthers(types, secondTypes.take_front(secondInputs), sources);
  const size_t inputs = types.size();
  llvm::append_range(types, firstTypes.drop_front(firstInputs));
  llvm::append_range(types, secondTypes.drop_front(secondInputs));
  auto kernel = builder.create<KernelOp>(FusedLoc::get(first.getContext(), {first.getLoc(), second.getLoc()}),
                                         nameOf(first, second), inputs, builder.getArrayAttr(types));
  Block &body = kernel.getBody().emplaceBlock();
  IRMapping mapping;
  for (BlockArgument argument : first.getBody().getArguments())
    mapping.map(argument, body.addArgument(argument.getType(), argument.getLoc()));
  SmallVector<Value> yielded = cloneOps(first.getBody().front(), body, mapping);
  for (auto [argument, source] : llvm::zip_equal(second.getBody().getArguments(), sources))
    mapping.map(argument,
                source ? yielded[*source] : body.addArgument(argument.getType(), argument.getLoc()));
  llvm::append_range(yielded, cloneOps(second.getBody().front(), body, mapping));
  OpBuilder::atBlockEnd(&body).create<YieldOp>(kernel.getLoc(), yielded);
  return kernel;
}

LaunchOp joinLaunches(LaunchOp first, LaunchOp second, const Sources &sources, KernelOp kernel) {
  SmallVector<Value> inputs(first.getInputs()), outputs(first.getOutputs());
  appendOthers(inputs, second.getInputs(), sources);
  llvm::append_range(outputs, second.getOutputs());
  OpBuilder builder(second); // where all operands are defined
  auto launch = builder.create<LaunchOp>(
      FusedLoc::get(builder.getContext(), {first.getLoc(), second.getLoc()}), kernel.getSymName(), inputs,
      outputs, DenseI64ArrayAttr(), StreamKind::Compute);
  copyWork(first, launch);
  first.erase();
  second.erase();
  return launch;
}

bool hasTwoStages(KernelOp kernel) { return stagesOf(kernel.getBody().front()).size() > 1; }

void eraseIdle(const llvm::SetVector<Operation *> &kernels, ModuleOp module, SymbolTable &symbols) {
  if (kernels.empty())
    return;
  DenseSet<StringAttr> launched;
  module.walk([&](LaunchOp launch) { launched.insert(launch.getKernelAttr().getAttr()); });
  for (Operation *kernel : kernels)
    if (!launched.contains(SymbolTable::getSymbolName(kernel)))
      symbols.erase(kernel);
}

} // namespace mlir::ds
