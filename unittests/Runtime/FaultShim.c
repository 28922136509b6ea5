// FaultShim.c - lets one system call on files of a directory fail, once, in a real process.
//
// Preloaded into ds-run. DS_FAULT_DIR names the directory, DS_FAULT is KIND:K: the K-th call, from 1, that
// makes, changes, syncs, closes, renames or removes something below it ends with that fault: kill (the process
// is killed before the call), enospc, eio, eios (the calls behind it too), short (of a write: half of it), or
// lost (of a write: none of it, though it says that all is written).
// DS_FAULT_RANK: only in this rank.
// When the process ends well, the number of calls is written to DS_FAULT_COUNT if that is a file name.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_FILES 4096
static atomic_bool watched[MAX_FILES]; // descriptors of files below the directory, open for writing
static atomic_ulong calls;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int is_below(const char *path) {
  const char *directory = getenv("DS_FAULT_DIR");
  return directory && path && strstr(path, directory) == path;
}

#define SHORT (-1)
#define LOST (-2)

// The errno of this call's failure, 0 for none, SHORT or LOST for a write.
static int strike(void) {
  const char *fault = getenv("DS_FAULT"), *rank = getenv("DS_FAULT_RANK"), *own = getenv("DS_RANK");
  if (rank && strcmp(rank, own ? own : "0") != 0)
    return 0;
  const unsigned long number = atomic_fetch_add(&calls, 1) + 1;
  const char *when = fault ? strchr(fault, ':') : NULL;
  const unsigned long wanted = when ? strtoul(when + 1, NULL, 10) : 0;
  const int forEver = fault && strncmp(fault, "eios", 4) == 0;
  if (!when || (number != wanted && !(forEver && number > wanted)))
    return 0;
  if (strncmp(fault, "kill", 4) == 0)
    kill(getpid(), SIGKILL);
  if (strncmp(fault, "lost", 4) == 0)
    return LOST;
  return strncmp(fault, "enospc", 6) == 0 ? ENOSPC : strncmp(fault, "short", 5) == 0 ? SHORT : EIO;
}

static int is_watched(int file) { return file >= 0 && file < MAX_FILES && watched[file]; }

#define FAIL_IF(condition)                                                                                   \
  do {                                                                                                       \
    const int failure = (condition) ? strike() : 0;                                                          \
    if (failure > 0) {                                                                                       \
      errno = failure;                                                                                       \
      return -1;                                                                                             \
    }                                                                                                        \
  } while (0)

static int open_file(__typeof__(&open) real, const char *path, int flags, mode_t mode) {
  const int counts = is_below(path) && (flags & (O_WRONLY | O_RDWR | O_DIRECTORY));
  FAIL_IF(counts);
  const int file = real(path, flags, mode);
  if (file >= 0 && file < MAX_FILES)
    watched[file] = counts;
  return file;
}
int open(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return open_file(REAL(open), path, flags, mode);
}
int open64(const char *path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);
  va_end(arguments);
  return open_file(REAL(open64), path, flags, mode);
}

#define WRITE(name, offset_type)                                                                             \
  ssize_t name(int file, const void *data, size_t bytes, offset_type offset) {                               \
    const int failure = is_watched(file) ? strike() : 0;                                                     \
    if (failure > 0) {                                                                                       \
      errno = failure;                                                                                       \
      return -1;                                                                                             \
    }                                                                                                        \
    if (failure == LOST)                                                                                     \
      return (ssize_t)bytes;                                                                                 \
    return REAL(name)(file, data, failure == SHORT ? (bytes + 1) / 2 : bytes, offset);                       \
  }
WRITE(pwrite, off_t)
WRITE(pwrite64, off64_t)

#define ON_FILE(name, parameters, ...)                                                                       \
  int name parameters {                                                                                      \
    FAIL_IF(is_watched(file));                                                                               \
    return REAL(name)(__VA_ARGS__);                                                                          \
  }
ON_FILE(fsync, (int file), file)
ON_FILE(fallocate, (int file, int mode, off_t offset, off_t bytes), file, mode, offset, bytes)
ON_FILE(fallocate64, (int file, int mode, off64_t offset, off64_t bytes), file, mode, offset, bytes)

int close(int file) {
  const int failure = is_watched(file) ? strike() : 0;
  if (file >= 0 && file < MAX_FILES)
    watched[file] = 0;
  const int result = REAL(close)(file); // gone whatever is said
  if (failure <= 0)
    return result;
  errno = failure;
  return -1;
}

#define ON_PATH(name, parameters, path, ...)                                                                 \
  int name parameters {                                                                                      \
    FAIL_IF(is_below(path));                                                                                 \
    return REAL(name)(__VA_ARGS__);                                                                          \
  }
ON_PATH(mkdir, (const char *path, mode_t mode), path, path, mode)
ON_PATH(unlink, (const char *path), path, path)
ON_PATH(rmdir, (const char *path), path, path)
ON_PATH(rename, (const char *from, const char *to), to, from, to)
ON_PATH(renameat2, (int a, const char *from, int b, const char *to, unsigned flags), to, a, from, b, to, flags)

__attribute__((destructor)) static void report(void) {
  const char *path = getenv("DS_FAULT_COUNT");
  if (!path || !atomic_load(&calls))
    return;
  FILE *file = fopen(path, "w");
  if (file) {
    fprintf(file, "%lu\n", atomic_load(&calls));
    fclose(file);
  }
}
