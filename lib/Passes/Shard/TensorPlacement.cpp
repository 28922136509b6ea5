//===- TensorPlacement.cpp - How ranks hold the values of a segment ---------------===//
#include "TensorPlacement.h"

#include "ds/Analysis/Placement/PlacementOrder.h"
#include "ds/Dialect/DsConv.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;
using analysis::Form;

/// A problem on its way, and what its ops and ways are.
struct TensorPlacement::Draft {
  analysis::PlacementProblem problem;
  SmallVector<Operation *> ops;         ///< by number; null for sources and sinks
  SmallVector<SmallVector<OpWay>> ways; ///< by op and way
  SmallVector<Value> values;            ///< by number
  bool isForward = false;

  /// Puts ops into an order that is quickly searched.
  void sort();
};

void TensorPlacement::Draft::sort() {
  Draft sorted;
  for (uint32_t index : analysis::orderOps(problem)) {
    sorted.problem.ops.push_back(std::move(problem.ops[index]));
    sorted.ops.push_back(ops[index]);
    sorted.ways.push_back(std::move(ways[index]));
  }
  problem.ops = std::move(sorted.problem.ops);
  ops = std::move(sorted.ops);
  ways = std::move(sorted.ways);
}

static double bytesOf(Value value) {
  RankedTensorType type = tensorType(value);
  return static_cast<double>(type.getNumElements()) * std::max(1u, type.getElementTypeBitWidth() / 8);
}

Cut TensorPlacement::cutOf(Value value, Form form) const {
  return cuts.of(value)[form - analysis::kFirstPart];
}

//===----------------------------------------------------------------------===//
// What belongs to the problem
//===----------------------------------------------------------------------===//

void TensorPlacement::findFree() {
  for (BlockArgument argument : segment.getBody().getArguments()) {
    StateOp state = segment.nameOf(argument) ? lookup(segment.nameOf(argument)) : StateOp();
    if (!state || (state.getRole() != Role::Parameter && state.getRole() != Role::Gradient))
      continue;
    values.bound.insert(argument);
    values.parameters.insert(argument);
    if (state.getTrainable())
      values.trained.insert(argument);
  }
  for (Operation &op : segment.getBody())
    for (auto *set : {&values.bound, &values.trained})
      if (llvm::any_of(op.getOperands(), [&](Value operand) { return set->contains(operand); }))
        set->insert(op.result_begin(), op.result_end());
  for (Operation &op : segment.getBody()) {
    // Its gradient is addends where the result's is: with a number added to it too, as in a norm's 1 + gain.
    auto isParameter = [&](Value operand) { return values.parameters.contains(operand); };
    auto isOf = [&](Value operand) { return isParameter(operand) || !values.bound.contains(operand); };
    if (cuts.ruleOf(&op).passesAddends && llvm::any_of(op.getOperands(), isParameter) &&
        llvm::all_of(op.getOperands(), isOf))
      values.parameters.insert(op.result_begin(), op.result_end());
  }
}

uint32_t TensorPlacement::number(Draft &draft, Value value) {
  auto [found, isNew] = numbers.try_emplace(value, draft.values.size());
  if (!isNew)
    return found->second;
  analysis::PlacedValue described;
  described.bytes = bytesOf(value);
  // Addends of a parameter's gradient are added up with those of others, when ZeRO reduces them.
  if (draft.isForward && settings.trains && isFloatTensor(value) && values.trained.contains(value) &&
      !values.parameters.contains(value))
    described.gradientBytes = described.bytes;
  described.mayMove =
      !values.parameters.contains(value); // a parameter is read in the parts that it is held in
  if (auto held = forms.find(value); held != forms.end()) {
    described.isGiven = true;
    described.held = held->second;
    described.available = made.lookup(value);
  }
  draft.values.push_back(value);
  draft.problem.values.push_back(described);
  return found->second;
}

//===----------------------------------------------------------------------===//
// Sources and sinks
//===----------------------------------------------------------------------===//

/// Seconds that a step spends on a parameter that a rank has whole: what belongs to it is read and written.
double TensorPlacement::parameterSeconds(StateOp state) const {
  constexpr double kStatesOfTrained = 4; // gradient, master or itself, two moments
  const double bytes = static_cast<double>(state.getTensorType().getNumElements()) *
                       std::max(1u, state.getTensorType().getElementTypeBitWidth() / 8);
  // To have matrices in parts is what ranks along this axis are there for: they are, unless it costs many
  // times what it saves.
  constexpr double kMatrixWeight = 4096;
  return bytes * settings.memorySecondsPerByte * (state.getTrainable() ? 2 * kStatesOfTrained : 1) *
         (state.getTensorType().getRank() > 1 ? kMatrixWeight : 1);
}

