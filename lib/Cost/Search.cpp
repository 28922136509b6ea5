//===- Search.cpp - Which plan: what fits, what is fastest, what to change -----------===//
//
// Plans are walked in an order that says which of equal ones is preferred. Recomputation and offload only
// ever cost time, so that for each choice of degrees the first of their levels that fits is the one to keep.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Search.h"

#include "ds/Support/Format.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

namespace ds::cost {

Candidate estimate(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates) {
  const MemoryEstimate memory = estimateMemory(shape, plan, rates.cluster());
  return {plan, estimateStep(shape, plan, rates).seconds, memory, fits(memory, rates.cluster())};
}

/// By how much a plan exceeds the scarcest of what the cluster has; at most 1 where it fits.
static double pressure(const MemoryEstimate &memory, const config::Cluster &cluster) {
  auto share = [](double bytes, int64_t limit) {
    return bytes <= 0 ? 0 : limit > 0 ? bytes / static_cast<double>(limit) : 1e9;
  };
  return std::max({share(memory.deviceBytes(), cluster.device.memoryBytes),
                   share(memory.host.bytes(), cluster.host.memoryBytes),
                   share(memory.storage.bytes(), cluster.nvme.bytes)});
}

static std::vector<int64_t> divisorsOf(int64_t number, int64_t limit) {
  std::vector<int64_t> divisors;
  for (int64_t each = 1; each <= std::min(number, limit); ++each)
    if (number % each == 0)
      divisors.push_back(each);
  return divisors;
}

namespace {
/// Where optimizer states and parameters live; later ones cost more time.
struct Homes {
  Home optimizer, parameter;
};
} // namespace

/// The levels of offload that a stage and a cluster allow.
static std::vector<Homes> homesFor(const ParallelPlan &plan, bool offload, const config::Cluster &cluster) {
  std::vector<Homes> homes = {{Home::Device, Home::Device}};
  if (!offload || plan.zeroStage == 0)
    return homes;
  bool storage = cluster.nvme.bytes > 0;
  homes.push_back({Home::Cpu, Home::Device});
  if (storage)
    homes.push_back({Home::Nvme, Home::Device});
  if (plan.zeroStage == 3) {
    homes.push_back({Home::Cpu, Home::Cpu});
    if (storage) {
      homes.push_back({Home::Nvme, Home::Cpu});
      homes.push_back({Home::Nvme, Home::Nvme});
    }
  }
  return homes;
}

namespace {
/// The walk over all plans of a space.
class Walk {
public:
  Walk(const ModelShape &shape, const SearchSpace &space, const Rates &rates)
      : shape(shape), space(space), rates(rates) {}

  Result<Candidate> run() {
    int64_t most = space.tensor ? rates.cluster().devicesPerNode : 1;
    for (int64_t tp : divisorsOf(space.ranks, most))
      for (int64_t pp : divisorsOf(space.ranks / tp, space.pipeline ? shape.layers : 1))
        for (int64_t sp : sequenceDegrees(tp, pp))
          tryDegrees(tp, pp, sp);
    if (best)
      return *best;
    if (!nearest)
      return Error{ExitCode::Invalid,
                   "no plan divides " + std::to_string(space.ranks) + " ranks and " +
                       std::to_string(space.globalBatch) + " samples over " + std::to_string(shape.layers) +
                       " layers and " + std::to_string(shape.heads) + " heads",
                   "choose a batch that is a multiple of the ranks"};
    return Error{ExitCode::DoesNotFit, spellNearest(), "use more ranks, or devices with more memory"};
  }

private:
  /// Degrees of sequence parallelism to try: those of a node, unless the caller has chosen one. DeepSpeed's
  /// pipelines share no sequences.
  std::vector<int64_t> sequenceDegrees(int64_t tp, int64_t pp) const {
    if (!space.sequence || pp > 1 || space.fixed.sp > 1)
      return {space.fixed.sp};
    return divisorsOf(space.ranks / tp / pp, rates.cluster().devicesPerNode / tp);
  }

