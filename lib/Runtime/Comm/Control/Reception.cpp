//===- Reception.cpp - Who calls, before anybody waits for them ---------------------===//
#include "Reception.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <thread>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;

/// Time for a caller to say who it is. Where there are many more ranks than processors, a rank may have to
/// wait for its turn between calling and saying so.
constexpr milliseconds kHelloTime(2000), kHelloTimePerRank(20);
/// How many may be silent at a time besides the ranks of the job. Of more, one that has been for so long
/// makes room.
constexpr size_t kMostStrangers = 64;
constexpr milliseconds kLeastHelloTime(250);
/// How long a wait looks at nothing else, and one where the system has no descriptor left.
constexpr milliseconds kLookAgain(20), kNoneLeft(10);

Hello makeHello(const std::vector<Card> &cards, uint32_t caller, uint32_t called, CallPurpose purpose) {
  Hello hello{};
  std::memcpy(hello.secretOfCaller, cards[caller].secret.data(), sizeof hello.secretOfCaller);
  std::memcpy(hello.secretOfCalled, cards[called].secret.data(), sizeof hello.secretOfCalled);
  hello.caller = caller;
  hello.purpose = purpose;
  return hello;
}

void watch(const Socket &events, int socket) {
  epoll_event event{};
  event.events = EPOLLIN;
  ::epoll_ctl(events.get(), EPOLL_CTL_ADD, socket, &event); // without it, it is looked at now and then
}

} // namespace

Result<Socket> callRank(const std::vector<Card> &cards, uint32_t caller, uint32_t called, CallPurpose purpose,
                        Deadline deadline) {
  Result<Socket> socket = connectTo(cards[called].address, cards[called].port, deadline);
  const Hello hello = makeHello(cards, caller, called, purpose);
  if (socket && !sendAll(*socket, &hello, sizeof hello, deadline))
    return Error{ExitCode::Peer, std::string("it hangs up: ") + std::strerror(errno), ""};
  return socket;
}

Reception::Reception(std::vector<Card> cards, uint32_t rank, Socket listener)
    : cards(std::move(cards)), rank(rank), listener(std::move(listener)),
      events(::epoll_create1(EPOLL_CLOEXEC)) {
  watch(events, this->listener.get());
}

void Reception::work() {
  while (acceptOne()) {
  }
  const Deadline now = Clock::now();
  const milliseconds patience = kHelloTime + cards.size() * kHelloTimePerRank;
  std::erase_if(strangers, [&](Stranger &stranger) {
    if (!hear(stranger)) // it has gone, or has said all
      return true;
    return now - stranger.since > patience;
  });
}

/// Makes a stranger of the next caller; false if there is none, or no room for it yet.
bool Reception::acceptOne() {
  if (strangers.size() >= kMostStrangers + cards.size() && !makeRoom()) {
    std::this_thread::sleep_for(kNoneLeft);
    return false;
  }
  const int fd = ::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)) {
    std::this_thread::sleep_for(kNoneLeft); // it stays in the queue
    return makeRoom();
  }
  if (fd < 0)
    return errno == EINTR || errno == ECONNABORTED; // whoever wanted to connect is gone again
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  strangers.push_back({Socket(fd), Clock::now()});
  watch(events, fd);
  return true;
}

/// Hangs up on who has been silent longest, if that is long.
bool Reception::makeRoom() {
  if (strangers.empty() || Clock::now() - strangers.front().since < kLeastHelloTime)
    return false;
  strangers.pop_front();
  return true;
}

/// Takes what has come of its words; false if nothing more is to be heard.
bool Reception::hear(Stranger &stranger) {
  while (stranger.received < sizeof stranger.hello) {
    const ssize_t bytes =
        ::recv(stranger.socket.get(), reinterpret_cast<char *>(&stranger.hello) + stranger.received,
               sizeof stranger.hello - stranger.received, MSG_DONTWAIT);
    if (bytes > 0)
      stranger.received += static_cast<size_t>(bytes);
    else if (bytes == 0 || errno != EINTR)
      return bytes < 0 && errno == EAGAIN;
  }
  admit(stranger);
  return false;
}

/// Keeps the connection of a rank of this job.
void Reception::admit(Stranger &stranger) {
  const Hello &hello = stranger.hello;
  if (hello.caller >= cards.size() || hello.caller == rank)
    return;
  const Hello expected = makeHello(cards, hello.caller, rank, hello.purpose);
  if (std::memcmp(&hello, &expected, sizeof hello) != 0)
    return;
  ::epoll_ctl(events.get(), EPOLL_CTL_DEL, stranger.socket.get(), nullptr); // what follows is not for here
  calls.try_emplace({hello.caller, hello.purpose}, std::move(stranger.socket));
}

Socket Reception::take(uint32_t caller, CallPurpose purpose) {
  const auto found = calls.find({caller, purpose});
  if (found == calls.end())
    return Socket();
  Socket socket = std::move(found->second);
  calls.erase(found);
  return socket;
}

std::vector<uint32_t> Reception::await(const std::vector<uint32_t> &callers, CallPurpose purpose,
                                       Deadline deadline, const std::function<bool()> &isOver) {
  for (;;) {
    work();
    std::vector<uint32_t> missing;
    std::ranges::copy_if(callers, std::back_inserter(missing), [&](uint32_t caller) {
      return !calls.contains({caller, purpose});
    });
    if (missing.empty() || remainingMs(deadline) == 0 || isOver())
      return missing;
    pollfd entry{descriptor(), POLLIN, 0};
    ::poll(&entry, 1, std::min(remainingMs(deadline), static_cast<int>(kLookAgain.count())));
  }
}

} // namespace ds::rt
