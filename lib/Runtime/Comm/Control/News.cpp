//===- News.cpp - What the other ranks have said, and whether the job has failed -------===//
#include "News.h"

#include <algorithm>

namespace ds::rt {

News::News(uint32_t world, uint32_t rank, std::function<void(const std::string &)> tell)
    : rank(rank), tell(std::move(tell)), peers(world) {}

//===----------------------------------------------------------------------===//
// The failure of the job
//===----------------------------------------------------------------------===//

void News::fail(const std::string &why) {
  std::vector<std::function<void()>> todo;
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (failing) { // another thread is telling its own reason: what it tells is what the caller will read
      changed.wait(lock, [&] { return failed(); });
      return;
    }
    failing = true;
    reason = why;
  }
  tell(why);
  {
    std::lock_guard<std::mutex> lock(mutex);
    hasFailed.store(true, std::memory_order_release);
    todo.swap(actions);
  }
  changed.notify_all();
  for (const std::function<void()> &action : todo)
    action();
}

std::string News::failure(std::chrono::milliseconds patience) {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait_for(lock, patience, [&] { return failed(); });
  return failed() ? reason : std::string();
}

void News::onFailure(std::function<void()> action) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!hasFailed) {
      actions.push_back(std::move(action));
      return;
    }
  }
  action();
}

//===----------------------------------------------------------------------===//
// What others say
//===----------------------------------------------------------------------===//

void News::addBlob(uint32_t peer, std::string text) {
  std::lock_guard<std::mutex> lock(mutex);
  peers[peer].blobs.push_back(std::move(text));
  changed.notify_all();
}

bool News::awaitBlob(uint32_t peer, Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex);
  return changed.wait_until(lock, deadline, [&] { return failed() || !peers[peer].blobs.empty(); });
}

std::string News::takeBlob(uint32_t peer) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string blob = std::move(peers[peer].blobs.front());
  peers[peer].blobs.pop_front();
  return blob;
}

std::vector<uint32_t> News::withoutBlob() {
  std::lock_guard<std::mutex> lock(mutex);
  std::vector<uint32_t> ranks;
  for (uint32_t peer = 0; peer < peers.size(); ++peer)
    if (peer != rank && peers[peer].blobs.empty())
      ranks.push_back(peer);
  return ranks;
}

void News::setFinished(uint32_t peer) {
  std::lock_guard<std::mutex> lock(mutex);
  peers[peer].finished = true;
  changed.notify_all();
}

bool News::hasFinished(uint32_t peer) {
  std::lock_guard<std::mutex> lock(mutex);
  return peers[peer].finished;
}

std::vector<uint32_t> News::awaitFinish(Deadline deadline) {
  std::unique_lock<std::mutex> lock(mutex);
  std::vector<uint32_t> missing;
  const auto collect = [&] {
    missing.clear();
    for (uint32_t peer = 0; peer < peers.size(); ++peer)
      if (peer != rank && !peers[peer].finished)
        missing.push_back(peer);
    return missing.empty();
  };
  changed.wait_until(lock, deadline, [&] { return failed() || collect(); });
  return missing;
}

void News::setAnswer(uint32_t peer, std::chrono::milliseconds left) {
  std::lock_guard<std::mutex> lock(mutex);
  peers[peer].left = left;
  changed.notify_all();
}

std::optional<std::chrono::milliseconds> News::answerOf(uint32_t peer) {
  std::lock_guard<std::mutex> lock(mutex);
  return peers[peer].left;
}

void News::forgetAnswers(const std::vector<uint32_t> &ranks) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const uint32_t peer : ranks)
    peers[peer].left.reset();
}

void News::awaitAnswers(const std::vector<uint32_t> &ranks, std::chrono::milliseconds limit) {
  std::unique_lock<std::mutex> lock(mutex);
  const auto answered = [&](uint32_t peer) { return peers[peer].left.has_value(); };
  changed.wait_for(lock, limit,
                   [&] { return failed() || std::all_of(ranks.begin(), ranks.end(), answered); });
}

} // namespace ds::rt
