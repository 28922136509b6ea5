//===- Repetition.h - Layers that are placed as those before ------------------------===//
//
// Layers of a stack are the same ops on other values. Once the states behind a layer are those before it,
// each later by the same seconds, the next layer takes them as far again, and its ops need not be tried. How
// states differ settles within a few layers, for an exchange turns each of them into each other.
//
//   states before layer 3: 0.30, 0.31; before layer 4: 0.40, 0.41; then before layer 5: 0.50, 0.51.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PLACEMENT_REPETITION_H
#define DS_LIB_ANALYSIS_PLACEMENT_REPETITION_H

#include "ds/Analysis/Placement/Placement.h"

#include <functional>
#include <optional>
#include <unordered_map>

namespace ds::analysis {

/// How a value that is still read is held, and in which forms it was made.
struct Live {
  Form held = kWhole;
  uint32_t made = 0;
  bool operator==(const Live &) const = default;
};

/// The values that are still read, in order.
using Frontier = std::vector<Live>;

/// FNV-1a over words.
struct Hash {
  void add(uint64_t word) { value = (value ^ word) * 1099511628211ull; }
  uint64_t value = 1469598103934665603ull;
};

struct FrontierHash {
  size_t operator()(const Frontier &frontier) const {
    Hash hash;
    for (const Live &live : frontier)
      hash.add(uint64_t(live.made) << 8 | live.held);
    return hash.value ^ hash.value >> 29;
  }
};

/// How a state was reached.
struct Step {
  uint32_t from = 0; ///< number of the state before
  uint32_t way = 0;
};

struct State {
  Frontier frontier;
  double seconds = 0;
  Step step;
};

class Repetition {
public:
  /// How a search stands before an op.
  struct Stand {
    uint32_t at = 0;             ///< the op
    std::vector<uint32_t> live;  ///< values that are still read
    std::vector<uint32_t> forms; ///< in which they may be, by bit
    std::vector<State> states;
  };
  /// The forms in which ops from one on may read a value, by bit.
  using FormsOf = std::function<uint32_t(uint32_t value, uint32_t op)>;

  explicit Repetition(const PlacementProblem &problem) : problem(problem) {}

  /// Whether a stand of so many is looked at: layers meet where few values are held.
  static bool looksAt(size_t states, size_t live) {
    constexpr size_t kMostStates = 64, kMostLive = 6;
    return states > 0 && states <= kMostStates && live <= kMostLive;
  }

  /// Notes how the search stands (`forms` are filled in), which is looked at. The latest stand before `now`
  /// since which everything has gone as it will go from `now` on; none where there is none. `lastRead` has by
  /// value the op that reads it last. Asked of rising ops.
  std::optional<Stand> find(Stand now, const std::vector<uint32_t> &lastRead, const FormsOf &formsOf);

  /// What is live behind the ops that were found to be the same.
  const std::vector<uint32_t> &liveBehind() const { return behind; }

private:
  bool standsAlike(const Stand &a, const Stand &b) const;
  bool isSame(uint32_t a, uint32_t b) const;
  bool repeats(const Stand &before, const Stand &now, const std::vector<uint32_t> &lastRead,
               const FormsOf &formsOf);
  uint64_t keyOf(const Stand &stand) const;

  const PlacementProblem &problem;
  std::vector<Stand> stands;
  std::unordered_map<uint64_t, std::vector<uint32_t>> known; ///< stands by key
  std::unordered_map<uint32_t, uint32_t> twins;              ///< values of later ops by those of earlier ones
  std::vector<uint32_t> behind;
};

} // namespace ds::analysis

#endif // DS_LIB_ANALYSIS_PLACEMENT_REPETITION_H
