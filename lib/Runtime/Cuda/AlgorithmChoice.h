//===- AlgorithmChoice.h - One of several algorithms, by time ---------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_ALGORITHMCHOICE_H
#define DS_LIB_RUNTIME_CUDA_ALGORITHMCHOICE_H

#include "AlgorithmCache.h"

namespace ds::rt::cuda {

/// Algorithms that compute the same, of which one is to be chosen.
struct Candidates {
  size_t count;                                       ///< at least 1, the library's first proposal first
  std::function<Status(size_t)> run;                  ///< puts one on the stream, on operands of any values
  std::function<AlgorithmCache::Value(size_t)> value; ///< what names one in later runs
};

/// The fastest candidate, which `cache` keeps under `key`, so that every later run takes the same one and
/// gives the same bits. Where nothing can be kept it is the first, for the same reason. One that does not run
/// is passed over.
Result<size_t> chooseByTime(const Driver &driver, CUstream stream, AlgorithmCache &cache,
                            const std::string &key, const Candidates &candidates);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_ALGORITHMCHOICE_H