  void tryDegrees(int64_t tp, int64_t pp, int64_t sp) {
    ParallelPlan plan = space.fixed;
    plan.tp = tp;
    plan.pp = pp;
    plan.sp = sp;
    if (space.ranks % (tp * pp * plan.sp) != 0)
      return;
    plan.dp = space.ranks / (tp * pp * plan.sp);
    if (space.globalBatch % plan.dp != 0)
      return;
    for (plan.zeroStage = 0; plan.zeroStage <= (pp > 1                                   ? 1
                                                : plan.dp * plan.sp > 1 || space.offload ? 3
                                                                                         : 0);
         ++plan.zeroStage)
      tryBatches(plan);
  }

  void tryBatches(ParallelPlan plan) {
    std::vector<int64_t> micros = divisorsOf(space.globalBatch / plan.dp, 1024);
    for (auto micro = micros.rbegin(); micro != micros.rend(); ++micro)
      for (int64_t chunks : divisorsOf(shape.layers / plan.pp, plan.pp > 1 ? space.maxInterleave : 1)) {
        plan.microBatch = *micro;
        plan.accumulation = space.globalBatch / plan.dp / *micro;
        plan.interleave = chunks;
        plan.recompute = Recompute::None;
        plan.optimizerHome = plan.parameterHome = Home::Device;
        if (checkPlan(shape, plan))
          tryMemory(plan);
      }
  }

  /// Each level of offload with the least recomputation that fits.
  void tryMemory(ParallelPlan plan) {
    for (Homes homes : homesFor(plan, space.offload, rates.cluster())) {
      plan.optimizerHome = homes.optimizer;
      plan.parameterHome = homes.parameter;
      if (!space.programs && hasPass(plan))
        continue;
      for (Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full}) {
        if (recompute == Recompute::Selective && (!space.selective || plan.flashAttention))
          continue;
        plan.recompute = recompute;
        if (take(plan) && recompute == Recompute::None)
          return; // nothing that costs more time can be better
        if (lastFits)
          break;
      }
    }
  }

  /// Whether the plan fits; remembers the fastest.
  bool take(const ParallelPlan &plan) {
    MemoryEstimate memory = estimateMemory(shape, plan, rates.cluster());
    lastFits = fits(memory, rates.cluster());
    if (!lastFits) {
      double excess = pressure(memory, rates.cluster());
      if (!nearest || excess < nearestExcess) {
        nearest = plan;
        nearestExcess = excess;
      }
      return false;
    }
    Candidate candidate = estimate(shape, plan, rates);
    if (!best || candidate.seconds < best->seconds * (1 - 1e-9))
      best = candidate;
    return true;
  }

  std::string spellNearest() const {
    MemoryEstimate memory = estimateMemory(shape, *nearest, rates.cluster());
    auto spell = [](double bytes) { return formatBytes(static_cast<int64_t>(std::min(bytes, 9e18))); };
    return "no plan fits: the nearest (tp " + std::to_string(nearest->tp) + ", pp " +
           std::to_string(nearest->pp) + ", dp " + std::to_string(nearest->dp) + ", ZeRO stage " +
           std::to_string(nearest->zeroStage) + ") has a peak of " + spell(memory.peakBytes()) +
           ", the limit being " + formatBytes(peakLimit(rates.cluster())) + ", and needs " +
           spell(memory.host.bytes()) + " of a host's " + formatBytes(rates.cluster().host.memoryBytes);
  }

  const ModelShape &shape;
  const SearchSpace &space;
  const Rates &rates;
  bool lastFits = false;
  std::optional<Candidate> best;
  std::optional<ParallelPlan> nearest;
  double nearestExcess = 0;
};
} // namespace

Result<Candidate> fastestPlan(const ModelShape &shape, const SearchSpace &space, const Rates &rates) {
  return Walk(shape, space, rates).run();
}

/// The time of a program that keeps all of its forward (`kept`) or computes all of it again (`least`), or
/// something between: as much again as memory asks for.
static double secondsWithin(const Candidate &kept, const Candidate &least, const config::Cluster &cluster) {
  const double most = kept.memory.peakBytes(), fewest = least.memory.peakBytes();
  const double room = std::max(static_cast<double>(peakLimit(cluster)), fewest);
  if (kept.fits || most <= fewest)
    return kept.fits ? kept.seconds : least.seconds;
  const double share = std::clamp((most - room) / (most - fewest), 0.0, 1.0);
  // What saves most bytes for a second is computed again first.
  return kept.seconds + share * share * (least.seconds - kept.seconds);
}

namespace {
/// The walk over the plans of a space of which programs can be made.
class ProgramWalk {
public:
  ProgramWalk(const ModelShape &shape, const SearchSpace &space, const Rates &rates)
      : shape(shape), space(space), rates(rates) {}

