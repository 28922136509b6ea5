//===- AlgorithmChoice.h - One of several algorithms, by time ---------------------------===//
#ifndef DS_LIB_RUNTIME_CUDA_BINDING_ALGORITHMCHOICE_H
#define DS_LIB_RUNTIME_CUDA_BINDING_ALGORITHMCHOICE_H

#include "Binding.h"

#include <functional>
#include <string>

namespace ds::rt::cuda {

/// Algorithms that compute the same, of which one is to be chosen.
struct Candidates {
  size_t count;                            ///< at least 1, the library's first proposal first
  std::function<Status(size_t)> run;       ///< puts one on the stream, on operands of any values
  std::function<std::string(size_t)> name; ///< for errors: "algorithm 2"
};

/// The fastest candidate; one that does not run is passed over. Fails where none runs, with what each says.
Result<size_t> fastest(const Driver &driver, CUstream stream, const Candidates &candidates);

/// Runs something once, to its end.
Status runOnce(const Driver &driver, CUstream stream, const std::function<Status()> &run);

} // namespace ds::rt::cuda

#endif // DS_LIB_RUNTIME_CUDA_BINDING_ALGORITHMCHOICE_H
