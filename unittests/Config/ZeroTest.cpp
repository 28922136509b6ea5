//===- ZeroTest.cpp - The keys of zero_optimization ----------------------------------===//
//
// Each key of the section is honoured, noted with what takes its place, or later work; sizes may be "auto".
//
//===---------------------------------------------------------------------------===//
#include "ConfigTestUtil.h"

using namespace ds;
using namespace ds::config;
using testing::HasSubstr;
using testing::Not;

namespace {
/// A size of the section: how it is written, and where it lands.
struct Size {
  const char *key;
  PlannedSize Zero::*field;
  int64_t fallback;
};
} // namespace

static constexpr Size kSizes[] = {
    {"reduce_bucket_size", &Zero::reduceBucketSize, 500000000},
    {"allgather_bucket_size", &Zero::allgatherBucketSize, 500000000},
    {"sub_group_size", &Zero::subGroupSize, 1000000000},
    {"stage3_prefetch_bucket_size", &Zero::prefetchBucketSize, 50000000},
    {"stage3_param_persistence_threshold", &Zero::paramPersistenceThreshold, 100000},
    {"stage3_model_persistence_threshold", &Zero::modelPersistenceThreshold, INT64_MAX},
    {"stage3_max_live_parameters", &Zero::maxLiveParameters, 1000000000},
    {"stage3_max_reuse_distance", &Zero::maxReuseDistance, 1000000000},
};

/// The section with some members, under stage 3 on four ranks.
static Result<Config> readZero(const std::string &members) {
  return readMembers("zero_optimization: {stage: 3, " + members + "}", 4);
}

TEST(Zero, SizesAreDefaultsNumbersOrThePlannersChoice) {
  for (const Size &size : kSizes) {
    std::string key = size.key;
    Result<Config> absent = readZero(""), given = readZero(key + ": 12e2"),
                   planned = readZero(key + ": 'auto'");
    ASSERT_TRUE(absent && given && planned) << key;
    EXPECT_EQ(absent->zero.*size.field, size.fallback) << key;
    EXPECT_EQ(given->zero.*size.field, 1200) << key;
    EXPECT_EQ(planned->zero.*size.field, std::nullopt) << key;
    EXPECT_EQ(valueOf(planned, "zero_optimization." + key), "\"auto\"");
    EXPECT_EQ(noticesOf(given) + noticesOf(planned), "c: no optimizer type is given: AdamW takes its place\n"
                                                     "c: no optimizer type is given: AdamW takes its place\n")
        << key;
    EXPECT_TRUE(checkForProgram(*given) && checkForProgram(*planned)) << key;
    EXPECT_THAT(told(readZero(key + ": -2")), HasSubstr("expects \"auto\" or an integer")) << key;
    EXPECT_THAT(told(readZero(key + ": 'automatic'")), HasSubstr("expects \"auto\" or an integer")) << key;
  }
}

TEST(Zero, BucketsTakeTheLeastBound) {
  auto limit = [](const char *members) {
    Result<Config> config = readZero(members);
    return config ? config->zero.bucketLimit() : PlannedSize(-1);
  };
  EXPECT_EQ(limit(""), 500000000);
  EXPECT_EQ(limit("reduce_bucket_size: 300, allgather_bucket_size: 200, sub_group_size: 100"), 100);
  EXPECT_EQ(limit("reduce_bucket_size: 300, allgather_bucket_size: 200, sub_group_size: 'auto'"), 200);
  EXPECT_EQ(limit("reduce_bucket_size: 300, allgather_bucket_size: 'auto', sub_group_size: 'auto'"), 300);
  EXPECT_EQ(limit("reduce_bucket_size: 'auto', allgather_bucket_size: 'auto', sub_group_size: 'auto'"),
            std::nullopt);
}

