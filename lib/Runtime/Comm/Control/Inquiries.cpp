//===- Inquiries.cpp - Whether the other ranks are alive, and who is to blame -----------===//
#include "Inquiries.h"

#include "Stacks.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;

/// Time for a peer to answer.
constexpr milliseconds kAnswerTime(500);
/// Time for the stacks of one process.
constexpr milliseconds kStackTime(1000);
/// Of how many ranks the stacks of all are written down.
constexpr uint32_t kMostStacks = 16;

} // namespace

void Inquiries::ask(const std::vector<uint32_t> &ranks) {
  news.forgetAnswers(ranks);
  for (const uint32_t peer : ranks)
    wires.write(peer, Frame::Ask, "", Clock::now() + kNewsTime);
  news.awaitAnswers(ranks, kAnswerTime);
}

std::vector<uint32_t> Inquiries::hearOut(const std::vector<uint32_t> &missing, milliseconds patience) {
  ask(missing);
  std::vector<uint32_t> others;
  milliseconds longest(0);
  for (const uint32_t peer : missing) {
    const milliseconds left = news.answerOf(peer).value_or(milliseconds(0));
    longest = std::max(longest, left);
    if (left.count() == 0)
      others.push_back(peer);
  }
  if (!others.empty())
    return others;
  news.failure(longest + patience);
  return missing;
}

/// Those of `ranks` that have not answered when they were asked last.
std::vector<uint32_t> Inquiries::silentOf(const std::vector<uint32_t> &ranks) {
  std::vector<uint32_t> silent;
  std::copy_if(ranks.begin(), ranks.end(), std::back_inserter(silent),
               [&](uint32_t peer) { return !news.answerOf(peer); });
  return silent;
}

std::vector<uint32_t> Inquiries::findSilent() {
  const std::vector<uint32_t> others = roster.others();
  ask(others);
  return silentOf(others);
}

void Inquiries::showStacks(const std::vector<uint32_t> &blamed) {
  if (const std::vector<uint32_t> silent = silentOf(blamed); !silent.empty())
    writeToStderr(fmt::format("ds-run: {} {} not answer: stopped, or out of reach\n", roster.name(silent),
                              silent.size() == 1 ? "does" : "do"),
                  kWritingTime);
  for (const uint32_t peer : roster.others())
    if (roster.world() <= kMostStacks || std::count(blamed.begin(), blamed.end(), peer) > 0)
      wires.write(peer, Frame::Stacks, "", Clock::now() + kNewsTime);
  writeStacks();
}

void Inquiries::writeStacks() const {
  static std::atomic<bool> written{false}; // a job fails once
  if (written.exchange(true))
    return;
  const std::string stacks = describeStacks(kStackTime);
  writeToStderr(fmt::format("ds-run: stacks of rank {} on host {}\n{}", roster.rank,
                            roster.cards[roster.rank].host, stacks),
                kWritingTime);
}

void Inquiries::tellOfWait(const std::string &what, milliseconds waited, milliseconds timeout) {
  constexpr uint32_t kTellers = 2; // of many ranks that all wait
  if (roster.world() > kMostStacks && roster.rank >= kTellers)
    return;
  const std::vector<uint32_t> silent = findSilent();
  writeToStderr(fmt::format("ds-run: rank {} has been waiting for {} in {}: {}; the time-out is {}\n",
                            roster.rank, spellWait(waited), what,
                            silent.empty() ? "all ranks answer" : roster.name(silent) + " did not answer",
                            spellSeconds(timeout)),
                kWritingTime);
}

} // namespace ds::rt
