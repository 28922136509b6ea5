//===- Slopes.h - Known addends of scores that grow with the distance -------------===//
#ifndef DS_LIB_IMPORT_TORCH_SLOPES_H
#define DS_LIB_IMPORT_TORCH_SLOPES_H

#include "Builder.h"

namespace ds::ts {

/// A number for each head times the distance of each key from its query or from an end (ALiBi), with or
/// without a number that hides the future, as the ops that compute the elements of `t`; null where `t`, which
/// is contiguous, has other elements.
TensorRef makeSlopes(Builder &b, const at::Tensor &t);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_SLOPES_H
