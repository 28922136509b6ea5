//===- PackInstances.cpp - Packing problems whose optimum is known --------------===//

#include "PackInstances.h"

#include <algorithm>
#include <queue>

namespace ds::analysis::testing {

uint64_t Random::next() {
  uint64_t z = (state += 0x9E3779B97F4A7C15ULL);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

int64_t Random::between(int64_t low, int64_t high) {
  return low + int64_t(next() % uint64_t(high - low + 1));
}

static PackBuffer makeBuffer(int64_t bytes, int64_t begin, int64_t end, uint32_t segment = 0) {
  PackBuffer buffer;
  buffer.bytes = bytes, buffer.begin = begin, buffer.end = end, buffer.segment = segment;
  return buffer;
}

static void shuffle(std::vector<PackBuffer> &buffers, Random &random) {
  for (size_t i = buffers.size(); i > 1; --i)
    std::swap(buffers[i - 1], buffers[size_t(random.between(0, int64_t(i) - 1))]);
}

namespace {
struct Rect {
  int64_t bytes, begin, end;
  int64_t life() const { return end - begin; }
};
} // namespace

/// Five pieces around a core; they cannot be separated by any straight cut.
static std::vector<Rect> pinwheel(const Rect &r, Random &random) {
  int64_t b1 = random.between(1, r.bytes - 2), b2 = random.between(b1 + 1, r.bytes - 1);
  int64_t t1 = r.begin + random.between(1, r.life() - 2), t2 = random.between(t1 + 1, r.end - 1);
  return {{b1, r.begin, t2},
          {b2, t2, r.end},
          {r.bytes - b2, t1, r.end},
          {r.bytes - b1, r.begin, t1},
          {b2 - b1, t1, t2}};
}

PackProblem perfectPacking(int count, int64_t height, int64_t horizon, uint64_t seed, bool pinwheels) {
  Random random(seed);
  auto smaller = [&](const Rect &a, const Rect &b) {
    return double(a.bytes) / height * a.life() < double(b.bytes) / height * b.life();
  };
  std::priority_queue<Rect, std::vector<Rect>, decltype(smaller)> open(smaller);
  open.push({height, 0, horizon});
  std::vector<Rect> done;
  for (int cut = 0; int(open.size() + done.size()) < count && !open.empty(); ++cut) {
    Rect r = open.top();
    open.pop();
    bool canPin = r.bytes >= 3 && r.life() >= 3;
    if (pinwheels && cut % 4 == 0 && canPin) {
      for (const Rect &piece : pinwheel(r, random))
        open.push(piece);
    } else if (r.bytes > 1 && (random.between(0, 1) || r.life() < 2)) {
      int64_t at = random.between(r.bytes / 4 + (r.bytes < 4), r.bytes * 3 / 4);
      open.push({at, r.begin, r.end}), open.push({r.bytes - at, r.begin, r.end});
    } else if (r.life() > 1) {
      int64_t at = r.begin + random.between(r.life() / 4 + (r.life() < 4), r.life() * 3 / 4);
      open.push({r.bytes, r.begin, at}), open.push({r.bytes, at, r.end});
    } else {
      done.push_back(r);
    }
  }
  for (; !open.empty(); open.pop())
    done.push_back(open.top());
  PackProblem problem;
  problem.alignment = 1;
  for (const Rect &r : done)
    problem.buffers.push_back(makeBuffer(r.bytes, r.begin, r.end));
  shuffle(problem.buffers, random);
  return problem;
}

PackProblem thinned(const PackProblem &problem, int percent, uint64_t seed) {
  Random random(seed);
  PackProblem result = problem;
  std::erase_if(result.buffers, [&](const PackBuffer &) { return random.between(0, 99) < percent; });
  return result;
}

namespace {

/// Writes a training step down op by op.
class StepWriter {
public:
  StepWriter(const TransformerShape &shape, PackProblem &problem)
      : shape(shape), random(shape.seed), out(problem) {}
  void run();

private:
  struct Saved {
    int64_t bytes, begin;
  };
  int64_t vary(int64_t elements) {
    return shape.seed ? elements * 4 * random.between(60, 140) / 100 : elements * 4;
  }
  void buffer(int64_t bytes, int64_t begin, int64_t end) {
    out.buffers.push_back(makeBuffer(bytes, begin, end));
  }
  void transients(int64_t bytes) {
    for (int i = 0; i < shape.transientsPerOp; ++i)
      buffer(vary(bytes / 16 / (i + 1) + 16), now, now + 1 + i % 3);
  }
  void save(int64_t elements) { saved.push_back({vary(elements), now}); }
  void forwardLayer();
  void backwardLayer();
  void gradientOf(int64_t elements);
  void restore(int64_t extraGradient);

  const TransformerShape &shape;
  Random random;
  PackProblem &out;
  std::vector<Saved> saved;
  std::vector<int64_t> parameters;
  int64_t now = 0;
};

} // namespace

void StepWriter::forwardLayer() {
  const int64_t x = int64_t(shape.batch) * shape.tokens * shape.width;
  // layer norm, q k v, attention and its statistics, projection, residual, norm, expansion, activation,
  // residual
  for (int64_t elements :
       {x, 3 * x, x, int64_t(shape.batch) * shape.heads * shape.tokens, x, x, 4 * x, 4 * x, x}) {
    save(elements);
    transients(elements);
    buffer(vary(x / 2), now, now + 2);
    ++now;
  }
}

/// A parameter's gradient: written here, read by the update a few ops later, or at the end of the step.
void StepWriter::gradientOf(int64_t elements) {
  parameters.push_back(elements);
  if (shape.updateInBackward)
    buffer(elements * 4, now, now + 2);
}

/// The backward of the op whose result was saved last: its gradient comes, the saved value dies.
void StepWriter::restore(int64_t parameterElements) {
  Saved value = saved.back();
  saved.pop_back();
  buffer(value.bytes, now, now + 2); // the gradient of the value
  if (parameterElements)
    gradientOf(parameterElements);
  transients(value.bytes / 4);
  ++now;
  buffer(value.bytes, value.begin, now);
}

void StepWriter::backwardLayer() {
  const int64_t c = shape.width;
  for (int64_t elements :
       {int64_t(0), 4 * c * c, 4 * c * c, 2 * c, c * c, int64_t(0), int64_t(0), 3 * c * c, 2 * c})
    restore(elements);
}

void StepWriter::run() {
  const int64_t tokens = int64_t(shape.batch) * shape.tokens, x = tokens * shape.width;
  save(x);
  ++now;
  for (int layer = 0; layer < shape.layers; ++layer)
    forwardLayer();
  save(x);
  ++now;
  const int64_t logits = tokens * shape.vocabulary * 4;
  buffer(logits, now, now + 3);
  buffer(tokens * 4, now + 1, now + 3);
  now += 2;
  buffer(logits, now, now + 2); // their gradient
  ++now;
  restore(int64_t(shape.vocabulary) * shape.width);
  for (int layer = 0; layer < shape.layers; ++layer)
    backwardLayer();
  restore(0);
  for (int64_t elements : parameters)
    for (int copy = 0; copy < (shape.updateInBackward ? 3 : 4);
         ++copy) { // weight, two moments, kept gradient
      out.buffers.push_back(makeBuffer(elements * 4, 0, 0, PackBuffer::kAllSegments));
    }
  if (!shape.updateInBackward)
    for (size_t i = 0; i < parameters.size(); ++i)
      out.buffers.push_back(makeBuffer(parameters[i], int64_t(i), int64_t(i) + 1, 1));
}

PackProblem transformerStep(const TransformerShape &shape) {
  PackProblem problem;
  StepWriter(shape, problem).run();
  return problem;
}

PackProblem waitingGradients(int layers, int waits) {
  constexpr int64_t kForwardOps = 30, kBackwardOps = 90, kUnit = int64_t(1) << 20;
  const int64_t forward = kForwardOps * layers, end = forward + kBackwardOps * layers;
  PackProblem problem;
  auto add = [&](int64_t bytes, int64_t from, int64_t to) {
    problem.buffers.push_back(makeBuffer(bytes, from, std::min(to, end + 1)));
  };
  for (int64_t layer = 0; layer < layers; ++layer) {
    const int64_t made = kForwardOps * layer, read = end - kBackwardOps * (layer + 1);
    for (int64_t i = 0; i < 5; ++i)
      add(100 * kUnit, made + 3 + 5 * i, read + 80 - 9 * i);
    add(300 * kUnit, made + 4, read + 40), add(400 * kUnit, made + 12, read + 70);
    add(400 * kUnit, made + 14, read + 72);
    add(8192, made + 1, read + 85), add(kUnit * 5 / 4, made + 6, read + 45);
    for (int64_t at = made; int64_t units : {3750, 1250, 5000, 5000})
      add(units * kUnit, at, at + 4), at += 7;
    for (int64_t at = read; int64_t units : {5000, 5000, 3750, 1250}) {
      add(units * kUnit, at, at + 4), add(200 * kUnit, at + 4, at + 7);
      add(units * kUnit, at + 6, at + 46 + (at + 6 - forward) / waits), at += 22;
    }
    for (int64_t op = 0; op < kForwardOps; op += 3)
      add(32 * kUnit, made + op, made + op + 1);
    for (int64_t op = 0; op < kBackwardOps; op += 3)
      add(32 * kUnit, read + op, read + op + 1);
  }
  return problem;
}

PackProblem randomProblem(int count, int64_t maxBytes, int64_t horizon, int64_t maxLife, uint64_t seed) {
  Random random(seed);
  PackProblem problem;
  problem.alignment = 1;
  for (int i = 0; i < count; ++i) {
    int64_t begin = random.between(0, horizon - 1);
    int64_t end = std::min(horizon, begin + random.between(1, maxLife));
    problem.buffers.push_back(makeBuffer(random.between(1, maxBytes), begin, end));
  }
  return problem;
}

} // namespace ds::analysis::testing
