//===- Layers.h - A regression of many layers that is trained ----------------------===//
#ifndef DS_UNITTESTS_RUNTIME_LAYERS_H
#define DS_UNITTESTS_RUNTIME_LAYERS_H

#include "LayersBuilder.h"

#include "ds/Runtime/Engine/Executor.h"

#include <cmath>
#include <cstring>

namespace ds::rt::test {

/// The program of LayersBuilder.h, with its first weights and its data.
struct Layers {
  const Pipeline pipeline;
  LayersBuilder built;

  /// `slots` of every value where they are given; else as few as the table allows.
  Layers(const Pipeline &pipeline, const PipelineTable &table, uint32_t slots = 0)
      : pipeline(pipeline), built(pipeline, table, slots) {}
  explicit Layers(const Pipeline &pipeline) : Layers(pipeline, tableOf(pipeline)) {}

  const Program &program() const { return built.b.program; }
  /// Gives the layers of an executor their first weights.
  void start(Executor &executor) const {
    for (uint32_t c = executor.rank(); c < pipeline.numChunks(); c += pipeline.stages)
      (void)executor.change(
          at(executor, built.w[c]), LayersBuilder::kSize * sizeof(float), [&](std::byte *host) -> Status {
            for (int64_t i = 0; i < LayersBuilder::kSize; ++i)
              reinterpret_cast<float *>(host)[i] = 0.3f * std::sin(static_cast<float>(i + 7 * c));
            return {};
          });
  }
  static Status fill(Executor &executor, int step, uint32_t microBatch) {
    for (void *input : executor.inputs(microBatch))
      for (int64_t i = 0; i < LayersBuilder::kRows * LayersBuilder::kWidth; ++i)
        static_cast<float *>(input)[i] = std::cos(static_cast<float>(i + 50 * step + 11 * microBatch));
    return {};
  }
  /// Steps from the first weights on, until one fails.
  Status train(Executor &executor, int steps) const {
    start(executor);
    for (int step = 0; step < steps; ++step)
      if (Status status = executor.runStep([&](uint32_t m) { return fill(executor, step, m); }); !status)
        return status;
    return {};
  }
  /// What an executor has come to, by name: its layers' weights, and the loss where it is made.
  std::map<std::string, std::vector<float>> results(Executor &executor) const {
    std::map<std::string, std::vector<float>> found;
    for (uint32_t c = executor.rank(); c < pipeline.numChunks(); c += pipeline.stages)
      found["w" + std::to_string(c)] = read(executor, built.w[c], LayersBuilder::kSize);
    if (pipeline.stageOf(pipeline.numChunks() - 1) == executor.rank())
      found["loss"] = read(executor, built.loss, 1);
    return found;
  }

private:
  static std::byte *at(Executor &executor, uint32_t buffer) {
    return static_cast<std::byte *>(executor.data(buffer));
  }
  static std::vector<float> read(Executor &executor, uint32_t buffer, size_t count) {
    std::vector<float> values(count);
    (void)executor.inspect(at(executor, buffer), count * sizeof(float), [&](const std::byte *host) -> Status {
      std::memcpy(values.data(), host, count * sizeof(float));
      return {};
    });
    return values;
  }
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_LAYERS_H
