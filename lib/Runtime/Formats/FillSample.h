//===- FillSample.h - From one sample of a file to one row of the inputs -------===//
#ifndef DS_LIB_RUNTIME_FORMATS_FILLSAMPLE_H
#define DS_LIB_RUNTIME_FORMATS_FILLSAMPLE_H

#include "Sources.h"

namespace ds::rt {

/// Converts one sample into row `row` of every input: what the file holds, what follows from its tokens, and
/// the ignore index where a mask says that a target does not count. Invalid: a value breaks its input's rule.
Status fillSample(const DataOptions &options, std::span<const InputSpec> inputs, const SamplePlace &place,
                  uint64_t row, std::span<void *const> destinations);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_FILLSAMPLE_H
