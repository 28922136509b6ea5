//===- Control.cpp - Connections that carry news, not data -----------------------===//
//
// A frame is a head of two words and a text.
//
//===---------------------------------------------------------------------------===//
#include "Control.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ds::rt {
namespace {

constexpr uint32_t kMaxFrameBytes = 64u << 20;
/// Time for a peer to answer.
constexpr std::chrono::milliseconds kAnswerTime(500);

struct Head {
  uint32_t frame, bytes;
};

} // namespace

Control::Control(std::vector<Card> cards, uint32_t rank, Options options)
    : cards(std::move(cards)), rank(rank), options(std::move(options)), peers(this->cards.size()),
      wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Control::~Control() { stop(); }

void Control::stop() {
  if (!listener.joinable())
    return;
  const uint64_t one = 1;
  while (::write(wake.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  listener.join();
}

std::string Control::name(const std::vector<uint32_t> &ranks) const {
  return spellRanks(ranks,
                    [&](uint32_t peer) { return fmt::format("rank {} on host {}", peer, cards[peer].host); });
}

Error Control::error(const char *what) {
  return Error{ExitCode::Peer, fmt::format("{}; noticed in exchange '{}'", failure(), what), ""};
}

bool Control::write(uint32_t peer, Frame frame, const std::string &text, Deadline deadline) {
  if (!peers[peer])
    return false; // not connected yet
  Peer &to = *peers[peer];
  const std::unique_lock<std::timed_mutex> lock(to.writing, deadline);
  if (!lock)
    return false;
  const Head head{static_cast<uint32_t>(frame), static_cast<uint32_t>(text.size())};
  std::string bytes(reinterpret_cast<const char *>(&head), sizeof head);
  bytes += text;
  return sendAll(to.socket, bytes.data(), bytes.size(), deadline);
}

Status Control::sendToAll(Frame frame, const std::string &text, const char *what, Deadline deadline) {
  for (uint32_t peer = 0; peer < world(); ++peer)
    if (peer != rank && !failed() && !write(peer, frame, text, deadline) && failure(kNewsTime).empty())
      fail(fmt::format("{} took no message of exchange '{}'", name({peer}), what));
  return failed() ? Status(error(what)) : Status();
}

Result<std::vector<std::string>> Control::exchange(const std::string &mine, const char *what,
                                                   std::chrono::milliseconds timeout) {
  if (mine.size() > kMaxFrameBytes)
    return Error{ExitCode::Internal, fmt::format("exchange '{}' of {} bytes", what, mine.size()), ""};
  const Deadline deadline = Clock::now() + timeout;
  if (Status status = sendToAll(Frame::Blob, mine, what, deadline); !status)
    return status.error();
  std::vector<std::string> all(world());
  all[rank] = mine;
  bool told = false;
  std::vector<uint32_t> missing;
  for (uint32_t peer = 0; peer < world(); ++peer) {
    if (peer == rank)
      continue;
    const bool arrived = awaitBlob(peer, what, timeout, deadline, told);
    if (failed())
      break;
    if (!arrived) {
      missing.push_back(peer);
      continue;
    }
    std::lock_guard<std::mutex> lock(mutex);
    Peer &from = *peers[peer];
    all[peer] = std::move(from.blobs.front());
    from.blobs.pop_front();
  }
  if (!missing.empty()) {
    ask(missing);
    showStacks(missing);
    fail(fmt::format("{} did not take part in exchange '{}' within {}", name(missing), what,
                     spellSeconds(timeout)));
  }
  if (!failure().empty())
    return error(what);
  return all;
}

Status Control::finish(std::chrono::milliseconds timeout) {
  const Deadline deadline = Clock::now() + timeout;
  if (Status status = sendToAll(Frame::Finish, "", "end of the run", deadline); !status)
    return status;
  std::vector<uint32_t> missing;
  {
    std::unique_lock<std::mutex> lock(mutex);
    auto collect = [&] {
      missing.clear();
      for (uint32_t peer = 0; peer < world(); ++peer)
        if (peer != rank && !peers[peer]->finished)
          missing.push_back(peer);
      return missing.empty();
    };
    changed.wait_until(lock, deadline, [&] { return failed() || collect(); });
  }
  if (!missing.empty()) {
    ask(missing);
    showStacks(missing);
    fail(
        fmt::format("{} did not come to the end of the run within {}", name(missing), spellSeconds(timeout)));
  }
  return failure().empty() ? Status() : Status(error("end of the run"));
}

void Control::fail(const std::string &why) {
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
  for (uint32_t peer = 0; peer < world(); ++peer)
    if (peer != rank)
      write(peer, Frame::Abort, why, Clock::now() + kNewsTime);
  {
    std::lock_guard<std::mutex> lock(mutex);
    hasFailed.store(true, std::memory_order_release);
    todo.swap(actions);
  }
  changed.notify_all();
  for (const std::function<void()> &action : todo)
    action();
}

std::string Control::failure(std::chrono::milliseconds patience) {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait_for(lock, patience, [&] { return failed(); });
  return failed() ? reason : std::string();
}

void Control::ask(const std::vector<uint32_t> &ranks) {
  std::unique_lock<std::mutex> lock(mutex);
  for (const uint32_t peer : ranks)
    peers[peer]->left.reset();
  lock.unlock();
  for (const uint32_t peer : ranks)
    write(peer, Frame::Ask, "", Clock::now() + kNewsTime);
  lock.lock();
  auto answered = [&](uint32_t peer) { return peers[peer]->left.has_value(); };
  changed.wait_for(lock, kAnswerTime,
                   [&] { return failed() || std::all_of(ranks.begin(), ranks.end(), answered); });
}

std::vector<uint32_t> Control::hearOut(const std::vector<uint32_t> &missing,
                                       std::chrono::milliseconds patience) {
  ask(missing);
  std::unique_lock<std::mutex> lock(mutex);
  std::vector<uint32_t> others;
  std::chrono::milliseconds longest(0);
  for (const uint32_t peer : missing) {
    const auto left = peers[peer]->left.value_or(std::chrono::milliseconds(0));
    longest = std::max(longest, left);
    if (left.count() == 0)
      others.push_back(peer);
  }
  if (!others.empty())
    return others;
  changed.wait_for(lock, longest + patience, [&] { return failed(); });
  return missing;
}

void Control::onFailure(std::function<void()> action) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (!hasFailed) {
      actions.push_back(std::move(action));
      return;
    }
  }
  action();
}

