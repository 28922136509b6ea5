//===- plan_packing.cpp - How good and how fast is the memory packer? -----------===//
//
// Prints, for generated problems, the arena over the lower bound and the seconds of processor time it took.
// The perfect packings have the bound as their optimum; for the others the ratio is an upper limit of the
// loss.
//
//===---------------------------------------------------------------------------===//

#include "../unittests/Analysis/OrderInstances.h"
#include "../unittests/Analysis/PackInstances.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>

using namespace ds::analysis;
using namespace ds::analysis::testing;

static PackOptions effort;

/// Packs once, checks, prints a line. Returns whether the plan was right.
static bool measure(const char *name, const PackProblem &problem) {
  std::clock_t start = std::clock();
  ds::Result<MemoryPlan> plan = planMemory(problem, effort);
  double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  if (!plan) {
    std::printf("%-34s %s\n", name, plan.error().message.c_str());
    return false;
  }
  std::optional<Conflict> conflict = check(*plan, problem);
  std::printf("%-34s %6zu buffers  arena / bound %.4f  %7.3f s%s%s\n", name, problem.buffers.size(),
              double(plan->arenaBytes) / double(plan->lowerBound), seconds, conflict ? "  WRONG: " : "",
              conflict ? conflict->message.c_str() : "");
  return !conflict;
}

/// Orders once, checks, prints a line. Returns whether the order was right.
static bool measureOrder(const char *name, const OrderProblem &problem) {
  std::clock_t start = std::clock();
  ds::Result<IssueOrder> order = orderForMemory(problem);
  double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  std::optional<std::string> fault = order ? check(*order, problem) : order.error().message;
  std::printf("%-34s %6zu ops      peak / program %.4f %7.3f s%s%s\n", name, problem.ops.size(),
              order ? double(order->peakBytes) / double(order->programPeakBytes) : 0.0, seconds,
              fault ? "  WRONG: " : "", fault ? fault->c_str() : "");
  return !fault;
}

int main(int argc, char **argv) {
  if (argc > 1)
    effort.maxSteps = std::atoll(argv[1]);
  bool right = true;
  for (int count : {100, 300, 1000, 5000, 20000}) {
    const int64_t height = int64_t(1) << 34, horizon = 4 * count;
    PackProblem guillotine = perfectPacking(count, height, horizon, 1);
    PackProblem pinwheels = perfectPacking(count, height, horizon, 2, true);
    right &= measure("guillotine, no slack", guillotine);
    right &= measure("pinwheels, no slack", pinwheels);
    right &= measure("guillotine, 5 % removed", thinned(guillotine, 5, 3));
    right &= measure("pinwheels, 20 % removed", thinned(pinwheels, 20, 3));
    right &= measure("random", randomProblem(count, 1 << 20, horizon, horizon / 10, 4));
  }
  for (char letter = 'A'; letter <= 'K'; ++letter)
    right &= measure((std::string("MiniMalloc's ") + letter).c_str(), miniMallocInstance(letter));
  right &= measure("GPT-2 124M", transformerStep({}));
  right &= measure("GPT-2 124M, 8 accumulated", transformerStep({.updateInBackward = false}));
  for (int transients : {1, 8}) {
    right &= measure("48 layers, mixed sizes",
                     transformerStep({.layers = 48, .transientsPerOp = transients, .seed = 5}));
    right &= measure(
        "96 layers, mixed sizes",
        transformerStep(
            {.layers = 96, .width = 256, .vocabulary = 8192, .transientsPerOp = transients, .seed = 6}));
  }
  for (int layers : {48, 96, 128})
    for (int waits : {4, 6})
      right &=
          measure(("gradients wait, 1 of " + std::to_string(waits)).c_str(), waitingGradients(layers, waits));
  right &= measureOrder("training step, updates last", trainingStep(700, 1 << 20, 8 << 20));
  right &= measureOrder("the same, masks first", trainingStep(700, 1 << 20, 8 << 20, true));
  right &= measureOrder("random", randomOrderProblem(5000, 3000, 1));
  right &= measureOrder("random, loose", randomOrderProblem(5000, 20000, 2));
  return right ? 0 : 1;
}
