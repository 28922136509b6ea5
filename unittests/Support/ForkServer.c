// ForkServer.c - starts a tool once, and forks it for each command line that it is asked for.
//
// Preloaded into a tool by test/fuzz/served.py. Loading the libraries of a tool takes longer than most of what fuzzers ask
// it: here they are loaded before main, and each command line is answered by a fork of what is loaded, so that a death
// or a limit is its own.
//
// DS_FORK_SERVER is "IN,OUT", two descriptors. A request on IN is the length of the rest, as uint32_t, and strings that
// each end with a 0: the files for standard input, output and error, the limit of memory in bytes (0: none), the number
// of variables of the environment, these as NAME=VALUE, and the command line. The answer on OUT is the process, and,
// once it has ended, its status as waitpid has it, both as int32_t.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

typedef int Main(int argc, char **argv, char **env);

static Main *tool;

static _Noreturn void fail(const char *what) {
  fprintf(stderr, "fork server: %s: %s\n", what, strerror(errno));
  _exit(125);
}

// Reads `size` bytes; ends the server where whoever asks has ended.
static void take(int from, void *to, size_t size) {
  for (size_t done = 0; done < size;) {
    const ssize_t got = read(from, (char *)to + done, size - done);
    if (got == 0)
      _exit(0);
    if (got < 0 && errno != EINTR)
      fail("read");
    done += got > 0 ? (size_t)got : 0;
  }
}

static void answer(int to, int32_t number) {
  if (write(to, &number, sizeof number) != sizeof number)
    fail("write");
}

static void put(const char *path, int descriptor, int flags) {
  const int file = open(path, flags, 0666);
  if (file < 0 || dup2(file, descriptor) < 0)
    fail(path);
  if (file != descriptor)
    close(file);
}

// The string at `*at`, which then is the next one.
static char *next(char **at) {
  char *text = *at;
  *at += strlen(text) + 1;
  return text;
}

static void limit(int what, rlim_t most) {
  const struct rlimit to = {most, most};
  if (setrlimit((__typeof__(RLIMIT_AS))what, &to) != 0)
    fail("setrlimit");
}

// What a fork does with the request in [at, end): it is the tool, started with that command line.
static int become(char *at, const char *end) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setsid();
  put(next(&at), STDIN_FILENO, O_RDONLY);
  put(next(&at), STDOUT_FILENO, O_WRONLY | O_CREAT | O_TRUNC);
  put(next(&at), STDERR_FILENO, O_WRONLY | O_CREAT | O_TRUNC);
  const rlim_t memory = strtoull(next(&at), NULL, 10);
  for (unsigned long count = strtoul(next(&at), NULL, 10); count > 0; --count)
    putenv(next(&at));
  int argc = 0;
  static char *argv[256];
  while (at < end && argc < 255)
    argv[argc++] = next(&at);
  limit(RLIMIT_CORE, 0);
  if (memory > 0) {
    limit(RLIMIT_AS, memory);
    limit(RLIMIT_FSIZE, 64 << 20);
  }
  return tool(argc, argv, environ);
}

static int serve(int argc, char **argv, char **env) {
  const char *descriptors = getenv("DS_FORK_SERVER");
  int in, out;
  if (!descriptors || sscanf(descriptors, "%d,%d", &in, &out) != 2)
    return tool(argc, argv, env);
  // What a fork starts, as ranks, is no server.
  unsetenv("DS_FORK_SERVER");
  unsetenv("LD_PRELOAD");
  unsetenv("LD_BIND_NOW");
  for (;;) {
    uint32_t size;
    take(in, &size, sizeof size);
    char *request = malloc(size);
    take(in, request, size);
    const pid_t child = fork();
    if (child < 0)
      fail("fork");
    if (child == 0) {
      close(in);
      close(out);
      return become(request, request + size);
    }
    free(request);
    answer(out, child);
    int status;
    while (waitpid(child, &status, 0) != child)
      if (errno != EINTR)
        fail("waitpid");
    answer(out, status);
  }
}

int __libc_start_main(Main *main, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*rtld_fini)(void),
                      void *stack_end) {
  typedef int Start(Main *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
  Start *start = (Start *)dlsym(RTLD_NEXT, "__libc_start_main");
  tool = main;
  return start(serve, argc, argv, init, fini, rtld_fini, stack_end);
}