  std::vector<Candidate> run() {
    const int64_t node = rates.cluster().devicesPerNode;
    for (int64_t tp : divisorsOf(space.ranks, space.tensor ? node : 1))
      for (int64_t sp : divisorsOf(space.ranks / tp, space.sequence ? node / tp : 1))
        if (space.globalBatch % (space.ranks / tp / sp) == 0)
          addDegrees(tp, sp);
    std::stable_sort(plans.begin(), plans.end(),
                     [](const Candidate &a, const Candidate &b) { return a.seconds < b.seconds; });
    return std::move(plans);
  }

private:
  void addDegrees(int64_t tp, int64_t sp) {
    ParallelPlan plan = space.fixed;
    plan.pp = plan.interleave = 1;
    plan.tp = tp, plan.sp = sp;
    plan.dp = space.ranks / tp / sp;
    plan.shardSequence = tp > 1; // a program does so where it gains
    const int64_t last = plan.dp * plan.sp > 1 || space.offload ? 3 : 0;
    for (plan.zeroStage = 0; plan.zeroStage <= last; ++plan.zeroStage)
      for (int64_t micro : divisorsOf(space.globalBatch / plan.dp, 1024)) {
        plan.microBatch = micro;
        plan.accumulation = space.globalBatch / plan.dp / micro;
        for (Homes homes : homesFor(plan, space.offload, rates.cluster()))
          add(plan, homes);
      }
  }

  void add(ParallelPlan plan, Homes homes) {
    plan.optimizerHome = homes.optimizer, plan.parameterHome = homes.parameter;
    plan.recompute = Recompute::Full;
    if (!checkPlan(shape, plan))
      return;
    const Candidate least = estimate(shape, plan, rates);
    plan.recompute = Recompute::None;
    if (least.fits)
      plans.push_back(
          {plan, secondsWithin(estimate(shape, plan, rates), least, rates.cluster()), least.memory, true});
  }

  const ModelShape &shape;
  const SearchSpace &space;
  const Rates &rates;
  std::vector<Candidate> plans;
};
} // namespace

std::vector<Candidate> plansForPrograms(const ModelShape &shape, const SearchSpace &space,
                                        const Rates &rates) {
  return ProgramWalk(shape, space, rates).run();
}

std::vector<Candidate> whatIf(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates) {
  std::vector<Candidate> table;
  int64_t samples = plan.microBatch * plan.accumulation;
  for (int64_t stage = 0; stage <= (plan.pp > 1 ? 1 : 3); ++stage)
    for (Recompute recompute : {Recompute::None, Recompute::Selective, Recompute::Full})
      for (Home home : {Home::Device, Home::Cpu, Home::Nvme})
        for (int64_t micro = 1; micro <= samples; micro *= 2) {
          ParallelPlan changed = plan;
          changed.zeroStage = stage;
          changed.recompute = recompute;
          changed.optimizerHome = home;
          changed.parameterHome = stage == 3 ? plan.parameterHome : Home::Device;
          changed.microBatch = micro;
          changed.accumulation = samples / micro;
          bool possible = samples % micro == 0 && (home == Home::Device || stage > 0) &&
                          (home != Home::Nvme || rates.cluster().nvme.bytes > 0) &&
                          (recompute != Recompute::Selective || !plan.flashAttention);
          if (possible && checkPlan(shape, changed))
            table.push_back(estimate(shape, changed, rates));
        }
  return table;
}

namespace {
/// A change before it is tried.
struct Proposal {
  std::string what;
  ParallelPlan plan;
};
} // namespace

