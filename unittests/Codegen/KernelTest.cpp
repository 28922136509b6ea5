//===- KernelTest.cpp - Generated kernels against their meaning ----------------===//

#include "KernelHarness.h"
#include "ds/Codegen/KernelClass.h"
#include "ds/Runtime/Program/KernelInterface.h"
#include <cmath>
#include <cstring>
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

/// Query heads of a packed [B, T, 3, H, D] activation go to a [B, H, T, D] tensor that lies in a larger
/// buffer.
TEST(Kernel, ReadsAndWritesViews) {
  KernelHarness harness(R"(
    ds.kernel @heads inputs 2 buffers [!ds.buffer<tensor<2x5x3x8xf32>, [360, 72, 8, 1], device>, !ds.buffer<tensor<8xf32>, [2], device>, !ds.buffer<tensor<2x3x5x8xf32>, [300, 80, 10, 1], device>] {
    ^bb0(%q: tensor<2x5x3x8xf32>, %g: tensor<8xf32>):
      %t = ds.transpose %q perm [0, 2, 1, 3] : tensor<2x5x3x8xf32> -> tensor<2x3x5x8xf32>
      %b = ds.broadcast %g dims [3] : tensor<8xf32> -> tensor<2x3x5x8xf32>
      %s = ds.mul %t, %b : tensor<2x3x5x8xf32>
      ds.yield %s : tensor<2x3x5x8xf32>
    })");
  check(harness, "heads", {randomTensor({2, 5, 3, 8}, 5), randomTensor({8}, 6)});
}

TEST(Kernel, RotatesHalves) {
  KernelHarness harness(R"(
    ds.kernel @rotary inputs 2 buffers [!ds.buffer<tensor<6x50xf32>, [50, 1], device>, !ds.buffer<tensor<6x50xf32>, [50, 1], device>, !ds.buffer<tensor<6x50xf32>, [50, 1], device>] {
    ^bb0(%x: tensor<6x50xf32>, %angle: tensor<6x50xf32>):
      %l = ds.slice %x offsets [0, 0] strides [1, 1] : tensor<6x50xf32> -> tensor<6x25xf32>
      %h = ds.slice %x offsets [0, 25] strides [1, 1] : tensor<6x50xf32> -> tensor<6x25xf32>
      %n = ds.neg %h : tensor<6x25xf32>
      %r = ds.concat %n, %l dim 1 : tensor<6x25xf32>, tensor<6x25xf32> -> tensor<6x50xf32>
      %c = ds.cos %angle : tensor<6x50xf32>
      %s = ds.sin %angle : tensor<6x50xf32>
      %xc = ds.mul %x, %c : tensor<6x50xf32>
      %rs = ds.mul %r, %s : tensor<6x50xf32>
      %y = ds.add %xc, %rs : tensor<6x50xf32>
      ds.yield %y : tensor<6x50xf32>
    })");
  check(harness, "rotary", {randomTensor({6, 50}, 7), randomTensor({6, 50}, 8, -3000, 3000)});
}

TEST(Kernel, ServesAnySize) {
  KernelHarness harness(R"(
    ds.kernel @decay inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
    ^bb0(%p: tensor<?xf32>, %rate: tensor<f32>):
      %r = ds.broadcast %rate dims [] : tensor<f32> -> tensor<?xf32>
      %d = ds.mul %p, %r : tensor<?xf32>
      %s = ds.sub %p, %d : tensor<?xf32>
      ds.yield %s : tensor<?xf32>
    })");
  for (int64_t elements : {1, 15, 16, 17, 1000, 5003})
    check(harness, "decay", {randomTensor({elements}, 9), randomTensor({}, 10)}, 2e-6, elements);
}

/// The cosine schedule with bias corrections, in f64 on scalars.
TEST(Kernel, ComputesScalars) {
  KernelHarness harness(R"(
    ds.kernel @schedule inputs 1 buffers [!ds.buffer<tensor<i64>, [], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<f64>, [], device>] {
    ^bb0(%step: tensor<i64>):
      %s = ds.convert %step : tensor<i64> -> tensor<f64>
      %k = ds.constant dense<3.0e-3> : tensor<f64>
      %a = ds.mul %s, %k : tensor<f64>
      %c = ds.cos %a : tensor<f64>
      %b = ds.constant dense<0.999> : tensor<f64>
      %p = ds.pow %b, %s : tensor<f64>
      %l = ds.log %p : tensor<f64>
      %q = ds.add %c, %l : tensor<f64>
      %r = ds.convert %q : tensor<f64> -> tensor<f32>
      ds.yield %r, %p : tensor<f32>, tensor<f64>
    })");
  check(harness, "schedule", {Tensor{{}, {741}}}, 1e-7);
}

