//===- NcclTest.cpp - NCCL as far as it goes without a GPU ------------------------------------------===//
//
// The real library where it is installed: it gives a unique id and refuses, cleanly, to connect a rank that
// has no GPU.
//
//===---------------------------------------------------------------------------===//
#include "Cuda/Nccl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace ds::rt {
namespace {

using testing::HasSubstr;

TEST(Nccl, ConnectsAsFarAsAGpu) {
  const Result<const cuda::Nccl *> nccl = cuda::Nccl::open();
  if (!nccl)
    GTEST_SKIP() << nccl.error().message;
  int version = 0;
  EXPECT_EQ((*nccl)->getVersion(&version), ncclSuccess);
  EXPECT_GE(version, cuda::kNeededNccl);
  ncclUniqueId id{};
  ASSERT_EQ((*nccl)->getUniqueId(&id), ncclSuccess);
  Result<std::unique_ptr<RankGroup>> group = connect(RankIdentity(), ConnectOptions());
  ASSERT_TRUE(group);
  auto ranks = cuda::NcclRanks::connect(**group, std::chrono::seconds(30), {});
  if (ranks)
    GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(ranks.error().code, ExitCode::Device);
  EXPECT_THAT(ranks.error().message, HasSubstr("NCCL, connecting the ranks: "));
  EXPECT_THAT(ranks.error().hint, HasSubstr("NCCL_DEBUG"));
}

TEST(Nccl, SplitsByAxes) {
  const Mesh mesh = {{"dp", 2}, {"tp", 3}};
  for (uint32_t rank = 0; rank < 6; ++rank) {
    EXPECT_EQ(cuda::colorOf(mesh, {0}, rank), static_cast<int>(rank % 3));     // {0, 3}, {1, 4}, {2, 5}
    EXPECT_EQ(cuda::colorOf(mesh, {1}, rank), static_cast<int>(rank / 3 * 3)); // {0, 1, 2}, {3, 4, 5}
    EXPECT_EQ(cuda::colorOf(mesh, {0, 1}, rank), 0);
  }
}

} // namespace
} // namespace ds::rt