/// Single changes of a plan that take memory away, whether or not they suffice.
static std::vector<Proposal> propose(const ParallelPlan &plan, const config::Cluster &cluster) {
  std::vector<Proposal> all;
  auto add = [&](const std::string &what, const std::function<void(ParallelPlan &)> &change) {
    all.push_back({what, plan});
    change(all.back().plan);
  };
  for (int64_t stage = plan.zeroStage + 1; stage <= (plan.pp > 1 ? 1 : 3) && plan.dp * plan.sp > 1; ++stage)
    add("zero_optimization.stage = " + std::to_string(stage), [&](ParallelPlan &p) { p.zeroStage = stage; });
  for (int64_t micro = plan.microBatch / 2; micro >= 1; micro /= 2)
    if (plan.microBatch % micro == 0)
      add("train_micro_batch_size_per_gpu = " + std::to_string(micro), [&](ParallelPlan &p) {
        p.accumulation *= p.microBatch / micro;
        p.microBatch = micro;
      });
  if (plan.recompute != Recompute::Full)
    add("recompute every layer (activation_checkpointing.number_checkpoints)",
        [](ParallelPlan &p) { p.recompute = Recompute::Full; });
  auto offload = [&](const char *key, Home &(*home)(ParallelPlan &), bool allowed) {
    ParallelPlan copy = plan;
    if (allowed && home(copy) == Home::Device)
      add(std::string(key) + " = \"cpu\"", [&](ParallelPlan &p) { home(p) = Home::Cpu; });
    if (allowed && home(copy) != Home::Nvme && cluster.nvme.bytes > 0)
      add(std::string(key) + " = \"nvme\"", [&](ParallelPlan &p) { home(p) = Home::Nvme; });
  };
  offload(
      "offload_optimizer.device", [](ParallelPlan &p) -> Home & { return p.optimizerHome; },
      plan.zeroStage >= 1);
  offload(
      "offload_param.device", [](ParallelPlan &p) -> Home & { return p.parameterHome; }, plan.zeroStage == 3);
  for (int64_t times = 2; times <= 1024; times *= 2)
    if (plan.accumulation % times == 0)
      add(std::to_string(plan.ranks() * times) + " ranks", [&](ParallelPlan &p) {
        p.dp *= times;
        p.accumulation /= times;
      });
  return all;
}

/// What tells one proposed plan from another.
static auto keyOf(const ParallelPlan &plan) {
  return std::tuple(plan.dp, plan.microBatch, plan.zeroStage, plan.recompute, plan.optimizerHome,
                    plan.parameterHome);
}

/// The most changes that are proposed together.
static constexpr int kMostChanges = 4;

std::vector<Change> changesThatFit(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates) {
  const config::Cluster &cluster = rates.cluster();
  std::optional<int64_t> devices = cluster.devices();
  std::vector<Change> changes;
  std::vector<Proposal> now = {{"", plan}}; // all that as many changes give as were made
  std::set<decltype(keyOf(plan))> seen = {keyOf(plan)};
  for (int count = 0; count < kMostChanges && changes.empty(); ++count) {
    std::vector<Proposal> next;
    for (const Proposal &before : now)
      for (Proposal &proposal : propose(before.plan, cluster)) {
        bool possible = checkPlan(shape, proposal.plan) && (!devices || proposal.plan.ranks() <= *devices);
        if (!possible || !seen.insert(keyOf(proposal.plan)).second)
          continue;
        if (!before.what.empty())
          proposal.what = before.what + " and " + proposal.what;
        if (fits(estimateMemory(shape, proposal.plan, cluster), cluster))
          changes.push_back({proposal.what, estimate(shape, proposal.plan, rates)});
        next.push_back(std::move(proposal));
      }
    now = std::move(next);
  }
  std::sort(changes.begin(), changes.end(), [](const Change &a, const Change &b) {
    return std::tie(a.candidate.seconds, a.what) < std::tie(b.candidate.seconds, b.what);
  });
  return changes;
}

/// The largest number for which `holds`, which is true up to some point and false beyond; 0: none.
static int64_t largest(const std::function<bool(int64_t)> &holds) {
  if (!holds(1))
    return 0;
  int64_t low = 1, high = 2;
  while (high < (int64_t{1} << 40) && holds(high))
    low = high, high *= 2;
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

int64_t largestMicroBatch(const ModelShape &shape, const ParallelPlan &plan, const config::Cluster &cluster) {
  return largest([&](int64_t micro) {
    ParallelPlan changed = plan;
    changed.microBatch = micro;
    return fits(estimateMemory(shape, changed, cluster), cluster);
  });
}

int64_t longestSequence(const ModelShape &shape, const ParallelPlan &plan, const config::Cluster &cluster) {
  constexpr int64_t kMultiple = 64;
  return kMultiple * largest([&](int64_t multiple) {
           ModelShape changed = shape;
           changed.seq = kMultiple * multiple;
           return fits(estimateMemory(changed, plan, cluster), cluster);
         });
}

} // namespace ds::cost