TEST(Zero, KeysOfHooksAndTracesAreNotedWithTheirReplacement) {
  const std::pair<const char *, const char *> cases[] = {
      {"contiguous_gradients: false", "made side by side"},
      {"reduce_scatter: false", "always reduce-scatter"},
      {"use_multi_rank_bucket_allreduce: false", "cut evenly over all ranks"},
      {"allgather_partitions: false", "updated parameters are gathered"},
      {"overlap_comm: false", "streams of their own"},
      {"load_from_fp32_weights: false", "widest weights"},
      {"elastic_checkpoint: true", "resharded on loading"},
      {"ignore_unused_parameters: false", "--ds-differentiate=remarks"},
      {"round_robin_gradients: true", "cut evenly"},
      {"stage3_gather_16bit_weights_on_model_save: true", "--save-weights"},
      {"stage3_module_granularity_threshold: 5", "buckets are gathered"},
      {"stage3_use_all_reduce_for_fetch_params: true", "always gathered"},
      {"stage3_allgather_sequential: true", "one collective"},
      {"stage3_partition_stream_chunk_size: 4", "read straight"},
      {"memory_efficient_linear: false", "what its formulas read"},
      {"override_module_apply: false", "no modules"},
      {"pipeline_loading_checkpoint: true", "its own shards"},
      {"log_trace_cache_warnings: true", "in the program"},
      {"enable_sanity_checks: true", "proved to match"},
      {"save_muon_momentum_buffer_in_memory: true", "only Muon"},
      {"leaf_module: {names: ['mlp']}", "no module hooks"},
      {"leaf_module: {classes: ['Block']}", "no module hooks"},
      {"leaf_module: {name_suffixes: ['mlp']}", "no module hooks"},
  };
  for (auto [members, words] : cases) {
    Result<Config> config = readZero(members);
    ASSERT_TRUE(config) << told(config);
    EXPECT_TRUE(checkForProgram(*config)) << members;
    EXPECT_THAT(noticesOf(config), HasSubstr("has no effect here: ")) << members;
    EXPECT_THAT(noticesOf(config), HasSubstr(words)) << members;
  }
}

TEST(Zero, PartsOfTheRanksDivideThem) {
  auto readWith = [](const char *member, int64_t ranks) {
    ConfigSource source;
    source.path = "c";
    source.text = "{\"train_micro_batch_size_per_gpu\": 1, \"zero_optimization\": {\"stage\": 3, " +
                  std::string(member) + "}}";
    source.ranks = ranks;
    return readConfig(source);
  };
  for (const char *key : {"mics_shard_size", "zero_hpz_partition_size"}) {
    for (auto [size, ranks, hint] : {std::tuple("3", 8, "choose 2 or 4"),
                                     {"7", 8, "choose 4 or 8"},
                                     {"16", 8, "choose 8"},
                                     {"5", 12, "choose 4 or 6"}}) {
      Result<Config> config = readWith(("\"" + std::string(key) + "\": " + size).c_str(), ranks);
      ASSERT_FALSE(config) << key << size;
      EXPECT_THAT(config.error().message,
                  HasSubstr("\"zero_optimization." + std::string(key) + "\" = " + size +
                            " does not divide the data-parallel ranks, which are " + std::to_string(ranks)));
      EXPECT_EQ(config.error().hint, hint);
    }
    EXPECT_TRUE(readWith(("\"" + std::string(key) + "\": 4").c_str(), 8));
    EXPECT_TRUE(readWith(("\"" + std::string(key) + "\": 3").c_str(), 1));
  }
}

