//===- AttentionPiecesTest.cpp - How attention is cut for cuDNN -----------------------===//

#include "ds/Runtime/Program/AttentionPieces.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds::rt;

namespace {

/// 8 key heads of 4 query heads each, as Llama 3 8B has them.
AttentionSizes llama(uint64_t tokens) { return {1, tokens, tokens, 32, 8, 128}; }

/// Blocks are checked pair by pair of a query and a key.
struct Pairs {
  Pairs(int64_t queries, int64_t keys, bool causal, int64_t block)
      : keys(keys), causal(causal), shift(keys - queries), seen(static_cast<size_t>(queries * keys)),
        queryOpen(static_cast<size_t>(queries)), keyOpen(static_cast<size_t>(keys)) {
    for (const AttentionBlock &each : attentionBlocks(queries, keys, causal, block))
      add(each, block);
    for (int64_t q = 0; q < queries; ++q)
      for (int64_t k = 0; k < keys; ++k)
        EXPECT_EQ(seen[static_cast<size_t>(q * keys + k)], !causal || k <= q + shift) << q << ", " << k;
    for (const std::vector<int> *open : {&queryOpen, &keyOpen})
      EXPECT_THAT(*open, testing::Each(kEnded)) << "a sum that is not written";
  }

  void add(const AttentionBlock &b, int64_t block) {
    EXPECT_LE(std::max(b.queries, b.keys), block);
    EXPECT_GT(std::min(b.queries, b.keys), 0);
    if (b.isDiagonal)
      EXPECT_EQ(b.queries, b.keys);
    for (int64_t q = b.firstQuery; q < b.firstQuery + b.queries; ++q)
      for (int64_t k = b.firstKey; k < b.firstKey + b.keys; ++k)
        if (!b.isDiagonal || k - b.firstKey <= q - b.firstQuery)
          ++seen[static_cast<size_t>(q * keys + k)];
    note(queryOpen, b.firstQuery, b.queries, b.beginsQueries, b.endsQueries);
    note(keyOpen, b.firstKey, b.keys, b.beginsKeys, b.endsKeys);
  }

  static constexpr int kOpen = 1, kEnded = 2;
  /// A sum begins with its first part, and ends with its last.
  static void note(std::vector<int> &open, int64_t first, int64_t count, bool begins, bool ends) {
    for (int64_t i = first; i < first + count; ++i) {
      int &state = open[static_cast<size_t>(i)];
      EXPECT_EQ(state, begins ? 0 : kOpen) << i;
      state = ends ? kEnded : kOpen;
    }
  }

