//===- StageSimulation.cpp - When the stages of a planned step run what ------------------===//
#include "StageSimulation.h"

#include "StepSimulation.h"

#include "llvm/ADT/StringMap.h"

#include <array>

using namespace mlir;
using namespace mlir::ds;

namespace {
enum Lane : unsigned { Compute, Transfer, kLanes };

/// An entry of a schedule.
struct Entry {
  double seconds = 0;
  int64_t after = 0;            ///< entries of the other lane that are to be over
  std::optional<unsigned> peer; ///< the stage at the other end of a transfer
};

/// All stages, as far as they have come.
class StagePlay {
public:
  /// False where a segment that computes has messages.
  bool add(ModuleOp stage, const ::ds::cost::Rates &rates);
  /// Nothing where stages wait for each other for ever.
  std::optional<SmallVector<StageRun>> run();

private:
  struct Stage {
    std::array<SmallVector<Entry>, kLanes> entries;
    std::array<SmallVector<double>, kLanes> ends; ///< of those that are over
  };
  std::optional<double> readyAt(const Stage &stage, Lane lane) const;
  bool advance(unsigned number, Lane lane);

  SmallVector<Stage> stages;
};
} // namespace

/// The stage at the other end of the messages of `func` that no update waits for; nothing for none.
static std::optional<unsigned> findPeer(func::FuncOp func) {
  if (SegmentAttr::of(func).does(Work::Update) && !SegmentAttr::of(func).does(Work::Forward))
    return std::nullopt;
  for (auto message : func.getBody().front().getOps<CommunicateOp>())
    if (message.getKind() == CollectiveKind::Send || message.getKind() == CollectiveKind::Recv)
      return unsigned(message.getPeer());
  return std::nullopt;
}

bool StagePlay::add(ModuleOp module, const ::ds::cost::Rates &rates) {
  Stage &stage = stages.emplace_back();
  llvm::StringMap<double> seconds;
  for (const SegmentSimulation &segment : simulateStep(module, rates).segments)
    seconds[func::FuncOp(segment.scheduled.func).getSymName()] = segment.simulation.seconds;
  for (ScheduleOp schedule : module.getOps<ScheduleOp>())
    for (RunAttr run : schedule.getRuns().getAsRange<RunAttr>()) {
      auto func = module.lookupSymbol<func::FuncOp>(run.getSegment());
      const std::optional<unsigned> peer = findPeer(func);
      const Lane lane = SegmentAttr::of(func).does(Work::Transfer) ? Transfer : Compute;
      if (peer && lane == Compute)
        return false;
      const int64_t after = run.getAfter().empty() ? 0 : run.getAfter().front();
      for (int64_t count = 0; count < run.getCount(); ++count)
        stage.entries[lane].push_back({seconds.lookup(func.getSymName()), after, peer});
    }
  return true;
}

/// When the next entry of a lane could begin; nothing where that is not known yet, or none is left.
std::optional<double> StagePlay::readyAt(const Stage &stage, Lane lane) const {
  const auto &ends = stage.ends[lane], &others = stage.ends[1 - lane];
  if (ends.size() == stage.entries[lane].size())
    return std::nullopt;
  const auto after = size_t(stage.entries[lane][ends.size()].after);
  if (others.size() < after)
    return std::nullopt;
  return std::max(ends.empty() ? 0 : ends.back(), after > 0 ? others[after - 1] : 0);
}

bool StagePlay::advance(unsigned number, Lane lane) {
  Stage &stage = stages[number];
  const std::optional<double> ready = readyAt(stage, lane);
  if (!ready)
    return false;
  const Entry &entry = stage.entries[lane][stage.ends[lane].size()];
  if (!entry.peer) {
    stage.ends[lane].push_back(*ready + entry.seconds);
    return true;
  }
  Stage &other = stages[*entry.peer];
  const std::optional<double> otherReady = readyAt(other, lane);
  if (!otherReady || other.entries[lane][other.ends[lane].size()].peer != number)
    return false;
  const double end = std::max(*ready, *otherReady) +
                     std::max(entry.seconds, other.entries[lane][other.ends[lane].size()].seconds);
  stage.ends[lane].push_back(end);
  other.ends[lane].push_back(end);
  return true;
}

std::optional<SmallVector<StageRun>> StagePlay::run() {
  for (bool moved = true; moved;) {
    moved = false;
    for (unsigned number = 0; number < stages.size(); ++number)
      for (Lane lane : {Compute, Transfer})
        while (advance(number, lane))
          moved = true;
  }
  SmallVector<StageRun> runs;
  for (const Stage &stage : stages) {
    StageRun &run = runs.emplace_back();
    for (const Entry &entry : stage.entries[Compute])
      run.computeSeconds += entry.seconds;
    for (Lane lane : {Compute, Transfer}) {
      if (stage.ends[lane].size() != stage.entries[lane].size())
        return std::nullopt;
      if (!stage.ends[lane].empty())
        run.endSeconds = std::max(run.endSeconds, stage.ends[lane].back());
    }
  }
  return runs;
}

std::optional<SmallVector<StageRun>> mlir::ds::simulateStages(ArrayRef<ModuleOp> stages,
                                                              const ::ds::cost::Rates &rates) {
  StagePlay play;
  for (ModuleOp stage : stages)
    if (!play.add(stage, rates))
      return std::nullopt;
  return play.run();
}
