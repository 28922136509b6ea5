//===- TwoLayers.h - A regression of two layers, on one rank or on two stages ----===//
#ifndef DS_UNITTESTS_RUNTIME_TWOLAYERS_H
#define DS_UNITTESTS_RUNTIME_TWOLAYERS_H

#include "ProgramBuilder.h"

#include "ds/Runtime/Engine/Executor.h"

#include <cmath>
#include <cstring>

namespace ds::rt::test {

/// h = x w0^T, y = h w1^T, loss = mean (y - t)^2; the gradients of kMicroBatches micro-batches are summed
/// before w -= 0.002 g. On two stages the first has x and w0, the second t and w1: h goes forth and its
/// gradient back, after all forwards all backwards. Either way the same commands compute the same in the same
/// order.
struct TwoLayers {
  static constexpr int64_t kRows = 8, kIn = 6, kMiddle = 5, kOut = 3;
  static constexpr uint32_t kMicroBatches = 3;
  ProgramBuilder b;
  const uint32_t stages;
  uint32_t w[2], sum[2], x, t, h[2], dh[2], loss;

  explicit TwoLayers(uint32_t stages) : stages(stages) {
    b.program.accumulation = kMicroBatches;
    placeFirst();
    if (stages == 1) {
      placeSecond();
      h[1] = h[0], dh[1] = dh[0];
      addStage(0, {0, 1});
    } else {
      addStage(0, {0});
      b.addStage();
      placeSecond();
      h[1] = b.slotted({kRows, kMiddle}, kMicroBatches);
      dh[1] = b.keep({kRows, kMiddle});
      addStage(1, {1});
    }
    b.program.image = readBytes(DS_TEST_KERNELS);
  }

  static int64_t size(uint32_t layer) { return layer == 0 ? kMiddle * kIn : kOut * kMiddle; }
  /// The layers that an executor has.
  std::vector<uint32_t> layersOf(const Executor &executor) const {
    return stages == 1 ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{executor.rank()};
  }
  /// Gives the layers of an executor their first weights.
  void start(Executor &executor) const {
    for (uint32_t layer : layersOf(executor))
      for (int64_t i = 0; i < size(layer); ++i)
        put(executor, w[layer], i, std::sin(static_cast<float>(i + 7 * layer)));
  }
  Status fill(Executor &executor, int step, uint32_t microBatch) const {
    const std::vector<void *> inputs = executor.inputs(microBatch);
    const auto value = [&](int64_t i) {
      return std::cos(static_cast<float>(i + 50 * step + 11 * microBatch));
    };
    const bool isFirst = layersOf(executor).front() == 0;
    for (int64_t i = 0; isFirst && i < kRows * kIn; ++i)
      static_cast<float *>(inputs.front())[i] = value(i);
    for (int64_t i = 0; layersOf(executor).back() == 1 && i < kRows * kOut; ++i)
      static_cast<float *>(inputs.back())[i] = value(i / 3);
    return {};
  }
  std::vector<float> weights(Executor &executor, uint32_t layer) const {
    std::vector<float> values(static_cast<size_t>(size(layer)));
    const auto *from = static_cast<const std::byte *>(executor.data(w[layer]));
    (void)executor.inspect(from, values.size() * sizeof(float), [&](const std::byte *host) -> Status {
      std::memcpy(values.data(), host, values.size() * sizeof(float));
      return {};
    });
    return values;
  }

private:
  static void put(Executor &executor, uint32_t buffer, int64_t i, float value) {
    auto *at = static_cast<std::byte *>(executor.data(buffer)) + i * sizeof(float);
    (void)executor.change(at, sizeof value, [&](std::byte *host) -> Status {
      std::memcpy(host, &value, sizeof value);
      return {};
    });
  }
  uint32_t slottedInput(std::string name, std::vector<int64_t> shape) {
    const uint32_t id = b.slotted(std::move(shape), kMicroBatches);
    b.program.inputs.push_back({std::move(name), id, 0, false, 0, b.stage()});
    return id;
  }
  void placeFirst() {
    x = slottedInput("x", {kRows, kIn});
    w[0] = b.state("w0", {kMiddle, kIn});
    sum[0] = b.keep({kMiddle, kIn});
    h[0] = b.slotted({kRows, kMiddle}, kMicroBatches);
    dh[0] = b.keep({kRows, kMiddle});
  }
  void placeSecond() {
    t = slottedInput("t", {kRows, kOut});
    w[1] = b.state("w1", {kOut, kMiddle});
    sum[1] = b.keep({kOut, kMiddle});
    loss = b.output("loss");
  }
  void matmul(const std::vector<uint32_t> &operands, bool transposesFirst, bool transposesSecond) {
    b.library(LibraryFn::Matmul, operands, {transposesFirst, transposesSecond, 0, 0}).workspace = workspace;
  }
  void addStage(uint32_t stage, const std::vector<uint32_t> &layers) {
    const bool isFirst = layers.front() == 0, isLast = layers.back() == 1;
    workspace = keepWorkspace(b, 1 << 16);
    const uint32_t d = b.slotted({kRows, kOut}, kMicroBatches), y = b.keep({kRows, kOut});
    const uint32_t g0 = b.keep({kMiddle, kIn}), g1 = b.keep({kOut, kMiddle});
    if (isFirst)
      matmul({x, w[0], h[0]}, false, true);
    if (!isLast)
      b.send("h", h[0], 1);
    if (!isFirst)
      b.receive("h", h[1], 0);
    if (isLast) {
      matmul({h[1], w[1], y}, false, true);
      b.launch("ds_subtract", kRows * kOut, {y, t, d});
      b.launch("ds_mean_square", 1, {d, loss}, {kRows * kOut});
    }
    const uint32_t forward = b.segment({Work::Forward}, "forward");
    if (isLast) {
      matmul({d, h[1], g1}, true, false);
      b.launch("ds_descend", 0, {sum[1], g1}, {kOut * kMiddle, -1000}); // sum += g
      matmul({d, w[1], dh[1]}, false, false);
    }
    if (!isFirst)
      b.send("dh", dh[1], 0);
    if (!isLast)
      b.receive("dh", dh[0], 1);
    if (isFirst) {
      matmul({dh[0], x, g0}, true, false);
      b.launch("ds_descend", 0, {sum[0], g0}, {kMiddle * kIn, -1000});
    }
    const uint32_t backward = b.segment({Work::Backward}, "backward");
    for (uint32_t layer : layers) {
      b.launch("ds_descend", 0, {w[layer], sum[layer]}, {size(layer), 2});
      b.library(LibraryFn::Fill, {sum[layer]}, {bits(0)});
    }
    const uint32_t update = b.segment({Work::Update}, "update");
    b.program.stages[stage].schedule = {{forward, 0, kMicroBatches}, {backward, 0, kMicroBatches}, {update}};
  }

  uint32_t workspace = 0;
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_TWOLAYERS_H
