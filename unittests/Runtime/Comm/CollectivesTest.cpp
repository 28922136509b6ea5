//===- CollectivesTest.cpp - Collectives against what they are defined to give ----===//
//
// Ranks are threads here: each has its own connections, as processes would. The references are written one
// element at a time, in rank order.
//
//===---------------------------------------------------------------------------===//
#include "Ranks.h"

#include <gmock/gmock.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <malloc.h>
#include <new>
#include <random>

/// What is allocated and not yet freed, in all threads.
static std::atomic<int64_t> liveBytes{0};
#ifndef DS_SANITIZED // sanitizers have an allocator of their own, and check that it gets back what it gave
void *operator new(size_t bytes) {
  void *memory = std::malloc(bytes);
  if (!memory)
    throw std::bad_alloc();
  liveBytes += static_cast<int64_t>(::malloc_usable_size(memory));
  return memory;
}
void operator delete(void *memory) noexcept {
  liveBytes -= static_cast<int64_t>(::malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void *memory, size_t) noexcept { operator delete(memory); }
#endif

namespace ds::rt {
namespace {

using test::runRanks;
using test::stagingFor;

uint16_t toBFloat16(float value) {
  uint32_t word;
  std::memcpy(&word, &value, 4);
  return static_cast<uint16_t>((word + 0x7fff + (word >> 16 & 1)) >> 16);
}
float fromBFloat16(uint16_t bits) {
  const uint32_t word = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}

/// What the types have to do with the numbers that are summed.
struct F32 {
  using Stored = float;
  static constexpr DType kDType = DType::F32;
  static float widen(Stored value) { return value; }
  static Stored narrow(float value) { return value; }
};
struct BF16 {
  using Stored = uint16_t;
  static constexpr DType kDType = DType::BF16;
  static float widen(Stored value) { return fromBFloat16(value); }
  static Stored narrow(float value) { return toBFloat16(value); }
};
struct F16 {
  using Stored = _Float16;
  static constexpr DType kDType = DType::F16;
  static float widen(Stored value) { return value; }
  static Stored narrow(float value) { return static_cast<_Float16>(value); }
};
struct F64 {
  using Stored = double;
  static constexpr DType kDType = DType::F64;
  static double widen(Stored value) { return value; }
  static Stored narrow(double value) { return value; }
};
struct I64 {
  using Stored = int64_t;
  static constexpr DType kDType = DType::I64;
  static int64_t widen(Stored value) { return value; }
  static Stored narrow(int64_t value) { return value; }
};

/// Numbers of very different size, so that the order of a sum shows in its bits.
template <class T>
std::vector<typename T::Stored> numbers(uint64_t count, uint32_t rank) {
  std::mt19937 random(1000 + rank);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  std::uniform_int_distribution<int> exponent(-12, 12);
  std::vector<typename T::Stored> values;
  for (uint64_t i = 0; i < count; ++i)
    values.push_back(
        T::narrow(static_cast<decltype(T::widen({}))>(std::ldexp(10 * mantissa(random), exponent(random)))));
  return values;
}

/// Sums of what all ranks have, in the order `step` says: rank 0 first, or last.
template <class T>
std::vector<typename T::Stored> sums(uint64_t count, uint32_t world, bool backwards = false) {
  std::vector<std::vector<typename T::Stored>> all;
  for (uint32_t rank = 0; rank < world; ++rank)
    all.push_back(numbers<T>(count, backwards ? world - 1 - rank : rank));
  std::vector<typename T::Stored> result;
  for (uint64_t i = 0; i < count; ++i) {
    auto sum = T::widen(all[0][i]);
    for (uint32_t rank = 1; rank < world; ++rank)
      sum += T::widen(all[rank][i]);
    result.push_back(T::narrow(sum));
  }
  return result;
}

template <class A, class B>
bool sameBits(const A *a, const B *b, uint64_t count) {
  static_assert(sizeof(A) == sizeof(B));
  return std::memcmp(a, b, count * sizeof(A)) == 0;
}

template <class T>
class Reductions : public testing::Test {};
using Types = testing::Types<F32, BF16, F16, F64, I64>;
TYPED_TEST_SUITE(Reductions, Types);

TYPED_TEST(Reductions, scatter_the_sum_in_rank_order) {
  using Stored = typename TypeParam::Stored;
  // 1 element; less and more than a vector; more than one block of a megabyte.
  for (const uint64_t elements : {1, 37, 1000, 600001})
    for (const uint32_t world : {2, 3, 4}) {
      if (elements > 1000 && (world != 3 || sizeof(Stored) > 4))
        continue; // large ones take their time
      const auto expected = sums<TypeParam>(elements * world, world);
      runRanks(world, [&](RankGroup &group) {
        auto in = numbers<TypeParam>(elements * world, group.rank());
        auto staging = stagingFor(CollectiveKind::ReduceScatter, TypeParam::kDType, elements, world);
        std::vector<Stored> out(elements);
        EXPECT_OK(group.channel(0).reduceScatter(in.data(), out.data(), staging.data(), elements,
                                                 TypeParam::kDType, Reduction::Sum, "g"));
        const Stored *mine = expected.data() + group.rank() * elements;
        EXPECT_TRUE(sameBits(out.data(), mine, elements)) << elements << " on rank " << group.rank();
        Stored *own = in.data() + group.rank() * elements;
        EXPECT_OK(group.channel(1).reduceScatter(in.data(), own, staging.data(), elements, TypeParam::kDType,
                                                 Reduction::Sum, "in place"));
        EXPECT_TRUE(sameBits(own, mine, elements)) << elements << " on rank " << group.rank();
      });
    }
}

TYPED_TEST(Reductions, give_every_rank_the_same_sum_in_rank_order) {
  using Stored = typename TypeParam::Stored;
  for (const uint64_t elements : {1, 2, 5, 1023, 4097, 1200001})
    for (const uint32_t world : {2, 3, 4}) {
      if (elements > 5000 && (world != 2 || sizeof(Stored) > 4))
        continue;
      const auto expected = sums<TypeParam>(elements, world);
      runRanks(world, [&](RankGroup &group) {
        auto in = numbers<TypeParam>(elements, group.rank());
        auto staging = stagingFor(CollectiveKind::AllReduce, TypeParam::kDType, elements, world);
        std::vector<Stored> out(elements);
        EXPECT_OK(group.channel(0).allReduce(in.data(), out.data(), staging.data(), elements,
                                             TypeParam::kDType, Reduction::Sum, "g"));
        EXPECT_TRUE(sameBits(out.data(), expected.data(), elements)) << elements << " of " << world;
        EXPECT_OK(group.channel(0).allReduce(in.data(), in.data(), staging.data(), elements,
                                             TypeParam::kDType, Reduction::Sum, "in place"));
        EXPECT_TRUE(sameBits(in.data(), expected.data(), elements)) << elements << " of " << world;
      });
    }
}

TEST(Reductions, data_of_these_tests_tells_the_order_of_a_sum) {
  EXPECT_NE(sums<F32>(1000, 3), sums<F32>(1000, 3, /*backwards=*/true));
}

TEST(Reductions, take_maximum_and_minimum_and_keep_nan) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const uint32_t nanRank : {0u, 1u, 2u})
    runRanks(3, [&](RankGroup &group) {
      const float r = static_cast<float>(group.rank());
      const float in[3] = {r, -r, group.rank() == nanRank ? kNan : r};
      float out[3];
      std::byte staging[64];
      EXPECT_OK(group.channel(0).allReduce(in, out, staging, 3, DType::F32, Reduction::Max, "max"));
      EXPECT_EQ(out[0], 2);
      EXPECT_EQ(out[1], 0);
      EXPECT_TRUE(std::isnan(out[2]));
      EXPECT_OK(group.channel(0).allReduce(in, out, staging, 3, DType::F32, Reduction::Min, "min"));
      EXPECT_EQ(out[0], 0);
      EXPECT_EQ(out[1], -2);
      EXPECT_TRUE(std::isnan(out[2]));
    });
}

TEST(Reductions, refuse_a_type_that_has_no_sum) {
  runRanks(2, [](RankGroup &group) {
    bool in = true, out;
    std::byte staging[64];
    const Status status =
        group.channel(0).allReduce(&in, &out, staging, 1, DType::Bool, Reduction::Sum, "flag");
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message, testing::HasSubstr("'flag' cannot combine i1 by sum"));
  });
}

