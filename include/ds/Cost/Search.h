//===- Search.h - Which plan: what fits, what is fastest, what to change -------------===//
//
// Questions about many plans of one model on one cluster, answered by estimating each. The space is small
// enough to be walked whole: some ten thousand plans of a few microseconds each.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_COST_SEARCH_H
#define DS_COST_SEARCH_H

#include "ds/Config/Config.h"
#include "ds/Cost/Estimate.h"

namespace ds::cost {

/// A plan with what it costs.
struct Candidate {
  ParallelPlan plan;
  double seconds = 0; ///< of one step
  MemoryEstimate memory;
  bool fits = false;
};

Candidate estimate(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates);

/// What a search may choose. Everything else is taken from `fixed`.
struct SearchSpace {
  int64_t ranks = 1;
  int64_t globalBatch = 1; ///< samples per step
  bool tensor = true, pipeline = true;
  bool sequence = true;      ///< ranks of a node that share samples, without a pipeline
  bool offload = true;       ///< to the host, and to storage where the cluster has some
  bool selective = false;    ///< recomputation of attention alone, for which ds_config.json has no key
  bool programs = true;      ///< plans of which programs can be made as well
  int64_t maxInterleave = 1; ///< chunks of layers per stage, for which it has none either
  ParallelPlan fixed;
};

/// The fastest plan that fits. Of equal ones the first in order of: lower tp, pp, sp, ZeRO stage, less
/// recomputed, less offloaded, larger micro-batch. Fails with Invalid when no plan divides the ranks and the
/// batch, with DoesNotFit, naming the plan that came nearest, when none fits.
Result<Candidate> fastestPlan(const ModelShape &shape, const SearchSpace &space, const Rates &rates);

/// The plans of a space of which programs can be made (hasPass), the fastest first. What is computed
/// again is the program's to choose: `seconds` are those of a step that computes so much again as memory asks
/// for, and `memory` is that of one that computes all of it again, which fits.
std::vector<Candidate> plansForPrograms(const ModelShape &shape, const SearchSpace &space,
                                        const Rates &rates);

/// All plans that differ from `plan` in ZeRO stage, recomputation, offload of the optimizer and micro-batch
/// (powers of two, the global batch kept where it divides), in that order.
std::vector<Candidate> whatIf(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates);

/// A change that makes a plan fit, and what it costs.
struct Change {
  std::string what; ///< "zero_optimization.stage = 2", or several joined by "and"
  Candidate candidate;
};

/// The changes that make `plan` fit, as few at once as suffice and four at most: the fastest step first. All
/// steps have the same number of samples; more ranks keep the micro-batch and divide the accumulation.
std::vector<Change> changesThatFit(const ModelShape &shape, const ParallelPlan &plan, const Rates &rates);

/// The largest micro-batch, and the longest sequence (a multiple of 64), with which a plan fits; 0: none.
int64_t largestMicroBatch(const ModelShape &shape, const ParallelPlan &plan, const config::Cluster &cluster);
int64_t longestSequence(const ModelShape &shape, const ParallelPlan &plan, const config::Cluster &cluster);

/// The plan that a configuration asks for.
ParallelPlan planFromConfig(const config::Config &config);

/// Whether questions plan the program of a plan: they plan no pipelines yet. What is computed again programs
/// choose themselves.
bool hasPass(const ParallelPlan &plan);

/// What the program of a plan takes.
struct ProgramFigures {
  double seconds = 0;    ///< of one step
  int64_t peakBytes = 0; ///< of a rank's device
};

/// The configuration that asks for a plan, as the text of a ds_config.json, a comment on each value saying
/// why it was chosen; time and memory are those of its program where it was made. Of the configuration that
/// was `asked` with it has what steers training and no plan decides: optimizer, schedule, clipping, loss
/// scale.
std::string configForPlan(const ModelShape &shape, const Candidate &candidate, const config::Cluster &cluster,
                          const std::vector<config::Setting> &asked = {},
                          const std::optional<ProgramFigures> &program = std::nullopt);

} // namespace ds::cost

#endif // DS_COST_SEARCH_H