/// Known answers of Philox-4x32-10 for counter 0 and key 0, as Random123 prints them.
TEST(Kernel, DrawsPublishedNumbers) {
  KernelHarness harness(R"(
    ds.kernel @draw inputs 1 buffers [!ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] {
    ^bb0(%rng: tensor<2xi64>):
      %u = ds.random_uniform %rng id 0 first 0 : tensor<2xi64> -> tensor<4xf32>
      ds.yield %u : tensor<4xf32>
    })");
  ASSERT_TRUE(harness.isLoaded());
  std::vector<double> drawn = harness.run("draw", {Tensor{{2}, {0, 0}}})[0].values;
  uint32_t words[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  for (int k = 0; k < 4; ++k)
    EXPECT_EQ(drawn[k], double(words[k] >> 8) * 0x1p-24);
}

TEST(Kernel, DropsTheSameElementsAnywhere) {
  KernelHarness harness(R"(
    ds.kernel @whole inputs 1 buffers [!ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<9x37xf32>, [37, 1], device>] {
    ^bb0(%rng: tensor<2xi64>):
      %u = ds.random_uniform %rng id 3 first 0 : tensor<2xi64> -> tensor<9x37xf32>
      ds.yield %u : tensor<9x37xf32>
    }
    ds.kernel @shard inputs 1 buffers [!ds.buffer<tensor<2xi64>, [1], device>, !ds.buffer<tensor<4x37xf32>, [37, 1], device>] {
    ^bb0(%rng: tensor<2xi64>):
      %u = ds.random_uniform %rng id 3 first 185 : tensor<2xi64> -> tensor<4x37xf32>
      ds.yield %u : tensor<4x37xf32>
    })");
  Tensor rng{{2}, {123456789, 42}};
  check(harness, "whole", {rng}, 0);
  Tensor whole = harness.run("whole", {rng})[0], shard = harness.run("shard", {rng})[0];
  EXPECT_EQ(std::vector<double>(whole.values.begin() + 185, whole.values.end()),
            shard.values); // 5 * 37 = 185
}

TEST(Kernel, OddDataNeverTraps) {
  KernelHarness harness(R"(
    ds.kernel @odd inputs 2 buffers [!ds.buffer<tensor<3xi32>, [1], device>, !ds.buffer<tensor<3xf32>, [1], device>, !ds.buffer<tensor<3xi32>, [1], device>, !ds.buffer<tensor<3xi32>, [1], device>] {
    ^bb0(%a: tensor<3xi32>, %x: tensor<3xf32>):
      %z = ds.constant dense<[0, -1, 2]> : tensor<3xi32>
      %d = ds.div %a, %z : tensor<3xi32>
      %c = ds.convert %x : tensor<3xf32> -> tensor<3xi32>
      ds.yield %d, %c : tensor<3xi32>, tensor<3xi32>
    })");
  ASSERT_TRUE(harness.isLoaded());
  double least = -2147483648.0;
  auto outputs = harness.run("odd", {Tensor{{3}, {7, least, -7}}, Tensor{{3}, {NAN, 1e30, -1e30}}});
  EXPECT_THAT(outputs[0].values, testing::ElementsAre(7, least, -3));         // -7 / 2 rounds towards zero
  EXPECT_THAT(outputs[1].values, testing::ElementsAre(0, 2147483520, least)); // the largest f32 below 2^31
}

/// NaN passes through max; an empty sum is 0.
TEST(Kernel, ReductionsKeepEdges) {
  KernelHarness harness(R"(
    ds.kernel @most inputs 1 buffers [!ds.buffer<tensor<3x21xf32>, [21, 1], device>, !ds.buffer<tensor<3xf32>, [1], device>] {
    ^bb0(%x: tensor<3x21xf32>):
      %m = ds.reduce max %x dims [1] : tensor<3x21xf32> -> tensor<3xf32>
      ds.yield %m : tensor<3xf32>
    }
    ds.kernel @empty inputs 1 buffers [!ds.buffer<tensor<3x0xf32>, [1, 1], device>, !ds.buffer<tensor<3xf32>, [1], device>] {
    ^bb0(%x: tensor<3x0xf32>):
      %m = ds.reduce sum %x dims [1] : tensor<3x0xf32> -> tensor<3xf32>
      ds.yield %m : tensor<3xf32>
    })");
  Tensor x = randomTensor({3, 21}, 11, -5, -1);
  x.values[20] = NAN;
  x.values[21 + 3] = -INFINITY;
  std::vector<double> most = harness.run("most", {x})[0].values;
  EXPECT_TRUE(std::isnan(most[0]));
  EXPECT_EQ(most[1], *std::max_element(x.values.begin() + 21, x.values.begin() + 42));
  EXPECT_THAT(harness.run("empty", {Tensor{{3, 0}, {}}})[0].values, testing::ElementsAre(0, 0, 0));
}

/// What mayShareMemory allows is so: softmax over its own input.
TEST(Kernel, WorksInPlace) {
  KernelHarness harness(R"(
    ds.kernel @softmax inputs 1 buffers [!ds.buffer<tensor<5x83xf32>, [83, 1], device>, !ds.buffer<tensor<5x83xf32>, [83, 1], device>] {
    ^bb0(%x: tensor<5x83xf32>):
      %m = ds.reduce max %x dims [1] : tensor<5x83xf32> -> tensor<5xf32>
      %mb = ds.broadcast %m dims [0] : tensor<5xf32> -> tensor<5x83xf32>
      %d = ds.sub %x, %mb : tensor<5x83xf32>
      %e = ds.exp %d : tensor<5x83xf32>
      %s = ds.reduce sum %e dims [1] : tensor<5x83xf32> -> tensor<5xf32>
      %sb = ds.broadcast %s dims [0] : tensor<5xf32> -> tensor<5x83xf32>
      %r = ds.div %e, %sb : tensor<5x83xf32>
      ds.yield %r : tensor<5x83xf32>
    })");
  ASSERT_TRUE(harness.isLoaded());
  EXPECT_TRUE(mlir::ds::mayShareMemory(harness.kernel("softmax").getBody().front(), 0, 0));
  Tensor x = randomTensor({5, 83}, 12, -9, 9);
  std::vector<double> apart = harness.run("softmax", {x})[0].values;
  std::vector<float> memory(x.values.begin(), x.values.end());
  void *buffers[] = {memory.data(), memory.data()};
  harness.function("softmax")(buffers, nullptr, 0, 5);
  for (size_t k = 0; k < memory.size(); ++k)
    ASSERT_EQ(memory[k], float(apart[k]));
}

//===----------------------------------------------------------------------===//
// Images and targets
//===----------------------------------------------------------------------===//

const char *kGelu = R"(
    ds.kernel @gelu inputs 1 buffers [!ds.buffer<tensor<777xf32>, [1], device>, !ds.buffer<tensor<777xf32>, [1], device>] {
    ^bb0(%x: tensor<777xf32>):
      %k = ds.constant dense<0.70710677> : tensor<777xf32>
      %h = ds.constant dense<0.5> : tensor<777xf32>
      %o = ds.constant dense<1.0> : tensor<777xf32>
      %s = ds.mul %x, %k : tensor<777xf32>
      %e = ds.erf %s : tensor<777xf32>
      %f = ds.add %e, %o : tensor<777xf32>
      %g = ds.mul %x, %f : tensor<777xf32>
      %r = ds.mul %g, %h : tensor<777xf32>
      ds.yield %r : tensor<777xf32>
    })";

