//===- KernelHarness.h - Compile, load, run and interpret kernels --------------===//
//
// The interpreter evaluates a body op by op on whole tensors in double precision, the way the op descriptions
// read; it shares nothing with code generation.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_CODEGEN_KERNELHARNESS_H
#define DS_UNITTESTS_CODEGEN_KERNELHARNESS_H

#include "ds/Codegen/CompileKernels.h"
#include "ds/Dialect/Ds.h"
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace ds::test {

/// A tensor of any element type; doubles hold every value the tests use.
struct Tensor {
  std::vector<int64_t> shape;
  std::vector<double> values; ///< row-major

  int64_t size() const;
};

/// Parses `text` (a module of ds.kernel ops); compiles all kernels into one image and loads it where a test
/// asks for what the processor's code is or does, but for those of two stages, which CUDA alone has. Tests of
/// code for CUDA ask for none: the same bodies are compiled for the processor by KernelFuzz, Imports and
/// Nan.StaysOnTheCpu.
class KernelHarness {
public:
  explicit KernelHarness(const std::string &text, const std::string &cpu = "host");
  ~KernelHarness();

  /// True when `text` is one kernel that classify() accepts; a body that does not parse fails the test.
  static bool classifies(const std::string &text, std::string *reason = nullptr);

  bool isLoaded() { return load(), handle != nullptr; }
  const mlir::ds::CompiledKernels &compiled() { return load(), kernels; }
  mlir::ModuleOp getModule() { return *module; }
  mlir::ds::KernelOp kernel(const std::string &name);

  /// Runs a kernel on copies of `inputs`; units are cut at `cuts` (fractions of the extent). Memory outside
  /// the outputs' elements is checked to be untouched; `elements` is the size of `?` operands.
  std::vector<Tensor> run(const std::string &name, const std::vector<Tensor> &inputs,
                          const std::vector<double> &cuts = {}, int64_t elements = 0);

  /// The same, where `run` does the work on the operands' addresses.
  using Launch = std::function<void(void *const *)>;
  std::vector<Tensor> launch(const std::string &name, const std::vector<Tensor> &inputs, int64_t elements,
                             const Launch &run);

  /// What the body means.
  std::vector<Tensor> interpret(const std::string &name, const std::vector<Tensor> &inputs);

  /// Address of the compiled function.
  using Function = void (*)(void *const *, const void *, int64_t, int64_t);
  Function function(const std::string &name);

private:
  void load();

  const std::string cpu;
  bool isCompiled = false; ///< or was tried to be
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::ds::CompiledKernels kernels;
  void *handle = nullptr;
};

/// `value` as an element of `type` holds it.
double roundTo(mlir::Type type, double value);

/// Evaluates the ops of `block` on the arguments; returns what it yields.
std::vector<Tensor> interpretBody(mlir::Block &block, const std::vector<Tensor> &arguments);

} // namespace ds::test

#endif // DS_UNITTESTS_CODEGEN_KERNELHARNESS_H
