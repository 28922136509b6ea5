//===- ControlWatch.cpp - What the listening thread looks after ------------------===//
//
// A rank that waits knows for whom, but not why: the other may work, wait for a third, or not be there any
// more. So the listening thread asks it when a wait takes long. Who waits itself will tell of its own wait;
// of the others there is a line on stderr.
//
//===---------------------------------------------------------------------------===//
#include "Control.h"

#include "Stacks.h"

#include "ds/Runtime/Comm/Control/LongWait.h"

#include <fmt/format.h>

#include <algorithm>
#include <unistd.h>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;

/// Time for a peer to answer, and for stderr to take what is written.
constexpr milliseconds kInquiryTime(500), kWritingTime(1000);
/// Time for the stacks of one process.
constexpr milliseconds kStackTime(1000);
/// Of how many ranks the stacks of all are written down.
constexpr uint32_t kMostStacks = 16;
/// Bounds of how often the thread looks after waits.
constexpr int kLeastLookMs = 50, kMostLookMs = 1000;

milliseconds between(Deadline begin, Deadline end) {
  return std::chrono::duration_cast<milliseconds>(end - begin);
}

/// Whole seconds, or tenths of the first few.
std::string spellWait(milliseconds waited) {
  return waited < std::chrono::seconds(10) ? spellSeconds(waited)
                                           : spellSeconds(std::chrono::floor<std::chrono::seconds>(waited));
}

} // namespace

std::string spellCollective(uint64_t sequence, uint32_t channel, const char *kind, const char *name) {
  return fmt::format("collective {} of channel {} ({} {})", sequence, channel, kind, name);
}

void Control::noteWait(uint32_t channel, std::optional<Wait> wait) {
  std::lock_guard<std::mutex> lock(mutex);
  if (waits.size() <= channel)
    waits.resize(channel + 1);
  waits[channel] = wait;
  if (wait)
    lookMs = static_cast<int>(std::clamp<int64_t>(longWait(between(wait->since, wait->until)).count() / 2,
                                                  kLeastLookMs, kMostLookMs));
}

/// Until the first wait of this rank is over; 0 if it does not wait.
milliseconds Control::timeLeft() {
  std::lock_guard<std::mutex> lock(mutex);
  Deadline first = Deadline::max();
  for (const std::optional<Wait> &wait : waits)
    first = std::min(first, wait ? wait->until : Deadline::max());
  return milliseconds(first == Deadline::max() ? 0 : std::max(remainingMs(first), 1));
}

void Control::listenUntilStopped() {
  while (!hear(wake.get(), lookMs)) {
    if (failed())
      endIfTooLate();
    else
      lookAfterWaits();
  }
}

void Control::endIfTooLate() {
  if (failedSince == Deadline())
    failedSince = Clock::now();
  const std::optional<milliseconds> &failureLimit = options.failureLimit;
  if (!failureLimit || Clock::now() - failedSince < *failureLimit)
    return;
  writeToStderr(
      fmt::format("ds-run: rank {} has not ended within {} of the failure of its job, and is ended: {}\n",
                  rank, spellSeconds(*failureLimit), failure()),
      kWritingTime);
  ::_exit(static_cast<int>(ExitCode::Peer));
}

void Control::lookAfterWaits() {
  if (inquiry)
    tellOfWait();
  else
    askAboutWaits();
}

/// Asks whom the first channel waits for that has done so for long.
void Control::askAboutWaits() {
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
      if (peer != kNobody)
        inquiry = Inquiry{channel, peer, wait->since, now + kInquiryTime};
    }
    if (inquiry)
      peers[inquiry->peer]->left.reset();
  }
  if (inquiry)
    write(inquiry->peer, Frame::Ask, "", now + kNewsTime);
}

