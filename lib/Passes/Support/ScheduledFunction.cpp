//===- ScheduledFunction.cpp - Commands and lifetimes of a scheduled function ----===//
#include "ds/Passes/ScheduledFunction.h"
#include "Support/Exchanges.h"
#include "ds/Passes/CommandMemory.h"

#include "ds/Passes/LateUpdates.h"
#include "ds/Runtime/Program/Program.h"

#include "llvm/ADT/SetVector.h"

#include <array>

using namespace mlir;
using namespace mlir::ds;

/// Widens `lifetime` by the commands that use `buffer` or a view of it. Messages of one exchange are under
/// way together.
void ScheduledFunction::widen(Value buffer, const Exchanges &exchanges, AllocLifetime &lifetime) const {
  for (Operation *command : findTouching(buffer)) {
    ArrayRef<CommunicateOp> exchange = exchanges.of(command);
    auto first = position.find(exchange.empty() ? command : exchange.front());
    const int64_t last = exchange.empty() ? first->second : position.lookup(exchange.back());
    if (!lifetime.writer || first->second < lifetime.begin) {
      lifetime.begin = first->second;
      lifetime.writer = commands[first->second];
    }
    lifetime.end = std::max(lifetime.end, completion[last] + 1);
  }
}

namespace {
constexpr unsigned kNumStreams = getMaxEnumValForStreamKind() + 1;
constexpr unsigned kCompute = static_cast<unsigned>(StreamKind::Compute);
using Clock = std::array<size_t, kNumStreams>; ///< per stream, commands that have run
} // namespace

static void join(Clock &into, const Clock &from) {
  for (unsigned stream = 0; stream < kNumStreams; ++stream)
    into[stream] = std::max(into[stream], from[stream]);
}

namespace {
/// A command that moves bytes, as far as who touches the same must know it.
struct Issued {
  unsigned stream = 0;
  Clock clock{}; ///< what has run when it has
  SmallVector<BufferAccess> accesses;
};

/// What will be waited for although no event says so yet: a command that moves bytes by what touches them.
/// Where ds-insert-events has run it adds nothing.
class ImpliedWaits {
public:
  /// Joins into `clock`, which a stream has, what a command of it with `accesses` has to wait for.
  void wait(Clock &clock, ArrayRef<BufferAccess> accesses) const {
    for (const BufferAccess &access : accesses)
      if (auto found = touched.find(access.root); found != touched.end())
        for (const auto &ofStream : found->second)
          waitForLast(clock, accesses, ofStream);
  }
  void add(unsigned stream, const Clock &clock, SmallVector<BufferAccess> accesses) {
    for (const BufferAccess &access : accesses)
      touched[access.root][stream].push_back(issued.size());
    issued.push_back({stream, clock, std::move(accesses)});
  }

private:
  /// Of the commands of one stream, the last counts for all before it: staging memory is touched by
  /// thousands.
  void waitForLast(Clock &clock, ArrayRef<BufferAccess> accesses, ArrayRef<size_t> ofStream) const {
    for (size_t index : llvm::reverse(ofStream)) {
      const Issued &other = issued[index];
      if (clock[other.stream] >= other.clock[other.stream])
        return;
      if (conflict(accesses, other.accesses))
        return join(clock, other.clock);
    }
  }

  std::vector<Issued> issued;
  DenseMap<Value, std::array<SmallVector<size_t, 0>, kNumStreams>> touched; ///< by buffers and streams
};
} // namespace

/// Finds for each command of another stream the first wait of the compute stream that knows it has run: one
/// for an event that was recorded behind it, on its stream or on one that had waited for that. Without one
/// that is the end of the segment, where all streams meet. Where something is transferred, a command of
/// compute that touches what others have counts as such a wait: schedulers ask before there are events, and a
/// parameter that was loaded would be there to the end otherwise.
void ScheduledFunction::findCompletions() {
  std::array<Clock, kNumStreams> clocks{};
  DenseMap<int64_t, Clock> events; // what has run when they happen
  std::array<SmallVector<size_t>, kNumStreams> issued;
  Clock completed{};
  ImpliedWaits implied;
  const bool transfers = !func.getOps<TransferOp>().empty();
  completion.assign(commands.size(), static_cast<int64_t>(commands.size()) - 1);
  auto complete = [&](size_t index) {
    for (unsigned other = 0; other < kNumStreams; ++other)
      for (; other != kCompute && completed[other] < clocks[kCompute][other]; ++completed[other])
        completion[issued[other][completed[other]]] = static_cast<int64_t>(index);
  };
  for (auto [index, command] : llvm::enumerate(commands)) {
    const auto stream = static_cast<unsigned>(command.getStream());
    if (std::optional<int64_t> event = command.getRecordedEvent()) {
      events[*event] = clocks[stream];
    } else if (std::optional<int64_t> event = command.getAwaitedEvent()) {
      join(clocks[stream], events.lookup(*event));
    } else {
      SmallVector<BufferAccess> accesses;
      if (transfers)
        implied.wait(clocks[stream], accesses = accessesOf(command));
      issued[stream].push_back(index);
      clocks[stream][stream] = issued[stream].size();
      if (transfers && !command.computes())
        implied.add(stream, clocks[stream], std::move(accesses));
    }
    if (stream == kCompute) {
      complete(index);
      completion[index] = static_cast<int64_t>(index);
    }
  }
}

