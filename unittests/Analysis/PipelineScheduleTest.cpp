//===- PipelineScheduleTest.cpp - Tables of pipelines do what they promise -------------===//
#include "ds/Analysis/Pipelines/PipelineSchedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

namespace ds::analysis {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr PipelineChunk kEqual{0, 1, 1, 1, 1};

/// Tables of all kinds for `stages` and `microBatches`, with the problems that they are of.
std::vector<std::pair<PipelineProblem, PipelineTable>> allTables(uint32_t stages, uint32_t microBatches) {
  std::vector<std::pair<PipelineProblem, PipelineTable>> all;
  const PipelineProblem single = makeEqualChunks(stages, 1, microBatches, kEqual);
  for (const auto &make : {makeGPipe, makeOneForwardOneBackward, makeZeroBubble})
    all.emplace_back(single, make(single));
  for (uint32_t chunks : {2u, 3u}) {
    const PipelineProblem several = makeEqualChunks(stages, chunks, microBatches, kEqual);
    all.emplace_back(several, makeInterleaved(several));
    all.emplace_back(several, makeGPipe(several));
    const PipelineProblem inV = makeEqualChunks(stages, chunks, microBatches, kEqual, /*isV=*/true);
    for (bool splits : {false, true})
      all.emplace_back(inV, makeByEvents(inV, splits));
  }
  return all;
}

TEST(PipelineTables, AreSchedulesForAnyStagesAndMicroBatches) {
  for (uint32_t stages = 1; stages <= 6; ++stages)
    for (uint32_t microBatches = 1; microBatches <= 13; ++microBatches)
      for (const auto &[problem, table] : allTables(stages, microBatches)) {
        ASSERT_EQ(findMistake(problem, table), "") << spell(problem, table);
        const auto transfers = orderTransfers(problem, table);
        ASSERT_EQ(findMistake(problem, table, transfers), "") << spell(problem, table);
        const auto again = parsePipelineTable(problem, spell(problem, table));
        ASSERT_TRUE(again) << again.error().message;
        ASSERT_EQ(*again, table);
      }
}

/// The example of PipelineSchedule.h.
TEST(PipelineTables, OneForwardOneBackwardIsAsInTheBooks) {
  const PipelineProblem problem = makeEqualChunks(2, 1, 4, kEqual);
  const PipelineTable table = makeOneForwardOneBackward(problem);
  EXPECT_EQ(spell(problem, table), "0: F0 F1 B0 F2 B1 F3 B2 B3\n1: F0 B0 F1 B1 F2 B2 F3 B3\n");
  const PipelineRun run = simulate(problem, table);
  EXPECT_EQ(run.seconds, 4 * 3 + 3);
  EXPECT_EQ(run.spans[0][2].begin, 4);
  EXPECT_EQ(spell(problem, makeZeroBubble(problem)),
            "0: F0 F1 I0 W0 F2 I1 W1 F3 I2 W2 I3 W3\n1: F0 I0 F1 I1 W0 F2 I2 W1 F3 I3 W2 W3\n");
}

/// With equal costs: (p - 1) / m, (p - 1) / (v m) and (p - 1)(F + B - W).
TEST(PipelineTables, HaveTheBubblesOfTheFormulas) {
  for (uint32_t stages : {2u, 3u, 4u, 8u})
    for (uint32_t turns : {1u, 2u, 5u}) {
      const uint32_t microBatches = stages * turns;
      const PipelineProblem single = makeEqualChunks(stages, 1, microBatches, kEqual);
      const double p = stages, m = microBatches;
      EXPECT_DOUBLE_EQ(bubbleOf(simulate(single, makeGPipe(single))), (p - 1) / m);
      EXPECT_DOUBLE_EQ(bubbleOf(simulate(single, makeOneForwardOneBackward(single))), (p - 1) / m);
      for (const auto &[forward, inputs, weights] :
           {std::tuple(1.0, 1.0, 1.0), std::tuple(2.0, 2.0, 1.5), std::tuple(4.0, 5.0, 3.0)}) {
        const PipelineProblem own =
            makeEqualChunks(stages, 1, microBatches, {0, forward, inputs, weights, 1});
        const PipelineRun run = simulate(own, makeZeroBubble(own));
        EXPECT_DOUBLE_EQ(run.seconds,
                         m * (forward + inputs + weights) + (p - 1) * (forward + inputs - weights));
      }
      for (uint32_t chunks : {2u, 3u, 6u}) {
        const PipelineProblem several = makeEqualChunks(stages, chunks, microBatches, kEqual);
        EXPECT_DOUBLE_EQ(bubbleOf(simulate(several, makeInterleaved(several))), (p - 1) / (chunks * m));
      }
    }
}

TEST(PipelineTables, KeepAsManyMicroBatchesAsTheyPromise) {
  for (uint32_t stages = 1; stages <= 8; ++stages)
    for (uint32_t microBatches : {1u, 3u, 8u, 11u}) {
      const PipelineProblem problem = makeEqualChunks(stages, 1, microBatches, kEqual);
      const PipelineRun one = simulate(problem, makeOneForwardOneBackward(problem)),
                        zero = simulate(problem, makeZeroBubble(problem)),
                        all = simulate(problem, makeGPipe(problem));
      for (uint32_t stage = 0; stage < stages; ++stage) {
        EXPECT_EQ(one.slots[stage], std::min(microBatches, stages - stage));
        EXPECT_EQ(zero.slots[stage], std::min(microBatches, stages));
        EXPECT_EQ(all.slots[stage], microBatches);
        EXPECT_EQ(one.peakBytes[stage], one.slots[stage]);
      }
    }
}

/// Chunks in a V, each with half of a stage: from a third of what 1F1B's first stage keeps on, tables are
/// made that keep no more, and with as much there is less of a bubble.
TEST(PipelineTables, ChunksInAVKeepWhatTheyMay) {
  constexpr uint32_t kStages = 6, kMicroBatches = 24;
  PipelineProblem problem = makeEqualChunks(kStages, 2, kMicroBatches, kEqual, /*isV=*/true);
  double before = 1e9;
  for (int64_t budget = 2 * kStages / 3; budget <= 2 * kStages; ++budget) {
    problem.budgetBytes.assign(kStages, budget);
    const PipelineTable table = makeFastest(problem);
    ASSERT_EQ(findMistake(problem, table), "") << budget;
    const PipelineRun run = simulate(problem, table);
    EXPECT_LE(*std::max_element(run.peakBytes.begin(), run.peakBytes.end()), budget);
    EXPECT_LE(run.seconds, before * 1.05) << budget;
    before = run.seconds;
  }
  const PipelineProblem whole = makeEqualChunks(kStages, 1, kMicroBatches, {0, 2, 2, 2, 2});
  EXPECT_LT(before, simulate(whole, makeOneForwardOneBackward(whole)).seconds);
  problem.budgetBytes.assign(kStages, 1);
  EXPECT_TRUE(makeFastest(problem).empty()) << "one micro-batch needs two";
}

/// Chunks of chance costs, sizes, places and budgets.
TEST(PipelineTables, ByEventsComeToAnEndWithinAnyBudget) {
  std::mt19937 random(4);
  const auto upTo = [&](uint32_t most) { return static_cast<uint32_t>(random() % (most + 1)); };
  int made = 0;
  for (int round = 0; round < 2000; ++round) {
    PipelineProblem problem = makeEqualChunks(1 + upTo(4), 1 + upTo(2), 1 + upTo(9), kEqual, random() % 2);
    for (PipelineChunk &chunk : problem.chunks)
      chunk = {chunk.stage, 0.5 * upTo(4), 0.5 * upTo(4), 0.5 * upTo(4), 1 + upTo(3)};
    problem.transferSeconds = 0.25 * upTo(4);
    problem.budgetBytes.assign(problem.stages, 2 + upTo(12));
    const PipelineTable table = makeByEvents(problem, random() % 2);
    if (table.empty())
      continue;
    ++made;
    ASSERT_EQ(findMistake(problem, table), "") << spell(problem, table);
    ASSERT_EQ(findMistake(problem, table, orderTransfers(problem, table)), "") << spell(problem, table);
  }
  EXPECT_GT(made, 1000);
}

//===----------------------------------------------------------------------===//
// The check
//===----------------------------------------------------------------------===//

/// Runs a table by its meaning: stages take turns, and each waits for messages that others have left.
bool comesToItsEnd(const PipelineProblem &problem, const PipelineTable &table) {
  std::map<std::tuple<bool, uint32_t, uint32_t>, bool> messages; // is forward, for which chunk, micro-batch
  std::vector<size_t> at(table.size(), 0);
  const auto last = static_cast<uint32_t>(problem.chunks.size()) - 1;
  for (bool isMoving = true; isMoving;) {
    isMoving = false;
    for (size_t stage = 0; stage < table.size(); ++stage) {
      if (at[stage] == table[stage].size())
        continue;
      const auto [work, chunk, microBatch] = table[stage][at[stage]];
      const bool isForward = work == PipelineWork::Forward, isEdge = chunk == (isForward ? 0 : last);
      const bool waits = work != PipelineWork::WeightGradient && !isEdge;
      if (waits && !messages.count({isForward, chunk, microBatch}))
        continue;
      if (isForward && chunk < last)
        messages[{true, chunk + 1, microBatch}] = true;
      if ((work == PipelineWork::Backward || work == PipelineWork::InputGradient) && chunk > 0)
        messages[{false, chunk - 1, microBatch}] = true;
      ++at[stage];
      isMoving = true;
    }
  }
  for (size_t stage = 0; stage < table.size(); ++stage)
    if (at[stage] != table[stage].size())
      return false;
  return true;
}

/// Whether each stage has its work once and in an order that it can have by itself.
bool isSequential(const PipelineProblem &problem, const PipelineTable &table) {
  std::map<std::pair<uint32_t, int>, uint32_t> next; // by chunk and kind
  for (const auto &stage : table)
    for (const auto &[work, chunk, microBatch] : stage) {
      const bool inputs = work == PipelineWork::Backward || work == PipelineWork::InputGradient,
                 weights = work == PipelineWork::Backward || work == PipelineWork::WeightGradient;
      if (work == PipelineWork::Forward && next[{chunk, 0}]++ != microBatch)
        return false;
      if (inputs && (next[{chunk, 1}]++ != microBatch || next[{chunk, 0}] <= microBatch))
        return false;
      if (weights && (next[{chunk, 2}]++ != microBatch || next[{chunk, 1}] <= microBatch))
        return false;
    }
  for (uint32_t chunk = 0; chunk < problem.chunks.size(); ++chunk)
    for (int kind = 0; kind < 3; ++kind)
      if (next[{chunk, kind}] != problem.microBatches)
        return false;
  return true;
}

/// Entries in each other's place, moved, doubled, left out or of another kind: what passes the check runs to
/// its end, and what does not would hang, or do something else than a step.
TEST(PipelineCheck, SaysWhatARunDoes) {
  std::mt19937 random(9);
  int good = 0, hangs = 0;
  for (int round = 0; round < 10000; ++round) {
    const auto all =
        allTables(1 + static_cast<uint32_t>(random() % 4), 1 + static_cast<uint32_t>(random() % 5));
    auto [problem, table] = all[random() % all.size()];
    for (uint64_t change = random() % 3; change-- > 0;) {
      std::vector<PipelineEntry> &stage = table[random() % table.size()];
      if (stage.empty())
        continue;
      const size_t one = random() % stage.size(), other = random() % stage.size();
      const uint64_t way = random() % 8;
      if (way == 0)
        stage.erase(stage.begin() + static_cast<ptrdiff_t>(one));
      else if (way == 1)
        stage.insert(stage.begin() + static_cast<ptrdiff_t>(one), stage[other]);
      else if (way == 2)
        stage[one].microBatch = static_cast<uint32_t>(random() % (problem.microBatches + 1));
      else if (way == 3)
        stage[one].work = static_cast<PipelineWork>(random() % 4);
      else
        std::rotate(stage.begin() + static_cast<ptrdiff_t>(std::min(one, other)),
                    stage.begin() + static_cast<ptrdiff_t>(std::max(one, other)), stage.end());
    }
    const bool isRight = isSequential(problem, table);
    const bool ends = isRight && comesToItsEnd(problem, table);
    hangs += isRight && !ends;
    good += ends;
    ASSERT_EQ(findMistake(problem, table).empty(), ends) << spell(problem, table);
  }
  EXPECT_GT(good, 2000);
  EXPECT_GT(hangs, 100);
}

/// Transfers in each other's place. What is found right is right for any times: here each stage is as slow as
/// it can be.
TEST(PipelineCheck, KnowsTransfersThatWaitForEachOther) {
  std::mt19937 random(2);
  int good = 0, bad = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto all =
        allTables(2 + static_cast<uint32_t>(random() % 3), 1 + static_cast<uint32_t>(random() % 5));
    const auto &[problem, table] = all[random() % all.size()];
    auto transfers = orderTransfers(problem, table);
    auto &lane = transfers[random() % transfers.size()];
    if (lane.size() < 2)
      continue;
    std::swap(lane[random() % lane.size()], lane[random() % lane.size()]);
    const bool isSame = transfers == orderTransfers(problem, table);
    const std::string mistake = findMistake(problem, table, transfers);
    if (isSame) {
      EXPECT_EQ(mistake, "");
    }
    good += mistake.empty();
    bad += !mistake.empty();
  }
  EXPECT_GT(good, 50);
  EXPECT_GT(bad, 500);
  const PipelineProblem two = makeEqualChunks(2, 1, 1, kEqual);
  const PipelineTable table = makeGPipe(two);
  EXPECT_THAT(findMistake(two, table, {{{1, 0, 0}, {0, 1, 0}}, {{0, 1, 0}, {1, 0, 0}}}),
              HasSubstr("transfer 0 of stage 0, micro-batch 0 from chunk 1 to chunk 0, never comes"));
  EXPECT_THAT(findMistake(two, table, {{{0, 1, 0}}, {{0, 1, 0}, {1, 0, 0}}}),
              HasSubstr("has no transfer of micro-batch 0 from chunk 1 to chunk 0 on one of its stages"));
  EXPECT_THAT(findMistake(two, table, {{{0, 1, 0}, {0, 1, 0}}, {}}), HasSubstr("stage 0 has a transfer of"));
  EXPECT_THAT(findMistake(two, table, {{}}), HasSubstr("has transfers of 1 stages"));
}

