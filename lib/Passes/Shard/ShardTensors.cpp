//===- ShardTensors.cpp - Sequences and layers cut among ranks ------------------------===//
//
// The parts of sequence and tensor parallelism: where values could be cut (TensorCuts.h), how ranks hold them
// (TensorPlacement.h), and the segments as one rank runs them (TensorPartition.h). Parameters are settled by
// the segment that updates; the others follow. Each is found along its own axes: first who has which rows,
// with parameters whole, then how the ranks that have the same rows share what is left.
//
//===---------------------------------------------------------------------------===//
#include "DescribeSharing.h"
#include "IndexLimits.h"
#include "OpenLoss.h"
#include "PadClasses.h"
#include "ShareSequences.h"
#include "TensorPartition.h"

#include "ds/Dialect/MeshShape.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "llvm/ADT/MapVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_SHARDTENSORS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
namespace cost = ::ds::cost;

/// Seconds for each byte that a rank sends to the others of its group, and for each that it reads or writes.
static void readRatesInto(PlacementSettings &settings, const cost::Rates &rates) {
  constexpr double kMany = 1e9;
  const double bytes = cost::Rates::bytesSent(cost::Collective::AllReduce, kMany, settings.ranks);
  settings.secondsPerByte =
      rates.collectiveSeconds(cost::Collective::AllReduce, kMany, settings.ranks) / bytes;
  settings.secondsPerExchange = rates.collectiveSeconds(cost::Collective::AllReduce, 1, settings.ranks);
  settings.memorySecondsPerByte = rates.memorySeconds(kMany) / kMany;
  settings.rates = &rates;
}

/// A state that is cut as its parameter is: its view where the factor is not the outermost, pieces of that
/// which differ in size, and its shards.
static void cutState(StateOp state, const Cut &cut, CutRanks ranks) {
  MLIRContext *context = state.getContext();
  SmallVector<int64_t> view;
  SmallVector<Attribute> shards;
  const auto shape = state.getView().value_or(state.getTensorType().getShape()); // with padded classes
  for (auto [dim, size] : llvm::enumerate(shape)) {
    const bool isCut = static_cast<int64_t>(dim) == cut.dim;
    if (isCut && cut.blocks.outer > 1) {
      view.push_back(cut.blocks.outer);
      shards.push_back(UnitAttr::get(context));
    }
    view.push_back(isCut ? size / cut.blocks.outer : size);
    shards.push_back(isCut ? Attribute(ranks.axes) : Attribute(UnitAttr::get(context)));
  }
  if (cut.blocks.outer > 1)
    state.setView(view);
  if (!cut.blocks.ratio.empty())
    state.setPieces(cut.blocks.sizes(shape[cut.dim]));
  state.setShardsAttr(ArrayAttr::get(context, shards));
}

/// The parameters of a segment, each with the gradients that it has there.
static SmallVector<TensorCuts::Alike> findParameters(SegmentStates &segment,
                                                     function_ref<StateOp(StringAttr)> lookup) {
  llvm::MapVector<StringAttr, TensorCuts::Alike> found;
  auto note = [&](StateOp state, Value value) {
    if (state && state.getRole() == Role::Parameter && isa<BlockArgument>(value))
      found[state.getSymNameAttr()].insert(found[state.getSymNameAttr()].begin(), value);
    else if (state && state.getRole() == Role::Gradient)
      found[state.getOwnerAttr().getAttr()].push_back(value);
  };
  for (BlockArgument argument : segment.getBody().getArguments())
    note(lookup(segment.nameOf(argument)), argument);
  for (OpOperand &result : segment.getTerminator()->getOpOperands())
    note(lookup(segment.nameOfResult(result.getOperandNumber())), result.get());
  for (auto update : segment.getBody().getOps<UpdateOp>())
    found[update.getParameterAttr().getAttr()].push_back(update.getGradient());
  return llvm::map_to_vector(found, [](auto &entry) { return entry.second; });
}

static CutSeeds seedsOf(const PlacementSettings &settings) {
  if (settings.sharesSequences)
    return CutSeeds::Sequences;
  return settings.rows == PlacementSettings::Rows::Whole ? CutSeeds::Layers : CutSeeds::LayersAndRows;
}

