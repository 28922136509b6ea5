//===- HostMemoryTest.cpp - Limits as containers set them -----------------------===//

#include "ds/Support/HostMemory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/// A made-up file tree in place of /proc and /sys.
class HostMemoryTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "ds-host-memory-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root = pattern;
    write("/proc/meminfo", "MemFree: 5 kB\nMemTotal:       1000 kB\n");
  }
  void TearDown() override { std::filesystem::remove_all(root); }
  void write(const std::string &path, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  void mountV2(const std::string &top = "/") {
    write("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda rw\n"
                                  "31 22 0:28 " +
                                      top + " /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup rw\n");
  }
  void mountV1(const std::string &top = "/") {
    write("/proc/self/mountinfo", "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
                                  "35 31 0:32 " +
                                      top + " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  }
  void expect(int64_t bytes, const std::string &source) {
    ds::Result<ds::HostMemory> memory = ds::hostMemory(root);
    ASSERT_TRUE(memory) << memory.error().message;
    EXPECT_EQ(memory->bytes, bytes);
    EXPECT_EQ(memory->source, source);
  }
  std::string root;
};

TEST_F(HostMemoryTest, WithoutGroupsPhysicalMemoryCounts) { expect(1024000, "physical memory"); }

TEST_F(HostMemoryTest, Version2LimitOfTheOwnGroup) {
  mountV2();
  write("/proc/self/cgroup", "0::/user/job\n");
  write("/sys/fs/cgroup/user/job/memory.max", "4096\n");
  write("/sys/fs/cgroup/user/memory.max", "max\n");
  expect(4096, "cgroup limit /sys/fs/cgroup/user/job/memory.max");
}

TEST_F(HostMemoryTest, AGroupAboveCanBeTighter) {
  mountV2();
  write("/proc/self/cgroup", "0::/user/job\n");
  write("/sys/fs/cgroup/user/job/memory.max", "8192\n");
  write("/sys/fs/cgroup/user/memory.max", "4096\n");
  expect(4096, "cgroup limit /sys/fs/cgroup/user/memory.max");
}

TEST_F(HostMemoryTest, InsideAContainerTheRootHasTheLimit) {
  mountV2();
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "2048\n");
  expect(2048, "cgroup limit /sys/fs/cgroup/memory.max");
}

TEST_F(HostMemoryTest, Version1LimitBelowItsMount) {
  mountV1();
  write("/proc/self/cgroup", "9:name=systemd:/x\n4:memory:/process/1\n0::/y\n");
  write("/sys/fs/cgroup/memory/process/1/memory.limit_in_bytes", "12288\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); // version 1 for "none"
  expect(12288, "cgroup limit /sys/fs/cgroup/memory/process/1/memory.limit_in_bytes");
}

TEST_F(HostMemoryTest, Version1MountOfAPartOfTheTree) {
  // Docker without a group namespace: the group has its path on the host, the mount shows it as its root.
  mountV1("/docker/abc");
  write("/proc/self/cgroup", "4:memory:/docker/abc\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "16384\n");
  expect(16384, "cgroup limit /sys/fs/cgroup/memory/memory.limit_in_bytes");
}

TEST_F(HostMemoryTest, ALimitAbovePhysicalMemoryIsNone) {
  mountV2();
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "99999999999\n");
  expect(1024000, "physical memory");
}

TEST_F(HostMemoryTest, NonsenseIsNoLimit) {
  mountV2();
  write("/proc/self/cgroup", "0::/a\nnonsense\n");
  write("/sys/fs/cgroup/a/memory.max", "12 monkeys\n");
  write("/sys/fs/cgroup/memory.max", "-5\n");
  expect(1024000, "physical memory");
}

TEST_F(HostMemoryTest, WithoutMeminfoItFails) {
  for (const char *text :
       {"", "MemTotal: many kB\n", "MemTotal: 9223372036854775807 kB\n", "MemTotal: 5 pages\n"}) {
    write("/proc/meminfo", text);
    ds::Result<ds::HostMemory> memory = ds::hostMemory(root);
    ASSERT_FALSE(memory) << text;
    EXPECT_EQ(memory.error().code, ds::ExitCode::Io);
  }
}

/// What a run may still take, by the same files in both versions; a page that the kernel can drop is free.
TEST_F(HostMemoryTest, WhatIsLeftOfAGroup) {
  write("/proc/meminfo", "MemTotal:       1000 kB\nMemAvailable:    800 kB\n");
  EXPECT_EQ(ds::availableMemory(root).bytes, 800 * 1024);
  EXPECT_EQ(ds::availableMemory(root).source, "physical memory");
  mountV2();
  write("/proc/self/cgroup", "0::/user/job\n");
  write("/sys/fs/cgroup/user/job/memory.max", "max\n");
  write("/sys/fs/cgroup/user/memory.max", "500000\n");
  write("/sys/fs/cgroup/user/memory.current", "450000\n");
  EXPECT_EQ(ds::availableMemory(root).bytes, 50000);
  EXPECT_EQ(ds::availableMemory(root).source, "cgroup limit /sys/fs/cgroup/user/memory.max");
  write("/sys/fs/cgroup/user/memory.stat", "anon 100000\ninactive_file_x 7\ninactive_file 300000\n");
  EXPECT_EQ(ds::availableMemory(root).bytes, 350000);      // 500000 - (450000 - 300000)
  write("/sys/fs/cgroup/user/memory.current", "900000\n"); // a limit that was lowered
  EXPECT_EQ(ds::availableMemory(root).bytes, 0);
}

TEST_F(HostMemoryTest, WhatIsLeftOfAGroupOfVersion1) {
  write("/proc/meminfo", "MemTotal:       1000 kB\nMemAvailable:    800 kB\n");
  mountV1("/docker/abc");
  write("/proc/self/cgroup", "4:memory:/docker/abc\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "409600\n");
  EXPECT_EQ(ds::availableMemory(root).bytes, 409600); // nothing says how much is used
  write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "309600\n");
  write("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 9600\n");
  EXPECT_EQ(ds::availableMemory(root).bytes, 109600); // 409600 - (309600 - 9600)
  EXPECT_EQ(ds::availableMemory(root).source, "cgroup limit /sys/fs/cgroup/memory/memory.limit_in_bytes");
}

TEST(HostMemory, ThisMachineHasMemory) {
  ds::Result<ds::HostMemory> memory = ds::hostMemory();
  ASSERT_TRUE(memory);
  EXPECT_GT(memory->bytes, int64_t(16) << 20);
  EXPECT_LE(memory->bytes, int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE));
  EXPECT_LE(ds::availableMemory().bytes, int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE));
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DS_ADDRESS_SANITIZER 1 // takes terabytes of address space
#endif
#endif

#ifndef DS_ADDRESS_SANITIZER
TEST(HostMemory, UlimitCounts) {
  pid_t child = fork(); // the limit cannot be raised again
  if (child == 0) {
    rlimit limit = {rlim_t(1) << 30, rlim_t(1) << 30};
    setrlimit(RLIMIT_AS, &limit);
    ds::Result<ds::HostMemory> memory = ds::hostMemory();
    _exit(memory && memory->bytes == int64_t(1) << 30 && memory->source == "address space" ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif
