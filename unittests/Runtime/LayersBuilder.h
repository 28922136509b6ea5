//===- LayersBuilder.h - A regression of many layers as a program of stages --------===//
#ifndef DS_UNITTESTS_RUNTIME_LAYERSBUILDER_H
#define DS_UNITTESTS_RUNTIME_LAYERSBUILDER_H

#include "PipelineValues.h"
#include "ProgramBuilder.h"

namespace ds::rt::test {

/// Chunk c is a layer, h_{c+1} = h_c w_c^T; the loss is the mean of (h - t)^2 behind the last, added up over
/// micro-batches as gradients are, before w -= 0.002 g. Transfers are executions of a lane of their own,
/// which wait for what they share with the computing lane, and are waited for. Whatever the table, the same
/// commands compute the same in the same order for each layer.
class LayersBuilder {
public:
  static constexpr int64_t kRows = 4, kWidth = 6, kSize = kWidth * kWidth;
  ProgramBuilder b;
  std::vector<uint32_t> w; ///< by chunk
  uint32_t loss = 0;

  LayersBuilder(const Pipeline &pipeline, const PipelineTable &table, uint32_t slots)
      : w(pipeline.numChunks()), pipeline(pipeline), values(pipeline, slots) {
    b.program.accumulation = pipeline.microBatches;
    b.program.streams = {StreamKind::Compute, StreamKind::Transfer};
    for (uint32_t number = 0; number < pipeline.stages; ++number) {
      if (number > 0)
        b.addStage();
      addStage(number, table[number]);
    }
    b.program.image = readBytes(DS_TEST_KERNELS);
  }

private:
  /// Of the stage that is added.
  struct Stage {
    const std::vector<PipelineItem> *items = nullptr;
    std::map<PipelineValue, uint32_t> buffers = {};
    std::map<std::pair<PipelineItem::Kind, uint32_t>, uint32_t> segments = {}; ///< by chunk
    std::map<uint32_t, uint32_t> sums = {};                                    ///< of gradients, by chunk
    uint32_t workspace = 0, g = 0, y = 0, part = 0, sumLoss = 0;
  };

  uint32_t bufferOf(PipelineValue value) {
    const auto [found, isNew] = stage.buffers.try_emplace(value);
    if (!isNew)
      return found->second;
    const uint32_t slots = values.slotsFor(value, *stage.items);
    const std::vector<int64_t> shape = {kRows, kWidth};
    found->second = slots > 1 ? b.slotted(shape, slots) : b.keep(shape);
    const bool isX = value.kind == PipelineValue::InputX;
    if (isX || value.kind == PipelineValue::InputT)
      b.program.inputs.push_back({isX ? "x" : "t", found->second, 0, false, 0, b.stage()});
    return found->second;
  }

