//===- MemoryPlan.h - Where every buffer of one arena lies ---------------------===//
//
// The problem of packing buffers with known sizes and lifetimes into one arena ("dynamic storage allocation",
// NP complete): problem, solver, and a checker that shares no code with the solver. The solver tries
// constructions that are each optimal on some shape of lifetimes, then repairs the best one by moving the
// buffers that stick out to the front of the order, until it meets the lower bound or has spent its budget of
// steps. The price: for an instance without slack it may stop above the bound; the plan prints both.
//
// Equal input gives an equal plan, byte for byte: effort is counted in steps, never in time.
//
// Example: 100 bytes in [0, 2), 64 in [1, 3) and 128 in [2, 4) of one segment, and a state of 32, aligned to
// 64. They count as 128, 64, 128 and 64. Most are live at once at 1 and at 2: 256, the bound. It is met with
// the state at 0, the first and the third at 64 and the second at 192.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_PACKING_MEMORYPLAN_H
#define DS_ANALYSIS_PACKING_MEMORYPLAN_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::analysis {

/// One value that needs memory while the ops [begin, end) of its segment run.
struct PackBuffer {
  /// As `segment`: live in every segment, from its first op to its last, and across segments (begin and end
  /// are ignored). What states are.
  static constexpr uint32_t kAllSegments = UINT32_MAX;

  int64_t bytes = 0;        ///< 0 is legal: such a buffer conflicts with nothing
  uint32_t segment = 0;     ///< segments run one after another and share the arena
  int64_t begin = 0;        ///< first op that writes it, counted inside the segment
  int64_t end = 0;          ///< one past the last op that uses it; > begin
  int64_t alignment = 0;    ///< a power of two; 0: the problem's
  int64_t fixedOffset = -1; ///< where it must lie, or -1: the solver decides
};

/// Everything that shares one arena.
struct PackProblem {
  std::vector<PackBuffer> buffers;
  int64_t alignment = 64; ///< of buffers that ask for none; sizes count rounded up to their alignment
};

/// How much work planMemory may do beyond the first construction: a step takes one to three nanoseconds, so
/// that a problem that stays above its bound takes two to three seconds. It ends at once where the bound is
/// met.
struct PackOptions {
  int64_t maxSteps = 1'000'000'000;
};

/// The solution: `offsets[i]` is where buffers[i] begins.
struct MemoryPlan {
  std::vector<int64_t> offsets;
  int64_t arenaBytes = 0;
  int64_t lowerBound = 0; ///< no plan can be smaller; see lowerBound()
  int64_t steps = 0;      ///< work done, of PackOptions::maxSteps; the last search may overrun it a little
};

/// A plan for `problem`, or why there is none: an alignment that is no power of two, a negative size, an
/// empty lifetime, fixed buffers that collide, or sums beyond 2^63 - 1 bytes.
Result<MemoryPlan> planMemory(const PackProblem &problem, const PackOptions &options = {});

/// The most bytes that are live at once (sizes rounded up to their alignment), or the highest end of a fixed
/// buffer if that is more. Fails as planMemory does.
Result<int64_t> lowerBound(const PackProblem &problem);

/// What makes a plan wrong. `first` and `second` index the problem's buffers (second is -1 for faults of
/// one).
struct Conflict {
  enum class Kind {
    Count,      ///< not one offset for each buffer
    Invalid,    ///< the buffer itself is malformed
    Negative,   ///< offset below zero
    Misaligned, ///< offset is no multiple of the alignment
    Moved,      ///< a fixed buffer lies elsewhere
    Outside,    ///< ends beyond the arena, or beyond 2^63 - 1
    Overlap,    ///< two buffers share a byte while both are live
    Bound,      ///< the arena is smaller than what is live at once, or the plan's bound is wrong
  };
  Kind kind = Kind::Overlap;
  int64_t first = -1, second = -1;
  std::string message; ///< one sentence with both buffers, offsets and lifetimes
};

/// The first fault of `plan`, or nothing if it is right. Written without any of the solver's code: a sweep
/// over time with the live buffers in an ordered map, O(n log n).
std::optional<Conflict> check(const MemoryPlan &plan, const PackProblem &problem);

} // namespace ds::analysis

#endif // DS_ANALYSIS_PACKING_MEMORYPLAN_H