/// Waits for news of any peer, and reads them; true if there is something on `other`.
bool Control::hear(int other, int limitMs) {
  polled.assign(1, {other, POLLIN, 0});
  polledRanks.assign(1, rank);
  for (uint32_t peer = 0; peer < world(); ++peer)
    if (peers[peer] && !peers[peer]->gone) {
      polled.push_back({peers[peer]->socket.get(), POLLIN, 0});
      polledRanks.push_back(peer);
    }
  if (::poll(polled.data(), polled.size(), limitMs) <= 0)
    return false;
  for (size_t i = 1; i < polled.size(); ++i)
    if (polled[i].revents)
      read(polledRanks[i]);
  return polled[0].revents != 0;
}

void Control::read(uint32_t rank) {
  Peer &peer = *peers[rank];
  char bytes[65536];
  const ssize_t received = ::recv(peer.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (received > 0)
    peer.input.append(bytes, static_cast<size_t>(received));
  else if (received < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  if (received <= 0 || !parse(rank)) {
    peer.gone = true;
    lost(rank);
  }
}

/// Takes the whole frames out of the input; false if it makes no sense.
bool Control::parse(uint32_t rank) {
  Peer &peer = *peers[rank];
  while (peer.input.size() >= sizeof(Head)) {
    Head head;
    std::memcpy(&head, peer.input.data(), sizeof head);
    if (head.bytes > kMaxFrameBytes)
      return false;
    if (peer.input.size() < sizeof head + head.bytes)
      return true;
    std::string text = peer.input.substr(sizeof head, head.bytes);
    peer.input.erase(0, sizeof head + head.bytes);
    if (!take(rank, static_cast<Frame>(head.frame), std::move(text)))
      return false;
  }
  return true;
}

/// Does what a frame says; false if it is none.
bool Control::take(uint32_t rank, Frame frame, std::string text) {
  if (frame == Frame::Abort) {
    fail(text);
    return true;
  }
  if (frame == Frame::Stacks) {
    writeStacks();
    return true;
  }
  if (frame == Frame::Ask) {
    write(rank, Frame::Answer, std::to_string(timeLeft().count()), Clock::now() + kNewsTime);
    return true;
  }
  std::lock_guard<std::mutex> lock(mutex);
  Peer &peer = *peers[rank];
  if (frame == Frame::Blob)
    peer.blobs.push_back(std::move(text));
  else if (frame == Frame::Finish)
    peer.finished = true;
  else if (frame == Frame::Answer)
    peer.left = std::chrono::milliseconds(std::strtoll(text.c_str(), nullptr, 10));
  else
    return false;
  changed.notify_all();
  return true;
}

/// The end of a connection is a failure, unless the peer has said that it is done.
void Control::lost(uint32_t rank) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (peers[rank]->finished)
      return;
  }
  fail(fmt::format("{} is gone: it ended or was killed", name({rank})));
}

} // namespace ds::rt
