//===- PipelineValues.h - What executions of a pipeline hand each other ------------===//
#ifndef DS_UNITTESTS_RUNTIME_PIPELINEVALUES_H
#define DS_UNITTESTS_RUNTIME_PIPELINEVALUES_H

#include "PipelineTables.h"

#include <map>

namespace ds::rt::test {

/// A value of a stage, for each micro-batch another one.
struct PipelineValue {
  /// What a chunk makes for the next one and what that gets of it, gradients the other way round, the inputs
  /// of the first and the last chunk, and what that keeps for its backward.
  enum Kind : uint8_t { Made, Got, GradientMade, GradientGot, InputX, InputT, Difference };
  Kind kind;
  uint32_t chunk; ///< the first of the two
  auto operator<=>(const PipelineValue &) const = default;
};

class PipelineValues {
public:
  /// `slots` of every value where they are given; else as few as the table allows.
  PipelineValues(const Pipeline &pipeline, uint32_t slots) : pipeline(pipeline), given(slots) {}

  bool isLast(uint32_t chunk) const { return chunk + 1 == pipeline.numChunks(); }
  PipelineValue inputOf(uint32_t chunk) const {
    using enum PipelineValue::Kind;
    return chunk == 0 ? PipelineValue{InputX, 0} : received(Made, Got, chunk - 1);
  }
  PipelineValue gradientOf(uint32_t chunk) const {
    using enum PipelineValue::Kind;
    return isLast(chunk) ? PipelineValue{Difference, chunk} : received(GradientMade, GradientGot, chunk);
  }
  std::vector<PipelineValue> touchedBy(const PipelineItem &item) const {
    using enum PipelineValue::Kind;
    const uint32_t c = item.chunk;
    switch (item.kind) {
    case PipelineItem::Forward:
      if (isLast(c))
        return {inputOf(c), {InputT, 0}, {Difference, c}};
      return {inputOf(c), {Made, c}};
    case PipelineItem::Backward:
      if (c == 0)
        return {inputOf(c), gradientOf(c)};
      return {inputOf(c), gradientOf(c), {GradientMade, c - 1}};
    case PipelineItem::SendValue:
      return {{Made, c}};
    case PipelineItem::ReceiveValue:
      return {{Got, c}};
    case PipelineItem::SendGradient:
      return {{GradientMade, c}};
    case PipelineItem::ReceiveGradient:
      break;
    }
    return {{GradientGot, c}};
  }

  /// The fewest slots with which `value` is done with one micro-batch before the next one has its slot, and
  /// one more where it is sent: what computes need not wait for that.
  uint32_t slotsFor(PipelineValue value, const std::vector<PipelineItem> &items) const {
    if (given > 0)
      return given;
    std::map<uint32_t, std::pair<size_t, size_t>> uses; // by micro-batch: the first, and behind the last
    const bool isInput = value.kind == PipelineValue::InputX || value.kind == PipelineValue::InputT;
    for (size_t i = 0; i < items.size(); ++i)
      for (const PipelineValue &touched : touchedBy(items[i]))
        if (touched == value || (isInput && !items[i].isTransfer())) // the host fills all inputs at once
          uses.try_emplace(items[i].microBatch, i, i).first->second.second = i + 1;
    const auto suffices = [&](uint32_t slots) {
      for (const auto &[m, use] : uses)
        for (const auto &[n, other] : uses)
          if (m != n && m % slots == n % slots && use.first < other.second && other.first < use.second)
            return false;
      return true;
    };
    uint32_t slots = 1;
    while (!suffices(slots))
      ++slots;
    const bool isMade = value.kind == PipelineValue::Made || value.kind == PipelineValue::GradientMade;
    return std::min(slots + (isMade && pipeline.crosses(value.chunk)), pipeline.microBatches);
  }

private:
  /// Where neither end is another stage's, what is made is what is got.
  PipelineValue received(PipelineValue::Kind made, PipelineValue::Kind got, uint32_t chunk) const {
    return {pipeline.crosses(chunk) ? got : made, chunk};
  }

  const Pipeline pipeline;
  const uint32_t given;
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_PIPELINEVALUES_H