TEST(PipelineCheck, NamesTheFirstWrongEntry) {
  PipelineProblem problem = makeEqualChunks(2, 1, 2, kEqual);
  const auto mistake = [&](const char *text) {
    return findMistake(problem, *parsePipelineTable(problem, text));
  };
  EXPECT_EQ(mistake("0: F0 F1 B0 B1\n1: F0 B0 F1 B1"), "");
  EXPECT_EQ(mistake("0: F0 F1 B0 I1 W1\n1: F0 B0 F1 I1 W1"), "");
  EXPECT_EQ(mistake("0: F0 F1 B0\n1: F0 B0 F1 B1"),
            "stage 0 has no gradient of inputs of micro-batch 1 of chunk 0");
  EXPECT_EQ(mistake("0: F0 F1 B0 B1\n1: F0 B0 B1 F1"),
            "entry 2 of stage 1, B1, comes before the forward of its micro-batch");
  EXPECT_EQ(mistake("0: F1 F0 B0 B1\n1: F0 B0 F1 B1"),
            "entry 0 of stage 0, F1, is not micro-batch 0, whose forward is next");
  EXPECT_EQ(mistake("0: F0 F1 F1 B0 B1\n1: F0 B0 F1 B1"),
            "entry 2 of stage 0, F1, comes after all 2 micro-batches");
  EXPECT_EQ(mistake("0: F0 F1 W0 I0 B1\n1: F0 B0 F1 B1"),
            "entry 2 of stage 0, W0, comes before the gradient of inputs of its micro-batch");
  EXPECT_EQ(mistake("0: F0 B0 F1 B1\n1: F0 F1 B0 B1"),
            "entry 1 of stage 0, B0, waits for I0 on stage 1, which comes after what waits for it");
  EXPECT_EQ(findMistake(problem, {{}, {}, {}}), "has 3 stages, but the pipeline has 2");
  EXPECT_EQ(findMistake(problem, {{{PipelineWork::Forward, 1, 0}}, {}}),
            "entry 0 of stage 0, F0, is of chunk 1, which is not the stage's");
  problem.budgetBytes = {1, 2};
  EXPECT_EQ(mistake("0: F0 F1 B0 B1\n1: F0 B0 F1 B1"),
            "entry 1 of stage 0, F1, keeps 2 bytes, but the stage has 1");
}