TEST(Image, IsTheSameForTheSameKernels) {
  KernelHarness first(kGelu), second(kGelu);
  ASSERT_TRUE(first.isLoaded());
  EXPECT_EQ(first.compiled().image, second.compiled().image);
  EXPECT_EQ(first.compiled().kernels[0].bytes, 2 * 777 * 4);
}

// The loader compares these lines with the program's table: what code touches is not up to the table.
TEST(Image, SaysWhatItsKernelsTouch) {
  KernelHarness harness(R"(
    ds.kernel @rows inputs 2 buffers [!ds.buffer<tensor<6x8xf32>, [16, 1], device>,
        !ds.buffer<tensor<8xbf16>, [1], device>, !ds.buffer<tensor<6x8xf32>, [8, 1], device>] {
    ^bb0(%x: tensor<6x8xf32>, %b: tensor<8xbf16>):
      %w = ds.convert %b : tensor<8xbf16> -> tensor<8xf32>
      %s = ds.broadcast %w dims [1] : tensor<8xf32> -> tensor<6x8xf32>
      %r = ds.mul %x, %s : tensor<6x8xf32>
      ds.yield %r : tensor<6x8xf32>
    }
    ds.kernel @any inputs 2 buffers [!ds.buffer<tensor<?xbf16>, [1], device>, !ds.buffer<tensor<f32>, [], device>,
        !ds.buffer<tensor<?xbf16>, [1], device>] items 3 {
    ^bb0(%x: tensor<?xbf16>, %s: tensor<f32>):
      %r = ds.exp %x : tensor<?xbf16>
      ds.yield %r : tensor<?xbf16>
    })");
  ASSERT_TRUE(harness.isLoaded());
  const std::vector<uint8_t> &image = harness.compiled().image;
  const std::string bytes(image.begin(), image.end());
  // 5 rows of 16 elements and 8 more: 88 * 4 bytes; 8 * 2; 48 * 4.
  const std::string rows = "rows: extent " + std::to_string(harness.compiled().kernels[0].extent) +
                           ", params 0, items 0, operands 352 16 192\n";
  const std::string any = "any: extent 0, params 1, items 3, operands 2 per unit 4 2 per unit\n";
  EXPECT_NE(bytes.find(rows + any + '\0'), std::string::npos);
  EXPECT_NE(bytes.find(::ds::rt::kInterfaceSymbol), std::string::npos);
}

TEST(Image, SmallerProcessorsComputeToo) {
  for (const char *cpu : {"x86-64", "x86-64-v2", "x86-64-v3"}) {
    KernelHarness harness(kGelu, cpu);
    check(harness, "gelu", {randomTensor({777}, 13, -6, 6)});
    EXPECT_THAT(harness.compiled().target.features, testing::Not(testing::Contains("avx512f"))) << cpu;
  }
}

TEST(Image, UnknownProcessorIsAUsageError) {
  auto target = mlir::ds::findTargetCpu("pentium9");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, ds::ExitCode::Usage);
  EXPECT_THAT(target.error().message, testing::HasSubstr("'pentium9'"));
}

} // namespace