  int64_t keys;
  bool causal;
  int64_t shift;
  std::vector<int> seen, queryOpen, keyOpen;
};

TEST(AttentionPieces, BlocksCoverWhatIsSeenOnce) {
  for (const bool causal : {false, true})
    for (const int64_t queries : {1, 8, 16, 21, 32})
      for (const int64_t more : {0, 3, 8, 11, 24}) {
        SCOPED_TRACE(fmt::format("{} queries, {} more keys, causal {}", queries, more, causal));
        const Pairs pairs(queries, queries + more, causal, 8);
      }
}

TEST(AttentionPieces, TheExampleHasTenBlocksOfTwoForms) {
  const std::vector<AttentionBlock> blocks = attentionBlocks(16384, 16384, true, 4096);
  EXPECT_EQ(blocks.size(), 10u);
  for (const AttentionBlock &each : blocks)
    EXPECT_TRUE(each.queries == 4096 && each.keys == 4096);
}

/// 2 bytes for 4 heads: 8192 tokens have 512 MiB of scores a key head, 16,384 have 2 GiB.
TEST(AttentionPieces, LongSequencesAreCutAlikeWhateverMemoryThereIs) {
  EXPECT_EQ(attentionBlockSize(llama(8192)), std::nullopt);
  EXPECT_EQ(attentionBlockSize(llama(16384)), 4096) << "128 MiB, and 512 would be twice as many rows";
  EXPECT_EQ(attentionBlockSize(llama(65536)), 4096) << "16 rows of blocks";
  EXPECT_EQ(attentionBlockSize(llama(131072)), 8192) << "512 MiB: 16 rows, in place of 32";
  EXPECT_EQ(attentionBlockSize(llama(1 << 20)), 8192) << "1 GiB is the most";
  EXPECT_EQ(attentionBlockSize({1, 20000, 20000, 32, 8, 128}), 4096) << "5 rows, the last one shorter";
  EXPECT_EQ(attentionBlockSize({1, 17000, 17000, 32, 8, 128}), 3456) << "5 rows of 3400, in whole tiles";
  const std::optional<AttentionPieces> least = attentionPieces(llama(32768), {.isCausal = true}, 1),
                                       usual = attentionPieces(llama(32768), {.isCausal = true});
  ASSERT_TRUE(least && usual);
  EXPECT_EQ(least->workspaceBytes, usual->workspaceBytes) << "bits do not depend on memory";
  EXPECT_EQ(usual->block, 4096);
}

/// f32 sums of the queries' gradients, twice 4 bytes for each element, and dk and dv of each query head, 2
/// each: 32 heads of 128 at 32,768 tokens. No scores, and no blocks.
TEST(AttentionPieces, FastGradientsKeepNoScores) {
  constexpr AttentionForm kFast{.isCausal = true, .isFast = true};
  const AttentionPieces whole = attentionPieces(llama(32768), kFast, UINT64_MAX).value();
  EXPECT_EQ(whole.block, std::nullopt);
  EXPECT_EQ(whole.groups, 8);
  EXPECT_EQ(whole.scratch.querySums, 4u * 32 * 32768 * 128);
  EXPECT_EQ(whole.workspaceBytes, 4u * 32 * 32768 + (8 + 4) * uint64_t(32) * 32768 * 128 + 512);
  // A key head takes 192.5 MiB; what is usual, 256 MiB, has one of them.
  EXPECT_EQ(attentionPieces(llama(32768), kFast).value().groups, 1);
}

/// 2 bytes for each probability of a piece, forward too; blocks have no dropout, windows and caps.
TEST(AttentionPieces, DropoutKeepsWhatItLeavesOfAPiece) {
  const AttentionSizes gpt{16, 1024, 1024, 12, 12, 64};
  const AttentionForm forward{.isGradient = false, .isCausal = true, .drops = true};
  const AttentionPieces pieces = attentionPieces(gpt, forward).value();
  EXPECT_EQ(pieces.batch, 8) << "256 MiB are ten samples of 24, and equal pieces";
  EXPECT_EQ(pieces.scratch.dropMask, 8u * 2 * 12 * 1024 * 1024);
  EXPECT_EQ(pieces.workspaceBytes, pieces.scratch.dropMask + 512);
  const AttentionPieces gradient = attentionPieces(gpt, {.isCausal = true, .drops = true}).value();
  EXPECT_EQ(gradient.batch, 4) << "scores as well";
  EXPECT_EQ(attentionPieces(llama(16384), {.isCausal = true, .drops = true}), std::nullopt);
  EXPECT_EQ(attentionPieces(llama(16384), {.isCausal = true, .hasBand = true}), std::nullopt);
  EXPECT_TRUE(attentionPieces(llama(16384), {.isCausal = true, .isFast = true, .hasBand = true}));
  EXPECT_TRUE(attentionPieces(llama(16384), {.isGradient = false, .isCausal = true, .hasBand = true}));
}

/// f32 sums of a block's queries and of all keys and values, 16-bit parts of a block, and the engine's
/// scores: 16384 rows of 4 heads at 4096, in bytes.
TEST(AttentionPieces, TheWorkspaceOfBlocksIsCounted) {
  const AttentionPieces pieces = attentionPieces(llama(16384), {.isCausal = true}).value();
  const AttentionScratch &s = pieces.scratch;
  EXPECT_EQ(s.rowSums, 4u * 4 * 4096);
  EXPECT_EQ(s.querySums, 4u * 4 * 4096 * 128);
  EXPECT_EQ(s.keySums, 4u * 16384 * 128);
  EXPECT_EQ(s.valueSums, s.keySums);
  EXPECT_EQ(s.queryPart, 2u * 4 * 4096 * 128);
  EXPECT_EQ(s.keyPart, 2u * 4096 * 128);
  EXPECT_EQ(s.valuePart, s.keyPart);
  EXPECT_EQ(s.bytes(), 65536u + 8388608 + 2 * 8388608 + 4194304 + 2 * 1048576);
  // 2 bytes a score, and dk and dv of each query head.
  EXPECT_EQ(pieces.workspaceBytes, s.bytes() + 2u * 4 * 4096 * 4096 + 4u * 4 * 4096 * 128 + 512);
}

} // namespace
