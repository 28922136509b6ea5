//===- GpuTest.cpp - What a GPU's calibration says and stands on ------------------===//
#include "Calibrate/Gpu.h"

#include "ds/Config/Cluster.h"

#include <gtest/gtest.h>

using namespace ds;
using namespace ds::rt;

namespace {

TEST(GpuCalibration, StandsOnTheBuiltInDescriptionOfTheDevice) {
  constexpr uint64_t kGiB = uint64_t(1) << 30;
  const std::tuple<const char *, uint64_t, const char *> cases[] = {
      {"NVIDIA H200", 140 * kGiB, "h200"},
      {"NVIDIA H100 80GB HBM3", 79 * kGiB, "h100-80g"},
      {"NVIDIA A100-SXM4-40GB", 39 * kGiB, "a100-40g"},
      {"NVIDIA A100-SXM4-80GB", 79 * kGiB, "a100-80g"},
      {"NVIDIA GeForce RTX 4090", 24 * kGiB, "rtx4090"},
      {"a device of tomorrow", 24 * kGiB, "h100-80g"}};
  for (const auto &[gpu, memory, base] : cases) {
    EXPECT_EQ(builtinFor(gpu, memory), base) << gpu;
    EXPECT_TRUE(config::readCluster(base)) << base;
  }
}

TEST(GpuCalibration, SpellsRatesAndTimesForPeople) {
  EXPECT_EQ(spellRate(7.123e14, "op/s"), "712.3 Top/s");
  EXPECT_EQ(spellRate(55e9, "B/s"), "55 GB/s");
  EXPECT_EQ(spellRate(12, "B/s"), "12 B/s");
  EXPECT_EQ(spellRate(5e15, "op/s"), "5000 Top/s"); // there is no larger prefix
  EXPECT_EQ(spellSeconds(4.123e-6), "4.12 us");
  EXPECT_EQ(spellSeconds(0.0253), "25.3 ms");
}

} // namespace
