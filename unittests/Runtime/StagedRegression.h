//===- StagedRegression.h - A regression of two layers, on one stage or on two ---------===//
#ifndef DS_UNITTESTS_RUNTIME_STAGEDREGRESSION_H
#define DS_UNITTESTS_RUNTIME_STAGEDREGRESSION_H

#include "RunFixture.h"

namespace ds::rt::test {

/// h = x w0^T, y = h w1^T, loss = mean (y - t)^2 over the micro-batches, all forwards before all backwards,
/// then m += g, w -= 0.02 m, where g is summed up over micro-batches and over the ranks along dp. On two
/// stages the first has x and w0, the second t, w1 and both losses; "grad_norm", the sum of both layers' mean
/// squares, all give. The same commands compute the same in the same order on one stage or two.
class StagedRegression {
public:
  static constexpr int64_t kMiddle = 5;
  static constexpr uint32_t kMicroBatches = 2;
  ProgramBuilder b;

  /// `idle` commands of the first stage go before its forward, for nothing.
  explicit StagedRegression(uint32_t stages, uint32_t dp = 1, uint32_t idle = 0)
      : stages(stages), dp(dp), idle(idle), rows(4 / dp) {
    b.program.accumulation = kMicroBatches;
    for (uint32_t stage = 0; stage < stages; ++stage) {
      if (stage > 0)
        b.addStage();
      b.program.world = stages * dp;
      b.program.mesh = {{"pp", stages}, {"dp", dp}};
      b.program.dataAxes = {1};
      b.program.stageAxes = {0};
      addStage(stage, stages == 1 ? std::vector<uint32_t>{0, 1} : std::vector<uint32_t>{stage});
    }
    for (Kernel &kernel : b.program.kernels)
      if (kernel.name == "ds_mean_square")
        kernel.operands[0].bytes = sizeof(float); // and as many more as its param says
    b.program.microBatch = static_cast<uint32_t>(rows);
    b.program.image = readBytes(DS_TEST_KERNELS);
  }

private:
  /// A layer's parameter, and what it needs beside it.
  struct Layer {
    uint32_t w, moment, sum, g;
    int64_t size;
  };
  /// Of one stage; what another one has is 0.
  struct Buffers {
    uint32_t x, t, h, y, d, dh, loss, evalLoss, sumLoss, part, norm, workspace;
  };

  Layer addLayer(uint32_t number) {
    const std::vector<int64_t> shape =
        number == 0 ? std::vector<int64_t>{kMiddle, kIn} : std::vector<int64_t>{kOut, kMiddle};
    const std::string name = "w" + std::to_string(number);
    Layer layer{};
    layer.size = shape[0] * shape[1];
    layer.w = b.state(name, shape, {Init::Kind::Normal, 0.0, 0.5});
    layer.moment = b.state(name + ".exp_avg", shape, {}, Role::Moment);
    b.program.states.back().owner = name;
    layer.sum = b.keep(shape);
    layer.g = b.keep(shape);
    return layer;
  }
  void place(bool isFirst, bool isLast) {
    of = {};
    of.workspace = keepWorkspace(b, 1 << 16);
    if (isFirst) {
      of.x = b.slotted({rows, kIn}, kMicroBatches);
      b.program.inputs.push_back({"x", of.x, 0, false, 0, b.stage()});
    }
    of.h = b.slotted({rows, kMiddle}, kMicroBatches);
    of.dh = b.keep({rows, kMiddle});
    of.part = b.keep({});
    of.norm = b.output("grad_norm");
    if (!isLast)
      return;
    of.t = b.input("t", {rows, kOut});
    of.y = b.keep({rows, kOut});
    of.d = b.slotted({rows, kOut}, kMicroBatches);
    of.loss = b.output("loss");
    of.evalLoss = b.output("eval_loss");
    of.sumLoss = b.keep({});
  }
  void matmul(const std::vector<uint32_t> &operands, bool transposesFirst, bool transposesSecond) {
    b.library(LibraryFn::Matmul, operands, {transposesFirst, transposesSecond, 0, 0}).workspace =
        of.workspace;
  }
  void add(uint32_t to, uint32_t what, int64_t count) {
    b.launch("ds_descend", 0, {to, what}, {count, -1000});
  }
  void sumUp(AxisSet axes, uint32_t buffer) {
    if (b.program.mesh.size(axes) > 1)
      b.communicateAlong(axes, CollectiveKind::AllReduce, Reduction::Sum,
                         static_cast<uint64_t>(numElements(b.program.buffers[buffer])), {buffer, buffer});
  }

