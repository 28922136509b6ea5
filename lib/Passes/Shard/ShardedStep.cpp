//===- ShardedStep.cpp - What the ranks divide, and how ---------------------------===//
//
// Two parameters may share a bucket when one body updates both: the same ops on the same numbers, and states
// of the same kinds. The bodies themselves say so; no option is asked for.
//
//===---------------------------------------------------------------------------===//
#include "ShardedStep.h"

#include "ds/Analysis/Packing/BucketLayout.h"

#include "mlir/IR/TypeUtilities.h"

#include <map>

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// A parameter on its way into a bucket.
struct ShardedStep::Candidate {
  StateOp parameter;
  UpdateOp update; ///< null for what is not trained
  std::string kind;
};

ShardedStep::ShardedStep(ModuleOp module, const TrainingOptions &options)
    : module(module), options(options), shape(getMeshShape(module)), symbols(module) {
  for (StateOp state : module.getOps<StateOp>())
    if (state.getOwner())
      owned[{*state.getOwner(), *state.getSlot()}] = state;
}

AxesAttr ShardedStep::nameAxes(::ds::rt::AxisSet axes) const {
  for (unsigned axis = 0; axis < shape.mesh.numAxes(); ++axis)
    if (shape.mesh.axes()[axis].size == 1)
      axes = axes - ::ds::rt::AxisSet{axis};
  return mlir::ds::nameAxes(ModuleOp(module).getContext(), shape.mesh, axes);
}

//===----------------------------------------------------------------------===//
// Which updates are the same
//===----------------------------------------------------------------------===//

/// Spells `body` without the parameter's name and shape.
static void spellBody(UpdateOp update, raw_ostream &os) {
  DenseMap<Value, unsigned> numbers;
  auto number = [&](Value value) { return numbers.try_emplace(value, numbers.size()).first->second; };
  Block &block = update.getBody().front();
  for (BlockArgument argument : block.getArguments())
    os << number(argument) << ':' << getElementTypeOrSelf(argument.getType()) << ' ';
  for (Operation &op : block) {
    os << op.getName() << '(';
    for (Value operand : op.getOperands())
      os << number(operand) << ' ';
    os << ')';
    if (auto constant = dyn_cast<ConstantOp>(op))
      os << cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>();
    else if (!isa<BroadcastOp>(op))
      os << op.getAttrDictionary();
    for (Value result : op.getResults())
      os << number(result) << ':' << getElementTypeOrSelf(result.getType());
    os << ';';
  }
  for (Value scalar : update.getScalars())
    os << scalar.getAsOpaquePointer() << ' ';
}

/// Spells what decides whether two parameters may share a bucket, and checks that states go through the
/// update as states do.
LogicalResult ShardedStep::describe(Candidate &candidate, SegmentStates &last) {
  llvm::raw_string_ostream os(candidate.kind);
  StateOp parameter = candidate.parameter;
  os << parameter.getTensorType().getElementType() << " cut " << parameter.getCutAxes().bits() << " addends "
     << parameter.getAddendAxes().bits() << (parameter.getCopy() ? " copy" : "")
     << (parameter.getTied() ? " tied " + std::to_string(*parameter.getTied()) : "")
     << (candidate.update ? " trained " : " frozen ");
  if (!candidate.update)
    return success();
  auto spellState = [&](StringAttr stateName) {
    StateOp state = stateName ? lookup(stateName) : StateOp();
    if (!state)
      return false;
    os << state.getSlot().value_or("") << ' ' << stringifyRole(state.getRole()) << ' ' << state.getInit()
       << ' ' << state.getTensorType().getElementType() << ' ';
    return true;
  };
  for (Value operand : candidate.update.getStates()) {
    auto argument = dyn_cast<BlockArgument>(operand);
    if (!argument || !spellState(last.nameOf(argument)))
      return candidate.update.emitOpError("expects states that are arguments of its function, but got ")
             << operand;
  }
  for (Value result : candidate.update.getResults()) {
    bool isState = result.hasOneUse() && result.use_begin()->getOwner() == last.getTerminator() &&
                   spellState(last.nameOfResult(result.use_begin()->getOperandNumber()));
    if (!isState)
      return candidate.update.emitOpError("expects results that states are given and nothing else reads");
  }
  spellBody(candidate.update, os);
  return success();
}

