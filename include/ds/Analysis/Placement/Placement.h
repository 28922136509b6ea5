//===- Placement.h - How ranks hold the values of a graph ---------------------===//
//
// Along one axis, ranks hold a value in one of several forms: each has all of it, each has an equal part, or
// each has an addend. An op can be run in a few ways, of which each reads and makes certain forms; where a
// value is read in another form than it is held in, ranks exchange it. What is wanted is the way of each op
// so that the whole takes the least time.
//
// Ops come in order, as a step has them. A value's gradient goes back along the same edges: reading in one
// form what is held in another costs an exchange forward, and its transpose backward. Of n bytes, among t
// ranks:
//
//   held      read as   forward           sent            backward          sent
//   addends   whole     all-reduce        2 (t-1)/t n     -
//   addends   part      reduce-scatter    (t-1)/t n       all-gather        (t-1)/t n
//   part      whole     all-gather        (t-1)/t n       own part          0
//   part      copy      all-gather        (t-1)/t n       reduce-scatter    (t-1)/t n
//   part      part      all-gather        (t-1)/t n       all-gather        (t-1)/t n
//   ... or, where that may be (`exchangesParts`), all-to-all                (t-1)/t^2 n
//   whole     part      own part          0               all-gather        (t-1)/t n
//   whole     copy      -                                 all-reduce        2 (t-1)/t n
//   whole     addends   zeros but on one  0               -
//
// A copy is a whole that parts of a result are made from, so that each rank makes an addend of its gradient.
// What is read in one form by several ops is exchanged once.
//
//   y = x * A, z = y * B of sizes 64 x 64, A and B parameters, two ranks: x is read as a copy, A is held in
//   parts of its columns and B in parts of its rows; z is then addends. One exchange of z forward, one of x's
//   gradient backward.
//
// The search goes through the ops in order and keeps, for each way in which the values that are still read
// can be held, the cheapest way there (dynamic programming over a frontier, as the elimination of variables
// in order of the graph: Bertele and Brioschi, Nonserial Dynamic Programming, 1972). In a chain of layers few
// values cross, so that this is linear in the number of layers. A way there that a cheaper one becomes by
// exchanges which cost no more than the difference is not kept: what follows is then no dearer, but where a
// value would be exchanged twice in a row. Of 1000 random problems that made one worse, by 0.03 %.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_PLACEMENT_PLACEMENT_H
#define DS_ANALYSIS_PLACEMENT_PLACEMENT_H

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace ds::analysis {

/// A form in which a value is held or read. Parts are numbered by the value: part 0 is `firstPart`.
using Form = uint8_t;
inline constexpr Form kWhole = 0, kCopy = 1, kAddends = 2, kFirstPart = 3;
/// So many forms a value can have at most: sets of them are bits of a word.
inline constexpr unsigned kMaxForms = 24;

struct PlacedValue {
  double bytes = 0;         ///< of the whole value
  double gradientBytes = 0; ///< of its whole gradient: as many, or 0 where none flows back
  bool mayMove = true;      ///< what is held in parts may be read in another form
  bool isGiven = false;     ///< `held` is settled, and the value is there before the first op
  Form held = kWhole;       ///< of what is given
  uint32_t available = 0;   ///< of what is given, further forms in which it is there already, by bit
};

/// One way of running an op.
struct PlacedWay {
  std::vector<Form> operands, results;
  double seconds = 0; ///< of its work on one rank
};

struct PlacedOp {
  std::vector<uint32_t> operands, results; ///< numbers of values
  std::vector<PlacedWay> ways;             ///< at least one
};

struct PlacementProblem {
  std::vector<PlacedValue> values;
  std::vector<PlacedOp> ops; ///< each after those whose results it reads
  double ranks = 2;
  double secondsPerByte = 0;     ///< of what a rank sends
  double secondsPerExchange = 0; ///< of each exchange, whatever its size
  double secondsPerCopied = 0;   ///< of each byte of a rank's own part, where that is taken of a whole
  /// By how much exchanges of parts count more than they take, where values are to be whole between layers
  /// and sums to be made whole: a last resort then.
  double partsWeight = 1;
  /// What is held in parts of one kind is exchanged for parts of another, of which a rank sends (t-1)/t^2 n,
  /// and is not gathered for that; its gradient likewise.
  bool exchangesParts = false;
  double waitsOfSum = 1; ///< how often `secondsPerExchange` counts for a sum that is made whole, 1 or 2
  /// States that are kept from one op to the next at most, the cheapest: more are needed in graphs that are
  /// no chain.
  uint32_t maxStates = 1u << 13;
};

struct PlacementSolution {
  std::vector<uint32_t> ways; ///< by op
  std::vector<Form> held;     ///< by value
  std::vector<uint32_t>
      read; ///< by value: the forms in which ops read it and that were made for that, by bit
  double seconds = std::numeric_limits<double>::infinity();
  bool isExact = true;  ///< no state was dropped for their number: none but such as a cheaper one becomes
  uint32_t stuckAt = 0; ///< where nothing is found, the first op for which no way was left

  bool isFound() const { return seconds < std::numeric_limits<double>::infinity(); }
};

/// Seconds to read in `form` what is held as `held`, forward and backward together; infinite where that may
/// not be. `made` are forms that were made before, by bit: a whole serves a copy too.
double exchangeSeconds(const PlacementProblem &problem, const PlacedValue &value, Form held, Form form,
                       uint32_t made);

/// The cheapest placement. Requires ops in order, with ways that fit their operands and results. Nothing is
/// found where some op has no way that its operands permit.
PlacementSolution placeValues(const PlacementProblem &problem);

/// What is wrong with `solution`: a way that is none of its op's, a value that is held otherwise than its op
/// makes it, another sum. Empty where nothing is. Shares no code with the search but `exchangeSeconds`.
std::string findMistake(const PlacementProblem &problem, const PlacementSolution &solution);

} // namespace ds::analysis

#endif // DS_ANALYSIS_PLACEMENT_PLACEMENT_H