  void matmul(const std::vector<uint32_t> &operands, bool transposesFirst, bool transposesSecond) {
    b.library(LibraryFn::Matmul, operands, {transposesFirst, transposesSecond, 0, 0}).workspace =
        stage.workspace;
  }
  void add(uint32_t to, uint32_t what, int64_t count) {
    b.launch("ds_descend", 0, {to, what}, {count, -1000});
  }
  void forward(uint32_t c) {
    const uint32_t in = bufferOf(values.inputOf(c));
    if (!values.isLast(c))
      return matmul({in, w[c], bufferOf({PipelineValue::Made, c})}, false, true);
    const uint32_t difference = bufferOf({PipelineValue::Difference, c});
    matmul({in, w[c], stage.y}, false, true);
    b.launch("ds_subtract", kRows * kWidth, {stage.y, bufferOf({PipelineValue::InputT, 0}), difference});
    b.launch("ds_mean_square", 1, {difference, stage.part}, {kRows * kWidth});
    add(stage.sumLoss, stage.part, 1);
  }
  void backward(uint32_t c) {
    const uint32_t in = bufferOf(values.inputOf(c)), gradient = bufferOf(values.gradientOf(c));
    matmul({gradient, in, stage.g}, true, false);
    add(stage.sums.at(c), stage.g, kSize);
    if (c > 0)
      matmul({gradient, w[c], bufferOf({PipelineValue::GradientMade, c - 1})}, false, false);
  }
  void transfer(const PipelineItem &item) {
    const bool isValue = item.kind == PipelineItem::SendValue || item.kind == PipelineItem::ReceiveValue,
               isSend = item.kind == PipelineItem::SendValue || item.kind == PipelineItem::SendGradient;
    const uint32_t buffer = bufferOf(values.touchedBy(item).front());
    const uint32_t partner = pipeline.stageOf(isValue == isSend ? item.chunk + 1 : item.chunk);
    b.exchange({{isSend ? CollectiveKind::Send : CollectiveKind::Recv,
                 (isValue ? "value " : "gradient ") + std::to_string(item.chunk), buffer, partner}},
               /*stream=*/1);
  }
  uint32_t segmentOf(const PipelineItem &item) {
    static constexpr const char *kNames[] = {"forward",       "backward",      "send value",
                                             "receive value", "send gradient", "receive gradient"};
    const auto [found, isNew] = stage.segments.try_emplace({item.kind, item.chunk});
    if (!isNew)
      return found->second;
    Work work = Work::Transfer;
    if (item.isTransfer())
      transfer(item);
    else if (item.kind == PipelineItem::Forward)
      forward(item.chunk), work = Work::Forward;
    else
      backward(item.chunk), work = Work::Backward;
    found->second = b.segment({work}, kNames[item.kind] + (" " + std::to_string(item.chunk)));
    b.program.segments.back().chunk = item.isTransfer() ? 0 : item.chunk / pipeline.stages;
    return found->second;
  }

  /// An entry for each item, which waits for what has touched its slots on the other lane before.
  void addEntries() {
    std::array<uint32_t, 2> counts{}; // executions of the computing and of the transfer lane
    std::map<std::pair<uint32_t, uint32_t>, std::array<uint32_t, 2>> touched; // by buffer and slot
    for (const PipelineItem &item : *stage.items) {
      ScheduleEntry entry{segmentOf(item), item.microBatch};
      const size_t own = item.isTransfer(), other = 1 - own;
      for (const PipelineValue &value : values.touchedBy(item)) {
        const uint32_t buffer = bufferOf(value);
        auto &last = touched[{buffer, item.microBatch % b.program.buffers[buffer].slots}];
        entry.after[other] = std::max(entry.after[other], last[other]);
        last[own] = counts[own] + 1;
      }
      ++counts[own];
      b.program.stages.back().schedule.push_back(entry);
    }
  }
  void addUpdate(bool hasLoss) {
    for (const auto &[c, sum] : stage.sums) {
      b.launch("ds_descend", 0, {w[c], sum}, {kSize, 2});
      b.library(LibraryFn::Fill, {sum}, {bits(0)});
    }
    if (hasLoss) {
      b.library(LibraryFn::Fill, {loss}, {bits(0)});
      add(loss, stage.sumLoss, 1);
      b.library(LibraryFn::Fill, {stage.sumLoss}, {bits(0)});
    }
    b.program.stages.back().schedule.push_back({b.segment({Work::Update}, "update")});
  }
  void addStage(uint32_t number, const std::vector<PipelineItem> &items) {
    const bool hasLoss = number == pipeline.stageOf(pipeline.numChunks() - 1);
    stage = {&items};
    b.program.stages.back().schedule.clear();
    stage.workspace = keepWorkspace(b, 1 << 16);
    stage.g = b.keep({kWidth, kWidth}), stage.y = b.keep({kRows, kWidth});
    stage.part = b.keep({1}), stage.sumLoss = b.keep({1});
    for (uint32_t c = number; c < pipeline.numChunks(); c += pipeline.stages) {
      w[c] = b.state("w" + std::to_string(c), {kWidth, kWidth});
      stage.sums[c] = b.keep({kWidth, kWidth});
    }
    if (hasLoss)
      loss = b.output("loss");
    addEntries();
    addUpdate(hasLoss);
  }

  const Pipeline pipeline;
  const PipelineValues values;
  Stage stage;
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_LAYERSBUILDER_H