/// A parameter, or the gradients that were kept of one: held as is settled, or as the search finds best.
void TensorPlacement::addSource(Draft &draft, Value value) {
  StringAttr name = segment.nameOf(cast<BlockArgument>(value));
  StateOp state = lookup(name);
  const bool isGradient = state.getRole() == Role::Gradient;
  StringAttr parameter = isGradient ? state.getOwnerAttr().getAttr() : name;
  analysis::PlacedOp source;
  source.results = {number(draft, value)};
  const double whole = isGradient ? 0 : parameterSeconds(state);
  auto known = settled->parameters.find(parameter);
  auto asked = allowed.find(parameter);
  auto mayBe = [&](std::optional<Cut> cut) {
    if (known != settled->parameters.end())
      return known->second == cut;
    if (settings.sharesSequences)
      return !cut;
    if (asked == allowed.end())
      return true;
    return cut ? llvm::is_contained(asked->second.cuts, *cut) : asked->second.whole;
  };
  if (mayBe(std::nullopt))
    source.ways.push_back({{}, {analysis::kWhole}, whole});
  if (isGradient && mayBe(std::nullopt))
    source.ways.push_back({{}, {analysis::kAddends}, 0});
  for (auto [index, cut] : llvm::enumerate(cuts.of(value)))
    if (mayBe(cut))
      source.ways.push_back({{},
                             {static_cast<Form>(analysis::kFirstPart + index)},
                             whole / static_cast<double>(settings.ranks)});
  draft.problem.ops.push_back(std::move(source));
  draft.ops.push_back(nullptr);
  draft.ways.emplace_back();
}

