//===- FewThreads.c - A system that starts few threads ------------------------------===//
//
// Preloaded into a tool: after DS_FEW_THREADS threads pthread_create fails, as it does at the limit of a user
// or of a control group. The user's limit itself does not bind root.
//
//===---------------------------------------------------------------------------===//
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument) {
  static atomic_long started;
  const char *most = getenv("DS_FEW_THREADS");
  if (most && atomic_fetch_add(&started, 1) >= atol(most))
    return EAGAIN;
  int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) =
      (int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))dlsym(RTLD_NEXT,
                                                                                     "pthread_create");
  return create(thread, attributes, body, argument);
}