TEST(Gathers, put_parts_in_rank_order) {
  for (const uint64_t bytes : {0, 1, 1000, 1000001})
    for (const uint32_t world : {2, 4})
      runRanks(world, [&](RankGroup &group) {
        auto fill = [&](uint32_t rank, uint64_t i) { return static_cast<uint8_t>(rank * 31 + i * 7); };
        std::vector<uint8_t> mine(bytes), out(bytes * world), inPlace(bytes * world);
        for (uint64_t i = 0; i < bytes; ++i)
          mine[i] = inPlace[group.rank() * bytes + i] = fill(group.rank(), i);
        EXPECT_OK(group.channel(0).allGather(mine.data(), out.data(), bytes, "w"));
        EXPECT_OK(
            group.channel(0).allGather(inPlace.data() + group.rank() * bytes, inPlace.data(), bytes, "w"));
        bool right = true;
        for (uint64_t i = 0; i < bytes * world; ++i)
          right &= out[i] == fill(static_cast<uint32_t>(i / bytes), i % bytes);
        EXPECT_TRUE(right);
        EXPECT_EQ(out, inPlace);
      });
}

TEST(Gathers, broadcast_from_each_root) {
  runRanks(3, [](RankGroup &group) {
    for (uint32_t root = 0; root < 3; ++root) {
      std::vector<uint32_t> data(100000, group.rank() == root ? 7 + root : 0);
      EXPECT_OK(group.channel(0).broadcast(data.data(), data.size() * 4, root, "w"));
      EXPECT_THAT(data, testing::Each(7 + root));
    }
  });
}

