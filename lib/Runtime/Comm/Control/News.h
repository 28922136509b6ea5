//===- News.h - What the other ranks have said, and whether the job has failed ---------===//
//
// The thread that hears writes it down, others wait for it. Nobody waits longer than until the job has
// failed: the first reason wins and is passed on to all before anything is done about it, so that whoever
// hears of a second failure that follows from the first has heard of the first before.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_COMM_CONTROL_NEWS_H
#define DS_LIB_RUNTIME_COMM_CONTROL_NEWS_H

#include "Socket.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace ds::rt {

class News {
public:
  /// `tell` passes a failure on to all ranks.
  News(uint32_t world, uint32_t rank, std::function<void(const std::string &)> tell);

  /// Records that the job has failed, unless it has already: tells all ranks, then calls what `onFailure` was
  /// given. From any thread; `failure` has a reason when it returns.
  void fail(const std::string &reason);
  bool failed() const { return hasFailed.load(std::memory_order_acquire); }
  /// The reason; waits up to `patience` for it. Empty if there is none.
  std::string failure(std::chrono::milliseconds patience = std::chrono::milliseconds(0));
  /// What is done about a failure: at once if the job has failed.
  void onFailure(std::function<void()> action);

  void addBlob(uint32_t peer, std::string text);
  /// Whether a blob of the peer is there, or the job has failed, before the deadline.
  bool awaitBlob(uint32_t peer, Deadline deadline);
  /// Takes the oldest, which is there.
  std::string takeBlob(uint32_t peer);
  /// The other ranks of which no blob is there.
  std::vector<uint32_t> withoutBlob();

  void setFinished(uint32_t peer);
  bool hasFinished(uint32_t peer);
  /// The other ranks that have not finished when the deadline has passed or the job fails.
  std::vector<uint32_t> awaitFinish(Deadline deadline);

  /// What a peer has answered: how long it waits yet.
  void setAnswer(uint32_t peer, std::chrono::milliseconds left);
  std::optional<std::chrono::milliseconds> answerOf(uint32_t peer);
  void forgetAnswers(const std::vector<uint32_t> &ranks);
  void awaitAnswers(const std::vector<uint32_t> &ranks, std::chrono::milliseconds limit);

private:
  struct Peer {
    std::deque<std::string> blobs;
    bool finished = false;
    std::optional<std::chrono::milliseconds> left; ///< its answer
  };

  const uint32_t rank;
  const std::function<void(const std::string &)> tell;
  std::mutex mutex; ///< guards what follows
  std::condition_variable changed;
  std::vector<Peer> peers; ///< by rank
  std::string reason;
  bool failing = false; ///< a reason is set
  std::vector<std::function<void()>> actions;
  std::atomic<bool> hasFailed{false}; ///< set once all ranks have been told
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_COMM_CONTROL_NEWS_H
