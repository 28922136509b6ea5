//===- BatchTest.cpp - The batch triple and the mesh -------------------------------===//
//
// T = M * G * W, with what is absent derived and what contradicts itself shown.
//
//===---------------------------------------------------------------------------===//
#include "ConfigTestUtil.h"

using namespace ds;
using namespace ds::config;
using testing::HasSubstr;

TEST(Batch, IsDerivedAsDeepSpeedDoes) {
  const std::pair<const char *, const char *> cases[] = {
      // two data-parallel ranks; the arithmetic is T = M * G * 2
      {"train_batch_size: 32, train_micro_batch_size_per_gpu: 16, gradient_accumulation_steps: 1", "32 16 1"},
      {"train_batch_size: 32, train_micro_batch_size_per_gpu: 8, gradient_accumulation_steps: 2", "32 8 2"},
      {"train_batch_size: 32, train_micro_batch_size_per_gpu: 4", "32 4 4"}, // 32 / 4 / 2
      {"train_batch_size: 32, gradient_accumulation_steps: 8", "32 2 8"},    // 32 / 2 / 8
      {"train_micro_batch_size_per_gpu: 4, gradient_accumulation_steps: 3", "24 4 3"},
      {"train_batch_size: 32", "32 16 1"},
      {"train_micro_batch_size_per_gpu: 4", "8 4 1"},
      {"train_batch_size: 32, train_micro_batch_size_per_gpu: 'auto', gradient_accumulation_steps: 'auto'",
       "32 16 1"},
  };
  for (auto [members, expected] : cases)
    EXPECT_EQ(triple(read("{" + std::string(members) + "}", {}, 2)), expected) << members;
}

TEST(Batch, ContradictionShowsTheEquationAndTheKeyToDrop) {
  auto message = [](const char *members) { return told(read("{" + std::string(members) + "}", {}, 2)); };
  EXPECT_EQ(
      message("train_batch_size: 33, train_micro_batch_size_per_gpu: 17, gradient_accumulation_steps: 2"),
      "c:1:2: train_batch_size = 33 is not train_micro_batch_size_per_gpu * gradient_accumulation_steps * "
      "data-parallel ranks = 17 * 2 * 2 [drop \"train_batch_size\": it becomes 68]");
  EXPECT_THAT(
      message("train_batch_size: 32, train_micro_batch_size_per_gpu: 18, gradient_accumulation_steps: 1"),
      HasSubstr("= 18 * 1 * 2 [drop \"train_micro_batch_size_per_gpu\": it becomes 16]"));
  EXPECT_THAT(
      message("train_batch_size: 32, train_micro_batch_size_per_gpu: 4, gradient_accumulation_steps: 3"),
      HasSubstr("= 4 * 3 * 2 [drop \"gradient_accumulation_steps\": it becomes 4]"));
  EXPECT_THAT(message("train_batch_size: 30, train_micro_batch_size_per_gpu: 4"),
              HasSubstr("= 4 * 3 * 2 [drop \"train_batch_size\": it becomes 24]"));
  // More than the batch has: the derived third is 0, and counts as 1 in what is proposed.
  EXPECT_THAT(message("train_batch_size: 4, train_micro_batch_size_per_gpu: 3"),
              HasSubstr("= 3 * 0 * 2 [drop \"train_batch_size\": it becomes 6]"));
  EXPECT_THAT(message("train_batch_size: 4, gradient_accumulation_steps: 3"),
              HasSubstr("= 0 * 3 * 2 [drop \"train_batch_size\": it becomes 6]"));
  EXPECT_THAT(message("train_batch_size: 33"),
              HasSubstr("= 16 * 1 * 2 [make \"train_batch_size\" a multiple of 2"));
  EXPECT_THAT(message("train_batch_size: 1"), HasSubstr("= 0 * 1 * 2 [make"));
  EXPECT_THAT(message("gradient_accumulation_steps: 2"), HasSubstr("neither \"train_batch_size\" nor"));
  EXPECT_THAT(message(""), HasSubstr("neither \"train_batch_size\" nor"));
  EXPECT_THAT(message("train_batch_size: 0"),
              HasSubstr("expects an integer greater than 0, but got the number 0"));
  EXPECT_THAT(message("train_batch_size: -4"),
              HasSubstr("expects an integer greater than 0, but got the number -4"));
  EXPECT_THAT(message("train_micro_batch_size_per_gpu: 0"),
              HasSubstr("expects an integer from 1 to 2147483647, but got the number 0"));
  EXPECT_THAT(message("train_micro_batch_size_per_gpu: 2147483648"), HasSubstr("from 1 to 2147483647"));
  EXPECT_THAT(message("train_batch_size: 9223372036854775806"),
              HasSubstr("is not train_micro_batch_size_per_gpu"));
  const char *largest =
      "{train_micro_batch_size_per_gpu: 2147483647, gradient_accumulation_steps: 2147483647}";
  EXPECT_THAT(told(read(largest, {}, 3)), HasSubstr("train_batch_size exceeds 64 bits"));
  EXPECT_EQ(triple(read(largest, {}, 2)),
            "9223372028264841218 2147483647 2147483647"); // (2^31 - 1)^2 * 2 < 2^63
}

