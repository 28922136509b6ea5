//===- CudaFixture.h - Programs on the fake device ------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_CUDAFIXTURE_H
#define DS_UNITTESTS_RUNTIME_CUDA_CUDAFIXTURE_H

#include "Fake/Fake.h"
#include "ToCuda.h"

#include "ds/Runtime/Engine/Device.h"
#include "ds/Runtime/Engine/Executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <dlfcn.h>
#include <filesystem>

namespace ds::rt::test {

/// The plugin on the fake device, with a cache of its own; the kernels of TestKernels.c are known to it.
class CudaFixture : public testing::Test {
protected:
  CudaFixture() {
    for (const char *name : {"DS_CUDA_DRIVER", "DS_CUBLASLT", "DS_CUDNN", "DS_NVML"})
      ::setenv(name, DS_FAKE_CUDA, 1);
    ::setenv("DS_CUPTI", DS_FAKE_CUDA, 1);
    ::setenv("DS_FAKE_PROFILER", "1", 1); // times by events, unless a test wants others
    char pattern[] = "/tmp/ds-cuda-test-XXXXXX";
    cache = ::mkdtemp(pattern);
    ::setenv("DS_CACHE_DIR", cache.c_str(), 1);
    dsFakeReset();
  }
  ~CudaFixture() override {
    for (const char *name :
         {"DS_FAKE_DEVICES", "DS_FAKE_ARCH", "DS_FAKE_MEMORY", "DS_FAKE_HOLDER", "DS_FAKE_FAULT",
          "DS_CUDA_CHECK", "DS_CUDA_GRAPH", "DS_FAKE_CUBLASLT", "DS_FAKE_CUDNN", "DS_FAKE_PROFILER",
          "DS_FAKE_REFUSES", "DS_FAKE_SLOW", "DS_FAKE_DRIVER_BUILD", "DS_FAKE_ENGINES",
          "DS_FAKE_UNRECORDABLE", "DS_FAKE_UNLOCKABLE"})
      ::unsetenv(name);
    executor.reset();
    device.reset();
    std::filesystem::remove_all(cache);
  }

  /// Registers a kernel of TestKernels.c.
  static void know(const Program &program) {
    static void *library = ::dlopen(DS_TEST_KERNELS, RTLD_NOW | RTLD_LOCAL);
    for (const Kernel &kernel : program.kernels)
      if (!runsOnCpu(kernel))
        dsFakeKernel(kernel.name.c_str(), ::dlsym(library, kernel.name.c_str()),
                     static_cast<uint32_t>(kernel.alignments.size()), kernel.extent);
  }

  Status load(const Program &program, bool poison = false) {
    know(program);
    executor.reset();
    Result<std::unique_ptr<Device>> opened = openCudaDevice({});
    if (!opened)
      return opened.error();
    device = std::move(*opened);
    ExecutorOptions options;
    options.device = device.get();
    options.poison = poison;
    Result<std::unique_ptr<Executor>> loaded = Executor::load(program, options);
    if (!loaded)
      return loaded.error();
    executor = std::move(*loaded);
    return {};
  }

  /// Writes to and reads from a buffer wherever it lies.
  template <class T>
  void put(uint32_t buffer, const std::vector<T> &values) {
    ASSERT_TRUE(executor->change(static_cast<std::byte *>(executor->data(buffer)), values.size() * sizeof(T),
                                 [&](std::byte *host) -> Status {
                                   std::memcpy(host, values.data(), values.size() * sizeof(T));
                                   return {};
                                 }));
  }
  template <class T>
  std::vector<T> get(uint32_t buffer, size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(executor->inspect(static_cast<std::byte *>(executor->data(buffer)), count * sizeof(T),
                                  [&](const std::byte *host) -> Status {
                                    std::memcpy(values.data(), host, count * sizeof(T));
                                    return {};
                                  }));
    return values;
  }

  std::string cache;
  std::unique_ptr<Device> device;
  std::unique_ptr<Executor> executor;
};

/// Each step adds its micro-steps' inputs to a sum: x is an input, s a state.
struct Adder {
  ProgramBuilder b;
  uint32_t x, s, loss;

  explicit Adder(uint32_t accumulation = 1) {
    x = b.input("x", {256});
    s = b.state("s", {256});
    loss = b.output("loss");
    b.launch("ds_descend", 0, {s, x}, {256, -1000}); // s += x
    b.program.strings.push_back("add of layer 0");
    b.program.commands.back().location = 1;
    b.launch("ds_mean_square", 1, {s, loss}, {256});
    b.segment();
    if (accumulation > 1)
      b.accumulate(accumulation);
    toCuda(b.program);
  }
};

/// Writes an Adder's input.
inline Status fillWith(Executor &executor, uint32_t microStep, float value) {
  std::fill_n(static_cast<float *>(executor.inputs(microStep)[0]), 256, value);
  return {};
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_CUDA_CUDAFIXTURE_H
