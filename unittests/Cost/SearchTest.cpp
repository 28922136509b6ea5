//===- SearchTest.cpp - Which plan, and what to change -------------------------------===//
#include "ds/Cost/Search.h"

#include "Published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace ds;
using namespace ds::cost;
using testing::HasSubstr;

static Rates ratesOf(const char *name) {
  Result<config::Cluster> cluster = config::readCluster(name);
  EXPECT_TRUE(cluster) << name;
  return Rates(*cluster);
}

static ModelShape gpt2Xl() {
  ModelShape shape = gpt(25, 1600, 48);
  shape.seq = 1024;
  shape.vocab = 50257;
  return shape;
}

namespace {
/// A small space to walk whole.
struct Space {
  const char *cluster;
  ModelShape shape;
  int64_t ranks, batch;
};
} // namespace

/// Calls `visit` for every plan of the space that checkPlan allows: an enumeration without short cuts.
template <typename Visit>
static void enumerate(const Space &space, Visit visit) {
  ParallelPlan plan;
  for (plan.tp = 1; plan.tp <= 8; ++plan.tp)
    for (plan.pp = 1; plan.pp <= space.shape.layers; ++plan.pp)
      for (plan.sp = 1; plan.sp * plan.tp <= 8; ++plan.sp)
        for (plan.zeroStage = 0; plan.zeroStage <= 3; ++plan.zeroStage)
          for (plan.microBatch = 1; plan.microBatch <= space.batch; ++plan.microBatch)
            for (Recompute recompute : {Recompute::None, Recompute::Full})
              for (Home optimizer : {Home::Device, Home::Cpu, Home::Nvme})
                for (Home parameter : {Home::Device, Home::Cpu, Home::Nvme}) {
                  int64_t others = plan.tp * plan.pp * plan.sp;
                  plan.dp = space.ranks / others;
                  if (plan.pp > 1 && plan.sp > 1)
                    continue; // not searched
                  plan.accumulation = plan.dp > 0 ? space.batch / plan.dp / plan.microBatch : 0;
                  plan.recompute = recompute;
                  plan.optimizerHome = optimizer, plan.parameterHome = parameter;
                  bool offloads = optimizer != Home::Device && plan.zeroStage == 0;
                  if (plan.ranks() == space.ranks && plan.globalBatch() == space.batch && !offloads &&
                      checkPlan(space.shape, plan))
                    visit(plan);
                }
}

TEST(Search, TheFastestIsNoSlowerThanAnyThatFits) {
  ModelShape longer = gpt2Xl();
  longer.seq = 8192;
  for (const Space &space :
       {Space{"dgx-a100", gpt(32, 4096, 36), 16, 64}, Space{"4x-rtx3090", gpt2Xl(), 4, 8},
        Space{"8x-rtx4090", gpt(32, 4096, 32), 8, 8}, Space{"dgx-2", gpt(64, 8192, 50), 16, 16},
        Space{"a100-40g", longer, 8, 8}, Space{"1x-v100-32g", gpt2Xl(), 1, 4}}) {
    Rates rates = ratesOf(space.cluster);
    SearchSpace search;
    search.ranks = space.ranks, search.globalBatch = space.batch;
    Result<Candidate> best = fastestPlan(space.shape, search, rates);
    ASSERT_TRUE(best) << space.cluster << ": " << best.error().message;
    EXPECT_TRUE(best->fits);
    EXPECT_EQ(best->plan.ranks(), space.ranks);
    EXPECT_EQ(best->plan.globalBatch(), space.batch);
    size_t tried = 0;
    enumerate(space, [&](const ParallelPlan &plan) {
      ++tried;
      Candidate other = estimate(space.shape, plan, rates);
      EXPECT_TRUE(!other.fits || other.seconds >= best->seconds * (1 - 1e-9)) << space.cluster;
    });
    EXPECT_GT(tried, 50u) << space.cluster;
  }
}

