//===- WaitWatch.cpp - Whom this rank waits for, and what is said of it -----------------===//
#include "WaitWatch.h"

#include "Stacks.h"

#include "ds/Runtime/Comm/Control/LongWait.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;

/// Time for a peer to answer.
constexpr milliseconds kInquiryTime(500);
/// Bounds of how often the thread looks after waits.
constexpr int kLeastLookMs = 50, kMostLookMs = 1000;

milliseconds between(Deadline begin, Deadline end) {
  return std::chrono::duration_cast<milliseconds>(end - begin);
}

} // namespace

std::string spellCollective(uint64_t sequence, uint32_t channel, const char *kind, const char *name) {
  return fmt::format("collective {} of channel {} ({} {})", sequence, channel, kind, name);
}

void WaitWatch::note(uint32_t channel, std::optional<Wait> wait) {
  std::lock_guard<std::mutex> lock(mutex);
  if (waits.size() <= channel)
    waits.resize(channel + 1);
  waits[channel] = wait;
  if (wait)
    everyMs = static_cast<int>(std::clamp<int64_t>(longWait(between(wait->since, wait->until)).count() / 2,
                                                   kLeastLookMs, kMostLookMs));
}

milliseconds WaitWatch::timeLeft() {
  std::lock_guard<std::mutex> lock(mutex);
  Deadline first = Deadline::max();
  for (const std::optional<Wait> &wait : waits)
    first = std::min(first, wait ? wait->until : Deadline::max());
  return milliseconds(first == Deadline::max() ? 0 : std::max(remainingMs(first), 1));
}

void WaitWatch::look() {
  if (inquiry)
    tell();
  else
    ask();
}

/// Asks whom the first channel waits for that has done so for long.
void WaitWatch::ask() {
  const Deadline now = Clock::now();
  {
    std::lock_guard<std::mutex> lock(mutex);
    for (uint32_t channel = 0; channel < waits.size() && !inquiry; ++channel) {
      std::optional<Wait> &wait = waits[channel];
      if (!wait || wait->isTold || !wait->peer ||
          now - wait->since < longWait(between(wait->since, wait->until)))
        continue;
      wait->isTold = true;
      const uint32_t peer = wait->peer->load(std::memory_order_relaxed);
      if (peer != Wait::kNobody)
        inquiry = Inquiry{channel, peer, wait->since, now + kInquiryTime};
    }
  }
  if (!inquiry)
    return;
  news.forgetAnswers({inquiry->peer});
  wires.write(inquiry->peer, Frame::Ask, "", now + kNewsTime);
}

/// Says what has become of an inquiry, once that is known.
void WaitWatch::tell() {
  const Deadline now = Clock::now();
  const std::optional<milliseconds> left = news.answerOf(inquiry->peer);
  if (!left && now < inquiry->answerBy)
    return;
  std::string line;
  {
    std::lock_guard<std::mutex> lock(mutex);
    const std::optional<Wait> &wait = waits[inquiry->channel];
    const bool stillWaits = wait && wait->since == inquiry->since;
    if (stillWaits && (!left || left->count() == 0)) // who waits itself tells of that
      line = fmt::format("ds-run: rank {} has been waiting for {} for {} in {}: it {}; the time-out is {}\n",
                         roster.rank, roster.name({inquiry->peer}), spellWait(between(wait->since, now)),
                         spellCollective(wait->sequence, inquiry->channel, wait->kind, wait->name),
                         left ? "is at work" : "does not answer",
                         spellSeconds(between(wait->since, wait->until)));
  }
  inquiry.reset();
  writeToStderr(line, kWritingTime);
}

} // namespace ds::rt
