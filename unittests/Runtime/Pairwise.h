//===- Pairwise.h - Few choices of options in which every two values meet -------------===//
//
// A fault of one option shows in any test of it; most of the others need two options that meet. A cover of
// all pairs has about as many choices as the two longest options have pairs of values, however many options
// there are: of seven options with 2 to 4 values each some 20 of 1152.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_PAIRWISE_H
#define DS_UNITTESTS_RUNTIME_PAIRWISE_H

#include <cstddef>
#include <set>
#include <tuple>
#include <vector>

namespace ds::rt::test {

/// A value of each option, by number.
using Choice = std::vector<size_t>;

/// Calls `visit` with each way to choose one of `counts[i]` values of every option i.
template <class Visit>
void forEachChoice(const std::vector<size_t> &counts, Visit &&visit) {
  for (Choice choice(counts.size());;) {
    visit(choice);
    size_t i = 0;
    while (i < counts.size() && ++choice[i] == counts[i])
      choice[i++] = 0;
    if (i == counts.size())
      return;
  }
}

/// Choices among which every value of every option is together with every value of every other one. The same
/// for the same counts: each next one is the first that has most pairs which are still missing.
inline std::vector<Choice> pairwiseCover(const std::vector<size_t> &counts) {
  using Pair = std::tuple<size_t, size_t, size_t, size_t>; // option, value, later option, value
  const auto forEachPair = [](const Choice &choice, auto &&visit) {
    for (size_t i = 0; i < choice.size(); ++i)
      for (size_t j = i + 1; j < choice.size(); ++j)
        visit(Pair{i, choice[i], j, choice[j]});
  };
  std::set<Pair> missing;
  forEachChoice(counts, [&](const Choice &choice) {
    forEachPair(choice, [&](const Pair &pair) { missing.insert(pair); });
  });
  std::vector<Choice> cover;
  while (!missing.empty()) {
    Choice best;
    size_t most = 0;
    forEachChoice(counts, [&](const Choice &choice) {
      size_t found = 0;
      forEachPair(choice, [&](const Pair &pair) { found += missing.count(pair); });
      if (found > most) {
        most = found;
        best = choice;
      }
    });
    forEachPair(best, [&](const Pair &pair) { missing.erase(pair); });
    cover.push_back(best);
  }
  return cover;
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_PAIRWISE_H
