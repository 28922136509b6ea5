//===- WeightsTest.cpp - States get the same values on any number of ranks -----===//
//
// A model of three parameters, in 16 or 32 bits, whose parameters and masters are whole on every rank or cut
// among them. Whatever the cut, the file that is written must be the one that a single rank writes.
//
//===---------------------------------------------------------------------------===//
#include "FakeRanks.h"
#include "ProgramBuilder.h"

#include "ds/Runtime/Formats/SafeTensors.h"
#include "ds/Runtime/State/Weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>

namespace ds::rt {
namespace {

using test::FakeRanks;
using test::ProgramBuilder;
using testing::HasSubstr;

/// How a model is held; on a grid w is cut along its columns as well, and the ranks are two by two.
struct Held {
  uint32_t world = 1;
  bool cutParameters = false, cutMasters = false;
  DType parameters = DType::BF16;
  bool masters = true;
  bool grid = false;
};

struct Member {
  const char *name;
  std::vector<int64_t> shape;
  Init init;
};

const std::vector<Member> kMembers = {{"w", {6, 8}, {Init::Kind::Normal, 0.0, 0.5}},
                                      {"bias", {7}, {Init::Kind::Uniform, -1.0, 1.0}},
                                      {"gain", {3}, {Init::Kind::Constant, 1.1, 0}}};

/// Adds one state for each member, in one bucket along dp if they are cut; returns the number of the first.
size_t addMembers(ProgramBuilder &b, const Held &held, bool cut, DType dtype, Role role) {
  const size_t first = b.program.states.size();
  const int64_t bucket = held.grid ? 35 : 64, shards = held.grid ? 2 : held.world;
  const uint32_t shard = cut ? b.keep({(bucket + shards - 1) / shards}, dtype) : 0;
  // On a grid a rank has 24 elements of w; the first shard ends within them.
  const uint64_t offsets[] = {0, held.grid ? 25u : 48u, held.grid ? 32u : 56u};
  for (size_t i = 0; i < kMembers.size(); ++i) {
    const bool master = role == Role::Master;
    const std::string name = kMembers[i].name;
    const Init init = master ? Init() : kMembers[i].init;
    std::vector<AxisSet> cuts;
    if (held.grid && name == "w")
      cuts = {AxisSet(), {1}};
    if (cut) {
      b.sharded(master ? name + ".master" : name, kMembers[i].shape, shard, offsets[i], init, role,
                master ? name : "");
      b.program.states.back().layout.cuts = cuts;
      continue;
    }
    const uint32_t id = b.keep(localShape(b.program.mesh, {cuts, {}}, kMembers[i].shape), dtype);
    b.program.states.push_back({master ? name + ".master" : name,
                                {},
                                role,
                                master ? name : "",
                                kMembers[i].shape,
                                id,
                                init,
                                true,
                                {cuts, {}},
                                {},
                                0,
                                ProgramBuilder::slotOf(role)});
  }
  return first;
}

Program model(const Held &held) {
  ProgramBuilder b;
  b.ranks(held.grid ? Mesh{{"dp", 2}, {"tp", 2}} : Mesh{{"dp", held.world}});
  addMembers(b, held, held.cutParameters, held.parameters, Role::Parameter);
  b.program.states[0].aliases = {"w.tied"};
  b.state("seen", {2}, {Init::Kind::Constant, 3.0, 0}, Role::Buffer);
  if (held.masters)
    addMembers(b, held, held.cutMasters, DType::F32, Role::Master);
  b.segment();
  return b.program;
}

/// Runs `body(executor, communicator)` on every rank of a model.
void onRanks(const Program &program, const std::function<void(Executor &, Communicator *)> &body,
             FakeRanks *given = nullptr) {
  Status valid = verifyProgram(program);
  ASSERT_TRUE(valid) << valid.error().message;
  FakeRanks own(program.world);
  FakeRanks &ranks = given ? *given : own;
  ranks.forEachRank([&](uint32_t rank) {
    ExecutorOptions options;
    options.rank = rank;
    auto executor = Executor::load(program, options);
    ASSERT_TRUE(executor) << executor.error().message;
    body(**executor, program.world > 1 ? &ranks.channel(rank, 0) : nullptr);
  });
}

class WeightsTest : public testing::Test {
protected:
  WeightsTest() {
    char pattern[] = "/tmp/ds-weights-test-XXXXXX";
    directory = ::mkdtemp(pattern);
  }
  ~WeightsTest() override { std::filesystem::remove_all(directory); }
  std::string at(const std::string &name) const { return directory + "/" + name; }

