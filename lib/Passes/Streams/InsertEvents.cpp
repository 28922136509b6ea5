//===- InsertEvents.cpp - Orders the streams where they touch the same bytes -----===//
//
// Walks the commands in issue order and remembers for each stream how much of every other one it knows to
// have run. Before a command that touches what another stream has touched, and does not know to be done, an
// event is recorded behind that and waited for. What is not compute also waits for what compute has done, and
// knows to be done, up to the place where it stands: until there its buffers may be somebody else's, of
// compute or of a stream that compute has waited for, so that lifetimes in issue order are lifetimes in time.
// The price is one event per place at which such commands are issued.
//
// Messages that are one exchange stay side by side: before the first is waited for what any of them needs,
// and behind the last is recorded what anybody waits for.
//
//===---------------------------------------------------------------------------===//
#include "Support/Exchanges.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <array>
#include <map>

namespace mlir::ds {
#define GEN_PASS_DEF_INSERTEVENTS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

namespace {

constexpr unsigned kNumStreams = getMaxEnumValForStreamKind() + 1;
constexpr unsigned kCompute = static_cast<unsigned>(StreamKind::Compute);
constexpr int64_t kNone = -1; ///< no event

/// For each stream the number of its commands that have run.
using Progress = std::array<int64_t, kNumStreams>;

/// A command that has been issued, as far as later ones must know it.
struct Issued {
  Operation *op;
  Progress progress; ///< what has run when it has
  SmallVector<BufferAccess> accesses;
};

class EventInserter {
public:
  explicit EventInserter(func::FuncOp func)
      : func(func), builder(func.getContext()), exchanges(func.getBody().front()) {}
  void run();

private:
  void visit(ScheduledOpInterface op);
  void waitForOthers(Operation *op, unsigned stream, ArrayRef<BufferAccess> accesses);
  /// Lets `stream` wait, before `op`, until all has run that compute knows to have.
  void waitForCompute(Operation *op, unsigned stream);
  /// Lets `stream` wait, before `op`, until the first `count` commands of stream `other` have run.
  void waitFor(Operation *op, unsigned stream, unsigned other, int64_t count);
  /// An event that tells that, recorded anew if none does yet.
  int64_t findEvent(Operation *before, unsigned other, int64_t count);
  /// Number of commands of `other`, which `stream` may not know to have run, up to the last that conflicts.
  int64_t lastConflict(unsigned stream, unsigned other, ArrayRef<BufferAccess> accesses) const;
  void noteEvent(int64_t event, unsigned stream, const Progress &progress);