/// Says what has become of an inquiry, once that is known.
void Control::tellOfWait() {
  const Deadline now = Clock::now();
  std::string line;
  {
    std::lock_guard<std::mutex> lock(mutex);
    const std::optional<milliseconds> left = peers[inquiry->peer]->left;
    if (!left && now < inquiry->answerBy)
      return;
    const std::optional<Wait> &wait = waits[inquiry->channel];
    const bool stillWaits = wait && wait->since == inquiry->since;
    if (stillWaits && (!left || left->count() == 0)) // who waits itself tells of that
      line = fmt::format("ds-run: rank {} has been waiting for {} for {} in {}: it {}; the time-out is {}\n",
                         rank, name({inquiry->peer}), spellWait(between(wait->since, now)),
                         spellCollective(wait->sequence, inquiry->channel, wait->kind, wait->name),
                         left ? "is at work" : "does not answer",
                         spellSeconds(between(wait->since, wait->until)));
  }
  inquiry.reset();
  writeToStderr(line, kWritingTime);
}

/// In exchanges the thread that waits knows of all for whom.
bool Control::awaitBlob(uint32_t peer, const char *what, milliseconds timeout, Deadline deadline,
                        bool &told) {
  std::unique_lock<std::mutex> lock(mutex);
  const auto arrived = [&] { return failed() || !peers[peer]->blobs.empty(); };
  if (!told && !changed.wait_until(lock, deadline - timeout + longWait(timeout), arrived)) {
    told = true;
    std::vector<uint32_t> missing;
    for (uint32_t other = 0; other < world(); ++other)
      if (other != rank && peers[other]->blobs.empty())
        missing.push_back(other);
    lock.unlock();
    writeToStderr(
        fmt::format("ds-run: rank {} has been waiting for {} for {} in exchange '{}'; the time-out is {}\n",
                    rank, name(missing), spellWait(longWait(timeout)), what, spellSeconds(timeout)),
        kWritingTime);
    lock.lock();
  }
  return changed.wait_until(lock, deadline, arrived) && !failed();
}

void Control::tellOfWait(const std::string &what, milliseconds waited, milliseconds timeout) {
  constexpr uint32_t kTellers = 2; // of many ranks that all wait
  if (world() > kMostStacks && rank >= kTellers)
    return;
  const std::vector<uint32_t> silent = findSilent();
  writeToStderr(fmt::format("ds-run: rank {} has been waiting for {} in {}: {}; the time-out is {}\n", rank,
                            spellWait(waited), what,
                            silent.empty() ? "all ranks answer" : name(silent) + " did not answer",
                            spellSeconds(timeout)),
                kWritingTime);
}

std::vector<uint32_t> Control::findSilent() {
  std::vector<uint32_t> others, silent;
  for (uint32_t peer = 0; peer < world(); ++peer)
    if (peer != rank)
      others.push_back(peer);
  ask(others);
  std::lock_guard<std::mutex> lock(mutex);
  std::copy_if(others.begin(), others.end(), std::back_inserter(silent),
               [&](uint32_t peer) { return !peers[peer]->left; });
  return silent;
}

void Control::writeStacks() {
  static std::atomic<bool> written{false}; // a job fails once
  if (written.exchange(true))
    return;
  const std::string stacks = describeStacks(kStackTime);
  writeToStderr(fmt::format("ds-run: stacks of rank {} on host {}\n{}", rank, cards[rank].host, stacks),
                kWritingTime);
}

void Control::showStacks(const std::vector<uint32_t> &blamed) {
  std::vector<uint32_t> silent;
  {
    std::lock_guard<std::mutex> lock(mutex);
    std::copy_if(blamed.begin(), blamed.end(), std::back_inserter(silent),
                 [&](uint32_t peer) { return !peers[peer]->left; });
  }
  if (!silent.empty())
    writeToStderr(fmt::format("ds-run: {} {} not answer: stopped, or out of reach\n", name(silent),
                              silent.size() == 1 ? "does" : "do"),
                  kWritingTime);
  for (uint32_t peer = 0; peer < world(); ++peer)
    if (peer != rank && (world() <= kMostStacks || std::count(blamed.begin(), blamed.end(), peer) > 0))
      write(peer, Frame::Stacks, "", Clock::now() + kNewsTime);
  writeStacks();
}

} // namespace ds::rt
