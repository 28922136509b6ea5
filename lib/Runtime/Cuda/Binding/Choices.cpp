//===- Choices.cpp - What is chosen once, for all ranks and all later runs --------------===//
#include "Choices.h"

#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Support/Processors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

namespace ds::rt::cuda {

void Choices::index() {
  for (Choice &choice : waiting) {
    std::vector<Choice *> &list = byKey[choice.key];
    if (list.empty())
      keys.push_back(choice.key);
    list.push_back(&choice);
  }
}

/// Does all jobs, on this thread and others.
static void doAll(const std::vector<std::function<void()>> &jobs, size_t mostThreads,
                  const std::function<void()> &enter) {
  std::atomic<size_t> next{0};
  const auto work = [&] {
    if (enter)
      enter();
    for (size_t i; (i = next++) < jobs.size();)
      jobs[i]();
  };
  std::vector<std::thread> threads;
  const size_t most = std::min(jobs.size(), mostThreads);
  try {
    while (threads.size() + 1 < most)
      threads.emplace_back(work);
  } catch (const std::system_error &) { // then those that there are do it
  }
  work();
  for (std::thread &thread : threads)
    thread.join();
}

/// Every rank does this for what its own cache has, which is what will be taken unless others keep something
/// else.
Choices::Jobs Choices::keptJobs(const AlgorithmCache &cache) const {
  Jobs jobs;
  for (const std::string &key : keys) {
    const std::vector<Choice::Value> &values = cache.find(key);
    if (const Choice *choice = byKey.at(key).front(); choice->prepare && !values.empty())
      jobs.emplace_back([choice, value = values.front()] { choice->prepare(value); });
  }
  return jobs;
}

/// What can be done ahead of the choices of the next problems from `from` on, which moves behind them. At
/// most of `most` problems: other ranks wait for the first of these choices meanwhile, and each thread has
/// then no more to do than that one takes.
Choices::Jobs Choices::nextJobs(const Keys &mine, size_t &from, size_t most,
                                const AlgorithmCache &cache) const {
  Jobs jobs;
  for (size_t problems = 0; from < mine.size() && problems < most; ++from) {
    const Choice *choice = byKey.at(mine[from]).front();
    if (!choice->ahead || !cache.find(mine[from]).empty())
      continue;
    ++problems;
    for (std::function<void()> &job : choice->ahead(cache.keeps()))
      jobs.push_back(std::move(job));
  }
  return jobs;
}

/// By rank: the problems that it chooses for. Rank 0 has all where all ranks have the same, else a problem is
/// the first rank's that has it.
Result<std::vector<Choices::Keys>> Choices::share(RankGroup *ranks) const {
  if (!ranks)
    return std::vector<Keys>{keys};
  const std::string list = fmt::format("{}", fmt::join(keys, "\n"));
  Result<std::vector<std::string>> all =
      ranks->exchange(fmt::format("{} {:016x}", keys.size(), digestOf(list)), "digests of problems");
  if (!all)
    return all.error();
  std::vector<Keys> owned(ranks->world());
  if (std::equal(all->begin() + 1, all->end(), all->begin())) {
    owned[0] = keys;
    return owned;
  }
  all = ranks->exchange(list, "problems");
  if (!all)
    return all.error();
  std::set<std::string> seen;
  for (size_t rank = 0; rank < all->size(); ++rank) {
    std::istringstream lines((*all)[rank]);
    for (std::string key; std::getline(lines, key);)
      if (seen.insert(key).second)
        owned[rank].push_back(key);
  }
  return owned;
}

/// What is kept and can be taken, else what is chosen now.
Choices::Decision Choices::decide(const std::string &key, AlgorithmCache &cache) {
  Choice &choice = *byKey.at(key).front();
  for (const Choice::Value &kept : cache.find(key))
    if (choice.take(kept))
      return {kept};
  Result<Choice::Value> chosen = choice.choose(cache.keeps());
  if (!chosen)
    return {std::nullopt, chosen.error()};
  if (!cache.keeps())
    return {*chosen};
  const Choice::Value counts = cache.keep(key, *chosen);
  return {counts == *chosen || choice.take(counts) ? counts : *chosen};
}

/// `chooser`: who has decided, if it was another rank. What worked there is tried out here before any
/// collective waits for it.
Status Choices::apply(const std::string &key, const Decision &decision, const std::string &chooser) {
  bool tried = chooser.empty();
  for (Choice *choice : byKey[key]) {
    Status status = decision.value ? choice->take(*decision.value) : choice->refuse(decision.why);
    if (status && decision.value && !std::exchange(tried, true))
      status = choice->tryOut();
    if (!status && (chooser.empty() || !decision.value))
      return Error{status.error().code, fmt::format("{}: {}", choice->what, status.error().message),
                   status.error().hint};
    if (!status)
      return Error{status.error().code,
                   fmt::format("{}: what {} has chosen cannot be done here: {}", choice->what, chooser,
                               status.error().message),
                   "run all ranks on one kind of device, with the same driver and libraries"};
    if (decision.value && choice->taken)
      choice->taken();
  }
  return {};
}

std::string Choices::spell(const Decision &decision) {
  return decision.value ? "+" + spellValue(*decision.value)
                        : fmt::format("-{} {}", static_cast<int>(decision.why.code), decision.why.message);
}

Choices::Decision Choices::parse(const std::string &text) {
  if (!text.empty() && text[0] == '+')
    if (std::optional<Choice::Value> value = parseValue(std::string_view(text).substr(1)))
      return {std::move(value)};
  const size_t space = std::min(text.find(' '), text.size() - 1);
  return {std::nullopt, Error{ExitCode::Device, text.empty() ? "no word" : text.substr(space + 1), ""}};
}

Status Choices::settle(RankGroup *ranks, AlgorithmCache &cache, const std::function<void()> &enter) {
  index();
  const size_t threads = processorsLeft(processorShare());
  doAll(keptJobs(cache), threads, enter);
  Result<std::vector<Keys>> owned = share(ranks);
  if (!owned)
    return owned.error();
  const uint32_t me = ranks ? ranks->rank() : 0;
  size_t rounds = 0;
  for (const Keys &list : *owned)
    rounds = std::max(rounds, list.size());
  const Keys &mine = (*owned)[me];
  size_t ahead = 0; ///< problems of `mine` for which all is done that can be
  for (size_t round = 0; round < rounds; ++round) {
    if (round == ahead)
      doAll(nextJobs(mine, ahead, threads, cache), threads, enter);
    std::optional<Decision> decision;
    if (round < mine.size())
      decision = decide(mine[round], cache);
    std::vector<std::string> words(1);
    if (ranks) {
      Result<std::vector<std::string>> all =
          ranks->exchange(decision ? spell(*decision) : "", "choices of algorithms");
      if (!all)
        return all.error();
      words = std::move(*all);
    }
    for (uint32_t rank = 0; rank < owned->size(); ++rank) {
      if (round >= (*owned)[rank].size())
        continue;
      const std::string chooser =
          rank == me ? "" : fmt::format("rank {} on host {}", rank, ranks->host(rank));
      if (Status status = apply((*owned)[rank][round], rank == me ? *decision : parse(words[rank]), chooser);
          !status)
        return status;
    }
  }
  waiting.clear();
  keys.clear();
  byKey.clear();
  return {};
}

} // namespace ds::rt::cuda