TEST(Gathers, exchange_parts_between_all) {
  runRanks(3, [](RankGroup &group) {
    uint32_t in[3], out[3];
    for (uint32_t to = 0; to < 3; ++to)
      in[to] = group.rank() * 10 + to;
    EXPECT_OK(group.channel(0).allToAll(in, out, 4, "x"));
    for (uint32_t from = 0; from < 3; ++from)
      EXPECT_EQ(out[from], from * 10 + group.rank());
  });
}

TEST(Messages, arrive_in_order) {
  runRanks(2, [](RankGroup &group) {
    for (uint32_t i = 0; i < 50; ++i) {
      uint32_t value = group.rank() == 0 ? i : 0;
      if (group.rank() == 0)
        EXPECT_OK(group.channel(0).send(&value, 4, 1, "m"));
      else
        EXPECT_OK(group.channel(0).recv(&value, 4, 0, "m"));
      EXPECT_EQ(value, i);
    }
  });
}

TEST(Channels, do_not_wait_for_each_other) {
  // Rank 0 enters channel 0 only after channel 1 is through on both ranks, rank 1 the other way round in
  // time.
  runRanks(2, [](RankGroup &group) {
    std::vector<uint32_t> a(1 << 20, group.rank()), b(1 << 20, group.rank());
    std::thread other([&] { EXPECT_OK(group.channel(0).broadcast(a.data(), a.size() * 4, 0, "a")); });
    if (group.rank() == 0)
      other.join();
    EXPECT_OK(group.channel(1).broadcast(b.data(), b.size() * 4, 1, "b"));
    if (group.rank() == 1)
      other.join();
    EXPECT_EQ(a.back(), 0u);
    EXPECT_EQ(b.back(), 1u);
  });
}