//===----------------------------------------------------------------------===//
// Which parameters there are
//===----------------------------------------------------------------------===//

/// The parameters that the segment's layers read, in order of first use.
static SmallVector<StateOp> parametersInOrder(const SegmentStates &segment, const ShardedStep &step) {
  struct Read {
    Operation *first;
    unsigned argument;
    StateOp state;
  };
  SmallVector<Read> found;
  for (BlockArgument argument : segment.getBody().getArguments()) {
    StringAttr name = segment.nameOf(argument);
    StateOp state = name ? step.lookup(name) : StateOp();
    if (!state || state.getRole() != Role::Parameter)
      continue;
    Operation *first = nullptr;
    for (Operation *user : argument.getUsers())
      if (!isa<UpdateOp>(user))
        first = earlierOf(first, user);
    found.push_back({first ? first : segment.getTerminator(), argument.getArgNumber(), state});
  }
  llvm::sort(found, [](const Read &a, const Read &b) {
    return a.first == b.first ? a.argument < b.argument : a.first->isBeforeInBlock(b.first);
  });
  return llvm::map_to_vector(found, [](const Read &read) { return read.state; });
}

LogicalResult ShardedStep::collect(SmallVectorImpl<Candidate> &trained, SmallVectorImpl<Candidate> &frozen) {
  SmallVector<SegmentStates> segments;
  for (auto func : module.getOps<func::FuncOp>())
    segments.emplace_back(func);
  auto *last =
      llvm::find_if(segments, [](const SegmentStates &segment) { return segment.does(Work::Update); });
  std::swap(*segments.begin(), *last);
  DenseMap<StringAttr, UpdateOp> updates;
  for (auto update : segments.front().getBody().getOps<UpdateOp>())
    updates[update.getParameterAttr().getAttr()] = update;
  DenseSet<Operation *> seen;
  for (SegmentStates &segment : segments)
    for (StateOp parameter : parametersInOrder(segment, *this)) {
      if (!seen.insert(parameter).second)
        continue;
      Candidate candidate{parameter, updates.lookup(parameter.getSymNameAttr()), ""};
      if (failed(describe(candidate, segments.front())))
        return failure();
      (candidate.update ? trained : frozen).push_back(candidate);
    }
  for (auto [name, update] : updates)
    if (!seen.contains(lookup(name)))
      return update.emitOpError("expects a parameter that its function reads, but got @") << name.getValue();
  return success();
}

/// The axes that `names`, of `key`, say. Fails, with a diagnostic, for such as ZeRO does not divide along.
static FailureOr<::ds::rt::AxisSet> findZeroAxes(ModuleOp module, const MeshShape &shape, StringRef key,
                                                 ArrayRef<std::string> names) {
  ::ds::rt::AxisSet found;
  for (const std::string &name : names) {
    std::optional<::ds::rt::AxisSet> axes = shape.mesh.find(name);
    if (!axes || !shape.zero.hasAll(*axes))
      return module.emitError("expects axes along which ZeRO divides, ")
             << shape.mesh.spell(shape.zero) << ", in zero_optimization." << key << ", but got " << name;
    found = found | *axes;
  }
  return found;
}

/// The axes that cut secondary partitions. What is gathered along some axes first, and along the rest then,
/// lies in order only if they are the slower ones: fails, with a diagnostic, where they are not.
static FailureOr<::ds::rt::AxisSet> findNearAxes(ModuleOp module, const MeshShape &shape,
                                                 const ShardingOptions &options) {
  FailureOr<::ds::rt::AxisSet> near = findZeroAxes(module, shape, "secondary_axes", options.secondaryAxes),
                               first = findZeroAxes(module, shape, "gather_first_axes", options.firstAxes);
  if (failed(near) || failed(first))
    return failure();
  const ::ds::rt::AxisSet rest = shape.zero - *first;
  if (rest.isEmpty() || first->bits() < (rest.bits() & -rest.bits()))
    return near;
  return module.emitError("expects zero_optimization.gather_first_axes before ")
         << shape.mesh.spell(rest) << " in the mesh, but got " << shape.mesh.spell(*first);
}

