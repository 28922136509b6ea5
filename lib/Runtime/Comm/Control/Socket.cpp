//===- Socket.cpp - TCP sockets with deadlines -----------------------------------===//
#include "Socket.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace ds::rt {
namespace {

Result<std::shared_ptr<addrinfo>> resolve(const std::string &host, uint16_t port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found))
    return Error{ExitCode::Peer, fmt::format("host '{}': {}", host, ::gai_strerror(error)),
                 "name the network interface with DS_INTERFACE"};
  return std::shared_ptr<addrinfo>(found, ::freeaddrinfo);
}

bool waitFor(int fd, short events, Deadline deadline) {
  while (true) {
    pollfd entry{fd, events, 0};
    const int ready = ::poll(&entry, 1, remainingMs(deadline));
    if (ready > 0)
      return true;
    if (ready == 0 || errno != EINTR)
      return false;
  }
}

Error failure(const std::string &host, uint16_t port) {
  return Error{ExitCode::Peer, fmt::format("host '{}', port {}: {}", host, port, std::strerror(errno)), ""};
}

} // namespace

int remainingMs(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

std::string spellSeconds(std::chrono::milliseconds duration) {
  return fmt::format("{:g} s", std::round(static_cast<double>(duration.count()) / 100) / 10);
}

std::string spellWait(std::chrono::milliseconds waited) {
  return waited < std::chrono::seconds(10) ? spellSeconds(waited)
                                           : spellSeconds(std::chrono::floor<std::chrono::seconds>(waited));
}

Result<Socket> listenOn(const std::string &host, uint16_t &port) {
  Result<std::shared_ptr<addrinfo>> address = resolve(host, 0);
  if (!address)
    return address.error();
  const addrinfo &first = **address;
  Socket socket(::socket(first.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (!socket || ::bind(socket.get(), first.ai_addr, first.ai_addrlen) < 0 ||
      ::listen(socket.get(), SOMAXCONN) < 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr *>(&bound), &size) < 0)
    return failure(host, 0);
  port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6 &>(bound).sin6_port
                                           : reinterpret_cast<sockaddr_in &>(bound).sin_port);
  return socket;
}

Result<Socket> connectTo(const std::string &host, uint16_t port, Deadline deadline) {
  Result<std::shared_ptr<addrinfo>> address = resolve(host, port);
  if (!address)
    return address.error();
  const addrinfo &first = **address;
  Socket socket(::socket(first.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket)
    return failure(host, port);
  if (::connect(socket.get(), first.ai_addr, first.ai_addrlen) < 0 && errno != EINPROGRESS)
    return failure(host, port);
  int error = ETIMEDOUT;
  socklen_t size = sizeof error;
  if (waitFor(socket.get(), POLLOUT, deadline))
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if ((errno = error))
    return failure(host, port);
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

bool sendAll(const Socket &socket, const void *data, size_t bytes, Deadline deadline) {
  const char *next = static_cast<const char *>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(socket.get(), next, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      next += sent;
      bytes -= static_cast<size_t>(sent);
    } else if (errno != EINTR && (errno != EAGAIN || !waitFor(socket.get(), POLLOUT, deadline))) {
      return false;
    }
  }
  return true;
}

} // namespace ds::rt
