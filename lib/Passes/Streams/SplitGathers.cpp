//===- SplitGathers.cpp - Gathers between nodes first, then within them ------------===//
//
// A gather of parameters along several nodes has every rank send its shard to all others at once. In two
// steps (MiCS, Zhang et al. 2022, section 3.3) each shard goes to each other node once, and is handed on
// there:
//
//   dp.node = 2, dp.local = 2, shards of ranks 0 to 3:    a | b | c | d
//   gathered along dp.node, into memory of its own:       ac | bd | ac | bd
//   its first part gathered along dp.local:               ab
//   its second part:                                      cd, behind them
//
// What the first step brings lies apart in the whole, so that the second is one gather for each node, into
// that node's window: nothing is copied, and the whole has the order that one gather gives. A rank sends as
// many bytes as before, of which only the first step's cross nodes.
//
//===---------------------------------------------------------------------------===//
#include "FunctionGathers.h"

#include "ds/Dialect/MeshShape.h"
#include "ds/Dialect/Training.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SPLITGATHERS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

namespace {
/// The two steps of one gather.
struct GatherSteps {
  AxesAttr first, rest; ///< the axes of each; null where that step is none
  int64_t nodes = 1;    ///< ranks along `first`
};

class GatherSplitter {
public:
  GatherSplitter(const MeshShape &shape, rt::AxisSet first) : shape(shape), first(first) {}
  void split(CommunicateOp gather) const;

private:
  GatherSteps stepsOf(CommunicateOp gather) const;
  AxesAttr nameAxes(MLIRContext *context, rt::AxisSet axes) const;

  const MeshShape &shape;
  const rt::AxisSet first; ///< of all gathers
};
} // namespace

/// `axes` as collectives have them: without those of one rank.
AxesAttr GatherSplitter::nameAxes(MLIRContext *context, rt::AxisSet axes) const {
  return shape.mesh.size(axes) > 1 ? mlir::ds::nameAxes(context, shape.mesh, axes) : AxesAttr();
}

GatherSteps GatherSplitter::stepsOf(CommunicateOp gather) const {
  rt::AxisSet along;
  for (StringAttr name : gather.getAxes().getNames())
    along = along | shape.mesh.find(name.getValue()).value_or(rt::AxisSet());
  MLIRContext *context = gather.getContext();
  return {nameAxes(context, along & first), nameAxes(context, along - first), shape.mesh.size(along & first)};
}

/// `elements` of `source`, which has rank 1, from `offset` on.
static Value windowAt(OpBuilder &builder, Value source, int64_t offset, int64_t elements) {
  auto from = cast<BufferType>(source.getType());
  auto type = BufferType::getContiguous(from.getTensor().clone({elements}), from.getSpace());
  return builder.create<ViewOp>(source.getLoc(), type, source, offset);
}

void GatherSplitter::split(CommunicateOp gather) const {
  const GatherSteps steps = stepsOf(gather);
  Value shard = gather.getInputs()[0], whole = gather.getOutputs()[0];
  auto type = cast<BufferType>(whole.getType());
  if (!steps.first || !steps.rest || type.getTensor().getRank() != 1)
    return;
  WorkListener listener(gather);
  OpBuilder builder(gather, &listener);
  auto gatherTo = [&](Value from, Value to, AxesAttr axes) {
    auto step = cast<CommunicateOp>(builder.clone(*gather));
    step.getInputsMutable().assign(from);
    step.getOutputsMutable().assign(to);
    step.setAxesAttr(axes);
  };
  const int64_t part = cast<BufferType>(shard.getType()).getTensor().getNumElements();
  const int64_t ofNode = type.getTensor().getNumElements() / steps.nodes;
  auto joined = builder.create<AllocOp>(
      gather.getLoc(),
      BufferType::getContiguous(type.getTensor().clone({steps.nodes * part}), type.getSpace()),
      AllocCategory::Communication);
  gatherTo(shard, joined.getBuffer(), steps.first);
  for (int64_t node = 0; node < steps.nodes; ++node)
    gatherTo(windowAt(builder, joined.getBuffer(), node * part, part),
             windowAt(builder, whole, node * ofNode, ofNode), steps.rest);
  gather.erase();
}

namespace {
struct SplitGathers : mlir::ds::impl::SplitGathersBase<SplitGathers> {
  void runOnOperation() override {
    auto module = getOperation()->getParentOfType<ModuleOp>();
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    const MeshShape shape = getMeshShape(module);
    rt::AxisSet first;
    for (const std::string &name : getTraining(module).sharding.firstAxes)
      first = first | shape.mesh.find(name).value_or(rt::AxisSet());
    const GatherSplitter splitter(shape, first);
    for (CommunicateOp gather : llvm::make_early_inc_range(getOperation().getOps<CommunicateOp>()))
      if (isMovableGather(gather))
        splitter.split(gather);
  }
};
} // namespace
