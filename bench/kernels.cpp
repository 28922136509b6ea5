//===- kernels.cpp - Times of generated kernels --------------------------------===//
//
// kernels FILE.mlir [ELEMENTS]: compiles every ds.kernel of the file, runs each on two threads as the
// executor does, and prints one JSON object a line: the best of many runs, in microseconds, and the bytes of
// the operands. Operands of unknown size get ELEMENTS. bench/kernels.py puts PyTorch beside it.
//
//===---------------------------------------------------------------------------===//

#include "ds/Codegen/CompileKernels.h"
#include "ds/Kernels/Parallel.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using Clock = std::chrono::steady_clock;
using Function = void (*)(void *const *, const void *, int64_t, int64_t);

static double microsecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

/// Memory for every operand: small positive f32 numbers, zeros of other types.
static std::vector<void *> makeOperands(mlir::ds::KernelOp kernel, int64_t elements) {
  std::vector<void *> pointers;
  for (Attribute attribute : kernel.getBuffers()) {
    auto buffer = cast<mlir::ds::BufferType>(cast<TypeAttr>(attribute).getValue());
    RankedTensorType type = buffer.getTensor();
    int64_t span = 1;
    for (auto [size, stride] : llvm::zip(type.getShape(), buffer.getStrides()))
      span += ((ShapedType::isDynamic(size) ? elements : std::max<int64_t>(size, 1)) - 1) * stride;
    int64_t bytes = span * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    void *memory = std::aligned_alloc(64, llvm::alignTo(bytes, 64));
    std::memset(memory, 0, llvm::alignTo(bytes, 64));
    for (int64_t k = 0; type.getElementType().isF32() && k < span; ++k)
      static_cast<float *>(memory)[k] = float(k % 251) / 251 + 0.01f;
    pointers.push_back(memory);
  }
  return pointers;
}

/// One launch as the executor makes it.
static void launch(Function function, void *const *buffers, int64_t extent, int64_t grain) {
  std::pair<Function, void *const *> call{function, buffers};
  ::ds::rt::parallelRanges(extent, grain, 2, &call, [](void *context, int64_t begin, int64_t end) {
    auto &[function, buffers] = *static_cast<decltype(call) *>(context);
    function(buffers, nullptr, begin, end);
  });
}

/// Microseconds of the fastest of `runs` launches.
static double fastest(Function function, void *const *buffers, int64_t extent, int64_t grain, int runs) {
  double best = 1e30;
  for (int run = 0; run < runs; ++run) {
    auto begin = Clock::now();
    launch(function, buffers, extent, grain);
    best = std::min(best, microsecondsSince(begin));
  }
  return best;
}

/// Measures every kernel of the image and prints a line for each.
static void measure(void *handle, ArrayRef<mlir::ds::KernelOp> kernels,
                    ArrayRef<mlir::ds::CompiledKernel> compiled, int64_t elements) {
  for (auto [kernel, info] : llvm::zip(kernels, compiled)) {
    bool isDynamic = info.extent == 0;
    auto function = reinterpret_cast<Function>(dlsym(handle, info.symbol.c_str()));
    std::vector<void *> buffers = makeOperands(kernel, elements);
    double best = fastest(function, buffers.data(), isDynamic ? elements : info.extent, info.grain,
                          isDynamic ? 12 : 300);
    double bytes = info.bytes * double(isDynamic ? elements : 1);
    llvm::outs() << llvm::formatv("{{\"kernel\":\"{0}\",\"us\":{1:F1},\"gbytes_per_second\":{2:F1}}\n",
                                  info.symbol, best, bytes / best / 1e3);
    for (void *buffer : buffers)
      std::free(buffer);
  }
}

int main(int argc, char **argv) {
  if (argc < 2) {
    llvm::errs() << "usage: kernels FILE.mlir [ELEMENTS]\n";
    return 2;
  }
  DialectRegistry registry;
  registry.insert<mlir::ds::DsDialect>();
  mlir::ds::registerCodegenDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = parseSourceFile<ModuleOp>(argv[1], &context);
  auto target = mlir::ds::findTargetCpu("host");
  if (!module || !target)
    return 3;
  int64_t elements = argc > 2 ? std::atoll(argv[2]) : 20'000'000;
  auto kernels = llvm::to_vector(module->getOps<mlir::ds::KernelOp>());
  auto start = Clock::now();
  auto compiled = mlir::ds::compileKernels(kernels, *target);
  double compileTime = microsecondsSince(start);
  if (!compiled) {
    llvm::errs() << compiled.error().message << "\n";
    return 3;
  }
  llvm::outs() << llvm::formatv(
      "{{\"compile_us\":{0:F0},\"kernels\":{1},\"image_bytes\":{2},\"cpu\":\"{3}\"}\n", compileTime,
      kernels.size(), compiled->image.size(), target->cpu);
  int file = memfd_create("kernels", 0);
  if (write(file, compiled->image.data(), compiled->image.size()) != ssize_t(compiled->image.size()))
    return 6;
  void *handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW);
  measure(handle, kernels, compiled->kernels, elements);
  return 0;
}
