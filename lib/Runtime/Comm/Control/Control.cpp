//===- Control.cpp - Connections that carry news, not data -----------------------===//
#include "Control.h"

#include <fmt/format.h>

#include <cstdlib>

namespace ds::rt {

Control::Control(std::vector<Card> cards, uint32_t rank, Options given)
    : roster{std::move(cards), rank}, options(std::move(given)), wires(roster.world(), rank),
      news(roster.world(), rank,
           [this](const std::string &reason) {
             for (const uint32_t peer : roster.others())
               wires.write(peer, Frame::Abort, reason, Clock::now() + kNewsTime);
           }),
      waits(roster, wires, news), inquiries(roster, wires, news), exchanges(roster, wires, news, inquiries),
      listener({rank, wires, news, waits, *this, options.failureLimit}) {}

Control::~Control() { stop(); }

bool Control::take(uint32_t peer, Frame frame, std::string text) {
  switch (frame) {
  case Frame::Blob:
    news.addBlob(peer, std::move(text));
    return true;
  case Frame::Abort:
    news.fail(text);
    return true;
  case Frame::Finish:
    news.setFinished(peer);
    return true;
  case Frame::Ask:
    wires.write(peer, Frame::Answer, std::to_string(waits.timeLeft().count()), Clock::now() + kNewsTime);
    return true;
  case Frame::Answer:
    news.setAnswer(peer, std::chrono::milliseconds(std::strtoll(text.c_str(), nullptr, 10)));
    return true;
  case Frame::Stacks:
    inquiries.writeStacks();
    return true;
  }
  return false;
}

/// The end of a connection is a failure, unless the peer has said that it is done.
void Control::lost(uint32_t peer) {
  if (!news.hasFinished(peer))
    news.fail(fmt::format("{} is gone: it ended or was killed", name({peer})));
}

} // namespace ds::rt
