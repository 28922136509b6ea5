//===- SandboxTest.cpp - In the sandbox only what is needed works ---------------===//
#include "SandboxChild.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ds;

namespace {

const char path[] = "/etc/passwd";

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

TEST(SandboxTest, HoldsForThreadsThatRanBefore) {
  int report = memfd_create("report", MFD_CLOEXEC);
  pid_t pid = fork();
  if (pid == 0) {
    std::atomic<bool> isConfined = false;
    std::thread worker([&] {
      while (!isConfined)
        std::this_thread::yield();
      _exit(syscall(SYS_open, path, O_RDONLY) >= 0 ? 50 : 51);
    });
    bool done = enterSandbox(roomy(), report).empty();
    isConfined = true;
    worker.join();
    _exit(done ? 52 : unconfined);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  close(report);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
}

TEST(SandboxTest, StartsThreadsAndRefusesWhatTheyDo) {
  Outcome outcome = confined([] {
    int sum = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&sum, i] { __atomic_fetch_add(&sum, i, __ATOMIC_SEQ_CST); });
    for (std::thread &thread : threads)
      thread.join();
    return sum == 6 ? 0 : 1;
  });
  EXPECT_EQ(outcome.exitCode, 0) << outcome.message();
  expectRefused(confined([] {
                  std::thread([] { syscall(SYS_open, path, O_RDONLY); }).join();
                  return 0;
                }),
                "open a file, '/etc/passwd'");
}

//===----------------------------------------------------------------------===//
// What works
//===----------------------------------------------------------------------===//

/// Number of the first step that failed, or 0.
int useMemory() {
  void *memory = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return 1;
  memory = mremap(memory, 1 << 20, 2 << 20, MREMAP_MAYMOVE);
  if (memory == MAP_FAILED)
    return 2;
  if (mprotect(memory, 4096, PROT_READ) != 0 || madvise(memory, 1 << 20, MADV_DONTNEED) != 0)
    return 3;
  return munmap(memory, 2 << 20) == 0 && sbrk(4096) != reinterpret_cast<void *>(-1) ? 0 : 4;
}

int useFiles(int fd, int report) {
  char buffer[16];
  struct stat info = {};
  if (pread(fd, buffer, 4, 2) != 4 || lseek(fd, 0, SEEK_SET) != 0 || read(fd, buffer, 4) != 4)
    return 10;
  if (fstat(fd, &info) != 0 || info.st_size != 8)
    return 11;
  if (fcntl(fd, F_GETFL) < 0 || dup(fd) < 0 || close(fd) != 0)
    return 12;
  import_report::writeNotice(report, "written");
  return 0;
}

int useRest() {
  int word = 0;
  if (syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0) != 0)
    return 20;
  char random[8];
  timespec now = {};
  if (getentropy(random, sizeof random) != 0 || syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now) != 0)
    return 21;
  cpu_set_t processors;
  if (sched_getaffinity(0, sizeof processors, &processors) != 0 || prctl(PR_SET_NAME, "worker") != 0)
    return 22;
  struct rlimit limit = {};
  return getrlimit(RLIMIT_CPU, &limit) == 0 ? 0 : 23;
}

TEST(SandboxTest, LetsWorkWhatAnImportNeeds) {
  int fd = memfd_create("model", MFD_CLOEXEC), report = memfd_create("report", MFD_CLOEXEC);
  ASSERT_EQ(write(fd, "12345678", 8), 8);
  Outcome outcome = confined([&] {
    int failed = useMemory();
    failed = failed ? failed : useFiles(fd, report);
    return failed ? failed : useRest();
  });
  EXPECT_EQ(outcome.exitCode, 0) << outcome.message();
  char text[64] = {};
  EXPECT_GT(pread(report, text, sizeof text - 1, 0), 0);
  EXPECT_STREQ(text, "notice 7\nwritten");
  close(fd);
  close(report);
}

TEST(SandboxTest, AnswersWhatLibrariesProbe) {
  Outcome outcome = confined([] {
    if (open("/sys/devices/system/cpu/online", O_RDONLY) >= 0 || errno != ENOENT)
      return 1;
    if (open("/proc/self/environ", O_RDONLY) >= 0 || errno != ENOENT)
      return 2;
    if (dlopen("libnowhere-to-be-found.so", RTLD_NOW))
      return 5;
    if (syscall(SYS_clone3, nullptr, 0) >= 0 || errno != ENOSYS)
      return 3;
    return isatty(0) == 0 ? 0 : 4;
  });
  EXPECT_EQ(outcome.exitCode, 0) << outcome.message();
}

TEST(SandboxTest, AbortsAsEverywhere) {
  Outcome outcome = confined([]() -> int { abort(); });
  EXPECT_EQ(outcome.signal, SIGABRT) << outcome.message();
}

//===----------------------------------------------------------------------===//
// Limits
//===----------------------------------------------------------------------===//

TEST(SandboxTest, BoundsMemoryAndSaysSo) {
#ifdef DS_SANITIZED
  GTEST_SKIP() << "a sanitizer's own memory is without bounds";
#endif
  Outcome outcome = confined([] {
    for (size_t i = 0; i < 64; ++i) { // 128 MiB, where 64 are allowed.
      volatile char *memory = new char[2 << 20];
      memory[0] = 1;
    }
    return 0;
  });
  expectRefused(outcome, "needs more memory than its limit of 64 MiB (of the test)");
  EXPECT_NE(outcome.report.error->hint.find("--import-memory"), std::string::npos);
}

TEST(SandboxTest, BoundsTimeAndSaysSo) {
  ImportLimits limits = roomy();
  limits.processorSeconds = 1;
  Outcome outcome = confined(
      []() -> int {
        for (std::atomic<unsigned> turns = 0;;)
          ++turns;
      },
      limits);
  expectRefused(outcome, "longer than its limit of 1 seconds of processor time (of the test)");
  EXPECT_NE(outcome.report.error->hint.find("--import-seconds"), std::string::npos);
}

TEST(SandboxTest, BoundsFilesAndSaysSo) {
  int file = memfd_create("weights", MFD_CLOEXEC);
  Outcome outcome = confined([&] {
    std::string block(1 << 20, 'w');
    for (int i = 0; i < 3; ++i)
      if (write(file, block.data(), block.size()) < 0)
        return 1;
    return 0;
  });
  expectRefused(outcome, "larger than the limit of 1 MiB for one file");
  close(file);
}

TEST(SandboxTest, ClosesWhatOthersLeftOpen) {
  int kept = memfd_create("kept", 0), left = memfd_create("left", 0);
  int report = memfd_create("report", MFD_CLOEXEC);
  pid_t pid = fork();
  if (pid == 0) {
    closeOthers({report, -1, kept});
    _exit(fcntl(left, F_GETFD) < 0 && fcntl(kept, F_GETFD) >= 0 && fcntl(report, F_GETFD) >= 0 &&
                  fcntl(STDERR_FILENO, F_GETFD) >= 0
              ? 0
              : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  for (int fd : {kept, left, report})
    close(fd);
}

} // namespace
