//===- ResidencyInstances.cpp - Residency problems like real ones, and hard ones -------===//
#include "ResidencyOracle.h"

#include <algorithm>

namespace ds::analysis {

namespace {

constexpr uint32_t kDevice = 0, kHost = 1, kElements = 2;
constexpr uint32_t kCompute = 0, kLink = 1, kStoring = 2, kLoading = 3, kCopying = 4;

/// The most bytes of `space` if all values are had in their first home.
int64_t peakOfFirst(const ResidencyProblem &problem, uint32_t space) {
  std::vector<int64_t> bytes = problem.spaces[space].liveBytes;
  for (const ResidencyValue &value : problem.values)
    if (value.isRead && !value.homes.empty())
      for (const ResidencyHold &hold : value.homes.front().holds)
        for (uint32_t moment = hold.begin; hold.space == space && moment < hold.end; ++moment)
          bytes[moment] += hold.bytes;
  return *std::max_element(bytes.begin(), bytes.end());
}

int64_t mostOf(const std::vector<int64_t> &bytes) { return *std::max_element(bytes.begin(), bytes.end()); }

/// Makes a step op by op.
class StepMaker {
public:
  StepMaker(const StepShape &shape, std::mt19937 &random) : shape(shape), random(random) {}
  ResidencyProblem make();

private:
  /// One op of a layer: its result's bytes, its own seconds, which results before it are its operands.
  struct Op {
    int64_t bytes;
    double seconds;
    std::vector<uint32_t> operands;
    bool isRead, isCheap, isNarrow;
  };
  uint32_t pick(uint32_t least, uint32_t most) { return least + random() % (most - least + 1); }
  uint32_t backwardOf(uint32_t moment) const { return moments - 1 - moment; }
  std::vector<ResidencyCharge> chargesOf(double forward, double backward) const;
  ResidencyWay byHost(int64_t bytes, uint32_t from, uint32_t to);
  void addValue(const Op &op, uint32_t moment, std::vector<uint32_t> operands);
  void addLayer(uint32_t layer);
  void addGather(uint32_t forward, uint32_t early);
  void addLoss();

