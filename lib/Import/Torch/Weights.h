//===- Weights.h - Writes the archive's values as a safetensors file ------------===//
#ifndef DS_LIB_IMPORT_TORCH_WEIGHTS_H
#define DS_LIB_IMPORT_TORCH_WEIGHTS_H

#include "States.h"

#include <string>

namespace ds::ts {

/// Writes all of `data`; throws Failure (exit code 6).
void writeAll(int fd, const std::string &data);
/// Writes the states that the module declares, in the order that readers want: by alignment, then by name.
/// The tensors' memory goes to the file as it is.
void writeWeights(int fd, States &states);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_WEIGHTS_H
