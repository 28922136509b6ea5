//===- PackInstances.h - Packing problems whose optimum is known ----------------===//
//
// Generators for tests and for bench/plan_packing. A perfect packing is cut from a full rectangle, so that
// its optimum is the rectangle's height; a training step is shaped as transformers shape it, so that its
// optimum is at least its lower bound.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_ANALYSIS_PACKINSTANCES_H
#define DS_UNITTESTS_ANALYSIS_PACKINSTANCES_H

#include "ds/Analysis/Packing/MemoryPlan.h"

namespace ds::analysis::testing {

/// The same numbers on every machine (splitmix64).
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// Uniform in [low, high].
  int64_t between(int64_t low, int64_t high);

private:
  uint64_t state;
};

/// `count` buffers that tile a rectangle of `height` bytes over `horizon` ops without waste. Guillotine cuts;
/// with `pinwheels`, every fourth cut is one of five pieces that no guillotine can make. Shuffled.
PackProblem perfectPacking(int count, int64_t height, int64_t horizon, uint64_t seed, bool pinwheels = false);

/// `problem` without a random `percent` of its buffers: the optimum is at most what it was.
PackProblem thinned(const PackProblem &problem, int percent, uint64_t seed);

struct TransformerShape {
  int layers = 12, width = 768, heads = 12, tokens = 1024, batch = 4, vocabulary = 50304;
  int transientsPerOp = 0;      ///< extra short-lived buffers around each op, to make instances larger
  bool updateInBackward = true; ///< a gradient dies right after it is made, as with one micro-step
  uint64_t seed = 0;            ///< != 0: sizes vary from layer to layer, as in mixed models
};

/// One training step: states in all segments, segment 0 with forward and backward (activations live from
/// forward to backward, LIFO), gradients, transients, logits; segment 1 with the update if it is not in the
/// backward.
PackProblem transformerStep(const TransformerShape &shape);

/// One micro-step of which the gradients wait for their reduction, each longer than the one before: a queue
/// that grows as what forward saved is freed. Large are only the gradients and the parameters that an op
/// gathers; every third op has a workspace.
PackProblem waitingGradients(int layers, int waits);

/// `count` buffers with random sizes and lifetimes; the optimum is unknown.
PackProblem randomProblem(int count, int64_t maxBytes, int64_t horizon, int64_t maxLife, uint64_t seed);

/// Instance `letter`, 'A' to 'K', of the eleven on which MiniMalloc is measured: 154 to 454 buffers that are
/// known to fit into kMiniMallocCapacity bytes (one of its units is a byte here, and alignment is 1). Live at
/// once is as much but in C, D and J, where it is 1015, 963 and 966.
PackProblem miniMallocInstance(char letter);
constexpr int64_t kMiniMallocCapacity = 1024;

} // namespace ds::analysis::testing

#endif // DS_UNITTESTS_ANALYSIS_PACKINSTANCES_H
