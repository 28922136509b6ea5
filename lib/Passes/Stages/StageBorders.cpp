//===- StageBorders.cpp - Which stage has which op, and what passes between them ---===//
#include "StageBorders.h"

#include "Model/ActiveValues.h"
#include "ds/Analysis/Pipelines/StagePartition.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Passes/ScheduledFunction.h"

#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;
namespace cost = ::ds::cost;

/// Backward computes about twice what forward does.
static constexpr double kTimesForward = 3;

static double bytesOf(Value value) {
  RankedTensorType type = tensorType(value);
  return double(type.getNumElements()) * std::max(1u, type.getElementTypeBitWidth() / 8);
}

/// Seconds of `op`: of a call what it computes and touches, of all else, which is fused, what it writes.
static double secondsOf(Operation *op, const cost::Rates &rates) {
  double written = 0, read = 0;
  for (Value result : op->getResults())
    written += bytesOf(result);
  if (!isa<LibraryOpInterface>(op))
    return rates.memorySeconds(written) - rates.memorySeconds(0);
  for (Value operand : op->getOperands())
    read += bytesOf(operand);
  auto costs = dyn_cast<CostOpInterface>(op);
  Type element = getElementTypeOrSelf(op->getResultTypes().front());
  const auto dtype = element.isBF16()  ? cost::DType::BF16
                     : element.isF16() ? cost::DType::F16
                                       : cost::DType::F32;
  return rates.computeSeconds(costs ? double(costs.getFlops()) : 0, written + read, dtype);
}

namespace {
/// Divides one function.
class BorderFinder {
public:
  BorderFinder(func::FuncOp forward, const StageRequest &request, const cost::Rates &rates)
      : forward(forward), request(request), rates(rates), units(forward), all(units.count()) {}

  FailureOr<StageBorders> run();

private:
  void dropEmpty();
  void weighBorders();
  LogicalResult weighUnits();
  LogicalResult weighKind(StringRef pattern);
  void weighParameters();
  void assign(ArrayRef<uint32_t> counts);
  void findCrossing();
  std::optional<unsigned> lastUnitThatReads(Value value) const;
  unsigned unitOf(Operation *op) const { return numbers[*units.unitOf(op)]; }

  func::FuncOp forward;
  const StageRequest &request;
  const cost::Rates &rates;
  const LayerUnits units;
  std::vector<analysis::PartitionUnit> all; ///< of units that have an op
  SmallVector<unsigned> numbers;            ///< of each unit: which of `all` it is
  StageBorders borders;
};
} // namespace

/// Models begin without an embedding, or end with a layer.
void BorderFinder::dropEmpty() {
  BitVector used(units.count());
  for (Operation &op : forward.getBody().front().without_terminator())
    if (auto unit = units.unitOf(&op))
      used.set(*unit);
  unsigned next = 0;
  for (unsigned unit = 0; unit < units.count(); ++unit)
    numbers.push_back(used[unit] ? next++ : next);
  all.resize(next);
}

/// The last of the units that read `value`; nothing for none.
std::optional<unsigned> BorderFinder::lastUnitThatReads(Value value) const {
  std::optional<unsigned> last;
  for (Operation *user : value.getUsers())
    if (units.unitOf(user) && !user->hasTrait<OpTrait::IsTerminator>())
      last = std::max(last.value_or(0), unitOf(user));
  return last;
}

void BorderFinder::weighBorders() {
  for (Operation &op : forward.getBody().front().without_terminator()) {
    if (!units.unitOf(&op))
      continue;
    for (Value result : op.getResults())
      if (auto last = lastUnitThatReads(result))
        for (unsigned unit = unitOf(&op); unit < *last; ++unit)
          all[unit].borderCost +=
              2 * rates.collectiveSeconds(cost::Collective::Send, bytesOf(result), request.neighbours);
  }
}