TEST(Search, AsksForNoMoreThanItMust) {
  // A small model on one device: nothing is split, recomputed or offloaded.
  SearchSpace space;
  space.globalBatch = 4;
  Result<Candidate> best = fastestPlan(gpt(12, 768, 12), space, ratesOf("a100-80g"));
  ASSERT_TRUE(best);
  EXPECT_EQ(best->plan.recompute, Recompute::None);
  EXPECT_EQ(best->plan.optimizerHome, Home::Device);
  EXPECT_EQ(best->plan.zeroStage, 0);
  EXPECT_EQ(best->plan.accumulation, 1);
}

TEST(Search, Gpt3On1024TakesModelParallelism) {
  SearchSpace space;
  space.ranks = 1024, space.globalBatch = 1536;
  Result<Candidate> best = fastestPlan(gpt(96, 12288, 96), space, ratesOf("dgx-a100"));
  ASSERT_TRUE(best);
  EXPECT_GT(best->plan.tp * best->plan.pp, 1);
  EXPECT_LT(best->plan.zeroStage, 3); // gathers over so many ranks cost more than a pipeline
  EXPECT_LT(best->seconds, 45);       // 140 TFLOP/s per device are 31.5 s; without recomputation less
}

TEST(Search, RefusesWhatCannotBe) {
  SearchSpace space;
  space.ranks = 13, space.globalBatch = 10;
  Result<Candidate> none = fastestPlan(gpt(12, 768, 12), space, ratesOf("dgx-a100"));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ExitCode::Invalid);
  EXPECT_THAT(none.error().message, HasSubstr("no plan divides 13 ranks and 10 samples over 12 layers"));
  space.ranks = 1, space.globalBatch = 1;
  Result<Candidate> tooLarge = fastestPlan(gpt(160, 25600, 128), space, ratesOf("4x-rtx3090"));
  ASSERT_FALSE(tooLarge);
  EXPECT_EQ(tooLarge.error().code, ExitCode::DoesNotFit);
  EXPECT_THAT(tooLarge.error().message, HasSubstr("the limit being 23.2 GiB"));
}

TEST(Search, ChangesThatMakeGpt2XlFit) {
  Rates rates = ratesOf("4x-rtx3090");
  ParallelPlan plan;
  plan.dp = 4, plan.accumulation = 8, plan.recompute = Recompute::Full;
  ASSERT_FALSE(estimate(gpt2Xl(), plan, rates).fits);
  std::vector<Change> changes = changesThatFit(gpt2Xl(), plan, rates);
  ASSERT_FALSE(changes.empty());
  std::vector<std::string> names;
  for (const Change &change : changes) {
    names.push_back(change.what);
    EXPECT_TRUE(change.candidate.fits) << change.what;
    EXPECT_EQ(change.candidate.plan.globalBatch(), plan.globalBatch()) << change.what;
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"zero_optimization.stage = 1", "zero_optimization.stage = 2",
                                            "zero_optimization.stage = 3"}));
  EXPECT_THAT(names, testing::Not(testing::Contains("8 ranks"))); // there are four devices
  EXPECT_EQ(names.front(), "zero_optimization.stage = 1");        // reduces once in eight micro-batches
  EXPECT_TRUE(std::is_sorted(changes.begin(), changes.end(), [](const Change &a, const Change &b) {
    return a.candidate.seconds < b.candidate.seconds;
  }));
}