LogicalResult ShardedStep::layOut() {
  if (options.optimizer.kind == OptimizerOptions::Kind::Lamb)
    return module.emitError() << "optimizer lamb on " << shape.mesh.size()
                              << " ranks is not supported: its step needs norms of whole parameters";
  FailureOr<::ds::rt::AxisSet> found = findNearAxes(module, shape, options.sharding);
  if (failed(found))
    return failure();
  near = *found;
  SmallVector<Candidate> trained, frozen;
  if (failed(collect(trained, frozen)))
    return failure();
  findDeclared();
  makeBuckets(trained);
  if (options.sharding.stage == 3)
    makeBuckets(frozen);
  return success();
}

//===----------------------------------------------------------------------===//
// Declarations
//===----------------------------------------------------------------------===//

/// Notes which states belong to which, before there are those of buckets.
void ShardedStep::findDeclared() {
  for (Operation &op : *module.getBody()) {
    if (isa<StateOp, BucketOp>(op))
      lastDeclared = &op;
    auto state = dyn_cast<StateOp>(op);
    if (std::optional<StringRef> owner = state ? state.getOwner() : std::nullopt)
      statesOf[*owner].push_back(state);
  }
}

/// Puts `declared` behind all states and buckets.
void ShardedStep::insertLast(Operation *declared) {
  symbols.insert(declared, std::next(lastDeclared->getIterator()));
  lastDeclared = declared;
}

void ShardedStep::makeBuckets(ArrayRef<Candidate> candidates) {
  llvm::StringMap<uint32_t> kinds;
  std::map<std::optional<std::pair<StringRef, int64_t>>, uint32_t> layers; // by stack and number
  std::vector<analysis::BucketParameter> parameters;
  for (const Candidate &candidate : candidates) {
    uint32_t kind = kinds.try_emplace(candidate.kind, kinds.size()).first->second;
    StateOp parameter = candidate.parameter;
    auto layer = LayerAttr::named(module.getContext(), parameter.getSymName()).getBlock();
    parameters.push_back({layers.try_emplace(layer, layers.size()).first->second,
                          parameter.getLocalType().getNumElements(), kind});
  }
  const ShardingOptions &sharding = options.sharding;
  analysis::BucketLimits limits;
  limits.ranks = shape.countZeroRanks();
  limits.maxElements =
      std::min({sharding.reduceBucketSize, sharding.gatherBucketSize, sharding.subGroupSize});
  limits.parameterThreshold = sharding.parameterThreshold;
  limits.modelThreshold = sharding.modelThreshold;
  for (const analysis::BucketPlan &plan : analysis::layOutBuckets(parameters, limits)) {
    ShardedBucket bucket;
    bucket.isPersistent = plan.isPersistent;
    for (uint32_t index : plan.members) {
      bucket.members.push_back(candidates[index].parameter);
      if (candidates[index].update)
        bucket.updates.push_back(candidates[index].update);
    }
    StateOp first = bucket.members.front();
    bucket.cuts = first.getCutAxes();
    bucket.divided = shape.zero - bucket.cuts;
    bucket.addends = first.getAddendAxes();
    bucket.isCopy = first.getCopy();
    bucket.tied = first.getTied();
    const bool isOfSeveral = countRanks(bucket.divided) > 1;
    bucket.dividesOptimizer = isOfSeveral && dividesOptimizer();
    bucket.dividesGradients = isOfSeveral && dividesGradients();
    bucket.dividesParameters = isOfSeveral && sharding.stage == 3 && !bucket.isPersistent;
    bucket.near = bucket.divided & near;
    declare(bucket, plan.offsets, plan.elements);
    buckets.push_back(std::move(bucket));
  }
}

