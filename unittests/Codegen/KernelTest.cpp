//===- KernelTest.cpp - Generated kernels against their meaning ----------------===//

#include "KernelHarness.h"
#include "ds/Codegen/KernelClass.h"
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

using namespace ds::test;

namespace {

Tensor randomTensor(std::vector<int64_t> shape, unsigned seed, double low = -2, double high = 2) {
  Tensor tensor{std::move(shape), {}};
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> draw{float(low), float(high)};
  for (int64_t k = 0, n = tensor.size(); k < n; ++k)
    tensor.values.push_back(draw(generator));
  return tensor;
}

void expectNear(const Tensor &actual, const Tensor &expected, double tolerance) {
  ASSERT_EQ(actual.shape, expected.shape);
  for (size_t k = 0; k < expected.values.size(); ++k) {
    double bound = tolerance * std::max(1.0, std::abs(expected.values[k]));
    ASSERT_NEAR(actual.values[k], expected.values[k], bound) << "element " << k;
  }
}

/// Runs in one piece and in three uneven ones; both give the same bits, near to what the body means.
void check(KernelHarness &harness, const std::string &name, const std::vector<Tensor> &inputs,
           double tolerance = 2e-6, int64_t elements = 0) {
  ASSERT_TRUE(harness.isLoaded());
  std::vector<Tensor> whole = harness.run(name, inputs, {}, elements);
  std::vector<Tensor> pieces = harness.run(name, inputs, {0.17, 0.71}, elements);
  std::vector<Tensor> expected = harness.interpret(name, inputs);
  ASSERT_EQ(whole.size(), expected.size());
  for (size_t k = 0; k < whole.size(); ++k) {
    expectNear(whole[k], expected[k], tolerance);
    ASSERT_EQ(whole[k].values.size(), pieces[k].values.size());
    for (size_t e = 0; e < whole[k].values.size(); ++e)
      ASSERT_EQ(std::memcmp(&whole[k].values[e], &pieces[k].values[e], sizeof(double)), 0) << "element " << e;
  }
}

TEST(Kernel, AddsTensors) {
  KernelHarness harness(R"(
    ds.kernel @add inputs 2 buffers [!ds.buffer<tensor<37x5xf32>, [5, 1], device>, !ds.buffer<tensor<37x5xf32>, [5, 1], device>, !ds.buffer<tensor<37x5xf32>, [5, 1], device>] {
    ^bb0(%a: tensor<37x5xf32>, %b: tensor<37x5xf32>):
      %s = ds.add %a, %b : tensor<37x5xf32>
      ds.yield %s : tensor<37x5xf32>
    })");
  check(harness, "add", {randomTensor({37, 5}, 1), randomTensor({37, 5}, 2)});
}

TEST(Kernel, SoftmaxIsOneKernel) {
  KernelHarness harness(R"(
    ds.kernel @softmax inputs 1 buffers [!ds.buffer<tensor<7x83xf32>, [83, 1], device>, !ds.buffer<tensor<7x83xf32>, [83, 1], device>] {
    ^bb0(%x: tensor<7x83xf32>):
      %m = ds.reduce max %x dims [1] : tensor<7x83xf32> -> tensor<7xf32>
      %mb = ds.broadcast %m dims [0] : tensor<7xf32> -> tensor<7x83xf32>
      %d = ds.sub %x, %mb : tensor<7x83xf32>
      %e = ds.exp %d : tensor<7x83xf32>
      %s = ds.reduce sum %e dims [1] : tensor<7x83xf32> -> tensor<7xf32>
      %sb = ds.broadcast %s dims [0] : tensor<7xf32> -> tensor<7x83xf32>
      %r = ds.div %e, %sb : tensor<7x83xf32>
      ds.yield %r : tensor<7x83xf32>
    })");
  check(harness, "softmax", {randomTensor({7, 83}, 3, -9, 9)});
}

TEST(Kernel, SumsColumns) {
  KernelHarness harness(R"(
    ds.kernel @columns inputs 1 buffers [!ds.buffer<tensor<3x70x45xf32>, [3150, 45, 1], device>, !ds.buffer<tensor<45xf32>, [1], device>] {
    ^bb0(%x: tensor<3x70x45xf32>):
      %s = ds.reduce sum %x dims [0, 1] : tensor<3x70x45xf32> -> tensor<45xf32>
      ds.yield %s : tensor<45xf32>
    })");
  check(harness, "columns", {randomTensor({3, 70, 45}, 4)}, 1e-5);
}

} // namespace