TEST(Search, AsManyChangesAsItTakes) {
  ModelShape shape = gpt(40, 5120, 40); // 13B: 26 GB of parameters on devices of 32 GiB
  shape.seq = 1024;
  ParallelPlan plan;
  plan.dp = 2, plan.zeroStage = 1, plan.microBatch = 1;
  std::vector<Change> changes = changesThatFit(shape, plan, ratesOf("2x-v100-32g"));
  ASSERT_FALSE(changes.empty());
  size_t pieces = 0;
  for (const Change &change : changes) {
    size_t here = 1;
    for (size_t at = change.what.find(" and "); at != std::string::npos;
         at = change.what.find(" and ", at + 1))
      ++here;
    EXPECT_TRUE(pieces == 0 || here == pieces) << change.what;
    pieces = here;
    EXPECT_TRUE(change.candidate.fits);
  }
  EXPECT_GT(pieces, 1u);
  EXPECT_TRUE(changesThatFit(gpt(160, 25600, 128), plan, ratesOf("2x-v100-32g")).empty()); // nothing helps
}

TEST(Search, TableOverStagesRecomputationOffloadAndMicroBatch) {
  Rates rates = ratesOf("4x-rtx3090");
  ParallelPlan plan;
  plan.dp = 4, plan.microBatch = 4;
  std::vector<Candidate> table = whatIf(gpt2Xl(), plan, rates);
  // 3 micro-batches x 3 recomputations x (1 home under stage 0, 3 under 1 to 3).
  EXPECT_EQ(table.size(), 3u * 3 * (1 + 3 * 3));
  for (const Candidate &row : table)
    EXPECT_EQ(row.plan.globalBatch(), 16);
  plan.pp = 2, plan.dp = 2;
  EXPECT_EQ(whatIf(gpt2Xl(), plan, rates).size(), 3u * 3 * (1 + 3)); // a pipeline ends at stage 1
}

TEST(Search, LargestMicroBatchAndLongestSequence) {
  ModelShape shape = gpt2Xl();
  ParallelPlan plan;
  plan.dp = 4, plan.zeroStage = 3, plan.recompute = Recompute::Full;
  config::Cluster cluster = ratesOf("4x-rtx3090").cluster();
  int64_t micro = largestMicroBatch(shape, plan, cluster), seq = longestSequence(shape, plan, cluster);
  auto holds = [&](int64_t samples, int64_t tokens) {
    ModelShape changedShape = shape;
    ParallelPlan changedPlan = plan;
    changedShape.seq = tokens;
    changedPlan.microBatch = samples;
    return fits(estimateMemory(changedShape, changedPlan, cluster), cluster);
  };
  EXPECT_GT(micro, 1);
  EXPECT_TRUE(holds(micro, 1024) && !holds(micro + 1, 1024));
  EXPECT_TRUE(seq > 1024 && holds(1, seq) && !holds(1, seq + 64));
  plan.zeroStage = 0;
  EXPECT_EQ(largestMicroBatch(shape, plan, cluster), 0);
}

TEST(Search, ConfigurationsAskForTheirPlan) {
  Rates rates = ratesOf("dgx-a100");
  ModelShape shape = gpt(96, 12288, 96);
  std::vector<ParallelPlan> plans(5);
  plans[0].tp = 8, plans[0].pp = 8, plans[0].dp = 2, plans[0].accumulation = 64, plans[0].zeroStage = 1;
  plans[1].dp = 64, plans[1].zeroStage = 3, plans[1].recompute = Recompute::Full, plans[1].microBatch = 2;
  plans[2].zeroStage = 3, plans[2].optimizerHome = Home::Nvme, plans[2].parameterHome = Home::Cpu;
  plans[3].dp = 2, plans[3].sp = 4, plans[3].dtype = plans[3].gradientDtype = DType::F32;
  plans[4].dp = 4, plans[4].zeroStage = 2, plans[4].dtype = DType::F16, plans[4].gradientDtype = DType::F32;
  for (const ParallelPlan &plan : plans) {
    std::string text = configForPlan(shape, estimate(shape, plan, rates), rates.cluster());
    config::ConfigSource source{"auto", text, {}, plan.ranks(), false};
    Result<config::Config> config = config::readConfig(source);
    ASSERT_TRUE(config) << config.error().message << "\n" << text;
    ParallelPlan read = planFromConfig(*config);
    auto key = [](const ParallelPlan &p) {
      return std::tuple(p.dp, p.tp, p.pp, p.sp, p.microBatch, p.accumulation, p.zeroStage, p.recompute,
                        p.optimizerHome, p.parameterHome, p.dtype, p.gradientDtype);
    };
    EXPECT_EQ(key(read), key(plan)) << text;
    // So that planning with the file gives the same time and memory.
    Candidate again = estimate(shape, read, rates), before = estimate(shape, plan, rates);
    EXPECT_EQ(again.seconds, before.seconds) << text;
    EXPECT_EQ(again.memory.deviceBytes(), before.memory.deviceBytes()) << text;
    EXPECT_EQ(again.memory.host.bytes(), before.memory.host.bytes()) << text;
    // Any parser reads it, and each key has its reason.
    nlohmann::json parsed = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
    ASSERT_TRUE(parsed.is_object()) << text;
    const nlohmann::json reasons = parsed["_why"];
    parsed.erase("_why");
    EXPECT_EQ(parsed.flatten().size(), reasons.size()) << text;
    for (const auto &[pointer, value] : parsed.flatten().items()) {
      std::string path = pointer.substr(1);
      std::replace(path.begin(), path.end(), '/', '.');
      EXPECT_TRUE(reasons.contains(path)) << path;
    }
  }
}