/// Declares the bucket's state in the place of the members' states that are like `like`.
StateOp ShardedStep::declareState(ShardedBucket &bucket, StateOp like, bool isDivided) {
  MLIRContext *context = module.getContext();
  StringRef slot = like.getSlot().value_or("");
  StringRef ending = slot.empty() ? "parameter" : slot;
  bool isFilled = like.getRole() == Role::Parameter || like.getRole() == Role::Master; // from the members
  auto init = isFilled ? InitAttr::get(context, InitKind::Zero, 0.0, 0.0) : like.getInit();
  auto shards = isDivided ? ArrayAttr::get(context, nameAxes(bucket.divided)) : ArrayAttr();
  auto type = RankedTensorType::get(bucket.getElements(), like.getTensorType().getElementType());
  OpBuilder builder(context);
  auto state = builder.create<StateOp>(bucket.op.getLoc(), (bucket.op.getSymName() + "." + ending).str(),
                                       like.getRole(), /*trainable=*/false, /*aliases=*/ArrayAttr(),
                                       /*owner=*/FlatSymbolRefAttr(), init, like.getHome(), type);
  state.setSlotAttr(like.getSlotAttr());
  state.setBucketAttr(FlatSymbolRefAttr::get(bucket.op));
  state.setShardsAttr(shards);
  insertLast(state);
  return bucket.states[slot] = state;
}

/// A state for what a rank keeps of `bucket`, whose shards `shard` has, once it was gathered: a part along
/// `near`.
static StateOp makeSecondary(const ShardedBucket &bucket, StateOp shard, AxesAttr near) {
  MLIRContext *context = shard.getContext();
  OpBuilder builder(context);
  BucketOp op = bucket.op;
  auto state =
      builder.create<StateOp>(op.getLoc(), (op.getSymName() + ".secondary").str(), Role::Buffer,
                              /*trainable=*/false, /*aliases=*/ArrayAttr(),
                              /*owner=*/FlatSymbolRefAttr(), InitAttr::get(context, InitKind::Zero, 0.0, 0.0),
                              Space::Device, shard.getTensorType());
  state.setShardsAttr(ArrayAttr::get(context, near));
  state.setGatheredFromAttr(FlatSymbolRefAttr::get(shard));
  return state;
}

void ShardedStep::declare(ShardedBucket &bucket, ArrayRef<int64_t> offsets, int64_t elements) {
  OpBuilder builder(module.getContext());
  auto names = llvm::map_to_vector(
      bucket.members, [](StateOp member) -> Attribute { return FlatSymbolRefAttr::get(member); });
  // What moves a bucket is called by the first module that has a part of it, in plans, traces and errors.
  StringRef first = bucket.members.front().getSymName();
  Location name = NameLoc::get(builder.getStringAttr(first.rsplit('.').first), module.getLoc());
  bucket.op = builder.create<BucketOp>(name, "bucket_" + std::to_string(buckets.size()),
                                       builder.getArrayAttr(names), offsets, elements);
  insertLast(bucket.op);
  declareState(bucket, bucket.members.front(), bucket.dividesParameters);
  // Where the group along `near` is all ranks or one, there is nothing to gain.
  const int64_t ranks = countRanks(bucket.near);
  if (bucket.dividesParameters && ranks > 1 && ranks < countRanks(bucket.divided))
    insertLast(bucket.secondary = makeSecondary(bucket, bucket.getState(""), nameAxes(bucket.near)));
  if (!bucket.isTrained())
    return;
  for (auto [index, member] : llvm::enumerate(bucket.members)) {
    auto owned = statesOf.find(member.getSymName());
    for (StateOp state : owned == statesOf.end() ? ArrayRef<StateOp>() : ArrayRef(owned->second)) {
      bool isDivided = state.getRole() == Role::Gradient ? bucket.dividesGradients : bucket.dividesOptimizer;
      if (index == 0)
        declareState(bucket, state, isDivided);
      replaced.push_back(state);
    }
  }
}

void ShardedStep::eraseReplaced() {
  for (StateOp state : replaced)
    symbols.erase(state);
}
