//===- AttentionPiecesTest.cpp - How attention is cut for cuDNN -----------------------===//

#include "ds/Runtime/Program/AttentionPieces.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds::rt;

namespace {

/// 8 key heads of 4 query heads each, as Llama 3 8B has them.
AttentionSizes llama(uint64_t tokens) { return {1, tokens, tokens, 32, 8, 128}; }
constexpr AttentionForm kPlain{.isCausal = true};

/// Blocks are checked pair by pair of a query and a key.
struct Pairs {
  Pairs(int64_t queries, int64_t keys, bool causal, const std::vector<AttentionBlock> &blocks,
        int64_t window = 1000)
      : keys(keys), shift(keys - queries), window(window), seen(static_cast<size_t>(queries * keys)),
        queryOpen(static_cast<size_t>(queries)), keyOpen(static_cast<size_t>(keys)) {
    for (const AttentionBlock &each : blocks)
      add(each);
    for (int64_t q = 0; q < queries; ++q)
      for (int64_t k = 0; k < keys; ++k) {
        const int64_t distance = q + shift - k;
        EXPECT_EQ(seen[static_cast<size_t>(q * keys + k)],
                  (!causal || distance >= 0) && std::abs(distance) < window)
            << q << ", " << k;
      }
    for (const std::vector<int> *open : {&queryOpen, &keyOpen})
      EXPECT_THAT(*open, testing::Each(kEnded)) << "a sum that is not written";
  }

  void add(const AttentionBlock &b) {
    EXPECT_GT(std::min(b.queries, b.keys), 0);
    EXPECT_EQ(b.own, b.firstQuery + shift - b.firstKey);
    if (b.isCausal)
      EXPECT_EQ(b.keys, b.queries + b.own) << "the last query stands at the last key";
    for (int64_t q = b.firstQuery; q < b.firstQuery + b.queries; ++q)
      for (int64_t k = b.firstKey; k < b.firstKey + b.keys; ++k) {
        const int64_t distance = b.own + (q - b.firstQuery) - (k - b.firstKey);
        if ((!b.isCausal || distance >= 0) && std::abs(distance) < window)
          ++seen[static_cast<size_t>(q * keys + k)];
      }
    note(queryOpen, b.firstQuery, b.queries, b.beginsQueries ? 0 : b.queries, b.endsQueries ? b.queries : 0);
    note(keyOpen, b.firstKey, b.keys, b.summedKeys, b.endedKeys);
  }

  static constexpr int kOpen = 1, kEnded = 2;
  /// A sum begins with its first part, and ends with its last.
  static void note(std::vector<int> &open, int64_t first, int64_t count, int64_t summed, int64_t ended) {
    for (int64_t i = 0; i < count; ++i) {
      int &state = open[static_cast<size_t>(first + i)];
      EXPECT_EQ(state, i < summed ? kOpen : 0) << i;
      state = i < ended ? kEnded : kOpen;
    }
  }

