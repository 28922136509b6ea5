//===- Published.h - The models of published measurements ----------------------------===//
#ifndef DS_UNITTESTS_COST_PUBLISHED_H
#define DS_UNITTESTS_COST_PUBLISHED_H

#include "ds/Cost/Model.h"

namespace ds::cost {

/// A GPT of the Megatron papers: sequences of 2048, a vocabulary of 51200.
inline ModelShape gpt(int64_t heads, int64_t hidden, int64_t layers) {
  ModelShape shape;
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.vocab = 51200;
  shape.seq = 2048;
  return shape;
}

} // namespace ds::cost

#endif // DS_UNITTESTS_COST_PUBLISHED_H