namespace {
struct ShardTensors : mlir::ds::impl::ShardTensorsBase<ShardTensors> {
  using ShardTensorsBase::ShardTensorsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Step)))
      return signalPassFailure();
    const MeshShape shape = getMeshShape(module);
    if (failed(shard(module, shape, shape.sequences(), /*sharesSequences=*/true)) ||
        failed(shard(module, shape, shape.tensors, /*sharesSequences=*/false)))
      signalPassFailure();
  }

  LogicalResult shard(ModuleOp module, const MeshShape &shape, ::ds::rt::AxisSet axes, bool sharesSequences) {
    if (shape.mesh.size(axes) == 1)
      return success();
    FailureOr<cost::Rates> rates = readRates(module);
    if (failed(rates))
      return failure();
    const CutRanks ranks{nameAxes(module.getContext(), shape.mesh, axes), shape.mesh.size(axes)};
    PlacementSettings settings;
    settings.ranks = ranks.count;
    settings.sharesSequences = sharesSequences;
    const std::optional<bool> asked = getTraining(module).tensors.sequenceParallel;
    settings.rows = sharesSequences || !asked ? PlacementSettings::Rows::Chosen
                    : *asked                  ? PlacementSettings::Rows::Cut
                                              : PlacementSettings::Rows::Whole;
    readRatesInto(settings, *rates);
    keepIndexLimits(module);
    const DenseMap<int64_t, int64_t> existing =
        sharesSequences ? DenseMap<int64_t, int64_t>() : padClasses(module, ranks.count);
    SettledStates settled;
    if (failed(shardSegments(module, settings, ranks, settled, existing)))
      return failure();
    SymbolTable symbols(module);
    for (auto state : module.getOps<StateOp>())
      if (std::optional<Cut> cut = cutOfState(symbols, settled, state.getSymNameAttr()))
        cutState(state, *cut, ranks);
      else if (settled.addends.lookup(state.getSymNameAttr()))
        addAddends(state, shape, axes);
    return success();
  }

  /// Lets ranks along `axes` too make addends of a parameter's gradient.
  static void addAddends(StateOp state, const MeshShape &shape, ::ds::rt::AxisSet axes) {
    if (AxesAttr known = state.getAddendsAttr())
      axes = axes | MeshOp::lookup(state).find(known);
    state.setAddendsAttr(nameAxes(state.getContext(), shape.mesh, axes));
  }

  LogicalResult shardSegments(ModuleOp module, const PlacementSettings &settings, CutRanks ranks,
                              SettledStates &settled, const DenseMap<int64_t, int64_t> &existing) {
    SymbolTable symbols(module);
    SmallVector<func::FuncOp> segments(module.getOps<func::FuncOp>());
    llvm::stable_sort(segments, [](func::FuncOp a, func::FuncOp b) {
      return SegmentAttr::of(a).does(Work::Update) > SegmentAttr::of(b).does(Work::Update);
    });
    for (func::FuncOp func : segments) {
      if (settings.sharesSequences && failed(checkSequences(func, ranks.count)))
        return failure();
      if (settings.sharesSequences)
        openSequences(func, ranks.count);
      else
        openLosses(func, existing);
      if (failed(shardSegment(func, symbols, settings, ranks, settled)))
        return failure();
    }
    return success();
  }

  /// Where the state is cut: as the parameter that it is or belongs to.
  static std::optional<Cut> cutOfState(SymbolTable &symbols, const SettledStates &settled, StringAttr name) {
    auto state = symbols.lookup<StateOp>(name);
    if (state && state.getOwnerAttr())
      name = state.getOwnerAttr().getAttr();
    return settled.parameters.lookup(name);
  }

  LogicalResult shardSegment(func::FuncOp func, SymbolTable &symbols, PlacementSettings settings,
                             CutRanks ranks, SettledStates &settled) {
    SegmentStates segment(func);
    settings.trains = segment.does(Work::Backward);
    auto lookup = [&](StringAttr name) { return name ? symbols.lookup<StateOp>(name) : StateOp(); };
    const TensorCuts cuts(func, findParameters(segment, lookup), ranks.count, seedsOf(settings));
    DenseMap<StringAttr, AllowedCuts> allowed;
    const bool isFirst = settled.parameters.empty(); // the others follow it
    if (isFirst && !settings.sharesSequences)
      allowed = readSpecs(segment, cuts, getTraining(func->getParentOfType<ModuleOp>()).tensors);
    TensorPlacement placement(segment, cuts, settings, allowed);
    if (failed(placement.solve(lookup, settled)))
      return failure();
    if (remarks)
      func.emitRemark("@") << func.getSymName() << ": " << placement.getOutcome().forwardSeconds * 1e6
                           << " us of exchanges and work in forward by the search, which "
                           << (placement.getOutcome().isExact ? "is exact" : "dropped states");
    auto cutOf = [&](StringAttr name) { return cutOfState(symbols, settled, name); };
    std::optional<SharedLayers> shared;
    if (isFirst && !settings.sharesSequences)
      shared = describeSharing(segment, cuts, placement, settled, allowed, ranks.count);
    TensorPartition(segment, cuts, placement, ranks, cutOf).run();
    segment.finish();
    if (shared) {
      shared->exchanges = describeExchanges(segment, ranks.axes);
      changeDecisions(func->getParentOfType<ModuleOp>(),
                      [&](Decisions &decisions) { decisions.shared = std::move(shared); });
    }
    return success();
  }
};
} // namespace
