// PlainSystemShim.c - a system that has less, and whose clock jumps.
//
// Preloaded into ds-run: files have no direct access (O_DIRECT) and cannot be made without a name
// (O_TMPFILE), renames neither exchange two files nor refuse to replace one, as on many network file systems;
// and each look at the time of day is an hour before the one that came before it, or two behind it, in turn.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int open_file(__typeof__(&open) real, const char *path, int flags, mode_t mode) {
  errno = flags & O_DIRECT ? EINVAL : EOPNOTSUPP;
  return (flags & O_DIRECT) || (flags & O_TMPFILE) == O_TMPFILE ? -1 : real(path, flags, mode);
}

#define OPEN(name)                                                                                           \
  int name(const char *path, int flags, ...) {                                                               \
    va_list arguments;                                                                                       \
    va_start(arguments, flags);                                                                              \
    const mode_t mode = va_arg(arguments, mode_t);                                                           \
    va_end(arguments);                                                                                       \
    return open_file(REAL(name), path, flags, mode);                                                         \
  }
OPEN(open)
OPEN(open64)

#define FCNTL(name)                                                                                          \
  int name(int file, int command, ...) {                                                                     \
    va_list arguments;                                                                                       \
    va_start(arguments, command);                                                                            \
    void *argument = va_arg(arguments, void *);                                                              \
    va_end(arguments);                                                                                       \
    errno = EINVAL;                                                                                          \
    return command == F_SETFL && ((long)argument & O_DIRECT) ? -1 : REAL(name)(file, command, argument);     \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

int renameat2(int a, const char *from, int b, const char *to, unsigned flags) {
  errno = EINVAL;
  return flags ? -1 : REAL(renameat2)(a, from, b, to, flags);
}

static time_t jump(void) {
  static atomic_long looks;
  const long number = atomic_fetch_add(&looks, 1);
  return number % 2 ? -3600 * number : 7200 * number;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  const int failed = REAL(clock_gettime)(clock, now);
  if (!failed && clock == CLOCK_REALTIME)
    now->tv_sec += jump();
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  const int failed = REAL(gettimeofday)(now, zone);
  now->tv_sec += failed ? 0 : jump();
  return failed;
}

time_t time(time_t *now) {
  const time_t seconds = REAL(time)(NULL) + jump();
  if (now)
    *now = seconds;
  return seconds;
}
