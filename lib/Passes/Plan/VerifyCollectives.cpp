//===- VerifyCollectives.cpp - No hang, no race, on any rank --------------------===//
//
// Runs the streams of each function on vector clocks: what a stream knows to have run is what it ran itself
// and what the events it waited for knew. Two commands of different streams that touch a common byte, one of
// them writing it, must know of each other in issue order; after planning that holds for everything that ever
// lies in the same place. All ranks of a stage run one text, so they issue the same collectives in the same
// order as long as nothing in it branches and the numbers ascend; stages are played together. Shares no code
// with what inserts events, but for what each command says of the buffers that it touches.
//
//===---------------------------------------------------------------------------===//
#include "StageMeetings.h"
#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/MeshShape.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/ScheduledFunction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/MapVector.h"

#include <array>

namespace mlir::ds {
#define GEN_PASS_DEF_VERIFYCOLLECTIVES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {

constexpr unsigned kNumStreams = getMaxEnumValForStreamKind() + 1;

using Clock = std::array<int64_t, kNumStreams>; ///< per stream, commands that have run

/// A range of bytes that a command touches, on any rank.
struct Touch {
  const void *place; ///< the arena's space once planned, the allocation or argument before
  int64_t begin, end;
  bool writes;
};

/// A command as the clocks saw it.
struct Step {
  Operation *op;
  unsigned stream;
  int64_t count; ///< of its stream's commands, itself included
  SmallVector<Touch> touches;
};

class StreamVerifier {
public:
  StreamVerifier(func::FuncOp func, const SymbolTable &symbols) : func(func), symbols(symbols) {}
  LogicalResult verify();

private:
  LogicalResult verifyEvent(ScheduledOpInterface op);
  LogicalResult verifyOrdered(const Step &step);
  LogicalResult verifyCollective(CommunicateOp op);
  LogicalResult verifyItems(LaunchOp launch);
  std::optional<int64_t> offsetOf(Value base);
  Touch touchOf(Value buffer, bool writes);
  SmallVector<Touch> touchesOf(Operation *op);

  func::FuncOp func;
  const SymbolTable &symbols;
  std::array<Clock, kNumStreams> clocks{};
  DenseMap<int64_t, std::pair<Operation *, Clock>> events;
  std::array<std::vector<Step>, kNumStreams> steps;
  int64_t nextNumber = 0;
};

} // namespace

/// An address for each space's arena.
static constexpr std::array<char, 3> kArenas{};

static unsigned indexOf(StreamKind stream) { return static_cast<unsigned>(stream); }

/// Offset of an allocation, state or input in the arena; nullopt before planning.
std::optional<int64_t> StreamVerifier::offsetOf(Value base) {
  if (auto alloc = base.getDefiningOp<AllocOp>())
    return alloc.getOffset() ? std::optional<int64_t>(*alloc.getOffset()) : std::nullopt;
  auto argument = dyn_cast<BlockArgument>(base);
  if (!argument)
    return std::nullopt;
  auto offset = func.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kOffsetAttr);
  if (auto name = func.getArgAttrOfType<FlatSymbolRefAttr>(argument.getArgNumber(), DsDialect::kStateAttr))
    if (auto state = symbols.lookup<StateOp>(name.getValue()))
      offset = state.getOffsetAttr();
  return offset ? std::optional<int64_t>(offset.getInt()) : std::nullopt;
}

Touch StreamVerifier::touchOf(Value buffer, bool writes) {
  RankedTensorType tensor = cast<BufferType>(buffer.getType()).getTensor();
  int64_t bytes = (tensor.getElementTypeBitWidth() + 7) / 8, first = 0, last = 0;
  bool isEmpty = tensor.getNumElements() == 0;
  for (auto [size, stride] : llvm::zip(tensor.getShape(), cast<BufferType>(buffer.getType()).getStrides()))
    last += (size - 1) * stride;
  while (auto view = buffer.getDefiningOp<ViewOp>()) {
    first += view.getOffset(), last += view.getOffset();
    last += view.getLargestShift();
    buffer = view.getSource();
  }
  std::optional<int64_t> offset = offsetOf(buffer);
  int64_t base = offset.value_or(0);
  const void *arena = &kArenas[static_cast<size_t>(cast<BufferType>(buffer.getType()).getSpace())];
  return {offset ? arena : buffer.getAsOpaquePointer(), base + first * bytes,
          base + (isEmpty ? first : last + 1) * bytes, writes};
}