  void forward(bool isFirst, bool isLast, const std::string &name, uint32_t loss) {
    for (uint32_t i = 0; isFirst && i < idle; ++i)
      b.library(LibraryFn::Fill, {of.part}, {bits(0)});
    if (isFirst)
      matmul({of.x, layers[0].w, of.h}, false, true);
    if (!isLast)
      b.send(name, of.h, 1);
    if (!isFirst)
      b.receive(name, of.h, 0);
    if (!isLast)
      return;
    matmul({of.h, layers[1].w, of.y}, false, true);
    b.launch("ds_subtract", rows * kOut, {of.y, of.t, of.d});
    b.launch("ds_mean_square", 1, {of.d, loss}, {rows * kOut});
  }
  void backward(bool isFirst, bool isLast) {
    if (isLast) {
      matmul({of.d, of.h, layers[1].g}, true, false);
      add(layers[1].sum, layers[1].g, layers[1].size);
      matmul({of.d, layers[1].w, of.dh}, false, false);
    }
    if (!isFirst)
      b.send("dh", of.dh, 0);
    if (!isLast)
      b.receive("dh", of.dh, 1);
    if (!isFirst)
      return;
    matmul({of.dh, of.x, layers[0].g}, true, false);
    add(layers[0].sum, layers[0].g, layers[0].size);
  }
  void update(const std::vector<uint32_t> &numbers, bool isLast) {
    b.library(LibraryFn::Fill, {of.norm}, {bits(0)});
    for (const uint32_t number : numbers) {
      const Layer &layer = layers[number];
      sumUp({1}, layer.sum);
      b.launch("ds_mean_square", 1, {layer.sum, of.part}, {layer.size});
      add(of.norm, of.part, 1);
      add(layer.moment, layer.sum, layer.size);
      b.launch("ds_descend", 0, {layer.w, layer.moment}, {layer.size, 20});
      b.library(LibraryFn::Fill, {layer.sum}, {bits(0)});
    }
    sumUp({0}, of.norm);
    if (!isLast)
      return;
    b.library(LibraryFn::Copy, {of.sumLoss, of.loss});
    b.library(LibraryFn::Fill, {of.sumLoss}, {bits(0)});
    sumUp({1}, of.loss);
    b.launch("ds_divide", 1, {of.loss}, {1, kMicroBatches * dp});
  }
  void addStage(uint32_t stage, const std::vector<uint32_t> &numbers) {
    const bool isFirst = numbers.front() == 0, isLast = numbers.back() == 1;
    place(isFirst, isLast);
    for (const uint32_t number : numbers)
      layers[number] = addLayer(number);
    forward(isFirst, isLast, "h", of.part);
    if (isLast)
      add(of.sumLoss, of.part, 1);
    const uint32_t first = b.segment({Work::Forward}, "forward");
    backward(isFirst, isLast);
    const uint32_t second = b.segment({Work::Backward}, "backward");
    update(numbers, isLast);
    const uint32_t third = b.segment({Work::Update}, "update");
    b.program.stages[stage].schedule = {{first, 0, kMicroBatches}, {second, 0, kMicroBatches}, {third}};
    forward(isFirst, isLast, "h of held-out data", of.evalLoss);
    if (isLast) {
      sumUp({1}, of.evalLoss);
      b.launch("ds_divide", 1, {of.evalLoss}, {1, dp});
    }
    b.program.stages[stage].evaluation = static_cast<int32_t>(b.segment({Work::Evaluation}, "evaluation"));
  }

  const uint32_t stages, dp, idle;
  const int64_t rows; ///< of a micro-batch of a rank
  Layer layers[2] = {};
  Buffers of = {};
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_STAGEDREGRESSION_H
