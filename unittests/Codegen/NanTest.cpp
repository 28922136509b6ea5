//===- NanTest.cpp - Where NaN goes ----------------------------------------------===//
//
// Every elementwise op of NaN in either operand, and of infinities, against what the op means: on the CPU, in
// the form that CUDA's threads compute, and where PTX has two instructions, in its text.
//
//===---------------------------------------------------------------------------===//

#include "CudaEmulator.h"
#include "KernelHarness.h"
#include "OperationForms.h"
#include "ds/Codegen/CompileCuda.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace ds::test;

namespace {

constexpr int kElements = 19;

/// Numbers that lack in x alone, in y alone and in both, among infinities and ordinary ones.
std::vector<Tensor> inputs() {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN(), inf = HUGE_VAL;
  return {{{kElements}, {nan, 1, nan, 0, -1, inf, -inf, nan, 0.5, nan, 2, -0.5, nan, 3, 0, 1, nan, -2, 0.25}},
          {{kElements}, {1, nan, nan, -1, 0.5, 1, 2, 0, nan, -1, 0, 2, inf, nan, 0, 1, -inf, nan, 0.5}}};
}

/// The forms whose result can be NaN or is a truth: integers have none.
std::vector<OperationForm> formsOf(const std::string &element) {
  std::vector<OperationForm> forms;
  for (OperationForm &form : operationForms(element))
    if (form.result.empty() || form.result == "i1" || form.result[0] != 'i')
      if (form.result != "ui8" && form.lines.find("LONG") == std::string::npos)
        forms.push_back(std::move(form));
  return forms;
}

class Nan : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    forms = formsOf(GetParam());
    for (size_t k = 0; k < forms.size(); ++k)
      text += writeKernel("k" + std::to_string(k), forms[k], GetParam(), std::to_string(kElements) + "x");
  }
  /// Only what is a number and what is not: how near numbers are is for other tests.
  void compare(size_t k, const Tensor &actual, const Tensor &expected) const {
    const std::vector<Tensor> x = inputs();
    for (int e = 0; e < kElements; ++e)
      EXPECT_EQ(std::isnan(actual.values[e]), std::isnan(expected.values[e]))
          << forms[k].lines << "of " << x[0].values[e] << " and " << x[1].values[e] << " is "
          << actual.values[e] << ", not " << expected.values[e];
  }
  std::vector<OperationForm> forms;
  std::string text;
};

TEST_P(Nan, StaysOnTheCpu) {
  KernelHarness harness(text);
  ASSERT_TRUE(harness.isLoaded());
  for (size_t k = 0; k < forms.size(); ++k) {
    const std::string name = "k" + std::to_string(k);
    compare(k, harness.run(name, inputs())[0], harness.interpret(name, inputs())[0]);
  }
}

TEST_P(Nan, StaysInCudaThreads) {
  if (std::string(GetParam()) == "f64")
    GTEST_SKIP() << "some functions of fp64 have no form for CUDA";
  KernelHarness harness(text);
  CudaEmulator emulator(harness);
  for (size_t k = 0; k < forms.size(); ++k) {
    const std::string name = "k" + std::to_string(k);
    compare(k, emulator.run(name, inputs())[0], harness.interpret(name, inputs())[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Nan, testing::Values("f64", "f32", "bf16", "f16"));

/// max.f32 gives the other operand for NaN, max.NaN.f32 does not.
TEST(NanPtx, HasNoMaximumThatForgets) {
  for (std::string op : {"max", "min"}) {
    const std::string buffer = "!ds.buffer<tensor<64x64xf32>, [64, 1], device>", row = "tensor<64xf32>";
    KernelHarness harness("ds.kernel @e inputs 2 buffers [" + buffer + ", " + buffer + ", " + buffer +
                          "] {\n^bb0(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>):\n  %r = ds." + op +
                          " %x, %y : tensor<64x64xf32>\n  ds.yield %r : tensor<64x64xf32>\n}\n"
                          "ds.kernel @r inputs 1 buffers [" +
                          buffer + ", !ds.buffer<" + row +
                          ", [1], device>] {\n^bb0(%x: tensor<64x64xf32>):\n  %r = ds.reduce " + op +
                          " %x dims [1] : tensor<64x64xf32> -> " + row + "\n  ds.yield %r : " + row +
                          "\n}\n");
    for (std::string processor : {"sm_80", "sm_90"})
      for (const char *name : {"e", "r"}) {
        std::vector<uint32_t> alignments(harness.kernel(name).getBuffers().size(), 16);
        auto compiled = mlir::ds::compileCudaKernels({harness.kernel(name)}, {alignments}, processor);
        ASSERT_TRUE(compiled) << compiled.error().message;
        const std::string ptx(compiled->image.begin(), compiled->image.end());
        EXPECT_NE(ptx.find(op + ".NaN.f32"), std::string::npos) << ptx;
        EXPECT_EQ(ptx.find(op + ".f32"), std::string::npos) << ptx;
      }
  }
}

} // namespace
