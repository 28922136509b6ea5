//===- ProcessorsTest.cpp - What launchers and containers leave a rank -----------===//

#include "ds/Support/Processors.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace {

using ds::processorsLeft;

TEST(ProcessorsLeftTest, AloneTheMaskCounts) {
  EXPECT_EQ(processorsLeft({.mask = 8, .parentMask = 8}), 8u);
  EXPECT_EQ(processorsLeft({.mask = 2, .parentMask = 64}), 2u); // taskset
}

TEST(ProcessorsLeftTest, RanksThatALauncherBindsHaveTheirMask) {
  EXPECT_EQ(processorsLeft({.mask = 4, .parentMask = 16, .localRanks = 4}), 4u);
  EXPECT_EQ(processorsLeft({.mask = 1, .parentMask = 16, .localRanks = 4}), 1u); // --bind-to core
}

TEST(ProcessorsLeftTest, RanksThatNobodyBindsShare) {
  EXPECT_EQ(processorsLeft({.mask = 16, .parentMask = 16, .localRanks = 4}), 4u);
  EXPECT_EQ(processorsLeft({.mask = 2, .parentMask = 2, .localRanks = 4}), 1u);  // --oversubscribe
  EXPECT_EQ(processorsLeft({.mask = 1, .parentMask = 2, .localRanks = 4}), 1u);  // two ranks on each
  EXPECT_EQ(processorsLeft({.mask = 8, .parentMask = 16, .localRanks = 4}), 4u); // two ranks on each socket
}

TEST(ProcessorsLeftTest, AQuotaIsSharedAsWell) {
  EXPECT_EQ(processorsLeft({.mask = 64, .parentMask = 64, .quota = 2}), 2u);
  EXPECT_EQ(processorsLeft({.mask = 64, .parentMask = 64, .quota = 1.5}), 2u); // ceil
  EXPECT_EQ(processorsLeft({.mask = 64, .parentMask = 64, .quota = 0.25}), 1u);
  EXPECT_EQ(processorsLeft({.mask = 64, .parentMask = 64, .localRanks = 4, .quota = 8}), 2u);
  EXPECT_EQ(processorsLeft({.mask = 4, .parentMask = 4, .quota = 100}), 4u); // more than there are
}

/// A made-up file tree in place of /proc and /sys.
class ProcessorQuotaTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "ds-processors-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  void write(const std::string &path, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  std::string root;
};

TEST_F(ProcessorQuotaTest, WithoutGroupsThereIsNone) { EXPECT_EQ(ds::processorQuota(root), 0); }

TEST_F(ProcessorQuotaTest, Version2TheTightestGroupCounts) {
  write("/proc/self/mountinfo", "31 22 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup rw\n");
  write("/proc/self/cgroup", "0::/user/job\n");
  write("/sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
  EXPECT_EQ(ds::processorQuota(root), 0);
  write("/sys/fs/cgroup/user/cpu.max", "150000 100000\n"); // 150000 / 100000 = 1.5
  write("/sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(ds::processorQuota(root), 1.5);
}

TEST_F(ProcessorQuotaTest, Version1HasTwoFiles) {
  write("/proc/self/mountinfo", "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
  write("/proc/self/cgroup", "4:cpu,cpuacct:/job\n");
  write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
  write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n"); // 3
  write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(ds::processorQuota(root), 3);
}

/// Variables of launchers, unset around each test.
class LocalRanksTest : public ::testing::Test {
protected:
  static constexpr const char *kNames[] = {"DS_ONE_HOST", "DS_WORLD", "OMPI_COMM_WORLD_LOCAL_SIZE",
                                           "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"};
  void SetUp() override { TearDown(); }
  void TearDown() override {
    for (const char *name : kNames)
      ::unsetenv(name);
  }
};

TEST_F(LocalRanksTest, TheLauncherTells) {
  EXPECT_EQ(ds::localRanks(), 1u);
  ::setenv("SLURM_STEP_TASKS_PER_NODE", "3(x2)", 1);
  EXPECT_EQ(ds::localRanks(), 3u);
  ::setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
  EXPECT_EQ(ds::localRanks(), 4u);
  ::setenv("DS_ONE_HOST", "1", 1);
  ::setenv("DS_WORLD", "5", 1);
  EXPECT_EQ(ds::localRanks(), 5u);
}

TEST_F(LocalRanksTest, RanksOfSeveralMachinesAreNotCounted) {
  ::setenv("DS_WORLD", "16", 1); // by hand: nobody knows how many are here
  EXPECT_EQ(ds::localRanks(), 1u);
}

TEST_F(LocalRanksTest, NonsenseIsNobody) {
  ::setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "many", 1);
  EXPECT_EQ(ds::localRanks(), 1u);
  ::setenv("SLURM_STEP_TASKS_PER_NODE", "2,1", 1); // which of the two machines this is it does not say
  EXPECT_EQ(ds::localRanks(), 1u);
}

} // namespace