ScheduledFunction::ScheduledFunction(func::FuncOp func) : func(func) {
  for (auto command : func.getBody().front().getOps<ScheduledOpInterface>()) {
    position[command] = commands.size();
    commands.push_back(command);
  }
  findCompletions();
  const Exchanges exchanges(func.getBody().front());
  for (AllocOp alloc : func.getBody().front().getOps<AllocOp>()) {
    AllocLifetime lifetime{alloc};
    widen(alloc.getBuffer(), exchanges, lifetime);
    if (lifetime.writer)
      lifetimes.push_back(lifetime);
  }
}

SmallVector<Operation *> mlir::ds::getComputeCommands(func::FuncOp func) {
  SmallVector<Operation *> commands;
  for (Operation &op : func.getBody().front())
    if (isComputeCommand(&op))
      commands.push_back(&op);
  return commands;
}

std::vector<int64_t> mlir::ds::getLiveBytes(func::FuncOp func, const DenseSet<Operation *> &without) {
  const ScheduledFunction scheduled(func);
  const int64_t permanent = getPermanentBytes(func, Space::Device);
  const std::vector<int64_t> live = getMemory(scheduled, without).liveBytes(uint32_t(Space::Device));
  std::vector<int64_t> result;
  for (auto [command, bytes] : llvm::zip_equal(scheduled.commands, live))
    if (isComputeCommand(command))
      result.push_back(permanent + bytes);
  return result;
}

SmallVector<StateOp> mlir::ds::getPlacedStates(ModuleOp module) {
  DenseSet<StringRef> members;
  for (BucketOp bucket : module.getOps<BucketOp>())
    for (StringRef member : bucket.getMembers().getAsValueRange<FlatSymbolRefAttr>())
      members.insert(member);
  SmallVector<StateOp> placed;
  for (StateOp state : module.getOps<StateOp>())
    if (!members.contains(state.getSymName()))
      placed.push_back(state);
  return placed;
}

SmallVector<func::FuncOp> mlir::ds::getSegments(ModuleOp module) {
  llvm::SetVector<func::FuncOp> segments;
  for (ScheduleOp schedule : module.getOps<ScheduleOp>())
    for (RunAttr run : schedule.getRuns().getAsRange<RunAttr>())
      if (auto func = module.lookupSymbol<func::FuncOp>(run.getSegment()))
        segments.insert(func);
  for (bool isEvaluation : {false, true}) // what no schedule runs, where there is none too
    for (func::FuncOp func : module.getOps<func::FuncOp>())
      if (SegmentAttr segment = SegmentAttr::of(func);
          segment && segment.does(Work::Evaluation) == isEvaluation)
        segments.insert(func);
  return segments.takeVector();
}

int64_t mlir::ds::runsPerStep(func::FuncOp func) {
  const int64_t runs = scheduledRuns(func);
  auto module = func->getParentOfType<ModuleOp>();
  func::FuncOp rotated = getRotated(module);
  auto schedules = module.getOps<ScheduleOp>();
  if (!rotated || schedules.empty())
    return runs;
  auto first = cast<RunAttr>((*schedules.begin()).getRuns()[0]);
  return runs + (func == rotated) - (first.getSegment().getValue() == func.getSymName());
}

int64_t mlir::ds::reservedBytes(BufferType type) {
  int64_t bytes = type.getSizeInBytes();
  return type.getSpace() == Space::Nvme ? llvm::alignTo(bytes, ::ds::rt::kStorageUnit) : bytes;
}

int64_t mlir::ds::reservedBytes(AllocOp alloc) {
  int64_t bytes = reservedBytes(alloc.getBuffer().getType());
  return alloc.getAlignment() == ::ds::rt::kStorageUnit ? llvm::alignTo(bytes, ::ds::rt::kStorageUnit)
                                                        : bytes;
}

DenseSet<Attribute> mlir::ds::findEnding(func::FuncOp func, const SymbolTable &symbols) {
  DenseSet<Attribute> ending;
  SegmentAttr segment = SegmentAttr::of(func);
  if (!segment || !segment.does(Work::Update))
    return ending;
  for (unsigned index = 0; index < func.getNumArguments(); ++index)
    if (FlatSymbolRefAttr name = getStateOf(func, index))
      if (auto state = symbols.lookup<StateOp>(name.getAttr()); state && state.getRole() == Role::Gradient)
        ending.insert(name);
  for (unsigned index = 0; index < func.getNumResults(); ++index)
    if (Attribute name = func.getResultAttr(index, DsDialect::kStateAttr))
      ending.erase(name);
  return ending;
}

FlatSymbolRefAttr mlir::ds::getStateOf(func::FuncOp func, unsigned argument) {
  return func.getArgAttrOfType<FlatSymbolRefAttr>(argument, DsDialect::kStateAttr);
}

FlatSymbolRefAttr mlir::ds::getStateOf(func::FuncOp func, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument ? getStateOf(func, argument.getArgNumber()) : FlatSymbolRefAttr();
}

StringAttr mlir::ds::getInputOf(func::FuncOp func, unsigned argument) {
  return func.getArgAttrOfType<StringAttr>(argument, DsDialect::kInputAttr);
}

Value mlir::ds::addStateArgument(func::FuncOp func, StateOp state) {
  unsigned count = func.getNumArguments();
  for (unsigned index = 0; index < count; ++index)
    if (getStateOf(func, index) == FlatSymbolRefAttr::get(state))
      return func.getArgument(index);
  Builder builder(func.getContext());
  func.insertArgument(
      count, BufferType::getContiguous(state.getLocalType(), state.getHome()),
      builder.getDictionaryAttr(builder.getNamedAttr(DsDialect::kStateAttr, FlatSymbolRefAttr::get(state))),
      state.getLoc());
  return func.getArgument(count);
}
