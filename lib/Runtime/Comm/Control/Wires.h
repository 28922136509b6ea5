//===- Wires.h - Frames between this rank and the others -------------------------------===//
//
// A frame is a head of two words and a text. Any thread may write one; one thread hears.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_WIRES_H
#define DS_LIB_RUNTIME_COMM_CONTROL_WIRES_H

#include "Socket.h"

#include <memory>
#include <mutex>
#include <poll.h>
#include <vector>

namespace ds::rt {

enum class Frame : uint32_t { Blob = 1, Abort, Finish, Ask, Answer, Stacks };

inline constexpr uint32_t kMaxFrameBytes = 64u << 20;
/// Time for the news of a failure, or a question, to be taken by a peer.
inline constexpr std::chrono::milliseconds kNewsTime{200};

/// What becomes of what is heard.
class Hearer {
public:
  virtual ~Hearer() = default;
  /// Does what a frame says; false if it is none.
  virtual bool take(uint32_t peer, Frame frame, std::string text) = 0;
  /// The connection has ended, or makes no sense.
  virtual void lost(uint32_t peer) = 0;
};

class Wires {
public:
  /// Of `rank`, to all others of `world`; none is connected yet.
  Wires(uint32_t world, uint32_t rank) : rank(rank), wires(world) {}

  /// While ranks connect.
  void add(uint32_t peer, Socket socket);
  bool has(uint32_t peer) const { return wires[peer] != nullptr; }

  /// False where the peer is not connected, or takes nothing until the deadline. From any thread.
  bool write(uint32_t peer, Frame frame, const std::string &text, Deadline deadline);

  /// Waits for frames of any peer, and gives them to `hearer`; true if there is something on `other`.
  bool hear(int other, int limitMs, Hearer &hearer);

private:
  struct Wire {
    Socket socket;
    std::timed_mutex writing; ///< keeps frames whole
    std::string input;        ///< received and not yet understood; of the thread that hears
    bool gone = false;        ///< likewise
  };
  void read(uint32_t peer, Hearer &hearer);
  bool parse(uint32_t peer, Hearer &hearer);

  const uint32_t rank;
  std::vector<std::unique_ptr<Wire>> wires; ///< by rank; null for this one
  std::vector<pollfd> polled;               ///< of the thread that hears
  std::vector<uint32_t> polledRanks;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_WIRES_H