SmallVector<Touch> StreamVerifier::touchesOf(Operation *op) {
  llvm::MapVector<OpOperand *, bool> writes; // an operand once, however often its effects name it
  SmallVector<MemoryEffects::EffectInstance> effects;
  if (auto effecting = dyn_cast<MemoryEffectOpInterface>(op))
    effecting.getEffects(effects);
  for (const MemoryEffects::EffectInstance &effect : effects)
    if (auto *operand = effect.getEffectValue<OpOperand *>())
      writes[operand] |= isa<MemoryEffects::Write>(effect.getEffect());
  return llvm::map_to_vector(writes, [&](auto &each) { return touchOf(each.first->get(), each.second); });
}

/// Verifies that an event is recorded once, and before it is waited for; advances the clocks (E1).
LogicalResult StreamVerifier::verifyEvent(ScheduledOpInterface op) {
  Clock &clock = clocks[indexOf(op.getStream())];
  if (std::optional<int64_t> event = op.getRecordedEvent()) {
    auto [known, isNew] = events.try_emplace(*event, std::pair(op, clock));
    if (isNew)
      return success();
    InFlightDiagnostic error = op->emitOpError("expects to be the only one to record event ") << *event;
    error.attachNote(known->second.first->getLoc()) << "it is recorded here";
    return error;
  }
  const int64_t event = *op.getAwaitedEvent();
  auto known = events.find(event);
  if (known == events.end())
    return op->emitOpError("expects event ") << event << " to be recorded before it is waited for, or stream "
                                             << stringifyStreamKind(op.getStream()) << " never continues";
  for (unsigned stream = 0; stream < clock.size(); ++stream)
    clock[stream] = std::max(clock[stream], known->second.second[stream]);
  return success();
}

/// True when two commands must not run at once that touch these.
static bool collide(const Touch &a, const Touch &b) {
  return a.place == b.place && a.begin < b.end && b.begin < a.end && (a.writes || b.writes);
}

/// Verifies that no item touches what another writes (E6).
LogicalResult StreamVerifier::verifyItems(LaunchOp launch) {
  SmallVector<Touch> others;
  for (int64_t item = 0; item < launch.getNumItems(); ++item) {
    SmallVector<Touch> own;
    for (Value input : launch.getItemInputs(item))
      own.push_back(touchOf(input, false));
    for (Value output : launch.getItemOutputs(item))
      own.push_back(touchOf(output, true));
    for (const Touch &a : own)
      for (const Touch &b : others)
        if (collide(a, b))
          return launch.emitOpError("expects items that run at once, but item ")
                 << item << (a.writes ? " writes" : " reads") << " bytes [" << std::max(a.begin, b.begin)
                 << ", " << std::min(a.end, b.end) << ") that another " << (b.writes ? "writes" : "reads");
    others.append(own);
  }
  return success();
}

/// Verifies that what `step` touches is done on the other streams (E2).
LogicalResult StreamVerifier::verifyOrdered(const Step &step) {
  for (unsigned other = 0; other < steps.size(); ++other) {
    if (other == step.stream)
      continue;
    for (const Step &before : llvm::reverse(steps[other])) {
      if (before.count <= clocks[step.stream][other])
        break; // and all before it
      for (const Touch &a : step.touches)
        for (const Touch &b : before.touches)
          if (collide(a, b)) {
            InFlightDiagnostic error =
                step.op->emitOpError("expects stream ")
                << stringifyStreamKind(static_cast<StreamKind>(step.stream)) << " to wait for stream "
                << stringifyStreamKind(static_cast<StreamKind>(other)) << ": it "
                << (a.writes ? "writes" : "reads") << " bytes [" << std::max(a.begin, b.begin) << ", "
                << std::min(a.end, b.end) << ") that are " << (b.writes ? "written" : "read") << " there";
            error.attachNote(before.op->getLoc()) << "no event orders it after this one";
            return error;
          }
    }
  }
  return success();
}