  func::FuncOp func;
  OpBuilder builder;
  const Exchanges exchanges;
  std::array<Progress, kNumStreams> known{}; ///< what each stream knows to have run
  std::array<std::vector<Issued>, kNumStreams> issued;
  std::map<int64_t, Progress> recorded;                   ///< event -> what has run when it happens
  std::map<std::pair<unsigned, int64_t>, int64_t> events; ///< stream, number of its commands -> event
  int64_t nextEvent = 0, nextCollective = 0;
};

} // namespace

static void join(Progress &into, const Progress &from) {
  for (unsigned stream = 0; stream < kNumStreams; ++stream)
    into[stream] = std::max(into[stream], from[stream]);
}

/// Whether who knows `some` knows all of `others`.
static bool covers(const Progress &some, const Progress &others) {
  return std::equal(some.begin(), some.end(), others.begin(), std::greater_equal<>());
}

void EventInserter::noteEvent(int64_t event, unsigned stream, const Progress &progress) {
  recorded[event] = progress;
  events.try_emplace({stream, progress[stream]}, event);
}

int64_t EventInserter::findEvent(Operation *before, unsigned other, int64_t count) {
  auto existing = events.lower_bound({other, count});
  if (existing != events.end() && existing->first.first == other)
    return existing->second;
  // Behind the command itself, so that nothing else is waited for; of an exchange behind its last message.
  if (ArrayRef<CommunicateOp> exchange = exchanges.of(issued[other][count - 1].op); !exchange.empty())
    while (issued[other][count - 1].op != exchange.back())
      ++count;
  const Issued &last = issued[other][count - 1];
  builder.setInsertionPointAfter(last.op);
  builder.create<RecordOp>(before->getLoc(), nextEvent, static_cast<StreamKind>(other));
  noteEvent(nextEvent, other, last.progress);
  return nextEvent++;
}

void EventInserter::waitForCompute(Operation *op, unsigned stream) {
  const Progress &wanted = known[kCompute];
  if (covers(known[stream], wanted))
    return;
  builder.setInsertionPoint(op);
  int64_t &event = events.try_emplace({kCompute, wanted[kCompute]}, kNone).first->second;
  if (event == kNone || !covers(recorded.at(event), wanted)) { // where compute stands it costs nothing
    event = nextEvent++;
    recorded[event] = wanted;
    builder.create<RecordOp>(op->getLoc(), event, StreamKind::Compute);
  }
  builder.create<WaitOp>(op->getLoc(), event, static_cast<StreamKind>(stream));
  join(known[stream], recorded.at(event));
}

void EventInserter::waitFor(Operation *op, unsigned stream, unsigned other, int64_t count) {
  if (known[stream][other] >= count)
    return;
  int64_t event = findEvent(op, other, count);
  builder.setInsertionPoint(op);
  builder.create<WaitOp>(op->getLoc(), event, static_cast<StreamKind>(stream));
  join(known[stream], recorded.at(event));
}

int64_t EventInserter::lastConflict(unsigned stream, unsigned other, ArrayRef<BufferAccess> accesses) const {
  for (int64_t count = issued[other].size(); count > known[stream][other]; --count)
    if (conflict(accesses, issued[other][count - 1].accesses))
      return count;
  return 0;
}

/// Lets `stream` wait, before `op`, for what has to be done before it touches `accesses`.
void EventInserter::waitForOthers(Operation *op, unsigned stream, ArrayRef<BufferAccess> accesses) {
  if (stream != kCompute)
    waitForCompute(op, stream);
  for (unsigned other = 0; other < kNumStreams; ++other)
    if (other != stream)
      waitFor(op, stream, other, lastConflict(stream, other, accesses));
}

void EventInserter::visit(ScheduledOpInterface op) {
  unsigned stream = static_cast<unsigned>(op.getStream());
  if (std::optional<int64_t> event = op.getRecordedEvent())
    return noteEvent(*event, stream, known[stream]);
  if (std::optional<int64_t> event = op.getAwaitedEvent()) {
    if (auto record = recorded.find(*event); record != recorded.end())
      join(known[stream], record->second);
    return;
  }
  SmallVector<BufferAccess> accesses = accessesOf(op);
  ArrayRef<CommunicateOp> exchange = exchanges.of(op);
  if (exchange.empty())
    waitForOthers(op, stream, accesses);
  else if (exchange.front() == op)
    for (CommunicateOp message : exchange)
      waitForOthers(op, stream, accessesOf(message));
  if (auto communicate = dyn_cast<CommunicateOp>(*op))
    communicate.setNumber(nextCollective++);
  known[stream][stream] = issued[stream].size() + 1;
  issued[stream].push_back({op, known[stream], std::move(accesses)});
}

void EventInserter::run() {
  auto commands = llvm::to_vector(func.getBody().front().getOps<ScheduledOpInterface>());
  for (ScheduledOpInterface command : commands)
    nextEvent = std::max(nextEvent, command.getRecordedEvent().value_or(kNone) + 1);
  for (ScheduledOpInterface command : commands)
    visit(command);
}

namespace {
struct InsertEvents : mlir::ds::impl::InsertEventsBase<InsertEvents> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    EventInserter(getOperation()).run();
  }
};
} // namespace