LogicalResult BorderFinder::weighKind(StringRef pattern) {
  const llvm::Regex kind(pattern, llvm::Regex::IgnoreCase);
  if (std::string error; !kind.isValid(error))
    return forward.emitOpError("expects a regular expression in pipeline.partition, but got ")
           << pattern << ": " << error;
  for (Operation &op : forward.getBody().front().without_terminator())
    if (LayerAttr layer = LayerAttr::of(&op); layer && units.unitOf(&op) && kind.match(layer.getName()))
      all[unitOf(&op)].cost = 1;
  if (llvm::any_of(all, [](const analysis::PartitionUnit &unit) { return unit.cost > 0; }))
    return success();
  return forward.emitOpError("expects a layer whose name matches ")
         << pattern << ", of pipeline.partition, but has none";
}

/// A parameter counts where it is read first.
void BorderFinder::weighParameters() {
  for (BlockArgument argument : forward.getArguments()) {
    FlatSymbolRefAttr name = getStateOf(forward, argument);
    auto state = name ? SymbolTable::lookupNearestSymbolFrom<StateOp>(forward, name) : StateOp();
    if (!state || state.getRole() != Role::Parameter)
      continue;
    std::optional<unsigned> first;
    for (Operation *user : argument.getUsers())
      if (units.unitOf(user))
        first = std::min(first.value_or(~0u), unitOf(user));
    if (first && *first < all.size())
      all[*first].cost += double(state.getTensorType().getNumElements());
  }
}

LogicalResult BorderFinder::weighUnits() {
  StringRef partition = request.partition;
  if (partition.consume_front("type:"))
    return weighKind(partition);
  if (partition == "uniform") {
    for (analysis::PartitionUnit &unit : all)
      unit.cost = 1;
    return success();
  }
  if (partition == "parameters") {
    weighParameters();
    return success();
  }
  if (partition != "best")
    return forward.emitOpError(
               "expects best, uniform, parameters or type:REGEX of pipeline.partition, but got ")
           << partition;
  for (Operation &op : forward.getBody().front().without_terminator())
    if (units.unitOf(&op))
      all[unitOf(&op)].cost += kTimesForward * secondsOf(&op, rates);
  weighBorders();
  return success();
}

void BorderFinder::assign(ArrayRef<uint32_t> counts) {
  SmallVector<unsigned> stageOfUnit;
  for (auto [stage, count] : llvm::enumerate(counts))
    stageOfUnit.append(count, unsigned(stage));
  borders.firstLayers.resize(counts.size());
  for (Operation &op : forward.getBody().front().without_terminator()) {
    if (!units.unitOf(&op))
      continue;
    const unsigned stage = stageOfUnit[unitOf(&op)];
    borders.stageOf[&op] = stage;
    if (LayerAttr layer = LayerAttr::of(&op); layer && borders.firstLayers[stage].empty())
      borders.firstLayers[stage] = layer.getName();
  }
}

void BorderFinder::findCrossing() {
  const DenseSet<Value> active = findActiveValues(forward), needed = findNeededValues(forward);
  borders.crossing.resize(request.stages - 1);
  for (Operation &op : forward.getBody().front().without_terminator()) {
    auto from = borders.stageOf.find(&op);
    if (from == borders.stageOf.end())
      continue;
    for (Value result : op.getResults()) {
      unsigned last = from->second;
      for (Operation *user : result.getUsers())
        if (auto to = borders.stageOf.find(user); to != borders.stageOf.end())
          last = std::max(last, to->second);
      for (unsigned stage = from->second; stage < last; ++stage)
        borders.crossing[stage].push_back(result);
      if (active.contains(result) && needed.contains(result))
        borders.trained.insert(result);
    }
  }
}

FailureOr<StageBorders> BorderFinder::run() {
  dropEmpty();
  if (all.size() < size_t(request.stages)) {
    InFlightDiagnostic error = forward.emitOpError("expects at most ")
                               << all.size() << " stages, one for each of its numbered layers, for what is "
                               << "before them and for what is behind, but got " << request.stages;
    error.attachNote()
        << "pipeline.stages says how many; layers are numbered by the names of modules (h.3.attn)";
    return error;
  }
  if (failed(weighUnits()))
    return failure();
  assign(analysis::partitionUnits(all, uint32_t(request.stages)));
  findCrossing();
  return std::move(borders);
}

FailureOr<StageBorders> mlir::ds::findBorders(func::FuncOp forward, const StageRequest &request,
                                              const cost::Rates &rates) {
  return BorderFinder(forward, request, rates).run();
}