/// Whether `part` lies where the group of `op` has this rank's part of `whole`.
static bool isOwnPart(CommunicateOp op, Value part, Value whole) {
  auto view = part.getDefiningOp<ViewOp>();
  auto outer = whole.getDefiningOp<ViewOp>();
  MeshOp mesh = MeshOp::lookup(op);
  if (!view || view.getOffset() != (outer ? outer.getOffset() : 0))
    return false;
  auto shiftsOf = [&](ViewOp view) { return mesh.resolve(view ? view.getShiftsAttr() : ShiftsAttr()); };
  int64_t elements = cast<BufferType>(part.getType()).getTensor().getNumElements();
  SmallVector<int64_t> expected = mesh.resolve(mesh.getShiftsOfParts(op.getAxes(), elements));
  for (auto [stride, ofWhole] : llvm::zip_equal(expected, shiftsOf(outer)))
    stride += ofWhole;
  return shiftsOf(view) == expected;
}

/// Verifies the number of a collective and the place of its buffers (E3, E4).
LogicalResult StreamVerifier::verifyCollective(CommunicateOp op) {
  if (op.getNumber() != nextNumber) { // E3.
    InFlightDiagnostic error = op.emitOpError("expects to be collective number ") << nextNumber;
    if (op.getNumber())
      error << ", but is number " << *op.getNumber();
    else
      error.attachNote() << "run ds-insert-events first";
    return error;
  }
  ++nextNumber;
  if (op.getInputs().empty() || op.getOutputs().empty())
    return success();
  Value in = op.getInputs()[0], out = op.getOutputs()[0];
  Touch input = touchOf(in, false), output = touchOf(out, true);
  bool overlaps = input.place == output.place && input.begin < output.end && output.begin < input.end;
  auto ownPart = [&](Value part, Value whole) { return isOwnPart(op, part, whole); };
  bool isSame = input.begin == output.begin && input.end == output.end;
  const ::ds::rt::CollectiveTraits &traits = traitsOf(op.getKind());
  bool isInPlace = (traits.sharing == ::ds::rt::Sharing::Same && isSame) ||
                   (traits.sharing == ::ds::rt::Sharing::PartOfWhole &&
                    (traits.input == ::ds::rt::Parts::One ? ownPart(in, out) : ownPart(out, in)));
  if (overlaps && !isInPlace) // E4.
    return op.emitOpError("expects input and output apart, or each rank's part in its place in the whole");
  return success();
}

LogicalResult StreamVerifier::verify() {
  if (!func.getBody().hasOneBlock()) // E5.
    return func.emitOpError("expects one block: where ranks branch, they may issue different collectives");
  for (auto op : func.getBody().front().getOps<ScheduledOpInterface>()) {
    if (op.isEvent()) {
      if (failed(verifyEvent(op)))
        return failure();
      continue;
    }
    unsigned stream = indexOf(op.getStream());
    Step step{op, stream, static_cast<int64_t>(steps[stream].size()) + 1, touchesOf(op)};
    if (failed(verifyOrdered(step)))
      return failure();
    if (auto communicate = dyn_cast<CommunicateOp>(*op); communicate && failed(verifyCollective(communicate)))
      return failure();
    if (auto launch = dyn_cast<LaunchOp>(*op); launch && failed(verifyItems(launch)))
      return failure();
    clocks[stream][stream] = step.count;
    steps[stream].push_back(std::move(step));
  }
  return success();
}

/// Whether `module` is one stage of several, a module of its own: what it has with the others,
/// ds-verify-stages looks at, which sees all.
static bool isOneOfSeveral(ModuleOp module) {
  const MeshShape shape = getMeshShape(module);
  DenseSet<int64_t> numbers;
  for (func::FuncOp func : module.getOps<func::FuncOp>())
    if (SegmentAttr segment = SegmentAttr::of(func))
      numbers.insert(segment.getStage());
  const int64_t count = shape.mesh.size(shape.stages);
  return count > 1 && numbers.size() == 1 && *numbers.begin() < count;
}

namespace {
struct VerifyCollectives : mlir::ds::impl::VerifyCollectivesBase<VerifyCollectives> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), {Phase::Scheduled, Phase::Planned})))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal() && failed(StreamVerifier(func, symbols).verify()))
        return signalPassFailure();
    if (!isOneOfSeveral(getOperation()) && failed(verifyStageMeetings(getOperation())))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