  int64_t keys, shift, window;
  std::vector<int> seen, queryOpen, keyOpen;
};

TEST(AttentionPieces, BlocksCoverWhatIsSeenOnce) {
  for (const bool causal : {false, true})
    for (const int64_t queries : {1, 8, 16, 21, 32})
      for (const int64_t more : {0, 3, 8, 11, 24}) {
        SCOPED_TRACE(fmt::format("{} queries, {} more keys, causal {}", queries, more, causal));
        const Pairs pairs(queries, queries + more, causal,
                          attentionBlocks(queries, queries + more, causal, 8));
      }
}

TEST(AttentionPieces, BlocksByQueriesHaveTheKeysThatTheySee) {
  for (const bool causal : {false, true})
    for (const int64_t queries : {1, 8, 16, 21, 40})
      for (const int64_t more : {-8, 0, 3, 8, 24})
        for (const int64_t window : {1, 2, 7, 8, 9, 20, 100}) {
          const int64_t keys = queries + more;
          if (keys <= 0 || (more < 0 && (causal || -more >= window)))
            continue; // some queries would see no key
          SCOPED_TRACE(
              fmt::format("{} queries, {} keys, window {}, causal {}", queries, keys, window, causal));
          const AttentionSizes sizes{1, uint64_t(queries), uint64_t(keys), 1, 1, 8};
          const std::vector<AttentionBlock> blocks =
              attentionBands(sizes, {.isCausal = causal, .window = window}, 8);
          const Pairs pairs(queries, keys, causal, blocks, window);
          for (const AttentionBlock &each : blocks) {
            EXPECT_EQ(each.firstKey % kAttentionBlockUnit, 0);
            if (each.firstQuery > 0)
              EXPECT_LE(each.keys, 8 + 2 * (window - 1) + kAttentionBlockUnit - 1);
          }
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
  EXPECT_EQ(attentionBlockSize(llama(8192), kPlain), std::nullopt);
  EXPECT_EQ(attentionBlockSize(llama(16384), kPlain), 4096) << "128 MiB, and 512 would be twice as many rows";
  EXPECT_EQ(attentionBlockSize(llama(65536), kPlain), 4096) << "16 rows of blocks";
  EXPECT_EQ(attentionBlockSize(llama(131072), kPlain), 8192) << "512 MiB: 16 rows, in place of 32";
  EXPECT_EQ(attentionBlockSize(llama(1 << 20), kPlain), 8192) << "1 GiB is the most";
  EXPECT_EQ(attentionBlockSize({1, 20000, 20000, 32, 8, 128}, kPlain), 4096)
      << "5 rows, the last one shorter";
  EXPECT_EQ(attentionBlockSize({1, 17000, 17000, 32, 8, 128}, kPlain), 3456)
      << "5 rows of 3400, in whole tiles";
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

/// 2 bytes for each probability of a piece, forward too.
TEST(AttentionPieces, DropoutKeepsWhatItLeavesOfAPiece) {
  const AttentionSizes gpt{16, 1024, 1024, 12, 12, 64};
  const AttentionForm forward{.isGradient = false, .isCausal = true, .drops = true};
  const AttentionPieces pieces = attentionPieces(gpt, forward).value();
  EXPECT_EQ(pieces.batch, 8) << "256 MiB are ten samples of 24, and equal pieces";
  EXPECT_EQ(pieces.scratch.dropMask, 8u * 2 * 12 * 1024 * 1024);
  EXPECT_EQ(pieces.workspaceBytes, pieces.scratch.dropMask + 512);
  const AttentionPieces gradient = attentionPieces(gpt, {.isCausal = true, .drops = true}).value();
  EXPECT_EQ(gradient.batch, 4) << "scores as well";
  const AttentionPieces blocks = attentionPieces(llama(16384), {.isCausal = true, .drops = true}).value();
  EXPECT_EQ(blocks.block, 4096);
  EXPECT_EQ(blocks.scratch.dropMask, 2u * 4 * 4096 * 4096);
  EXPECT_FALSE(blocks.isByQueries);
  const AttentionPieces fast =
      attentionPieces(llama(16384), {.isCausal = true, .isFast = true, .drops = true}).value();
  EXPECT_EQ(fast.workspaceBytes, blocks.workspaceBytes) << "the mask alone is too long for one piece";
  // Forward sees up to all keys: 1024 queries of 4 heads and 32,768 keys are 256 MiB, and 2048 are 16 blocks.
  const AttentionPieces longest = attentionPieces(llama(32768), forward).value();
  EXPECT_EQ(longest.block, 2048);
  EXPECT_TRUE(longest.isByQueries);
  EXPECT_EQ(longest.workspaceBytes, 2u * 4 * 2048 * 32768 + 512) << "no sums";
}

/// 4096 queries see 4096 keys each, 8192 together: 2 bytes a score for 4 heads are 256 MiB.
TEST(AttentionPieces, AWindowIsCutByQueries) {
  const auto with = [](int64_t window) { return AttentionForm{.isCausal = true, .window = window}; };
  EXPECT_EQ(attentionBlockSize(llama(8192), with(4096)), std::nullopt);
  EXPECT_EQ(attentionBlockSize(llama(131072), with(4096)), 4096);
  EXPECT_EQ(attentionBlockSize(llama(131072), with(128)), 1024) << "8192 would see each other's keys in vain";
  EXPECT_EQ(attentionBlockSize(llama(131072), with(32768)), 2048) << "16 blocks that see one key";
  EXPECT_EQ(attentionBlockSize(llama(20000), with(4096)), 4096);
  const AttentionPieces pieces = attentionPieces(llama(131072), with(4096)).value();
  EXPECT_TRUE(pieces.isByQueries);
  const AttentionScratch &s = pieces.scratch;
  EXPECT_EQ(s.querySums + s.queryPart, 0u) << "the engine writes the queries' gradient itself";
  EXPECT_EQ(s.keySums, 4u * 131072 * 128);
  EXPECT_EQ(s.keyPart, 2u * 8192 * 128) << "8191 keys, from a multiple of 8 on";
  EXPECT_EQ(pieces.workspaceBytes, s.bytes() + 2u * 4 * 4096 * 8192 + 4u * 4 * 8192 * 128 + 512);
  EXPECT_FALSE(attentionPieces(llama(131072), with(200000))->isByQueries) << "it hides nothing";
  // 128 queries of one key head with 256 query heads and a window of 131,072: 8 GiB.
  EXPECT_EQ(attentionPieces({1, 1 << 20, 1 << 20, 256, 1, 64}, with(131072)), std::nullopt);
  EXPECT_TRUE(attentionPieces(llama(131072), {.isCausal = true, .isFast = true, .window = 4096}));
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