/// What leaves the segment: a gradient as its parameter is held, everything else whole.
void TensorPlacement::addSink(Draft &draft, Value value, StringAttr parameter) {
  analysis::PlacedOp sink;
  sink.operands = {number(draft, value)};
  auto known = parameter ? settled->parameters.find(parameter) : settled->parameters.end();
  std::optional<Cut> cut;
  if (known != settled->parameters.end())
    cut = known->second;
  if (cut) {
    const Cut *found = llvm::find(cuts.of(value), *cut);
    if (found != cuts.of(value).end())
      sink.ways.push_back(
          {{static_cast<Form>(analysis::kFirstPart + (found - cuts.of(value).begin()))}, {}, 0});
  } else {
    auto addends = parameter ? settled->addends.find(parameter) : settled->addends.end();
    const bool isKnown = parameter && addends != settled->addends.end();
    if (!isKnown || !addends->second)
      sink.ways.push_back({{analysis::kWhole}, {}, 0});
    // They are added up later, many at once.
    const double seconds = 2 * bytesOf(value) * settings.secondsPerByte;
    if (parameter && (!isKnown || addends->second))
      sink.ways.push_back({{analysis::kAddends}, {}, isKnown ? 0 : seconds});
  }
  draft.problem.ops.push_back(std::move(sink));
  draft.ops.push_back(nullptr);
  draft.ways.emplace_back();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

double TensorPlacement::workSeconds(Operation *op) const {
  double bytes = 0;
  for (Value result : op->getResults())
    bytes += bytesOf(result);
  double flops = 0;
  if (auto cost = dyn_cast<CostOpInterface>(op); cost && isa<LibraryOpInterface>(op))
    flops = static_cast<double>(cost.getFlops());
  const bool isSingle =
      isFloatTensor(op->getResult(0)) && tensorType(op->getResult(0)).getElementTypeBitWidth() > 16;
  const auto type = isSingle ? ::ds::config::DType::F32 : ::ds::config::DType::BF16;
  // What is computed without products runs in kernels with others, of which few values reach memory.
  constexpr double kStored = 0.25;
  const double seconds = flops > 0 && settings.rates ? settings.rates->computeSeconds(flops, bytes, type)
                                                     : kStored * bytes * settings.memorySecondsPerByte;
  constexpr double kWithGradients = 3;
  const bool hasGradients = settings.trains && isForward(op) && values.trained.contains(op->getResult(0));
  return seconds * (hasGradients ? kWithGradients : 1);
}

Form TensorPlacement::formOf(Value value, const FactorDim &place, const ShardingFactor &factor,
                             const Blocks &blocks, bool isResult) const {
  if (place.has()) {
    ArrayRef<Cut> known = cuts.of(value);
    const auto *found = llvm::find(known, mlir::ds::cutOf(place, blocks));
    return found == known.end() ? analysis::kMaxForms
                                : static_cast<Form>(analysis::kFirstPart + (found - known.begin()));
  }
  if (place.lack == FactorDim::Lack::Addend)
    return analysis::kAddends;
  if (isResult)
    return factor.kind == FactorKind::Sum ? analysis::kAddends : analysis::kWhole;
  return place.lack == FactorDim::Lack::Whole && factor.kind == FactorKind::Parallel ? analysis::kCopy
                                                                                     : analysis::kWhole;
}

/// To have sequences in parts is what ranks along such an axis are there for, whatever exchanges take: how
/// many times what each rank does whole counts.
static constexpr double kUndividedWeight = 1e6;

void TensorPlacement::describe(Draft &draft, Operation *op) {
  analysis::PlacedOp described;
  SmallVector<OpWay> own;
  SmallVector<unsigned> read; // operands that are part of the problem
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    if (!values.bound.contains(operand))
      continue;
    if (!numbers.contains(operand) && isa<BlockArgument>(operand) && !forms.contains(operand))
      addSource(draft, operand);
    read.push_back(index);
    described.operands.push_back(number(draft, operand));
  }
  for (Value result : op->getResults())
    described.results.push_back(number(draft, result));
  const double seconds = workSeconds(op);
  auto addWay = [&](OpWay way, double time, auto &&formOfOperand, auto &&formOfResult) {
    analysis::PlacedWay placed;
    placed.seconds = time;
    for (unsigned index : read)
      placed.operands.push_back(formOfOperand(index));
    for (unsigned index = 0; index < op->getNumResults(); ++index)
      placed.results.push_back(formOfResult(index));
    if (llvm::is_contained(placed.operands, analysis::kMaxForms) ||
        llvm::is_contained(placed.results, analysis::kMaxForms))
      return;
    described.ways.push_back(std::move(placed));
    own.push_back(way);
  };
  auto always = [](Form form) { return [form](unsigned) { return form; }; };
  const double undivided = seconds * (settings.sharesSequences ? kUndividedWeight : 1);
  addWay({}, undivided, always(analysis::kWhole), always(analysis::kWhole));
  const ShardingRule &rule = cuts.ruleOf(op);
  if (rule.passesAddends && read.size() == op->getNumOperands())
    addWay({-1, {}, true}, undivided, always(analysis::kAddends), always(analysis::kAddends));
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    SmallVector<Blocks> found;
    auto look = [&](Value value, const FactorDim &place) {
      for (const Cut &cut : cuts.of(value))
        if (std::optional<Blocks> blocks = findBlocks(factor, place, cut, settings.ranks))
          if (!llvm::is_contained(found, *blocks))
            found.push_back(*blocks);
    };
    for (auto [value, place] : llvm::zip_equal(op->getOperands(), factor.operands))
      look(value, place);
    for (auto [value, place] : llvm::zip_equal(op->getResults(), factor.results))
      look(value, place);
    double exchanges = 0;
    if (factor.kind == FactorKind::Max || factor.kind == FactorKind::Min)
      exchanges = 2 * bytesOf(op->getResult(0)) * settings.secondsPerByte;
    for (const Blocks &blocks : found)
      addWay(
          {static_cast<int>(index), blocks, false}, seconds / static_cast<double>(settings.ranks) + exchanges,
          [&](unsigned at) { return formOf(op->getOperand(at), factor.operands[at], factor, blocks, false); },
          [&](unsigned at) { return formOf(op->getResult(at), factor.results[at], factor, blocks, true); });
  }
  draft.problem.ops.push_back(std::move(described));
  draft.ops.push_back(op);
  draft.ways.push_back(std::move(own));
}

//===----------------------------------------------------------------------===//
// The search
//===----------------------------------------------------------------------===//