TEST(Channels, work_at_once_from_two_threads) {
  constexpr uint64_t kElements = 300000;
  const auto expected = sums<F32>(kElements, 2);
  runRanks(2, [&](RankGroup &group) {
    auto work = [&](uint32_t channel) {
      for (int i = 0; i < 5; ++i) {
        auto in = numbers<F32>(kElements, group.rank());
        auto staging = stagingFor(CollectiveKind::AllReduce, DType::F32, kElements, 2);
        EXPECT_OK(group.channel(channel).allReduce(in.data(), in.data(), staging.data(), kElements,
                                                   DType::F32, Reduction::Sum, "g"));
        EXPECT_TRUE(sameBits(in.data(), expected.data(), kElements));
      }
    };
    std::thread other(work, 1);
    work(0);
    other.join();
  });
}

TEST(Groups, barrier_waits_for_all) {
  std::atomic<uint32_t> arrived{0};
  runRanks(4, [&](RankGroup &group) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30 * group.rank()));
    ++arrived;
    EXPECT_OK(group.channel(0).barrier("meet"));
    EXPECT_EQ(arrived % 4, 0u);
  });
}

TEST(Groups, exchange_strings_in_rank_order) {
  runRanks(3, [](RankGroup &group) {
    for (int round = 0; round < 3; ++round) {
      const std::string mine(group.rank() * 100000, static_cast<char>('a' + group.rank() + round));
      Result<std::vector<std::string>> all = group.exchange(mine, "hashes");
      ASSERT_TRUE(all) << all.error().message;
      ASSERT_EQ(all->size(), 3u);
      for (uint32_t rank = 0; rank < 3; ++rank)
        EXPECT_EQ((*all)[rank], std::string(rank * 100000, static_cast<char>('a' + rank + round)));
    }
  });
}

TEST(Groups, of_one_rank_need_no_library) {
  RankIdentity alone;
  Result<std::unique_ptr<RankGroup>> group = connect(alone, {});
  ASSERT_TRUE(group);
  const float in[2] = {1, 2};
  float out[2];
  EXPECT_OK((*group)->channel(1).allReduce(in, out, nullptr, 2, DType::F32, Reduction::Sum, "g"));
  EXPECT_EQ(out[1], 2);
  EXPECT_EQ((*(*group)->exchange("x", "y")).at(0), "x");
  EXPECT_FALSE((*group)->channel(0).send(in, 4, 1, "m"));
  EXPECT_OK((*group)->finish());
}

/// Gloo queues its operations; whatever it allocates for one is free again after it.
TEST(Memory, does_not_grow_with_the_number_of_collectives) {
  constexpr uint64_t kElements = 300000;
  std::atomic<int64_t> before{0}, after{0};
  runRanks(2, [&](RankGroup &group) {
    Communicator &channel = group.channel(0);
    std::vector<float> data(2 * kElements), out(2 * kElements);
    auto staging = stagingFor(CollectiveKind::ReduceScatter, DType::F32, kElements, 2);
    auto work = [&](int count) {
      for (int i = 0; i < count; ++i) {
        EXPECT_OK(channel.allGather(data.data(), out.data(), kElements * 4, "gather"));
        EXPECT_OK(channel.reduceScatter(data.data(), out.data(), staging.data(), kElements, DType::F32,
                                        Reduction::Sum, "scatter"));
        EXPECT_OK(channel.allReduce(data.data(), out.data(), staging.data(), 1, DType::F32, Reduction::Sum,
                                    "norm"));
      }
      EXPECT_OK(channel.barrier("settled"));
    };
    work(10);
    if (group.rank() == 0)
      before = liveBytes.load();
    work(100);
    if (group.rank() == 0)
      after = liveBytes.load();
    EXPECT_OK(channel.barrier("read"));
  });
#ifdef DS_SANITIZED
  GTEST_SKIP() << "the collectives ran, but memory is not counted under sanitizers";
#endif
  EXPECT_LT(after - before, 4096) << "300 collectives";
}

} // namespace
} // namespace ds::rt