TEST(Search, ProgramsChooseThemselvesWhatIsComputedAgain) {
  // 70B in 16 bits on 64 devices of 40 GB: 17 GiB of states a rank, and of 80 layers no room for activations.
  const Rates rates = ratesOf("a100-40g");
  ModelShape shape = gpt(64, 8192, 80);
  SearchSpace space;
  space.ranks = space.globalBatch = 64;
  space.fixed.flashAttention = true;
  std::vector<Candidate> plans = plansForPrograms(shape, space, rates);
  ASSERT_FALSE(plans.empty());
  bool sharesLayers = false, sharesSequences = false;
  for (size_t index = 0; index < plans.size(); ++index) {
    const ParallelPlan &plan = plans[index].plan;
    EXPECT_TRUE(hasPass(plan) && plan.recompute == Recompute::None && plan.ranks() == 64);
    EXPECT_LE(plan.tp * plan.sp, rates.cluster().devicesPerNode);
    sharesLayers |= plan.tp > 1;
    sharesSequences |= plan.sp > 1;
    ParallelPlan again = plan;
    again.recompute = Recompute::Full;
    EXPECT_GE(plans[index].seconds, estimateStep(shape, plan, rates).seconds);
    EXPECT_LE(plans[index].seconds, estimateStep(shape, again, rates).seconds * (1 + 1e-9));
    EXPECT_TRUE(fits(plans[index].memory, rates.cluster()));
    EXPECT_TRUE(index == 0 || plans[index - 1].seconds <= plans[index].seconds);
  }
  EXPECT_TRUE(sharesLayers && sharesSequences);
  // Kept whole, the fastest would not fit, so that its time is not that of a step that computes nothing
  // again.
  EXPECT_FALSE(estimate(shape, plans.front().plan, rates).fits);
  EXPECT_GT(plans.front().seconds, estimateStep(shape, plans.front().plan, rates).seconds);
}

TEST(Search, LeavesOutWhatProgramsAreMadeOf) {
  SearchSpace space;
  space.ranks = space.globalBatch = 8;
  Result<Candidate> best = fastestPlan(gpt(12, 768, 12), space, ratesOf("a100-80g"));
  ASSERT_TRUE(best);
  EXPECT_TRUE(hasPass(best->plan));
  space.programs = false;
  Result<Candidate> other = fastestPlan(gpt(12, 768, 12), space, ratesOf("a100-80g"));
  ASSERT_TRUE(other);
  EXPECT_FALSE(hasPass(other->plan));
  EXPECT_GE(other->seconds, best->seconds);
}
