//===- Sandbox.cpp - Takes away what an import does not need --------------------===//

#include "Sandbox.h"
#include "Report.h"

#include <seccomp.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define DS_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#define DS_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#endif
#ifndef DS_ADDRESS_SANITIZER
#define DS_ADDRESS_SANITIZER 0
#endif

namespace ds {

/// What the signal handler needs: nothing else is safe to reach from there.
static int handlerReportFd = -1;

static constexpr const char *forbiddenCalls[] = {
    // Files are neither made, changed nor removed.
    "creat", "truncate", "unlink", "unlinkat", "rename", "renameat", "renameat2", "link", "linkat", "symlink",
    "symlinkat", "mkdir", "mkdirat", "rmdir", "mknod", "mknodat", "chmod", "fchmod", "fchmodat", "chown",
    "fchown", "fchownat", "lchown", "setxattr", "lsetxattr", "fsetxattr", "removexattr", "utime", "utimes",
    "utimensat", "futimesat", "mount", "umount2", "pivot_root", "chroot", "open_by_handle_at", "fallocate",
    // Nothing is reached over a network or another process.
    "socket", "socketpair", "connect", "bind", "listen", "accept", "accept4", "ptrace", "process_vm_readv",
    "process_vm_writev", "kill", "tkill", "pidfd_open", "pidfd_getfd", "pidfd_send_signal", "shmget",
    "msgget", "semget", "mq_open",
    // No program is started, and the filter cannot be walked around.
    "execve", "execveat", "fork", "vfork", "unshare", "setns", "bpf", "userfaultfd", "perf_event_open",
    "keyctl", "add_key", "request_key", "init_module", "finit_module", "delete_module", "kexec_load",
    "kexec_file_load", "reboot", "swapon", "swapoff", "acct", "setuid", "setgid", "setreuid", "setregid",
    "setresuid", "setresgid"};

/// Newer forms that the C library replaces by older ones when they are missing.
static constexpr const char *missingCalls[] = {"clone3", "openat2", "io_uring_setup"};

/// Appends `text` to a buffer of fixed size: nothing may be allocated in a signal handler.
static size_t append(char *buffer, size_t at, size_t limit, const char *text) {
  while (*text && at < limit)
    buffer[at++] = *text++;
  return at;
}

/// Reports the forbidden call and ends the process.
static void onForbiddenCall(int, siginfo_t *info, void *) {
  const char *name = nullptr;
  for (const char *known : forbiddenCalls)
    if (seccomp_syscall_resolve_name(known) == info->si_syscall)
      name = known;
  char message[200], record[300], digits[8];
  size_t length = append(message, 0, sizeof message, "the archive's code tried to ");
  length = append(message, length, sizeof message,
                  name ? "call " : "open a file for writing or to start a process");
  length = append(message, length, sizeof message, name ? name : "");
  length = append(message, length, sizeof message, " while it was loaded");
  int count = 0;
  for (size_t rest = length; rest > 0; rest /= 10)
    digits[count++] = static_cast<char>('0' + rest % 10);
  size_t end = 0;
  if (handlerReportFd >= 0) { // A record, as Report.cpp writes it: exit code 3 and the message.
    end = append(record, 0, sizeof record, "code 1\n3error ");
    while (count > 0)
      record[end++] = digits[--count];
    record[end++] = '\n';
  }
  std::memcpy(record + end, message, length);
  end += length;
  if (handlerReportFd < 0)
    record[end++] = '\n';
  ssize_t ignored = write(handlerReportFd < 0 ? STDERR_FILENO : handlerReportFd, record, end);
  (void)ignored;
  _exit(3);
}

static bool installHandler() {
  struct sigaction action = {};
  action.sa_sigaction = onForbiddenCall;
  action.sa_flags = SA_SIGINFO;
  return sigaction(SIGSYS, &action, nullptr) == 0;
}

/// Forbids open() and openat() with any flag that writes or makes a file.
static int forbidWriting(scmp_filter_ctx filter) {
  int failed = 0;
  for (unsigned flag : {O_WRONLY, O_RDWR, O_CREAT, O_TRUNC, O_APPEND}) {
    failed |=
        seccomp_rule_add(filter, SCMP_ACT_TRAP, SCMP_SYS(openat), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, flag, flag));
    failed |=
        seccomp_rule_add(filter, SCMP_ACT_TRAP, SCMP_SYS(open), 1, SCMP_A1(SCMP_CMP_MASKED_EQ, flag, flag));
  }
  return failed;
}

/// True when the filter is in force.
static bool filterCalls() {
  scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  if (!filter)
    return false;
  int failed = forbidWriting(filter);
  for (const char *name : forbiddenCalls)
    if (int call = seccomp_syscall_resolve_name(name); call != __NR_SCMP_ERROR && call >= 0)
      failed |= seccomp_rule_add(filter, SCMP_ACT_TRAP, call, 0);
  for (const char *name : missingCalls)
    if (int call = seccomp_syscall_resolve_name(name); call != __NR_SCMP_ERROR && call >= 0)
      failed |= seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), call, 0);
  // Threads may be started, processes may not.
  failed |= seccomp_rule_add(filter, SCMP_ACT_TRAP, SCMP_SYS(clone), 1,
                             SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  bool loaded = failed == 0 && seccomp_load(filter) == 0;
  seccomp_release(filter);
  return loaded;
}

static bool limit(__rlimit_resource resource, uint64_t value) {
  struct rlimit current = {};
  if (getrlimit(resource, &current) != 0)
    return false;
  rlim_t bound = std::min<rlim_t>(value, current.rlim_max);
  struct rlimit wanted = {bound, bound};
  return setrlimit(resource, &wanted) == 0;
}

std::string enterSandbox(const SandboxLimits &limits, int reportFd) {
  handlerReportFd = reportFd;
  std::string missing;
  auto need = [&](bool done, const char *what) {
    if (!done)
      missing += (missing.empty() ? "" : ", ") + std::string(what);
  };
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#if !DS_ADDRESS_SANITIZER // It reserves terabytes.
  need(limit(RLIMIT_AS, limits.addressSpaceBytes), "the memory limit");
#endif
  need(limit(RLIMIT_FSIZE, limits.fileBytes), "the file size limit");
  need(limit(RLIMIT_CPU, limits.cpuSeconds), "the time limit");
  need(limit(RLIMIT_NOFILE, 64), "the limit of open files");
  need(limit(RLIMIT_CORE, 0), "the core dump limit");
  bool alone = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  need(alone && installHandler() && filterCalls(), "the system call filter (seccomp)");
  return missing;
}

} // namespace ds