LogicalResult TensorPlacement::place(Draft &draft) {
  draft.sort();
  analysis::PlacementProblem &problem = draft.problem;
  problem.ranks = static_cast<double>(settings.ranks);
  problem.secondsPerByte = settings.secondsPerByte;
  problem.secondsPerExchange = settings.secondsPerExchange;
  problem.exchangesParts = settings.sharesSequences;
  problem.secondsPerCopied = 2 * settings.memorySecondsPerByte; // read and written
  // One gather before the first layer is worth it, where sums in every norm would come in its place; one in
  // every layer is not.
  constexpr double kLastResort = 8;
  problem.partsWeight = settings.rows == PlacementSettings::Rows::Whole ? kLastResort : 1;
  // A scattered sum and a gather wait twice where a sum waits once, and that is all that speaks against them.
  problem.waitsOfSum = settings.rows == PlacementSettings::Rows::Cut ? 2 : 1;
  const analysis::PlacementSolution solution = analysis::placeValues(problem);
  if (!solution.isFound()) {
    // Sources and sinks stand beside an op that reads or makes their value.
    const uint32_t value = problem.ops[solution.stuckAt].operands.empty()
                               ? problem.ops[solution.stuckAt].results.front()
                               : problem.ops[solution.stuckAt].operands.front();
    Operation *op = draft.ops[solution.stuckAt];
    return emitError(op ? op->getLoc() : draft.values[value].getLoc())
           << "ranks that share " << (settings.sharesSequences ? "sequences" : "layers")
           << " cannot hold the values of " << (op ? op->getName().getStringRef() : StringRef("a state"))
           << " in any way that fits its readers";
  }
  if (std::string mistake = analysis::findMistake(problem, solution); !mistake.empty())
    return segment.getFunction().emitError("is placed wrongly: ") << mistake;
  outcome.isExact &= solution.isExact;
  if (draft.isForward)
    outcome.forwardSeconds = solution.seconds;
  for (auto [index, op] : llvm::enumerate(draft.ops))
    if (op)
      ways[op] = draft.ways[index][solution.ways[index]];
  for (auto [index, value] : llvm::enumerate(draft.values)) {
    forms[value] = solution.held[index];
    made[value] |= solution.read[index];
  }
  numbers.clear();
  return success();
}

StringAttr TensorPlacement::parameterOfGradient(StringAttr name) const {
  StateOp state = name ? lookup(name) : StateOp();
  return state && state.getRole() == Role::Gradient ? state.getOwnerAttr().getAttr() : StringAttr();
}

void TensorPlacement::settleParameters() {
  for (BlockArgument argument : segment.getBody().getArguments()) {
    StringAttr name = segment.nameOf(argument);
    StateOp state = name ? lookup(name) : StateOp();
    auto form = forms.find(argument);
    if (!state || state.getRole() != Role::Parameter || form == forms.end())
      continue;
    const bool isWhole = form->second == analysis::kWhole;
    settled->parameters.try_emplace(name,
                                    isWhole ? std::nullopt : std::optional(cutOf(argument, form->second)));
  }
}

LogicalResult TensorPlacement::solve(function_ref<StateOp(StringAttr)> lookupState, SettledStates &states) {
  lookup = lookupState;
  settled = &states;
  findFree();
  auto isPlaced = [&](Operation &op) {
    return getWork(&op) != Work::Update && op.getNumResults() > 0 &&
           llvm::any_of(op.getOperands(), [&](Value operand) { return values.bound.contains(operand); });
  };
  // What leaves is settled as soon as it is made: it is not to be carried along through the search.
  llvm::MapVector<Value, StringAttr> sinks;
  // One value may be the gradient of several parameters: biases that are added up have the same.
  SmallVector<std::pair<Value, StringAttr>> leaving;
  for (OpOperand &result : segment.getTerminator()->getOpOperands())
    leaving.push_back({result.get(), parameterOfGradient(segment.nameOfResult(result.getOperandNumber()))});
  for (auto update : segment.getBody().getOps<UpdateOp>())
    leaving.push_back({update.getGradient(), update.getParameterAttr().getAttr()});
  for (const auto &[value, parameter] : leaving)
    sinks.insert({value, parameter});
  auto placeAll = [&](bool isOfForward) {
    Draft draft;
    draft.isForward = isOfForward;
    for (Operation &op : segment.getBody()) {
      if (!isPlaced(op) || isForward(&op) != isOfForward)
        continue;
      describe(draft, &op);
      for (Value result : op.getResults())
        if (auto sink = sinks.find(result); sink != sinks.end())
          addSink(draft, result, sink->second);
    }
    return place(draft);
  };
  if (failed(placeAll(/*isOfForward=*/true)))
    return failure();
  settleParameters();
  if (failed(placeAll(/*isOfForward=*/false)))
    return failure();
  for (const auto &[value, parameter] : leaving)
    if (parameter && forms.contains(value) && !settled->parameters.lookup(parameter))
      settled->addends.try_emplace(parameter, forms.lookup(value) == analysis::kAddends);
  return success();
}
