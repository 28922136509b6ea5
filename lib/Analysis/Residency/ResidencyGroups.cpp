//===- ResidencyGroups.cpp - Decides a few values at a time anew, exactly ---------===//
//
// What prices and single moves leave is a few seconds that only several changes at once would save: a value
// goes to the host so that two others may stay, and the loss is cut once less. So a dozen values are taken
// out and decided anew, all else as it is, by branch and bound: seconds and bytes that the values which are
// left take at least end most branches. Groups are values that follow each other, for those of a layer share
// operands, and values that hold bytes at one moment, the fullest among them, for those share room.
//
// Example: of a budget of 10 bytes, 3, 3 and 3 are taken by what saves 1 s each. To have one of 5 and one of
// 4 bytes instead, which save 2 s each, takes five changes at once; one after the other, the first does not
// fit.
//
// The price: a search of some milliseconds, where the bound is not near.
//
//===---------------------------------------------------------------------------===//
#include "ResidencyGroup.h"

#include <algorithm>
#include <random>

namespace ds::analysis::detail {

namespace {

/// Values of a group: few are decided to the end, of many the best choices are found by prices. Steps within
/// a group, and in all; groups that are tried without gain before the search ends.
constexpr size_t kFewestGrouped = 8, kMostGrouped = 32;
constexpr int64_t kMostSteps = 400'000;
constexpr int kMostIdle = 60;
/// Values that may come with a group because it is made of them.
constexpr size_t kMostBrought = 6;
/// With no more all values are one group at first, for what prices find at once.
constexpr size_t kMostAtAll = 600;

/// Which groups are decided anew.
class GroupSearch {
public:
  GroupSearch(const ResidencyProblem &problem, const ResidencyPrices &prices, Ways &ways);
  void run();

private:
  bool improve(const std::vector<uint32_t> &members);
  uint32_t countNeeding(uint32_t value, const std::vector<uint32_t> &group) const;
  std::vector<uint32_t> takeFollowing(size_t count);
  std::vector<uint32_t> takeAtOnce(size_t count);
  std::vector<uint32_t> takeAny(const std::vector<uint32_t> &from, size_t count);

  const ResidencyProblem &problem;
  const GroupPrices prices;
  ResidencyChosen all;
  std::vector<std::vector<uint32_t>> users; ///< what may be made of each value
  std::vector<uint32_t> open;               ///< values that can be had in several ways
  std::mt19937 random{1};
  int64_t stepsLeft = kMostSteps;
};

GroupSearch::GroupSearch(const ResidencyProblem &problem, const ResidencyPrices &prices, Ways &ways)
    : problem(problem), prices{prices, ResidencyPriceSums(prices, problem.spaces.size())}, all{ways, {}, {}},
      users(problem.values.size()) {
  ResidencyLoad load = loadOf(problem, ways);
  all.work = std::move(load.work);
  for (const std::vector<int64_t> &bytes : load.bytes)
    all.held.emplace_back(bytes);
  for (uint32_t value = 0; value < problem.values.size(); ++value) {
    const ResidencyValue &entry = problem.values[value];
    if (entry.homes.size() + entry.recompute.has_value() + !entry.isRead > 1)
      open.push_back(value);
    for (uint32_t operand : entry.operands)
      users[operand].push_back(value);
  }
}

/// Times that `value` is needed whatever is chosen of `group`.
uint32_t GroupSearch::countNeeding(uint32_t value, const std::vector<uint32_t> &group) const {
  uint32_t count = problem.values[value].isRead;
  for (uint32_t user : users[value])
    count += all.ways[user] == kRecomputed && !std::binary_search(group.begin(), group.end(), user);
  return count;
}

/// Decides `members` anew, and with them what they are made of where that is not read.
bool GroupSearch::improve(const std::vector<uint32_t> &members) {
  std::vector<uint32_t> group = members;
  for (size_t index = 0; index < group.size() && group.size() < members.size() + kMostBrought; ++index)
    for (uint32_t operand : problem.values[group[index]].operands)
      if (!problem.values[operand].isRead && std::find(group.begin(), group.end(), operand) == group.end())
        group.push_back(operand);
  std::sort(group.begin(), group.end());
  group.erase(std::unique(group.begin(), group.end()), group.end());
  std::vector<uint32_t> numNeeding;
  for (uint32_t value : group)
    numNeeding.push_back(countNeeding(value, group));
  return ResidencyGroup(problem, prices, std::move(group), std::move(numNeeding), all).improve(stepsLeft);
}

/// Up to `count` values of `from`.
std::vector<uint32_t> GroupSearch::takeAny(const std::vector<uint32_t> &from, size_t count) {
  if (from.size() <= count)
    return from;
  std::vector<uint32_t> taken;
  for (size_t index = 0; index < count; ++index)
    taken.push_back(from[random() % from.size()]);
  std::sort(taken.begin(), taken.end());
  taken.erase(std::unique(taken.begin(), taken.end()), taken.end());
  return taken;
}

std::vector<uint32_t> GroupSearch::takeFollowing(size_t count) {
  count = std::min(open.size(), count);
  const size_t begin = random() % (open.size() - count + 1);
  return {open.begin() + begin, open.begin() + begin + count};
}

/// Values that may hold bytes at a moment at which something is held, the fullest of a space now and then.
std::vector<uint32_t> GroupSearch::takeAtOnce(size_t count) {
  const uint32_t space = random() % problem.spaces.size();
  const uint32_t moments = uint32_t(problem.spaces[space].liveBytes.size());
  if (moments == 0)
    return {};
  uint32_t at = 0, end = moments; // the first of the fullest, by halves
  for (const int64_t most = all.held[space].mostIn(0, moments); end - at > 1;) {
    const uint32_t middle = at + (end - at) / 2;
    (all.held[space].mostIn(at, middle) == most ? end : at) = middle;
  }
  if (random() % 2 == 0)
    at = random() % moments;
  std::vector<uint32_t> holding;
  for (uint32_t value : open) {
    bool holds = false;
    visitWays(problem.values[value], [&](int32_t, const ResidencyWay &way) {
      for (const ResidencyHold &entry : way.holds)
        holds |= entry.space == space && entry.begin <= at && at < entry.end;
    });
    if (holds)
      holding.push_back(value);
  }
  return takeAny(holding, count);
}

void GroupSearch::run() {
  while (open.size() <= kMostAtAll && stepsLeft > 0 && improve(open))
    ;
  for (int idle = 0, round = 0; idle < kMostIdle && stepsLeft > 0 && !open.empty(); ++round) {
    const size_t count = kFewestGrouped + random() % (kMostGrouped - kFewestGrouped + 1);
    const std::vector<uint32_t> members = round % 3 == 0   ? takeFollowing(count)
                                          : round % 3 == 1 ? takeAtOnce(count)
                                                           : takeAny(open, count);
    idle = !members.empty() && improve(members) ? 0 : idle + 1;
  }
}

} // namespace

void improveGroups(const ResidencyProblem &problem, const ResidencyPrices &prices, Ways &ways) {
  GroupSearch(problem, prices, ways).run();
  dropUnused(problem, ways);
}

} // namespace ds::analysis::detail
