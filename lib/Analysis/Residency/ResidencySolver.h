//===- ResidencySolver.h - The search behind Residency ------------------------------===//
//
// What choices take (ResidencyLoad.cpp); parts of a problem and their cheapest choice at given prices
// (ResidencyParts.cpp); prices (Residency.cpp); what fills the slack that they leave (ResidencyFill.cpp), and
// what decides some values at a time anew where the bound is not near then (ResidencyGroups.cpp).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_RESIDENCY_RESIDENCYSOLVER_H
#define DS_LIB_ANALYSIS_RESIDENCY_RESIDENCYSOLVER_H

#include "ds/Analysis/Residency/Residency.h"

#include <compare>
#include <map>
#include <set>
#include <unordered_map>

namespace ds::analysis::detail {

using Ways = std::vector<int32_t>;

/// Of the operands of `value` those that need not be had. One that is read is had in any case, so that it
/// ties nothing to what is made of it.
std::vector<uint32_t> linksOf(const ResidencyProblem &problem, uint32_t value);

/// Values that are joined by links, and what they look like: parts of one shape have the same choices.
struct ResidencyPart {
  std::vector<uint32_t> values; ///< ascending
  uint32_t shape = 0;
};

/// A place where a budget binds.
struct ResidencyMoment {
  uint32_t space = 0, moment = 0;
  auto operator<=>(const ResidencyMoment &) const = default;
};

struct ResidencyPrices {
  std::map<ResidencyMoment, double> bytes; ///< seconds for a byte there
  std::vector<double> seconds;             ///< weight of a second of each resource; they add up to 1
  double everywhere = 0;                   ///< seconds for a byte however long it is held; gives no bound
};

/// Bytes at each moment of each space and seconds of each resource, with what is chosen.
struct ResidencyLoad {
  std::vector<std::vector<int64_t>> bytes;
  std::vector<double> work;
};

/// The way that number `way` of `value` is; null where it is not had.
const ResidencyWay *wayOf(const ResidencyValue &value, int32_t way);

/// Prices of bytes as sums from the first priced moment on, so that what a hold costs is one difference.
class ResidencyPriceSums {
public:
  ResidencyPriceSums(const ResidencyPrices &prices, size_t numSpaces);
  /// What a byte costs that is held so.
  double of(const ResidencyHold &hold) const;

private:
  struct Space {
    std::vector<uint32_t> moments;
    std::vector<double> sums = {0}; ///< of the prices of moments before
  };
  std::vector<Space> spaces;
};

/// The parts of a problem, and all choices of a part that were ever the cheapest.
class ResidencyParts {
public:
  explicit ResidencyParts(const ResidencyProblem &problem);

  /// The cheapest ways at `prices`. Adds their price to `cost`, rounded down.
  Ways choose(const ResidencyPrices &prices, double &cost);

  std::vector<ResidencyPart> parts;
  std::vector<std::set<Ways>> seen; ///< by shape, in the order of a part's values

private:
  /// Of each value of a part: what its cheapest home and making it again cost, and which home that is.
  using Weights = std::vector<int64_t>;
  static constexpr size_t kWeightsOfValue = 3;
  struct WeightsHash {
    size_t operator()(const Weights &weights) const;
  };
  struct Choice {
    Ways ways;
    int64_t weight = 0;
  };

  void findParts();
  void findShapes();
  int64_t weightOf(const ResidencyWay &way, const ResidencyPrices &prices,
                   const ResidencyPriceSums &sums) const;
  void weigh(const ResidencyPart &part, const ResidencyPrices &prices, const ResidencyPriceSums &sums,
             Weights &weights) const;
  Choice solve(const ResidencyPart &part, const Weights &weights) const;
  void dropUnusedOf(const ResidencyPart &part, Ways &ways) const;

  const ResidencyProblem &problem;
  std::vector<std::unordered_map<Weights, Choice, WeightsHash>> known; ///< by shape
};

/// Improves `ways`, which fit, by choices of parts that `parts` has seen, and by single values, as long as
/// they fit and the busiest resource, then all of them together, work less.
void fillSlack(const ResidencyProblem &problem, const ResidencyParts &parts, Ways &ways);

/// Improves `ways` by deciding some values at a time anew, all else as it is: first less beyond a budget,
/// then as fillSlack. Prices of a high bound end the search early. Equal input, equal output
/// (ResidencyGroups.cpp).
void improveGroups(const ResidencyProblem &problem, const ResidencyPrices &prices, Ways &ways);

/// What `problem` fails to satisfy for the solver's arrays, in one sentence, or nothing.
std::optional<std::string> findFault(const ResidencyProblem &problem);
/// What `ways` take.
ResidencyLoad loadOf(const ResidencyProblem &problem, const Ways &ways);
/// Bytes beyond the budget at the moment where they are most, and where that is; 0 bytes: all fits.
std::pair<int64_t, ResidencyMoment> mostExceeded(const ResidencyProblem &problem, const ResidencyLoad &load);
/// Drops what is neither read nor an operand of what is recomputed.
void dropUnused(const ResidencyProblem &problem, Ways &ways);

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_RESIDENCY_RESIDENCYSOLVER_H