TEST(Batch, AutoFollowsTheModelsInputs) {
  auto solve = [](const char *members, std::optional<int64_t> batch) {
    ConfigSource source{"c", "{" + std::string(members) + "}", {}, /*ranks=*/2};
    source.modelBatch = batch;
    return readConfig(source);
  };
  const std::tuple<const char *, int64_t, const char *> cases[] = {
      // two data-parallel ranks; the arithmetic is T = M * G * 2
      {"train_batch_size: 'auto', train_micro_batch_size_per_gpu: 'auto', gradient_accumulation_steps: "
       "'auto'",
       4, "8 4 1"},
      {"", 4, "8 4 1"},
      {"gradient_accumulation_steps: 3", 4, "24 4 3"},
      {"train_batch_size: 32, train_micro_batch_size_per_gpu: 'auto'", 4, "32 4 4"}, // 32 / 4 / 2
      // What the file says stands, and the model is held to it later.
      {"train_micro_batch_size_per_gpu: 16", 4, "32 16 1"},
      {"train_batch_size: 32", 4, "32 16 1"},
      {"train_batch_size: 32, train_micro_batch_size_per_gpu: 'auto', gradient_accumulation_steps: 2", 4,
       "32 8 2"}};
  for (auto [members, batch, expected] : cases)
    EXPECT_EQ(triple(solve(members, batch)), expected) << members;
  Result<Config> given = solve("train_micro_batch_size_per_gpu: 'auto'", 4);
  EXPECT_THAT(noticesOf(given), HasSubstr("is \"auto\" and resolves to 4 (the batch of the model's inputs)"));
  EXPECT_FALSE(given->batch.microIsOpen);
  EXPECT_THAT(told(solve("train_batch_size: 33, train_micro_batch_size_per_gpu: 'auto'", 4)),
              HasSubstr("is not train_micro_batch_size_per_gpu * gradient_accumulation_steps"));
  // Where nothing gives it, it is 1 until a model says otherwise.
  Result<Config> open = solve("train_micro_batch_size_per_gpu: 'auto', gradient_accumulation_steps: 3", {});
  ASSERT_TRUE(open) << told(open);
  EXPECT_EQ(triple(open), "6 1 3");
  EXPECT_TRUE(open->batch.microIsOpen);
  setMicroBatch(*open, 5);
  EXPECT_EQ(triple(open), "30 5 3");
  EXPECT_EQ(valueOf(open, "train_batch_size"), "30");
  EXPECT_EQ(valueOf(open, "train_micro_batch_size_per_gpu"), "5");
}

TEST(Batch, MeshDividesTheRanks) {
  Result<Config> config = read("{train_batch_size: 8, tensor_parallel: {autotp_size: 2}, pipeline: {stages: "
                               "2}, sequence_parallel_size: 2}",
                               {}, 16);
  ASSERT_TRUE(config) << told(config);
  EXPECT_EQ(config->mesh.dp, 2); // 16 / (2 * 2 * 2)
  EXPECT_EQ(config->batch.micro, 4);
  EXPECT_EQ(config->tensorParallel.size, 2);
  EXPECT_THAT(told(read("{train_batch_size: 8, pipeline: {stages: 3}}", {}, 4)),
              HasSubstr("ranks = 4, but tp * pp * sp = 1 * 3 * 1"));
  EXPECT_THAT(told(read("{train_batch_size: 8, data_parallel_size: 2}", {}, 4)),
              HasSubstr("\"data_parallel_size\" = 2, but"));
  EXPECT_THAT(told(read("{train_batch_size: 8, tensor_parallel: {autotp_size: 2, tp: {tp_size: 4}}}", {}, 8)),
              HasSubstr("tp.tp_size\" = 4"));
  EXPECT_THAT(told(read("{train_batch_size: 8}", {}, 0)), HasSubstr("ranks = 0"));
}
