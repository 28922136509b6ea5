//===- SystemCalls.cpp - The system calls that an import may make --------------===//

#include "SystemCalls.h"

#include <seccomp.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace ds::system_calls {

//===----------------------------------------------------------------------===//
// The list
//===----------------------------------------------------------------------===//

/// Calls that are allowed whatever their arguments: none of them makes a new descriptor for something that
/// was not open, or reaches another process.
static constexpr const char *allowedCalls[] = {
    // Memory. Shared mappings are ruled out below, for the limit does not count them.
    "brk", "munmap", "mremap", "mprotect", "madvise", "membarrier",
    // Threads of this process.
    "futex", "set_robust_list", "get_robust_list", "rseq", "sched_yield", "sched_getaffinity",
    "sched_getparam", "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min", "exit",
    "exit_group", "restart_syscall", "nanosleep", "clock_nanosleep",
    // Signal handlers of this process.
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack",
    // What is open.
    "read", "readv", "pread64", "preadv", "write", "writev", "lseek", "fstat", "close", "dup",
    // What time it is, who and where this is; random numbers.
    "clock_gettime", "clock_getres", "gettimeofday", "time", "times", "getrusage", "getcpu", "sysinfo",
    "uname", "getpid", "gettid", "getppid", "getuid", "geteuid", "getgid", "getegid", "getrandom"};

namespace {
/// A call that is not made, and answered by an error that its callers are prepared for.
struct AnsweredCall {
  const char *name;
  int error;
};
} // namespace

static constexpr AnsweredCall answeredCalls[] = {
    {"clone3", ENOSYS},           // The C library goes on with clone, whose flags a filter can see.
    {"ioctl", ENOTTY},            // stdio asks whether a stream is a terminal.
    {"sched_setaffinity", EPERM}, // OpenMP binds threads where OMP_PROC_BIND says so, and goes on without.
    {"get_mempolicy", ENOSYS},    // Probes for memory on several nodes; the answer is that there is one.
    {"mbind", ENOSYS},
    {"set_mempolicy", ENOSYS},
};

/// x86's request for the registers of its matrix unit, which oneDNN makes at its first product.
static constexpr uint64_t xstateRequests[] = {0x1021, 0x1022, 0x1023};

/// That an argument has a value in the bits of `mask`.
static scmp_arg_cmp matches(unsigned argument, uint64_t mask, uint64_t value) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, value};
}
static scmp_arg_cmp equals(unsigned argument, uint64_t value) { return {argument, SCMP_CMP_EQ, value, 0}; }

/// Adds what depends on arguments.
static int addConditions(scmp_filter_ctx filter) {
  int failed = 0;
  auto allow = [&](const char *name, auto... conditions) {
    if (int call = seccomp_syscall_resolve_name(name); call >= 0)
      failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, sizeof...(conditions), conditions...);
  };
  allow("mmap", matches(3, MAP_TYPE, MAP_PRIVATE));
  // A thread, and neither a process nor a new namespace.
  constexpr uint64_t thread = CLONE_THREAD | CLONE_VM | CLONE_SIGHAND;
  constexpr uint64_t never = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                             CLONE_NEWPID | CLONE_NEWNET | CLONE_PTRACE | CLONE_UNTRACED | CLONE_VFORK;
  allow("clone", matches(0, thread | never, thread));
  allow("tgkill", equals(0, static_cast<uint64_t>(getpid()))); // abort()
  allow("prctl", equals(0, PR_SET_NAME));                      // of a thread
  allow("prlimit64", equals(0, 0), equals(2, 0));              // getrlimit
  allow("fcntl", equals(1, 1));                                // F_GETFD
  allow("fcntl", equals(1, 3));                                // F_GETFL
  for (uint64_t request : xstateRequests)
    allow("arch_prctl", equals(0, request));
  return failed;
}

bool installFilter() {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_TRAP);
  if (!filter)
    return false;
  // Calls by another architecture's numbers (int 0x80, x32) are refused like any other, on all threads.
  int failed = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_TRAP);
  failed |= seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
  for (const char *name : allowedCalls)
    if (int call = seccomp_syscall_resolve_name(name); call >= 0)
      failed |= seccomp_rule_add(filter, SCMP_ACT_ALLOW, call, 0);
  for (const AnsweredCall &answered : answeredCalls)
    if (int call = seccomp_syscall_resolve_name(answered.name); call >= 0)
      failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(static_cast<uint32_t>(answered.error)), call, 0);
  failed |= addConditions(filter);
  bool loaded = failed == 0 && seccomp_load(filter) == 0;
  seccomp_release(filter);
  return loaded;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// By number, as the kernel counts them; numbers beyond have no name.
static std::array<std::array<char, 32>, 512> names;

void resolveNames() {
  for (size_t number = 0; number < names.size(); ++number)
    if (char *name = seccomp_syscall_resolve_num_arch(seccomp_arch_native(), static_cast<int>(number))) {
      std::strncpy(names[number].data(), name, names[number].size() - 1);
      std::free(name);
    }
}

const char *nameOf(int number) {
  if (number < 0 || static_cast<size_t>(number) >= names.size() || !names[static_cast<size_t>(number)][0])
    return "unknown";
  return names[static_cast<size_t>(number)].data();
}

/// The first entry that the name begins with counts.
static constexpr std::pair<const char *, const char *> purposes[] = {
    {"openat", "open a file"},
    {"open_by", "open a file"},
    {"open", "open a file"},
    {"creat", "make a file"},
    {"mknod", "make a file"},
    {"memfd", "make a file in memory"},
    {"mkdir", "make a directory"},
    {"unlink", "remove a file"},
    {"rmdir", "remove a directory"},
    {"rename", "rename a file"},
    {"link", "link a file"},
    {"symlink", "link a file"},
    {"chmod", "change a file's rights"},
    {"fchmod", "change a file's rights"},
    {"chown", "change a file's owner"},
    {"fchown", "change a file's owner"},
    {"truncate", "change a file's size"},
    {"ftruncate", "change a file's size"},
    {"stat", "look for a file"},
    {"newfstatat", "look for a file"},
    {"lstat", "look for a file"},
    {"access", "look for a file"},
    {"faccessat", "look for a file"},
    {"readlink", "look for a file"},
    {"getdents", "list a directory"},
    {"getcwd", "ask for the working directory"},
    {"socket", "reach a network or another process"},
    {"connect", "reach a network or another process"},
    {"bind", "reach a network or another process"},
    {"listen", "reach a network or another process"},
    {"accept", "reach a network or another process"},
    {"send", "reach a network or another process"},
    {"recv", "reach a network or another process"},
    {"shm", "share memory with another process"},
    {"mmap", "share memory with another process"},
    {"exec", "start a program"},
    {"fork", "start a process"},
    {"vfork", "start a process"},
    {"clone", "start a process"},
    {"kill", "signal a process"},
    {"tkill", "signal a process"},
    {"tgkill", "signal a process"},
    {"pidfd", "reach another process"},
    {"ptrace", "look into another process"},
    {"process_", "look into another process"},
    {"io_uring", "make system calls in another way"},
    {"mount", "change what is mounted"},
    {"umount", "change what is mounted"},
};

const char *purposeOf(const char *name) {
  for (const auto &[begin, purpose] : purposes)
    if (std::strncmp(name, begin, std::strlen(begin)) == 0)
      return purpose;
  return nullptr;
}

} // namespace ds::system_calls
