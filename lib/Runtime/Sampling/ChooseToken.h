//===- ChooseToken.h - The next token, by its logits ----------------------------------===//
#ifndef DS_LIB_RUNTIME_SAMPLING_CHOOSETOKEN_H
#define DS_LIB_RUNTIME_SAMPLING_CHOOSETOKEN_H

#include "ds/Runtime/Sampling/Sample.h"

#include <span>

namespace ds::rt {

/// The token number `index` of a text. Temperature 0: the one of the largest logit, of several the first.
/// Otherwise one is drawn with probability softmax(logit / temperature), of those alone whose logit is not
/// below the topK-th largest; the draw is a function of the seed and `index`. Diverged: a logit is a NaN, or
/// none is finite.
Result<int64_t> chooseToken(std::span<const float> logits, const SampleOptions &options, uint64_t index);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAMPLING_CHOOSETOKEN_H
