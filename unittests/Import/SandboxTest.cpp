//===- SandboxTest.cpp - In the sandbox only what is needed works ---------------===//
//
// Each case forks, enters the sandbox and makes one system call. The filter cannot be taken back, so that the
// child ends by _exit() and tells by its exit code and report what happened.
//
//===---------------------------------------------------------------------------===//

#include "Guard/Sandbox.h"
#include "Guard/Report.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <functional>
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

/// What became of a child.
struct Outcome {
  int exitCode = -1, signal = 0;
  import_report::Report report;
  std::string message() const { return report.error ? report.error->message : ""; }
};

constexpr int unconfined = 99;

/// Limits that no test meets unasked.
ImportLimits roomy() {
  ImportLimits limits;
  limits.memoryBytes = uint64_t(64) << 20;
  limits.processorSeconds = 20;
  limits.fileBytes = 1 << 20;
  limits.memorySource = limits.timeSource = "of the test";
  return limits;
}

/// Runs `body` in a child, in the sandbox; its result is the exit code.
Outcome confined(const std::function<int()> &body, const ImportLimits &limits = roomy()) {
  int report = memfd_create("report", MFD_CLOEXEC);
  pid_t pid = fork();
  if (pid == 0)
    _exit(enterSandbox(limits, report).empty() ? body() : unconfined);
  int status = 0;
  waitpid(pid, &status, 0);
  Outcome outcome;
  outcome.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  std::string text(4096, '\0');
  ssize_t got = pread(report, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  outcome.report = import_report::parse(text);
  close(report);
  return outcome;
}

void expectRefused(const Outcome &outcome, const std::string &part) {
  EXPECT_EQ(outcome.exitCode, 3);
  ASSERT_TRUE(outcome.report.error) << "no report, signal " << outcome.signal;
  EXPECT_EQ(outcome.report.error->code, ExitCode::Invalid);
  EXPECT_NE(outcome.message().find(part), std::string::npos) << outcome.message();
  EXPECT_FALSE(outcome.report.error->hint.empty());
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

struct Refused {
  const char *name;
  long number;
  std::vector<long> arguments; ///< what they point at is there in the child
  const char *message;
};

const char path[] = "/etc/passwd";
long numbers[16]; ///< written to by calls that would succeed

long at(const void *pointer) { return reinterpret_cast<long>(pointer); }

const std::vector<Refused> &refusedCalls() {
  static const std::vector<Refused> calls = {
      {"open", SYS_open, {at(path), O_RDONLY}, "open a file, '/etc/passwd' (system call open "},
      {"openToWrite", SYS_open, {at("/tmp/made"), O_WRONLY | O_CREAT, 0600}, "open a file, '/tmp/made'"},
      {"openat",
       SYS_openat,
       {AT_FDCWD, at(path), O_RDONLY},
       "open a file, '/etc/passwd' (system call openat "},
      {"openatRelative", SYS_openat, {AT_FDCWD, at("some.file"), O_RDONLY}, "open a file, 'some.file'"},
      {"openatBadPointer", SYS_openat, {AT_FDCWD, 16, O_RDONLY}, "open a file (system call openat "},
      {"openat2", SYS_openat2, {AT_FDCWD, at(path), at(numbers), 24}, "open a file, '/etc/passwd'"},
      {"open_by_handle_at",
       SYS_open_by_handle_at,
       {AT_FDCWD, at(numbers), 0},
       "open a file (system call open_by"},
      {"creat", SYS_creat, {at("/tmp/made"), 0600}, "make a file"},
      {"memfd_create", SYS_memfd_create, {at("m"), 0}, "make a file in memory"},
      {"unlink", SYS_unlink, {at("/tmp/none")}, "remove a file"},
      {"rename", SYS_rename, {at("/tmp/none"), at("/tmp/other")}, "rename a file"},
      {"mkdir", SYS_mkdir, {at("/tmp/none/none")}, "make a directory"},
      {"truncate", SYS_truncate, {at("/tmp/none"), 0}, "change a file's size"},
      {"stat", SYS_stat, {at(path), at(numbers)}, "look for a file"},
      {"newfstatat", SYS_newfstatat, {AT_FDCWD, at(path), at(numbers), 0}, "look for a file"},
      {"newfstatatEmptyFlag",
       SYS_newfstatat,
       {AT_FDCWD, at(path), at(numbers), AT_EMPTY_PATH},
       "look for a file"},
      {"readlink", SYS_readlink, {at("/proc/self/exe"), at(numbers), 8}, "look for a file"},
      {"getcwd", SYS_getcwd, {at(numbers), 8}, "working directory"},
      {"io_uring_setup", SYS_io_uring_setup, {1, at(numbers)}, "make system calls in another way"},
      {"execve", SYS_execve, {at("/bin/true"), 0, 0}, "start a program, '/bin/true'"},
      {"execveat", SYS_execveat, {AT_FDCWD, at("/bin/true"), 0, 0, 0}, "start a program"},
      {"fork", SYS_fork, {}, "start a process"},
      {"vfork", SYS_vfork, {}, "start a process"},
      {"cloneProcess", SYS_clone, {SIGCHLD, 0, 0, 0, 0}, "start a process"},
      {"cloneNamespace", SYS_clone, {CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0}, "start a process"},
      {"unshare", SYS_unshare, {CLONE_NEWUSER}, "(system call unshare "},
      {"socket", SYS_socket, {AF_UNIX, SOCK_STREAM, 0}, "reach a network"},
      {"socketpair", SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, at(numbers)}, "reach a network"},
      {"connect", SYS_connect, {0, at(numbers), 16}, "reach a network"},
      {"pipe2", SYS_pipe2, {at(numbers), 0}, "(system call pipe2 "},
      {"ptrace", SYS_ptrace, {0, 0, 0, 0}, "look into another process"},
      {"process_vm_readv", SYS_process_vm_readv, {1, 0, 0, 0, 0, 0}, "look into another process"},
      {"killParent", SYS_kill, {1, 0}, "signal a process"},
      {"tgkillOther", SYS_tgkill, {1, 1, 0}, "signal a process"},
      {"pidfd_open", SYS_pidfd_open, {1, 0}, "reach another process"},
      {"prctlDumpable", SYS_prctl, {PR_SET_DUMPABLE, 1}, "(system call prctl "},
      {"seccomp", SYS_seccomp, {0, 0, 0}, "(system call seccomp "},
      {"raiseLimit", SYS_prlimit64, {0, RLIMIT_CPU, at(numbers), 0}, "(system call prlimit64 "},
      {"limitOfOther", SYS_prlimit64, {1, RLIMIT_CPU, 0, at(numbers)}, "(system call prlimit64 "},
      {"sharedMemory", SYS_mmap, {0, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0}, "share memory"},
      {"shmget", SYS_shmget, {0, 4096, 0}, "share memory"},
      {"setuid", SYS_setuid, {0}, "(system call setuid "},
      {"mount", SYS_mount, {at("a"), at("b"), at("c"), 0, 0}, "change what is mounted"},
      {"bpf", SYS_bpf, {0, 0, 0}, "(system call bpf "},
      {"keyctl", SYS_keyctl, {0, 0}, "(system call keyctl "},
      {"fcntlDup", SYS_fcntl, {0, F_DUPFD, 0}, "(system call fcntl "},
      {"beyondTheTable", 511, {}, "(system call unknown 511)"},
  };
  return calls;
}

class RefusedCall : public testing::TestWithParam<Refused> {};

TEST_P(RefusedCall, EndsTheProcessAndIsNamed) {
  Refused call = GetParam();
  call.arguments.resize(6);
  const auto &a = call.arguments;
  expectRefused(confined([&] {
                  syscall(call.number, a[0], a[1], a[2], a[3], a[4], a[5]);
                  return 0;
                }),
                call.message);
}

INSTANTIATE_TEST_SUITE_P(SandboxTest, RefusedCall, testing::ValuesIn(refusedCalls()),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(SandboxTest, TellsPathsThatCrossPages) {
  auto *pages = static_cast<char *>(
      mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const std::string text = "/etc/of/two/pages";
  char *crossing = pages + 4096 - 5;
  text.copy(crossing, text.size());
  expectRefused(confined([&] { return open(crossing, O_RDONLY) < 0 ? 1 : 0; }), "'/etc/of/two/pages'");
  munmap(pages + 4096, 4096);
  expectRefused(confined([&] { return open(crossing, O_RDONLY) < 0 ? 1 : 0; }), "'/etc/'");
  munmap(pages, 4096);
}

#if defined(__x86_64__)
/// getpid as a 32-bit program asks for it.
int foreignGetpid() {
  int result = 20;
  asm volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
  return result;
}

TEST(SandboxTest, RefusesCallsOf32BitPrograms) {
  pid_t pid = fork();
  if (pid == 0)
    _exit(foreignGetpid() > 0 ? 0 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    GTEST_SKIP() << "this kernel runs no 32-bit programs";
  expectRefused(confined([] { return foreignGetpid() > 0 ? 0 : 1; }), "another architecture's number, 20");
}

TEST(SandboxTest, RefusesCallsByX32Numbers) {
  Outcome outcome = confined([] { return syscall(SYS_getpid | 0x40000000) > 0 ? 0 : 1; });
  expectRefused(outcome, "another architecture's number, 39");
}
#endif

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
