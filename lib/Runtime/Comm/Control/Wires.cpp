//===- Wires.cpp - Frames between this rank and the others -----------------------------===//
#include "Wires.h"

#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace ds::rt {
namespace {

struct Head {
  uint32_t frame, bytes;
};

} // namespace

void Wires::add(uint32_t peer, Socket socket) {
  wires[peer] = std::make_unique<Wire>();
  wires[peer]->socket = std::move(socket);
}

bool Wires::write(uint32_t peer, Frame frame, const std::string &text, Deadline deadline) {
  if (!has(peer))
    return false; // not connected yet
  Wire &to = *wires[peer];
  const std::unique_lock<std::timed_mutex> lock(to.writing, deadline);
  if (!lock)
    return false;
  const Head head{static_cast<uint32_t>(frame), static_cast<uint32_t>(text.size())};
  std::string bytes(reinterpret_cast<const char *>(&head), sizeof head);
  bytes += text;
  return sendAll(to.socket, bytes.data(), bytes.size(), deadline);
}

bool Wires::hear(int other, int limitMs, Hearer &hearer) {
  polled.assign(1, {other, POLLIN, 0});
  polledRanks.assign(1, rank);
  for (uint32_t peer = 0; peer < wires.size(); ++peer)
    if (has(peer) && !wires[peer]->gone) {
      polled.push_back({wires[peer]->socket.get(), POLLIN, 0});
      polledRanks.push_back(peer);
    }
  if (::poll(polled.data(), polled.size(), limitMs) <= 0)
    return false;
  for (size_t i = 1; i < polled.size(); ++i)
    if (polled[i].revents)
      read(polledRanks[i], hearer);
  return polled[0].revents != 0;
}

void Wires::read(uint32_t peer, Hearer &hearer) {
  Wire &wire = *wires[peer];
  char bytes[65536];
  const ssize_t received = ::recv(wire.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (received > 0)
    wire.input.append(bytes, static_cast<size_t>(received));
  else if (received < 0 && (errno == EINTR || errno == EAGAIN))
    return;
  if (received <= 0 || !parse(peer, hearer)) {
    wire.gone = true;
    hearer.lost(peer);
  }
}

/// Takes the whole frames out of the input; false if it makes no sense.
bool Wires::parse(uint32_t peer, Hearer &hearer) {
  std::string &input = wires[peer]->input;
  while (input.size() >= sizeof(Head)) {
    Head head;
    std::memcpy(&head, input.data(), sizeof head);
    if (head.bytes > kMaxFrameBytes)
      return false;
    if (input.size() < sizeof head + head.bytes)
      return true;
    std::string text = input.substr(sizeof head, head.bytes);
    input.erase(0, sizeof head + head.bytes);
    if (!hearer.take(peer, static_cast<Frame>(head.frame), std::move(text)))
      return false;
  }
  return true;
}

} // namespace ds::rt