TEST(Zero, GroupsThatGatherBetweenNodesAreOfWholeNodes) {
  auto readOn = [](const char *size, std::optional<int64_t> ranksPerNode, const char *more = "") {
    ConfigSource source;
    source.path = "c";
    source.text = "{\"train_micro_batch_size_per_gpu\": 1, " + std::string(more) +
                  "\"zero_optimization\": {\"stage\": 3, \"mics_hierarchical_params_gather\": true, "
                  "\"mics_shard_size\": " +
                  size + "}}";
    source.ranks = 24;
    source.ranksPerNode = ranksPerNode;
    return readConfig(source);
  };
  auto nodeRanks = [&](const char *size, std::optional<int64_t> ranksPerNode, const char *more = "") {
    Result<Config> config = readOn(size, ranksPerNode, more);
    EXPECT_TRUE(config) << told(config);
    return config ? config->zero.micsNodeRanks : std::nullopt;
  };
  EXPECT_EQ(nodeRanks("12", 4), 4);
  EXPECT_EQ(nodeRanks("24", 4), 4);
  EXPECT_EQ(nodeRanks("4", 4), std::nullopt);             // a group within a node
  EXPECT_EQ(nodeRanks("12", 1), std::nullopt);            // a node of one rank has nothing to hand on
  EXPECT_EQ(nodeRanks("12", std::nullopt), std::nullopt); // one node
  EXPECT_EQ(nodeRanks("6", 4, "\"tensor_parallel\": {\"autotp_size\": 2}, "), 2);
  Result<Config> uneven = readOn("6", 4);
  ASSERT_FALSE(uneven);
  EXPECT_THAT(uneven.error().message, HasSubstr("nodes of 4 ranks do not divide \"mics_shard_size\" = 6"));
  EXPECT_EQ(uneven.error().hint, "choose a \"mics_shard_size\", as 4 or 8");
  uneven = readOn("4", 3, "\"tensor_parallel\": {\"autotp_size\": 2}, ");
  ASSERT_FALSE(uneven);
  EXPECT_THAT(uneven.error().message, HasSubstr("\"mics_shard_size\" = 4 times 2 ranks of a model"));
}

TEST(Zero, LaterWorkIsRefusedByName) {
  for (const char *member : {"zero_quantized_weights: true", "zero_quantized_nontrainable_weights: true",
                             "zero_quantized_gradients: true", "zenflow: {}"}) {
    Result<Config> config = readZero(member);
    ASSERT_TRUE(config) << told(config);
    std::string key = "zero_optimization." + std::string(member).substr(0, std::string(member).find(':'));
    ASSERT_EQ(refusedForProgram(*config).size(), 1u) << member;
    EXPECT_THAT(refusedForProgram(*config)[0].key, testing::StartsWith(key));
  }
}

TEST(Zero, KeysOfStage3AreNotedUnderOtherStages) {
  const char *members = "stage3_prefetch_bucket_size: 7, stage3_max_live_parameters: 'auto'";
  Result<Config> second = readMembers("zero_optimization: {stage: 2, " + std::string(members) + "}", 4);
  EXPECT_THAT(noticesOf(second), HasSubstr("\"zero_optimization.stage3_prefetch_bucket_size\" = 7 speaks "
                                           "under stage 3 only, not under stage 2"));
  EXPECT_THAT(noticesOf(second), HasSubstr("stage3_max_live_parameters\" = \"auto\" speaks under stage 3"));
  EXPECT_THAT(noticesOf(readZero(members)), Not(HasSubstr("speaks")));
}

TEST(Zero, GradientsAreAveragedOrAdded) {
  Result<Config> sum = readMembers("gradient_allreduce_op: 'SUM', zero_optimization: {stage: 2}", 4);
  ASSERT_TRUE(sum) << told(sum);
  EXPECT_TRUE(sum->sumGradients);
  EXPECT_TRUE(checkForProgram(*sum));
  EXPECT_FALSE(readZero("")->sumGradients);
  // Scaling before or after the sum is the same mean.
  Result<Config> scaled = readMembers("prescale_gradients: true, gradient_predivide_factor: 2", 4);
  EXPECT_TRUE(checkForProgram(*scaled));
  EXPECT_THAT(noticesOf(scaled), HasSubstr("\"gradient_predivide_factor\" = 2.0 has no effect here: the "
                                           "backward pass starts from a scaled loss"));
}

TEST(Zero, ZeroAsASizeIsTakenAsDeepSpeedTakesIt) {
  Result<Config> config = readMembers("zero_optimization: {stage: 3, sub_group_size: 0}");
  ASSERT_TRUE(config) << told(config);
  EXPECT_EQ(config->zero.bucketLimit(), 500000000); // that of what is sent
  config = readMembers("zero_optimization: {stage: 3, reduce_bucket_size: 0}");
  EXPECT_EQ(config->zero.bucketLimit(), 1); // each parameter alone
}
