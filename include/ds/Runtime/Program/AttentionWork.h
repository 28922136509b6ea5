//===- AttentionWork.h - What attention computes, wherever it is counted ---------===//
//
// One count for programs and for rules, as FlashAttention counts (arXiv 2307.08691, section 4.1): 4
// operations for each pair of positions and element of a head, two and a half times as many backward, where
// the scores are computed once more, and of causal attention half. Published rules for the operations of a
// model count causal attention in full; they have names of their own (ds/Cost/Formulas.h, stepFlops).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_ATTENTIONWORK_H
#define DS_RUNTIME_PROGRAM_ATTENTIONWORK_H

namespace ds::rt {

/// One rank's attention of one layer. Sizes are doubles, for a program's may leave 64 bits when multiplied.
struct AttentionWork {
  double heads = 0; ///< query heads of all samples
  double queries = 0, keys = 0;
  double width = 0;  ///< elements of a head
  double window = 0; ///< positions that one sees to either side, itself included; 0: all
  bool isCausal = true;
  bool isGradient = false;
  bool isFast = false; ///< a gradient that is added up in any order
  bool drops = false;  ///< some of the weights
};

/// Products with a head's scores: scores and their product with the values; backward the scores again and the
/// gradients of scores, queries, keys and values.
inline constexpr double kAttentionProducts = 2, kAttentionGradientProducts = 5;

/// Pairs of the first `positions` positions and those that lie at most `window` before them.
constexpr double pairsBehind(double positions, double window) {
  return positions <= window ? positions * positions / 2 : window * (positions - window / 2);
}

/// Pairs of a query and a key of one head that are computed. A window leaves those that lie in it: of causal
/// attention before each query, which are the last of the keys, else behind it as well. Without one, causal
/// attention skips half of the pairs where there are as many queries as keys; with a past before the queries
/// nothing is taken off.
constexpr double attentionPairs(const AttentionWork &work) {
  double all = work.queries * work.keys, w = work.window;
  if (w <= 0 || w >= work.keys)
    return work.isCausal && work.queries == work.keys ? all / 2 : all;
  double past = work.keys > work.queries ? work.keys - work.queries : 0;
  double pairs = pairsBehind(work.keys, w) - pairsBehind(past, w);
  if (work.isCausal)
    return pairs;
  double early = work.queries > work.keys ? work.queries - work.keys : 0; // queries before the first key
  early = early < w ? early : w;
  pairs += pairsBehind(work.keys - past, w) + early * (w - early / 2);
  return pairs < all ? pairs : all;
}

/// Its operations: 2 per multiplication and addition.
constexpr double attentionFlops(const AttentionWork &work) {
  double products = work.isGradient ? kAttentionGradientProducts : kAttentionProducts;
  return 2 * products * work.heads * attentionPairs(work) * work.width;
}

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_ATTENTIONWORK_H
