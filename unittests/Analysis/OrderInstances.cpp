//===- OrderInstances.cpp - Order problems shaped like training steps -----------===//

#include "OrderInstances.h"

#include "PackInstances.h"

namespace ds::analysis::testing {

OrderProblem trainingStep(int layers, int64_t activation, int64_t weight, bool earlyMasks) {
  OrderProblem problem;
  auto buffer = [&](int64_t bytes, bool state = false) {
    problem.buffers.push_back({bytes, state, state});
    return uint32_t(problem.buffers.size() - 1);
  };
  auto op = [&](std::vector<uint32_t> reads, std::vector<uint32_t> writes) {
    problem.ops.push_back({std::move(reads), std::move(writes), {}, 0});
  };
  std::vector<uint32_t> weights, masks, activations = {buffer(activation)}, gradients;
  for (int i = 0; i < layers; ++i)
    weights.push_back(buffer(weight, true)), masks.push_back(buffer(activation));
  for (int i = 0; earlyMasks && i < layers; ++i)
    op({}, {masks[i]});
  op({}, {activations[0]});
  for (int i = 0; i < layers; ++i) {
    if (!earlyMasks)
      op({}, {masks[i]});
    uint32_t linear = buffer(activation);
    activations.push_back(buffer(activation));
    op({activations[i], weights[i]}, {linear});
    op({linear, masks[i]}, {activations[i + 1]});
  }
  uint32_t gradient = buffer(activation);
  op({activations[layers]}, {gradient});
  for (int i = layers; i-- > 0;) {
    uint32_t before = buffer(activation), linear = buffer(activation);
    gradients.push_back(buffer(weight));
    op({gradient, masks[i]}, {linear});
    op({linear, weights[i]}, {before});
    op({linear, activations[i]}, {gradients.back()});
    gradient = before;
  }
  for (int i = 0; i < layers; ++i)
    op({gradients[i], weights[layers - 1 - i]}, {weights[layers - 1 - i]});
  return problem;
}

OrderProblem randomOrderProblem(int numOps, int numBuffers, uint64_t seed) {
  Random random(seed);
  OrderProblem problem;
  for (int i = 0; i < numBuffers; ++i) {
    int64_t kind = random.between(0, 9);
    problem.buffers.push_back({random.between(0, 20), kind <= 1, kind >= 1 && kind <= 2});
  }
  auto some = [&](int64_t most) {
    std::vector<uint32_t> list;
    for (int64_t i = random.between(0, most); i > 0; --i)
      list.push_back(uint32_t(random.between(0, numBuffers - 1)));
    return list;
  };
  for (int i = 0; i < numOps; ++i) {
    OrderOp op;
    op.reads = some(2), op.writes = some(2);
    if (i > 0 && random.between(0, 5) == 0)
      op.after.push_back(uint32_t(random.between(0, i - 1)));
    op.workspace = random.between(0, 4) ? 0 : random.between(1, 9);
    problem.ops.push_back(op);
  }
  return problem;
}

} // namespace ds::analysis::testing
