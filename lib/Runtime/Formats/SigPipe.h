//===- SigPipe.h - A closed reader is an error, not a signal -------------------===//
#ifndef DS_LIB_RUNTIME_FORMATS_SIGPIPE_H
#define DS_LIB_RUNTIME_FORMATS_SIGPIPE_H

#include <csignal>
#include <ctime>

namespace ds::rt {

/// While it lives, writing to a pipe without a reader fails with EPIPE in this thread and raises nothing. A
/// library may not change the process's handlers, so the signal is blocked and, if it came, taken away again.
class BlockSigPipe {
public:
  BlockSigPipe() {
    sigset_t pending;
    sigemptyset(&pipeSet);
    sigaddset(&pipeSet, SIGPIPE);
    sigpending(&pending);
    wasPending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipeSet, &previous);
  }
  ~BlockSigPipe() {
    const timespec now = {};
    if (!wasPending)
      while (sigtimedwait(&pipeSet, nullptr, &now) > 0) {
      }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  }
  BlockSigPipe(const BlockSigPipe &) = delete;
  BlockSigPipe &operator=(const BlockSigPipe &) = delete;

private:
  sigset_t pipeSet, previous;
  bool wasPending;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_SIGPIPE_H
