//===- FillSample.h - From one sample of a file to one row of the inputs -------===//
#ifndef DS_LIB_RUNTIME_DATA_FILLSAMPLE_H
#define DS_LIB_RUNTIME_DATA_FILLSAMPLE_H

#include "Sources.h"

namespace ds::rt {

/// Converts one sample into row `row` of every input that has a destination: what the file holds, what
/// follows from its tokens, and the ignore index where a mask says that a target does not count. Invalid: a
/// value breaks its input's rule.
Status fillSample(const DataOptions &options, std::span<const InputSpec> inputs, const SamplePlace &place,
                  uint64_t row, std::span<void *const> destinations);

/// Whether samples of `file` may hold `ignored` in place of a target of input `targets`: a mask or the end of
/// a document puts it there, or the file's own elements can have that value.
bool mayLeaveOut(const DataOptions &options, const Columns &file, size_t targets, int64_t ignored);

/// How many targets of one sample the loss counts: those of input `targets` that are not its ignore index.
/// Fails as fillSample does.
Result<uint64_t> countTargetsOf(const DataOptions &options, std::span<const InputSpec> inputs, size_t targets,
                                const SamplePlace &place);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_DATA_FILLSAMPLE_H
