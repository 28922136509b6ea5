//===- ProgramPlayer.cpp - All ranks of a program file, in one process -------------------------------===//
//
// Usage: program-player FILE STEPS             reads the program and runs steps, each rank a thread
//        program-player --write NAME FILE      writes one of the programs below
//
// For test/fuzz/programs.py: ds-run trains programs of one stage, and what a program of several says of its
// messages must be refused or come to an end as well. Refusals end with their exit code and a message, as
// those of ds-run.
//
//===---------------------------------------------------------------------------===//
#include "FakeRanks.h"
#include "LayersBuilder.h"
#include "TwoLayers.h"

#include "ds/Runtime/Engine/Executor.h"
#include "ds/Support/RunTool.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;

namespace {

constexpr uint32_t kMostRanks = 64;

int fail(const Error &error) {
  std::fprintf(stderr, "program-player: error: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

/// Makes the commands since the last segment the only ones of a stage's step.
void endStage(ProgramBuilder &b) {
  b.program.stages[b.stage()].schedule = {{b.segment(), 0, 1, Gradients::Set, true}};
}

/// Four stages pass on what they count, each in a micro-batch of its own.
Program chain() {
  ProgramBuilder b;
  for (uint32_t stage = 0; stage < 4; ++stage) {
    if (stage > 0)
      b.addStage();
    const uint32_t x = b.keep({100});
    if (stage > 0)
      b.receive("x" + std::to_string(stage), x, stage - 1);
    b.launch("ds_count", 0, {x}, {100});
    if (stage < 3)
      b.send("x" + std::to_string(stage + 1), x, stage + 1);
    endStage(b);
  }
  b.program.image = readBytes(DS_TEST_INTERFACES);
  return b.program;
}

/// Two stages of two ranks each: they send each other what they have at once, twice, and then its ranks
/// reduce and exchange what a stage has.
Program ring() {
  ProgramBuilder b;
  const Mesh mesh = {{"pp", 2}, {"dp", 2}};
  for (uint32_t stage : {0u, 1u}) {
    if (stage > 0)
      b.addStage();
    b.ranks(mesh);
    const uint32_t own = b.keep({32}), other = b.keep({32}), more = b.keep({16}), sum = b.keep({32}),
                   all = b.keep({32});
    b.exchange({{CollectiveKind::Send, stage ? "back" : "forth", own, 1 - stage},
                {CollectiveKind::Recv, stage ? "forth" : "back", other, 1 - stage}},
               1);
    if (stage == 0)
      b.send("more", more, 1, 1);
    else
      b.receive("more", more, 0, 1);
    b.communicate(CollectiveKind::AllReduce, Reduction::Sum, 32, {other, sum}, 1);
    b.communicate(CollectiveKind::AllToAll, Reduction::None, 16, {sum, all}, 1);
    endStage(b);
  }
  return b.program;
}

/// TwoLayers, of which the kernels say what they touch.
Program layers() {
  Program program = TwoLayers(2).b.program;
  program.image = readBytes(DS_PLAYER_KERNELS);
  return program;
}

/// Two stages do one forward and one backward in turns, with transfers beside them.
Program pipeline() {
  const Pipeline turns{PipelineKind::OneForwardOneBackward, 2, 1, 3};
  Program program = LayersBuilder(turns, tableOf(turns), 0).b.program;
  program.image = readBytes(DS_PLAYER_KERNELS);
  return program;
}

int write(const std::string &name, const std::string &path) {
  const Program program = name == "layers"     ? layers()
                          : name == "pipeline" ? pipeline()
                          : name == "chain"    ? chain()
                                               : ring();
  if (Status status = writeProgram(program, path); !status)
    return fail(status.error());
  return 0;
}

/// The first error of any rank.
class FirstError {
public:
  void take(const Error &error) {
    const std::lock_guard lock(mutex);
    if (!first)
      first = error;
  }
  std::optional<Error> first;

private:
  std::mutex mutex;
};

Status runRank(const Program &program, FakeRanks &ranks, uint32_t rank, int steps) {
  ExecutorOptions options;
  options.rank = rank;
  options.communicator = ranks.communicators(rank, program.mesh);
  options.failed = [&ranks](const Error &error) { ranks.abort(error.message); };
  Result<std::unique_ptr<Executor>> executor = Executor::load(program, options);
  if (!executor)
    return executor.error();
  for (int step = 0; step < steps; ++step)
    if (Status status = (*executor)->runStep([](uint32_t) { return Status(); }); !status)
      return status;
  return {};
}

int play(const std::string &path, int steps) {
  const Result<Program> program = readProgram(path);
  if (!program)
    return fail(program.error());
  if (program->world > kMostRanks)
    return fail(
        {ExitCode::Device, "the program is made for " + std::to_string(program->world) + " ranks", ""});
  FakeRanks ranks(program->world);
  FirstError error;
  ranks.forEachRank([&](uint32_t rank) {
    if (Status status = runRank(*program, ranks, rank, steps); !status) {
      error.take(status.error());
      ranks.abort(status.error().message);
    }
  });
  if (!error.first)
    return 0;
  return fail({error.first->code, path + ": " + error.first->message, ""});
}

int run(int argc, char **argv) {
  if (argc == 4 && std::string(argv[1]) == "--write")
    return write(argv[2], argv[3]);
  return argc == 3 ? play(argv[1], std::atoi(argv[2])) : static_cast<int>(ExitCode::Usage);
}

} // namespace

int main(int argc, char **argv) { return runTool("program-player", argc, argv, run); }
