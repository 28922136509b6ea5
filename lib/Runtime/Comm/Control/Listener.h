//===- Listener.h - The thread that hears the other ranks -------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_LISTENER_H
#define DS_LIB_RUNTIME_COMM_CONTROL_LISTENER_H

#include "WaitWatch.h"

#include <thread>

namespace ds::rt {

class Listener {
public:
  /// What it does with what it hears and looks after; all outlive it.
  struct Duties {
    uint32_t rank;
    Wires &wires;
    News &news;
    WaitWatch &waits;
    Hearer &hearer;
    std::optional<std::chrono::milliseconds> failureLimit; ///< see Control::Options
  };

  explicit Listener(const Duties &duties);

  /// Starts the thread. Fails with ExitCode::Io where the system allows none.
  Status start();
  /// Ends it, if it was started.
  void stop();

private:
  void run();
  void endIfTooLate();

  const Duties duties;
  Deadline failedSince{}; ///< of the thread, once the job has failed
  Socket wake;            ///< eventfd that ends the thread
  std::thread thread;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_LISTENER_H
