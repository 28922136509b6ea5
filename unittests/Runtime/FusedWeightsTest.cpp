//===- FusedWeightsTest.cpp - Weights that are cut by heads, or padded -----------------===//
//
// A fused QKV that is cut by heads and a table whose words do not divide begin with the numbers that one rank
// gives them, come from files as they are, and leave no padding in any. Padding is zero, whatever was in the
// memory before.
//
//===---------------------------------------------------------------------------===//
#include "Checkpoint/CheckpointFixture.h"
#include "FakeRanks.h"
#include "ProgramBuilder.h"
#include "Saving/Restore.h"
#include "Saving/Snapshot.h"

#include "ds/Runtime/Formats/SafeTensors.h"
#include "ds/Runtime/State/Weights.h"

#include <cmath>

namespace ds::rt {
namespace {

using test::FakeRanks;
using test::ProgramBuilder;

constexpr int64_t kWidth = 24, kHeads = 8, kWords = 50257;

struct Held {
  uint32_t dp = 1, tp = 1;
  int64_t words = kWords;
  bool transposed = false, bucketed = false;
};

/// A state of this layout, in memory of its own.
void add(ProgramBuilder &b, const std::string &name, const std::vector<int64_t> &shape, Layout layout,
         bool bucketed, Init init) {
  const uint64_t elements = localElements(b.program.mesh, layout, shape), dp = b.program.mesh.size({0});
  if (bucketed) {
    layout.bucket = {0};
    layout.offset = 3;
    layout.shardElements = (elements + 3 + dp - 1) / dp;
  }
  const uint32_t buffer = bucketed ? b.keep({static_cast<int64_t>(layout.shardElements)})
                                   : b.keep(localShape(b.program.mesh, layout, shape));
  b.program.states.push_back({name, {}, Role::Parameter, "", shape, buffer, init, true, layout});
}

Program model(const Held &held) {
  ProgramBuilder b;
  b.ranks(Mesh{{"dp", held.dp}, {"tp", held.tp}});
  Layout qkv, table;
  std::vector<int64_t> fused = {3 * kWidth, kWidth};
  qkv.view = {3, kHeads, kWidth / kHeads, kWidth};
  qkv.cuts = {{}, {1}, {}, {}};
  if (held.transposed) {
    fused = {kWidth, 3 * kWidth};
    qkv.view = {kWidth, 3, kHeads, kWidth / kHeads};
    qkv.cuts = {{}, {}, {1}, {}};
  }
  table.cuts = {{1}, {}};
  if (held.words > kWords) {
    table.view = {held.words, 2};
    table.existing = kWords;
  }
  add(b, "qkv", fused, qkv, held.bucketed, {Init::Kind::Normal, 0, 0.5});
  add(b, "table", {kWords, 2}, table, held.bucketed, {Init::Kind::Uniform, -1, 1});
  b.segment();
  return b.program;
}

/// What it is held by: many ranks, of which some have rows of padding.
std::vector<Held> all(bool transposed) {
  return {{1, 2, 50258, transposed},
          {1, 8, 50264, transposed},
          {2, 2, 50258, transposed, true},
          {3, 2, 50270, transposed, true}};
}

/// Every number of the rank's memory is NaN before it gets a value.
void spoil(Executor &executor) {
  for (const State &state : executor.program().states) {
    const Buffer &buffer = executor.program().buffers[state.buffer];
    std::fill_n(static_cast<float *>(executor.data(state.buffer)), numElements(buffer), NAN);
  }
}

/// Padding is zero, and nothing else that the state has is NaN.
void expectClean(const Executor &executor) {
  const Program &program = executor.program();
  for (const State &state : program.states) {
    const auto *data = static_cast<const float *>(executor.data(state.buffer));
    const HeldElements padding = heldPadding(program.mesh, state.layout, state.logicalShape, executor.rank()),
                       held = heldElements(program.mesh, state.layout, state.logicalShape, executor.rank());
    for (uint64_t i = 0; i < padding.count; ++i)
      ASSERT_EQ(data[padding.at + i], 0.0f) << state.name << " on rank " << executor.rank();
    for (uint64_t i = 0; i < held.count; ++i)
      ASSERT_FALSE(std::isnan(data[held.at + i])) << state.name << " on rank " << executor.rank();
  }
}

void onRanks(const Program &program, const std::function<void(Executor &, Communicator *)> &body) {
  const Status valid = verifyProgram(program);
  ASSERT_TRUE(valid) << valid.error().message;
  FakeRanks ranks(program.world);
  ranks.forEachRank([&](uint32_t rank) {
    ExecutorOptions options;
    options.rank = rank;
    auto executor = Executor::load(program, options);
    ASSERT_TRUE(executor) << executor.error().message;
    spoil(**executor);
    body(**executor, program.world > 1 ? &ranks.channel(rank, 0) : nullptr);
  });
}

class FusedWeights : public test::CheckpointFixture {
protected:
  /// What a model that is initialised by `seed`, or read from `from`, writes.
  std::string saved(const Held &held, uint64_t seed, const std::string &from = "") {
    std::filesystem::remove(root + "/saved");
    onRanks(model(held), [&](Executor &executor, Communicator *communicator) {
      ASSERT_TRUE(initializeStates(executor, seed, false));
      if (!from.empty()) {
        ASSERT_TRUE(loadWeights(executor, from));
      }
      expectClean(executor);
      const Status status = saveWeights(executor, root + "/saved", communicator);
      EXPECT_TRUE(status) << status.error().message;
    });
    return readText(root + "/saved");
  }
};

TEST_F(FusedWeights, ASeedGivesTheNumbersOfOneRank) {
  for (const bool transposed : {false, true}) {
    const std::string alone = saved({.transposed = transposed}, 5);
    ASSERT_GT(alone.size(), (kWords * 2 + 3 * kWidth * kWidth) * sizeof(float));
    for (const Held &held : all(transposed))
      EXPECT_EQ(saved(held, 5) == alone, true) << held.dp << " x " << held.tp;
  }
}

TEST_F(FusedWeights, FilesComeBackAsTheyWere) {
  const std::string alone = saved({}, 9);
  std::filesystem::rename(root + "/saved", root + "/weights");
  for (const Held &held : all(false))
    EXPECT_EQ(saved(held, /*seed=*/2, root + "/weights") == alone, true) << held.dp << " x " << held.tp;
}

/// The parameters of one rank are what slicing of the whole gives.
TEST_F(FusedWeights, HeadsAreThoseOfTheWhole) {
  saved({}, 5);
  auto file = SafeTensorsFile::open(root + "/saved");
  ASSERT_TRUE(file);
  const auto *whole = reinterpret_cast<const float *>(file->find("qkv")->data);
  onRanks(model({1, 2, 50258}), [&](Executor &executor, Communicator *) {
    ASSERT_TRUE(initializeStates(executor, 5, false));
    const auto *part = static_cast<float *>(executor.data(executor.program().states[0].buffer));
    for (int64_t which = 0; which < 3; ++which)
      for (int64_t row = 0; row < kWidth / 2; ++row)
        for (int64_t column = 0; column < kWidth; ++column)
          ASSERT_EQ(part[(which * kWidth / 2 + row) * kWidth + column],
                    whole[(which * kWidth + executor.rank() * kWidth / 2 + row) * kWidth + column]);
  });
}

/// The same states, as checkpoints of tests are made of them.
test::Model checkpointModel(const Program &program) {
  test::Model model(program.mesh);
  for (const State &state : program.states)
    model.add(state.name, state.logicalShape, state.layout);
  return model;
}

TEST_F(FusedWeights, CheckpointsAreRestoredWithCleanPadding) {
  for (const bool transposed : {false, true}) {
    const Program saver = model({2, 4, 50260, transposed, true});
    const Result<std::string> path = test::save(systemFiles(), checkpointModel(saver), root, 1, 1 << 16);
    ASSERT_TRUE(path) << path.error().message;
    const Result<Checkpoint> checkpoint = Checkpoint::open(*path);
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    for (const Held &held : all(transposed)) {
      const Program program = model(held);
      const test::Model expected = checkpointModel(program);
      onRanks(program, [&](Executor &executor, Communicator *) {
        const Result<RestorePlan> plan = planRestore(program, executor.rank(), *checkpoint);
        ASSERT_TRUE(plan) << plan.error().message;
        const Status status = restoreStates(executor, *checkpoint, *plan);
        ASSERT_TRUE(status) << status.error().message;
        expectClean(executor);
        for (size_t i = 0; i < program.states.size(); ++i) {
          const std::vector<float> memory = expected.memory(i, executor.rank(), 1);
          const HeldElements held = heldElements(program.mesh, program.states[i].layout,
                                                 program.states[i].logicalShape, executor.rank());
          const auto *data = static_cast<float *>(executor.data(program.states[i].buffer));
          ASSERT_TRUE(
              std::equal(memory.begin() + static_cast<ptrdiff_t>(held.at), memory.end(), data + held.at))
              << program.states[i].name << " on rank " << executor.rank();
        }
      });
    }
    EXPECT_TRUE(removeCheckpoint(systemFiles(), *path));
  }
}

/// A copy has what the files will have, also of columns that lie apart in memory.
TEST_F(FusedWeights, CopiesAreWhatFilesWillBe) {
  for (const bool transposed : {false, true}) {
    const Program program = model({2, 2, 50258, transposed});
    const test::Model values = checkpointModel(program);
    onRanks(program, [&](Executor &executor, Communicator *) {
      for (size_t i = 0; i < program.states.size(); ++i) {
        const std::vector<float> memory = values.memory(i, executor.rank(), 1);
        std::copy(memory.begin(), memory.end(),
                  static_cast<float *>(executor.data(program.states[i].buffer)));
      }
      const Result<std::vector<ShardFile>> files = planShards(program, executor.rank());
      ASSERT_TRUE(files);
      Result<Snapshot> copy = Snapshot::create(*files);
      ASSERT_TRUE(copy);
      ASSERT_TRUE(copy->take(executor, *files));
      for (size_t i = 0; i < files->size(); ++i) {
        const ShardFile &file = (*files)[i];
        const auto *data = reinterpret_cast<const float *>(copy->image(i).data() + file.header.size());
        for (const ShardPiece &piece : file.pieces) {
          const size_t state = values.number(piece.state);
          for (const ElementRun &run : runsOf(piece.box, program.states[state].logicalShape))
            for (uint64_t k = 0; k < run.count; ++k)
              ASSERT_EQ(data[run.at + k], values.value(state, run.first + k, 1)) << piece.state;
          data += piece.bytes / sizeof(float);
        }
      }
    });
  }
}

} // namespace
} // namespace ds::rt
