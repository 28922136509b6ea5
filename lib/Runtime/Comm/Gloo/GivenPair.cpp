//===- GivenPair.cpp - A pair of Gloo's on a connection that it is given ------------===//
#include "GivenPair.h"
#include "ds/Support/Descriptor.h"

#include <gloo/transport/tcp/address.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdexcept>
#include <string>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ds::rt {
namespace {

namespace tcp = gloo::transport::tcp;

[[noreturn]] void throwFor(const char *what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

bool isSame(const sockaddr_in &a, const sockaddr_in &b) {
  return a.sin_family == b.sin_family && a.sin_port == b.sin_port && a.sin_addr.s_addr == b.sin_addr.s_addr;
}

/// The two ends of a connection, as one of them sees it.
struct Ends {
  sockaddr_in own{}, peer{};
};

/// False for what is no connection.
bool findEnds(int fd, Ends &ends) {
  socklen_t size = sizeof ends.own, peerSize = sizeof ends.peer;
  return ::getsockname(fd, reinterpret_cast<sockaddr *>(&ends.own), &size) == 0 &&
         ::getpeername(fd, reinterpret_cast<sockaddr *>(&ends.peer), &peerSize) == 0;
}

/// The descriptor of this process that is the other end of `fd`; negative: it has none. One port may have
/// many connections, to different ports: both ends count.
int otherEnd(int fd) {
  Ends here;
  if (!findEnds(fd, here))
    return -1;
  const auto isOther = [&here](int other) {
    Ends there;
    return findEnds(other, there) && isSame(there.own, here.peer) && isSame(there.peer, here.own);
  };
  constexpr int kNear = 16; // it was made just before or after
  for (int other = std::max(fd - kNear, 0); other < fd + kNear; ++other)
    if (isOther(other))
      return other;
  rlimit limit{};
  constexpr rlim_t kMostLookedAt = 65536;
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (int other = 0; other < static_cast<int>(std::min(limit.rlim_cur, kMostLookedAt)); ++other)
    if (isOther(other))
      return other;
  return -1;
}

/// An address behind all others: whom a pair is to connect to that comes later in their order, it waits for.
std::vector<char> lastAddress() {
  sockaddr_storage storage{};
  sockaddr_in &last = reinterpret_cast<sockaddr_in &>(storage);
  last.sin_family = AF_INET;
  last.sin_addr.s_addr = INADDR_BROADCAST;
  last.sin_port = 0xffff;
  return tcp::Address(storage).bytes();
}

} // namespace

GivenPair::GivenPair(tcp::Device &device, gloo::transport::Context &context, uint32_t peer) : device(device) {
  gloo::transport::Pair &pair = *context.createPair(static_cast<int>(peer));
  const Descriptor call(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!call)
    throwFor("socket");
  const sockaddr_storage address = tcp::Address(pair.address().bytes()).getSockaddr();
  if (address.ss_family != AF_INET ||
      ::connect(call.get(), reinterpret_cast<const sockaddr *>(&address), sizeof(sockaddr_in)) != 0)
    throwFor("call of a pair of Gloo's");
  pair.connect(lastAddress());
  descriptor = otherEnd(call.get());
  handler = dynamic_cast<tcp::Handler *>(&pair);
  if (descriptor < 0 || !handler)
    throw std::runtime_error("a pair of Gloo's has not taken the call of its maker");
  const int silent = ::eventfd(0, EFD_CLOEXEC); // nothing is ever to be read there
  if (silent < 0)
    throwFor("eventfd");
  // Whoever else holds the call at this moment, be it a thread that asks whose it is, keeps it watched. So
  // nothing is watched for on it any more: the end of `call` is not to be taken for the end of the pair.
  device.registerDescriptor(descriptor, 0, handler);
  replaceBy(silent);
}

void GivenPair::take(int socket) { replaceBy(socket); }

/// Puts `file`, which is given away, in the place of what the pair reads and writes.
void GivenPair::replaceBy(int file) {
  const Descriptor given(file);
  if (::dup3(file, descriptor, O_CLOEXEC) < 0)
    throwFor("dup3");
  device.registerDescriptor(descriptor, EPOLLIN, handler);
}

} // namespace ds::rt
