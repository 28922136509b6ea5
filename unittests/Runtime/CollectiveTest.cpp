//===- CollectiveTest.cpp - What the table of collectives says ---------------------===//
#include "ds/Runtime/Program/Collective.h"

#include <gtest/gtest.h>

namespace ds::rt {
namespace {

/// Bytes that one of four ranks sends whose input has 12 elements of 4 bytes.
uint64_t sentOfFour(CollectiveKind kind) { return traitsOf(kind).sentBytes(48, 4, 4); }

TEST(Collective, CountsWhatARankSends) {
  EXPECT_EQ(sentOfFour(CollectiveKind::AllGather), 3 * 48u);
  EXPECT_EQ(sentOfFour(CollectiveKind::ReduceScatter), 3 * 12u);
  EXPECT_EQ(sentOfFour(CollectiveKind::AllReduce), 2 * 3 * 12u);
  EXPECT_EQ(sentOfFour(CollectiveKind::Broadcast), 48u);
  EXPECT_EQ(sentOfFour(CollectiveKind::AllToAll), 3 * 12u);
  EXPECT_EQ(sentOfFour(CollectiveKind::Send), 48u);
  EXPECT_EQ(sentOfFour(CollectiveKind::Recv), 0u);
}

TEST(Collective, RoundsPartsOfAnAllReduceUp) {
  EXPECT_EQ(traitsOf(CollectiveKind::AllReduce).sentBytes(5 * 2, 2, 4), 2 * 3 * 2 * 2u);
}

TEST(Collective, AGroupOfOneSendsNothing) {
  for (unsigned kind = 0; kind <= static_cast<unsigned>(kLastCollective); ++kind)
    EXPECT_EQ(traitsOf(static_cast<CollectiveKind>(kind)).sentBytes(48, 4, 1), 0u) << kind;
}

} // namespace
} // namespace ds::rt
