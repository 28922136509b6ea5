//===- StagesPlayer.cpp - One rank of a program with a device of its own ----------------------------===//
//
// Usage: cuda-stages-player PROGRAM STEPS, started as a rank. "layers" are those of TwoLayers, on one stage
// or on two; "gpipe", "1f1b" and "interleaved" are four layers of Layers.h on one
// rank, two or four, and "unsent-gradient" two that lack a message; "swap" has two stages send each other
// what they have at once; "short" receives less than is sent, "unsent" more and "unread" fewer messages,
// which no verified program does; "all_to_all" is no pipeline. Writes what a rank has at the end, one number
// a line.
//
//===---------------------------------------------------------------------------===//
#include "Layers.h"
#include "ToCuda.h"
#include "TwoLayers.h"

#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Engine/Device.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;

namespace {

/// Makes the commands since the last segment the only ones of a stage's step.
void endStage(ProgramBuilder &b) {
  b.program.stages[b.stage()].schedule = {{b.segment(), 0, 1, Gradients::Set, true}};
}

/// Stage 0 sends 32 floats `sends` times; stage 1 receives `received` floats `receives` times.
Program messages(int sends, int64_t received, int receives) {
  ProgramBuilder b;
  for (int i = 0; i < sends; ++i)
    b.send("activation", b.keep({32}), 1);
  endStage(b);
  b.addStage();
  for (int i = 0; i < receives; ++i)
    b.receive("activation", b.keep({received}), 0);
  endStage(b);
  return b.program;
}

/// A program of which each rank gives `count` floats and gets as many.
struct Given {
  ProgramBuilder b;
  int64_t count;
  std::vector<uint32_t> in, out; ///< by stage
};

/// Two stages send each other what they have at once, which neither could first.
Given swap() {
  Given g{{}, 4, {}, {}};
  for (uint32_t stage : {0, 1}) {
    if (stage > 0)
      g.b.addStage();
    g.in.push_back(g.b.keep({g.count})), g.out.push_back(g.b.keep({g.count}));
    g.b.exchange({{CollectiveKind::Send, stage ? "back" : "forth", g.in[stage], 1 - stage},
                  {CollectiveKind::Recv, stage ? "forth" : "back", g.out[stage], 1 - stage}});
    endStage(g.b);
  }
  return g;
}

/// 3 floats for each rank.
Given allToAll(uint32_t world) {
  Given g{{}, 3 * int64_t(world), {}, {}};
  g.b.ranks(world);
  g.in.push_back(g.b.keep({g.count})), g.out.push_back(g.b.keep({g.count}));
  g.b.communicate(CollectiveKind::AllToAll, Reduction::None, 3, {g.in[0], g.out[0]}, 1);
  g.b.segment();
  return g;
}

int fail(const Error &error) {
  std::fprintf(stderr, "%s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

template <class T>
T need(Result<T> result) {
  if (!result)
    std::exit(fail(result.error()));
  return std::move(*result);
}

void print(Executor &executor, uint32_t buffer, int64_t count) {
  const auto *from = static_cast<const std::byte *>(executor.data(buffer));
  (void)executor.inspect(from, static_cast<uint64_t>(count) * sizeof(float),
                         [&](const std::byte *host) -> Status {
                           for (int64_t i = 0; i < count; ++i)
                             std::printf("%a\n", reinterpret_cast<const float *>(host)[i]);
                           return {};
                         });
}

/// A program, and what is done around its steps.
struct Play {
  Program program;
  std::function<void(Executor &)> start = [](Executor &) {};
  std::function<Status(Executor &, int step, uint32_t microBatch)> fill = [](Executor &, int, uint32_t) {
    return Status();
  };
  std::function<void(Executor &)> end = [](Executor &) {};
  std::chrono::seconds timeout{20};
};

int run(Play play, RankGroup &group, int steps) {
  toCuda(play.program);
  DeviceOptions of{&group};
  of.timeout = play.timeout;
  const std::unique_ptr<Device> device = need(openCudaDevice(of));
  ExecutorOptions options;
  options.rank = group.rank();
  options.device = device.get();
  options.poison = std::getenv("DS_POISON") != nullptr;
  std::unique_ptr<Executor> executor = need(Executor::load(std::move(play.program), options));
  play.start(*executor);
  for (int step = 0; step < steps; ++step)
    if (Status status = executor->runStep([&](uint32_t m) { return play.fill(*executor, step, m); }); !status)
      return fail(status.error());
  play.end(*executor);
  return 0;
}

int runLayers(RankGroup &group, int steps) {
  const TwoLayers layers(group.world());
  Play play{layers.b.program};
  play.start = [&](Executor &executor) { layers.start(executor); };
  play.fill = [&](Executor &executor, int step, uint32_t m) { return layers.fill(executor, step, m); };
  play.end = [&](Executor &executor) {
    for (uint32_t layer : layers.layersOf(executor))
      print(executor, layers.w[layer], TwoLayers::size(layer));
  };
  return run(std::move(play), group, steps);
}

/// The last step is measured: how many transfers were is written too.
int runPipeline(PipelineKind kind, RankGroup &group, int steps) {
  const Layers layers(fourLayers(kind, group.world()));
  Play play{layers.program()};
  play.start = [&](Executor &executor) { layers.start(executor); };
  play.fill = [steps](Executor &executor, int step, uint32_t m) {
    executor.measure(step == steps - 1);
    return Layers::fill(executor, step, m);
  };
  play.end = [&](Executor &executor) {
    const std::vector<Timing> timings = executor.takeTimings();
    std::printf("transfers %zu\n", static_cast<size_t>(std::ranges::count(
                                       timings, 1u, [](const Timing &t) { return t.stream; })));
    for (const auto &[name, values] : layers.results(executor)) {
      std::printf("%s", name.c_str());
      for (float value : values)
        std::printf(" %a", value);
      std::printf("\n");
    }
  };
  return run(std::move(play), group, steps);
}

/// A rank gives 100 times its number and up.
int runGiven(const Given &given, RankGroup &group, int steps) {
  const size_t stage = group.rank() % given.in.size();
  Play play{given.b.program};
  play.start = [&](Executor &executor) {
    auto *in = static_cast<std::byte *>(executor.data(given.in[stage]));
    (void)executor.change(in, given.count * sizeof(float), [&](std::byte *host) -> Status {
      for (int64_t i = 0; i < given.count; ++i)
        reinterpret_cast<float *>(host)[i] = static_cast<float>(100 * group.rank() + i);
      return {};
    });
  };
  play.end = [&](Executor &executor) { print(executor, given.out[stage], given.count); };
  return run(std::move(play), group, steps);
}

/// What no verified program does.
int runMessages(Program program, RankGroup &group, int steps) {
  Play play{std::move(program)};
  play.timeout = std::chrono::seconds(2);
  return run(std::move(play), group, steps);
}

/// The last gradient is never sent.
int runUnsentGradient(RankGroup &group, int steps) {
  const Pipeline pipeline{PipelineKind::OneForwardOneBackward, 2, 1, 3};
  Program program = LayersBuilder(pipeline, tableOf(pipeline), 0).b.program;
  std::vector<ScheduleEntry> &schedule = program.stages[1].schedule;
  schedule.erase(schedule.end() - 2); // the update is last
  return runMessages(std::move(program), group, steps);
}

int runNamed(const std::string &name, RankGroup &group, int steps) {
  if (name == "layers")
    return runLayers(group, steps);
  if (name == "gpipe")
    return runPipeline(PipelineKind::GPipe, group, steps);
  if (name == "1f1b")
    return runPipeline(PipelineKind::OneForwardOneBackward, group, steps);
  if (name == "interleaved")
    return runPipeline(PipelineKind::Interleaved, group, steps);
  if (name == "swap")
    return runGiven(swap(), group, steps);
  if (name == "all_to_all")
    return runGiven(allToAll(group.world()), group, steps);
  if (name == "unsent-gradient")
    return runUnsentGradient(group, steps);
  if (name == "short")
    return runMessages(messages(1, 16, 1), group, steps);
  if (name == "unsent")
    return runMessages(messages(1, 32, 2), group, steps);
  if (name == "unread")
    return runMessages(messages(2, 32, 1), group, steps);
  return 2;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3)
    return 2;
  const std::unique_ptr<RankGroup> group =
      need(connect(need(findRankIdentity()), {std::chrono::seconds(20), 2}));
  const int code = runNamed(argv[1], *group, std::atoi(argv[2]));
  if (code == 0)
    if (Status status = group->finish(); !status)
      return fail(status.error());
  return code;
}
