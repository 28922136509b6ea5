//===- WriteSignals.h - A write that fails is an error, not a signal -------------===//
#ifndef DS_LIB_RUNTIME_FILES_WRITESIGNALS_H
#define DS_LIB_RUNTIME_FILES_WRITESIGNALS_H

#include <csignal>
#include <ctime>

namespace ds::rt {

/// While it lives, writing to a pipe without a reader fails with EPIPE in this thread and growing a file past
/// `ulimit -f` with EFBIG, and neither raises anything. A library may not change the process's handlers, so
/// the signals are blocked and, if one came, taken away again.
class BlockWriteSignals {
public:
  BlockWriteSignals() {
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGPIPE);
    sigaddset(&blocked, SIGXFSZ);
    sigset_t pending;
    sigpending(&pending);
    came = blocked;
    for (int signal : {SIGPIPE, SIGXFSZ})
      if (sigismember(&pending, signal) == 1)
        sigdelset(&came, signal);
    pthread_sigmask(SIG_BLOCK, &blocked, &previous);
  }
  ~BlockWriteSignals() {
    const timespec now = {};
    while (sigtimedwait(&came, nullptr, &now) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  }
  BlockWriteSignals(const BlockWriteSignals &) = delete;
  BlockWriteSignals &operator=(const BlockWriteSignals &) = delete;

private:
  sigset_t blocked, previous;
  sigset_t came; ///< to be taken away: those that did not wait before
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FILES_WRITESIGNALS_H
