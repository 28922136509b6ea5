//===- SandboxCallsTest.cpp - System calls that the sandbox refuses ------------------===//
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

struct Refused {
  const char *name;
  long number;
  std::vector<long> arguments; ///< what they point at is there in the child
  const char *message;
};

const char path[] = "/etc/passwd";
long numbers[16]; ///< written to by calls that would succeed

long at(const void *pointer) { return reinterpret_cast<long>(pointer); }

const std::vector<Refused> refusedCalls = {
    {"open", SYS_open, {at(path), O_RDONLY}, "open a file, '/etc/passwd' (system call open "},
    {"openToWrite", SYS_open, {at("/tmp/made"), O_WRONLY | O_CREAT, 0600}, "open a file, '/tmp/made'"},
    {"openat", SYS_openat, {AT_FDCWD, at(path), O_RDONLY}, "open a file, '/etc/passwd' (system call openat "},
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

INSTANTIATE_TEST_SUITE_P(SandboxTest, RefusedCall, testing::ValuesIn(refusedCalls),
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

} // namespace
