//===- CudaEmulator.h - CUDA kernels on the CPU, thread by thread --------------===//
//
// The code that becomes PTX, with the primitives of a thread as calls, compiled for this machine: what a
// kernel computes and where it waits is tested without a GPU. What is left to the GPU is LLVM's back end.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_CODEGEN_CUDAEMULATOR_H
#define DS_UNITTESTS_CODEGEN_CUDAEMULATOR_H

#include "Cuda/CudaEmitter.h"
#include "KernelHarness.h"
#include <functional>

namespace ds::test {

class CudaEmulator {
public:
  /// Compiles the kernels of `harness` as CUDA kernels whose operands lie at multiples of 16 bytes.
  explicit CudaEmulator(KernelHarness &harness);
  ~CudaEmulator();

  bool isLoaded() const { return handle != nullptr; }
  const mlir::ds::codegen::CudaMapping &mapping(const std::string &name) { return mappings[name]; }

  /// Runs a kernel with `blocks` blocks, or as many as the mapping asks for.
  std::vector<Tensor> run(const std::string &name, const std::vector<Tensor> &inputs, int64_t blocks = 0,
                          int64_t elements = 0);

  /// Runs a kernel over the inputs of several items, of as many elements each; the outputs of each.
  std::vector<std::vector<Tensor>> runItems(const std::string &name,
                                            const std::vector<std::vector<Tensor>> &inputs,
                                            const std::vector<int64_t> &elements, int64_t blocks);

  /// Which block runs at a turn, of so many; null: the last first.
  std::function<int64_t(int64_t turn, int64_t blocks)> order;

private:
  /// What a kernel is given beside its operands.
  struct Launch {
    int64_t param = 0;
    std::vector<int64_t> table;
    int64_t blocks = 1;
  };
  void execute(const std::string &name, void *const *operands, const Launch &launch);

  KernelHarness &harness;
  std::map<std::string, mlir::ds::codegen::CudaMapping> mappings;
  std::map<std::string, mlir::ds::codegen::CudaOperands> operands;
  void *handle = nullptr;
};

} // namespace ds::test

#endif // DS_UNITTESTS_CODEGEN_CUDAEMULATOR_H