  /// What a model that is initialised by `seed`, or read from `from`, writes.
  std::vector<uint8_t> saved(const Held &held, uint64_t seed, const std::string &from = "") {
    std::filesystem::remove(at("saved"));
    onRanks(model(held), [&](Executor &executor, Communicator *communicator) {
      Status ready = initializeStates(executor, seed, false);
      ASSERT_TRUE(ready) << ready.error().message;
      if (!from.empty())
        ready = loadWeights(executor, at(from));
      ASSERT_TRUE(ready) << ready.error().message;
      Status status = saveWeights(executor, at("saved"), communicator);
      EXPECT_TRUE(status) << status.error().message;
    });
    return test::readBytes(at("saved"));
  }
  /// Writes a file of the model's tensors of `dtype`, w counting up from `first` in steps of `step`.
  void write(const std::string &name, FileDType dtype, const void *w) {
    const std::vector<float> seen(2);
    const std::vector<double> rest(8);
    const TensorSource sources[] = {{"w", dtype, {6, 8}, w},
                                    {"bias", dtype, {7}, rest.data()},
                                    {"gain", dtype, {3}, rest.data()},
                                    {"seen", FileDType::F32, {2}, seen.data()}};
    ASSERT_TRUE(writeSafeTensors(at(name), sources));
  }
  /// How reading a file into a model ends.
  std::string reading(const Held &held, const std::string &name) {
    std::string message = "read";
    onRanks(model(held), [&](Executor &executor, Communicator *) {
      Status status = loadWeights(executor, at(name));
      if (!status && executor.rank() == 0)
        message = status.error().message;
    });
    return message;
  }
  std::string directory;
};

TEST_F(WeightsTest, ASeedGivesTheSameWeightsToAnyLayout) {
  const std::vector<uint8_t> alone = saved({}, 5);
  ASSERT_GT(alone.size(), 300u);
  EXPECT_NE(saved({}, 6), alone);
  for (uint32_t world : {2, 3, 4})
    for (bool cutParameters : {false, true})
      for (bool cutMasters : {false, true})
        EXPECT_EQ(saved({world, cutParameters, cutMasters}, 5), alone)
            << world << " ranks, parameters cut: " << cutParameters << ", masters cut: " << cutMasters;
  for (bool cutParameters : {false, true})
    for (bool cutMasters : {false, true})
      for (DType dtype : {DType::BF16, DType::F32})
        EXPECT_EQ(saved({4, cutParameters, cutMasters, dtype, dtype == DType::BF16, /*grid=*/true}, 5), alone)
            << "on a grid, parameters cut: " << cutParameters << ", masters cut: " << cutMasters;
  // 32-bit parameters need no masters, and are what masters would be.
  EXPECT_EQ(saved({3, true, false, DType::F32, false}, 5), alone);
  EXPECT_EQ(saved({1, false, false, DType::F16}, 5), alone);
  // Without a master the rounded parameter is all there is.
  EXPECT_NE(saved({1, false, false, DType::BF16, false}, 5), alone);
}

TEST_F(WeightsTest, SinusoidsAreTheSameTableInAnyLayout) {
  const std::vector<int64_t> shape = {6, 8};
  const Init init{Init::Kind::Sinusoid, 10000, 0};
  const auto made = [&](const std::function<void(ProgramBuilder &)> &declare) {
    ProgramBuilder b;
    declare(b);
    b.segment();
    onRanks(b.program, [&](Executor &executor, Communicator *communicator) {
      ASSERT_TRUE(initializeStates(executor, 1, false));
      ASSERT_TRUE(saveWeights(executor, at("saved"), communicator));
    });
    auto file = SafeTensorsFile::open(at("saved"));
    const auto *values = reinterpret_cast<const float *>(file->find("table")->data);
    return std::vector<float>(values, values + 48);
  };
  const std::vector<float> alone = made([&](ProgramBuilder &b) { b.state("table", shape, init); });
  for (int row = 0; row < 6; ++row)
    for (int column = 0; column < 8; ++column) {
      // 10000^0, 10000^(1/3), 10000^(2/3), 10000^1; frequencies and angles are rounded to 24 bits.
      const double angle = row / std::pow(10000.0, column % 4 / 3.0);
      EXPECT_NEAR(alone[static_cast<size_t>(row * 8 + column)],
                  column < 4 ? std::sin(angle) : std::cos(angle),
                  angle * std::ldexp(1, -21) + std::ldexp(1, -24))
          << "row " << row << ", column " << column;
    }
  const auto sharded = [&](ProgramBuilder &b) {
    b.ranks(3);
    b.sharded("table", shape, b.keep({20}), /*offset=*/5, init);
  };
  EXPECT_EQ(made(sharded), alone);
  const auto inColumns = [&](ProgramBuilder &b) {
    b.ranks(Mesh{{"tp", 2}});
    b.state("table", {6, 4}, init);
    b.program.states.back().logicalShape = shape;
    b.program.states.back().layout.cuts = {AxisSet(), {0}};
  };
  EXPECT_EQ(made(inColumns), alone);
}

/// bf16 is the upper half of f32, rounded to nearest even.
uint16_t rounded(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}

TEST_F(WeightsTest, ParametersAreTheirMastersRounded) {
  for (bool cut : {false, true}) {
    const Program program = model({2, cut, cut});
    onRanks(program, [&](Executor &executor, Communicator *) {
      ASSERT_TRUE(initializeStates(executor, 1, false));
      const auto *parameter = static_cast<uint16_t *>(executor.data(program.states[0].buffer));
      const auto *master = static_cast<float *>(executor.data(program.states[4].buffer));
      int inexact = 0;
      for (int i = 0; i < 32; ++i) {
        EXPECT_EQ(parameter[i], rounded(master[i])) << i;
        uint32_t word;
        std::memcpy(&word, &master[i], 4);
        inexact += (word & 0xffff) != 0;
      }
      EXPECT_GT(inexact, executor.rank() == 0 ? 20 : 5) << "the master must not be the rounded value";
    });
  }
}

/// What a checkpoint gives a value needs none before.
TEST_F(WeightsTest, LeavesTheStatesThatAreToBeRestored) {
  onRanks(model({1, false, false}), [&](Executor &executor, Communicator *) {
    auto *first = static_cast<uint16_t *>(executor.data(executor.program().states[0].buffer));
    first[3] = 0x4242;
    ASSERT_TRUE(initializeStates(executor, 1, false, {true}));
    EXPECT_EQ(first[3], 0x4242);
    ASSERT_TRUE(initializeStates(executor, 1, false, {false}));
    EXPECT_NE(first[3], 0x4242);
  });
}

TEST_F(WeightsTest, FilesComeBackAsTheyWere) {
  const std::vector<uint8_t> alone = saved({}, 9);
  std::filesystem::rename(at("saved"), at("weights"));
  for (uint32_t world : {1, 2, 4})
    for (bool cut : {false, true})
      EXPECT_EQ(saved({world, cut && world > 1, world > 1}, /*seed=*/2, "weights"), alone)
          << world << " ranks";
  for (bool cut : {false, true})
    EXPECT_EQ(saved({4, cut, true, DType::BF16, true, /*grid=*/true}, /*seed=*/2, "weights"), alone)
        << "on a grid";
}

TEST_F(WeightsTest, AGridHoldsColumnsAndShards) {
  std::vector<float> w(48);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = static_cast<float>(i);
  write("counted", FileDType::F32, w.data());
  const Program program = model({4, false, true, DType::F32, true, /*grid=*/true});
  onRanks(program, [&](Executor &executor, Communicator *) {
    ASSERT_TRUE(loadWeights(executor, at("counted")));
    const uint32_t dp = executor.rank() / 2, tp = executor.rank() % 2;
    const auto *columns = static_cast<float *>(executor.data(program.states[0].buffer));
    const auto *shard = static_cast<float *>(executor.data(program.states[4].buffer));
    for (uint32_t i = 0; i < 24; ++i) { // rows of 4 of 8
      const float expected = static_cast<float>(i / 4 * 8 + tp * 4 + i % 4);
      EXPECT_EQ(columns[i], expected) << "rank " << executor.rank() << ", element " << i;
      if (i / 18 == dp) // shards of 18
        EXPECT_EQ(shard[i % 18], expected) << "rank " << executor.rank() << ", element " << i;
    }
  });
}

TEST_F(WeightsTest, NamesTheElementOfTheWholeTensorThatDoesNotFit) {
  std::vector<float> w(48);
  w[37] = 70000.0f; // row 4, column 5: the second half's
  write("big", FileDType::F32, w.data());
  const Program program = model({4, false, false, DType::F16, true, /*grid=*/true});
  onRanks(program, [&](Executor &executor, Communicator *) {
    Status status = loadWeights(executor, at("big"));
    EXPECT_EQ(static_cast<bool>(status), executor.rank() % 2 == 0) << "rank " << executor.rank();
    if (!status)
      EXPECT_THAT(status.error().message, HasSubstr("'w', element 37: value 70000.000000 is outside"));
  });
}

TEST_F(WeightsTest, ReadsSixteenBitFilesIntoMasters) {
  std::vector<uint16_t> w(48);
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = rounded(0.1f * static_cast<float>(i));
  write("bf16", FileDType::BF16, w.data());
  const Program program = model({1});
  onRanks(program, [&](Executor &executor, Communicator *) {
    ASSERT_TRUE(loadWeights(executor, at("bf16")));
    const auto *parameter = static_cast<uint16_t *>(executor.data(program.states[0].buffer));
    const auto *master = static_cast<float *>(executor.data(program.states[4].buffer));
    for (size_t i = 0; i < w.size(); ++i) {
      EXPECT_EQ(parameter[i], w[i]);
      EXPECT_EQ(master[i], std::bit_cast<float>(uint32_t(w[i]) << 16));
    }
  });
}

TEST_F(WeightsTest, RefusesTypesThatDoNotFit) {
  const std::vector<double> w(48);
  write("bf16", FileDType::BF16, w.data());
  write("f64", FileDType::F64, w.data());
  EXPECT_THAT(reading({1, false, false, DType::F32, false}, "bf16"), HasSubstr("w is BF16, expected F32"));
  EXPECT_THAT(reading({1, false, false, DType::F16, false}, "bf16"), HasSubstr("w is BF16, expected F16"));
  EXPECT_THAT(reading({}, "f64"), HasSubstr("w is F64, expected F32"));
  EXPECT_EQ(reading({}, "bf16"), "read");
}

TEST_F(WeightsTest, RefusesValuesThatSixteenBitsDoNotHold) {
  std::vector<float> w(48);
  w[37] = 70000.0f;
  write("big", FileDType::F32, w.data());
  EXPECT_THAT(reading({1, false, false, DType::F16}, "big"),
              HasSubstr("'w', element 37: value 70000.000000 is outside the largest F16"));
  EXPECT_EQ(reading({1, false, false, DType::BF16}, "big"), "read");
}

TEST_F(WeightsTest, AFailureToWriteIsEveryRanksFailure) {
  onRanks(model({3, true, true}), [&](Executor &executor, Communicator *communicator) {
    Status status = saveWeights(executor, at("none/saved"), communicator);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ExitCode::Io);
    EXPECT_THAT(status.error().message,
                HasSubstr(executor.rank() == 0 ? "none/saved" : "rank 0 could not write"));
  });
}

TEST_F(WeightsTest, CollectsInPieces) {
  ProgramBuilder b;
  b.ranks(2);
  constexpr int64_t kPart = (int64_t(20) << 20) / 4; // 20 MiB of floats, pieces are of 8
  const uint32_t shard = b.keep({kPart});
  b.sharded("big", {2 * kPart - 3}, shard, 1);
  b.segment();
  FakeRanks ranks(2);
  onRanks(
      b.program,
      [&](Executor &executor, Communicator *communicator) {
        auto *data = static_cast<float *>(executor.data(shard));
        for (int64_t i = 0; i < kPart; ++i)
          data[i] = static_cast<float>(executor.rank() * kPart + i);
        EXPECT_TRUE(saveWeights(executor, at("big"), communicator));
      },
      &ranks);
  EXPECT_EQ(ranks.longestMessage(), uint64_t(8) << 20);
  auto file = SafeTensorsFile::open(at("big"));
  ASSERT_TRUE(file);
  const auto *values = reinterpret_cast<const float *>(file->find("big")->data);
  for (int64_t i = 0; i < 2 * kPart - 3; ++i)
    ASSERT_EQ(values[i], static_cast<float>(i + 1));
}

} // namespace
} // namespace ds::rt