  const StepShape &shape;
  std::mt19937 &random;
  ResidencyProblem problem;
  std::vector<Op> ops;
  uint32_t moments = 0;
  int64_t weightBytes = 0;
  double gatherSeconds = 0, copySecondsOfByte = 0;
  uint32_t entering = 0; ///< the value that the next layer begins with
};

std::vector<ResidencyCharge> StepMaker::chargesOf(double forward, double backward) const {
  std::vector<ResidencyCharge> charges{{kCompute, forward + backward}};
  if (shape.usesHost)
    charges.insert(charges.end(), {{kStoring, backward}, {kLoading, forward}});
  return charges;
}

ResidencyWay StepMaker::byHost(int64_t bytes, uint32_t from, uint32_t to) {
  const double seconds = copySecondsOfByte * double(bytes);
  std::vector<ResidencyCharge> charges = chargesOf(0, 0);
  charges.insert(charges.end(), {{kStoring, seconds}, {kLoading, seconds}, {kCopying, 2 * seconds}});
  return {{{kDevice, bytes, from, from + 2}, {kDevice, bytes, to - 2, to}, {kHost, bytes, from, to}},
          std::move(charges)};
}

void StepMaker::addValue(const Op &op, uint32_t moment, std::vector<uint32_t> operands) {
  ResidencyValue value;
  const uint32_t from = moment + 1, to = backwardOf(moment) + 1;
  value.isRead = op.isRead;
  value.homes.push_back({{{kDevice, op.bytes, from, to}}, chargesOf(0, 0)});
  if (shape.usesHost && to - from > 4)
    value.homes.push_back(byHost(op.bytes, from, to));
  if (!op.isNarrow) {
    value.recompute = ResidencyWay{{}, chargesOf(0, op.seconds)};
    if (!op.isCheap)
      value.recompute->holds.push_back({kDevice, op.bytes, to - 2, to});
    value.operands = std::move(operands);
  }
  problem.values.push_back(std::move(value));
}

/// Weights are gathered for forward and for backward, kept in between, or for good; what is recomputed wants
/// them earlier, which is a value of its own, `early`.
void StepMaker::addGather(uint32_t forward, uint32_t early) {
  const uint32_t backward = backwardOf(forward);
  ResidencyValue value;
  value.isRead = true;
  auto home = [&](std::vector<ResidencyHold> holds, double times) {
    for (size_t hold = 0, count = holds.size(); hold < count; ++hold)
      holds.push_back({kElements, weightBytes / 2, holds[hold].begin, holds[hold].end});
    value.homes.push_back({std::move(holds), {{kLink, times * gatherSeconds}}});
  };
  home({{kDevice, weightBytes, 0, forward},
        {kDevice, weightBytes, forward + 1, backward},
        {kDevice, weightBytes, backward + 1, moments}},
       0.25);
  home({{kDevice, weightBytes, forward + 1, backward}}, 1);
  home({}, 2);
  problem.values.push_back(std::move(value));
  for (uint32_t space : {kDevice, kElements})
    for (uint32_t moment : {forward, backward})
      problem.spaces[space].liveBytes[moment] += space == kDevice ? weightBytes : weightBytes / 2;
  ResidencyValue there;
  const uint32_t begin = std::min(early, backward);
  there.homes.push_back({{{kDevice, weightBytes, begin, backward}}, {}});
  problem.values.push_back(std::move(there));
}

void StepMaker::addLayer(uint32_t layer) {
  const uint32_t begin = layer * uint32_t(ops.size());
  std::vector<uint32_t> values;
  for (uint32_t index = 0; index < ops.size(); ++index) {
    std::vector<uint32_t> operands;
    for (uint32_t operand : ops[index].operands)
      operands.push_back(operand == 0 ? entering : values[operand - 1]);
    if (shape.gathersWeights && !ops[index].isCheap && index % 2 == 1) {
      addGather(begin + index, backwardOf(begin + uint32_t(ops.size()) - 1));
      operands.push_back(uint32_t(problem.values.size() - 1));
    }
    values.push_back(uint32_t(problem.values.size()));
    addValue(ops[index], begin + index, std::move(operands));
    if (shape.hasWorkspaces && index == 2) { // attention
      ResidencyValue workspace;
      workspace.isRead = true;
      const uint32_t at = backwardOf(begin + index);
      for (int64_t bytes = 4 * ops[index].bytes, pieces = 1; pieces <= 4; bytes /= 2, pieces *= 2)
        workspace.homes.push_back({{{kDevice, bytes, at, at + 1}}, chargesOf(0, 0.05 * double(pieces - 1))});
      workspace.homes.push_back({{}, chargesOf(0, 8 * ops[index].seconds)});
      problem.values.push_back(std::move(workspace));
    }
  }
  entering = values.back();
}

void StepMaker::addLoss() {
  const int64_t bytes = ops.front().bytes * pick(4, 12);
  const uint32_t turn = moments / 2;
  ResidencyValue loss;
  loss.isRead = true;
  for (int64_t pieces = 1; pieces <= 8; pieces *= 2) {
    std::vector<ResidencyHold> holds{{kDevice, bytes / pieces, turn - 1, turn + 1}};
    if (pieces > 1)
      holds.push_back({kDevice, bytes / 16, turn - 1, turn + 1});
    loss.homes.push_back({std::move(holds), chargesOf(0, 0.2 * double(pieces - 1))});
  }
  problem.values.push_back(std::move(loss));
}

ResidencyProblem StepMaker::make() {
  const int64_t width = pick(60, 140);
  auto product = [&](int64_t times) { return double(times) * double(pick(8, 12)) / 10; };
  // Operand 0 is what enters the layer, n the result of op n - 1.
  ops = {{width, 0.1, {0}, true, true, false},                        // a norm
         {3 * width, product(3), {1}, true, false, false},            // queries, keys, values
         {width, 1.5, {2}, true, false, false},                       // attention
         {width, product(1), {0, 3}, false, false, false},            // its projection, and the sum
         {width, 0.1, {4}, true, true, false},                        // a norm
         {4 * width, product(4), {5}, true, false, false},            // the first product
         {4 * width, 0.2 + 0.1 * pick(0, 3), {6}, true, true, false}, // GELU
         {width, product(4), {4, 7}, true, false, true}};             // the second, and the sum
  moments = 2 * shape.layers * uint32_t(ops.size());
  weightBytes = width * pick(1, 4), gatherSeconds = 0.5 * pick(2, 8);
  copySecondsOfByte = 0.01 * pick(2, 8) / 10;
  problem.spaces.assign(3, {0, std::vector<int64_t>(moments)});
  double forward = 0;
  for (uint32_t moment = 0; moment < moments; ++moment) {
    const Op &op = ops[std::min(moment, backwardOf(moment)) % ops.size()];
    problem.spaces[kDevice].liveBytes[moment] = 2 * op.bytes;
    forward += moment < moments / 2 ? op.seconds : 0;
  }
  problem.resources = {3 * forward, 0.2 * forward, 0, 0, 0};
  if (shape.usesHost)
    problem.resources[kStoring] = 2 * forward, problem.resources[kLoading] = forward;
  ResidencyValue first;
  first.isRead = true;
  first.homes.push_back({{{kDevice, width, 0, moments}}, {}});
  problem.values.push_back(std::move(first));
  for (uint32_t layer = 0; layer < shape.layers; ++layer)
    addLayer(layer);
  if (shape.losesInPieces)
    addLoss();
  for (uint32_t space : {kDevice, kHost, kElements}) {
    const int64_t least = mostOf(problem.spaces[space].liveBytes), most = peakOfFirst(problem, space);
    problem.spaces[space].budget = space == kDevice ? least + int64_t(shape.free * double(most - least))
                                                    : least + most * pick(3, 10) / 10;
  }
  problem.spaces[kHost].budget = width * pick(4, 40);
  return problem;
}

} // namespace

ResidencyProblem makeStep(const StepShape &shape, std::mt19937 &random) {
  return StepMaker(shape, random).make();
}

ResidencyProblem makeTangle(std::mt19937 &random) {
  ResidencyProblem problem;
  const uint32_t moments = 8 + random() % 8, count = 10 + random() % 10;
  problem.spaces.assign(2, {0, std::vector<int64_t>(moments)});
  for (ResidencySpace &space : problem.spaces)
    for (int64_t &bytes : space.liveBytes)
      bytes = random() % 20;
  problem.resources = {double(10 + random() % 20), double(random() % 30), double(random() % 30)};
  for (uint32_t index = 0; index < count; ++index) {
    ResidencyValue value;
    const uint32_t begin = random() % (moments / 2), end = moments - random() % (moments / 2);
    const int64_t bytes = 1 + random() % 30;
    value.isRead = random() % 3 != 0;
    value.homes.push_back({{{0, bytes, begin, end}}, {}});
    if (random() % 2 == 0)
      value.homes.push_back(
          {{{0, bytes, end - 1, end}, {1, bytes, begin, end}}, {{1, double(1 + random() % 9) / 4}}});
    if (random() % 3 == 0)
      value.homes.push_back({{{0, bytes / 2, begin, end}}, {{0, double(1 + random() % 9) / 4}}});
    for (uint32_t operand = 0; operand < index && value.operands.size() < 3; ++operand)
      if (random() % 4 == 0)
        value.operands.push_back(operand);
    if (!value.operands.empty())
      value.recompute = ResidencyWay{{{0, int64_t(random() % 8), end - 1, end}},
                                     {{uint32_t(random() % 2 * 2), double(random() % 20) / 4}}};
    problem.values.push_back(std::move(value));
  }
  for (uint32_t space = 0; space < 2; ++space) {
    const int64_t least = mostOf(problem.spaces[space].liveBytes);
    const int64_t most = std::max<int64_t>(peakOfFirst(problem, space), least + 60);
    problem.spaces[space].budget = least + (most - least) * int64_t(3 + random() % 6) / 10;
  }
  return problem;
}

ResidencyProblem makeKnapsack(std::mt19937 &random) {
  ResidencyProblem problem;
  const uint32_t count = 10 + random() % 12;
  problem.spaces.assign(1, {0, {0, 0, 0}});
  problem.resources = {double(random() % 40)};
  int64_t all = 0;
  for (uint32_t index = 0; index < count; ++index) {
    const int64_t bytes = 20 + random() % 60;
    const double seconds = double(bytes + int64_t(random() % 11) - 5) / 50;
    ResidencyValue value{
        true, {{{{0, bytes, uint32_t(random() % 2), 3}}, {}}}, ResidencyWay{{}, {{0, seconds}}}, {}};
    problem.values.push_back(std::move(value));
    all += bytes;
  }
  problem.spaces[0].budget = all * int64_t(2 + random() % 7) / 10;
  return problem;
}

} // namespace ds::analysis