TEST(PipelineText, SaysWhereAFileIsWrong) {
  const PipelineProblem single = makeEqualChunks(2, 1, 2, kEqual), several = makeEqualChunks(2, 2, 2, kEqual);
  const auto mistake = [](const PipelineProblem &problem, const char *text) {
    const auto table = parsePipelineTable(problem, text);
    return table ? "" : table.error().message;
  };
  EXPECT_EQ(mistake(single, "# a table\n\n1: F0\n  0: F1 B0\r\n"),
            "line 4, column 1: expects one of 2 stages and a colon");
  EXPECT_EQ(mistake(single, "# a table\n\n1: F0\n0: F1 B0\r\n"), "");
  EXPECT_EQ(mistake(single, "0 F1"), "line 1, column 1: expects one of 2 stages and a colon");
  EXPECT_EQ(mistake(single, "2: F1"), "line 1, column 1: expects one of 2 stages and a colon");
  EXPECT_EQ(mistake(single, "0: F1\n0: F0"), "line 2, column 1: has stage 0 twice");
  EXPECT_EQ(mistake(single, "0: F1"), "has no line of stage 1 of 2");
  for (const char *word : {"F2", "F", "X0", "F0.1", "F-1", "F0x", "F99999999999", "F0.", "."})
    EXPECT_THAT(
        mistake(single, (std::string("0: F0 ") + word).c_str()),
        HasSubstr(
            std::string("line 1, column 7: expects an entry of stage 0 with one of 2 micro-batches, but "
                        "got \"") +
            word + '"'));
  EXPECT_THAT(mistake(several, "0: F0"), HasSubstr("column 4: expects an entry"));
  EXPECT_THAT(mistake(several, "0: F0.2"), HasSubstr("column 4: expects an entry"));
  const auto table = parsePipelineTable(several, "0: F0.0 W1.1\n1:");
  ASSERT_TRUE(table);
  EXPECT_THAT((*table)[0], ElementsAre(PipelineEntry{PipelineWork::Forward, 0, 0},
                                       PipelineEntry{PipelineWork::WeightGradient, 2, 1}));
}

} // namespace
} // namespace ds::analysis
