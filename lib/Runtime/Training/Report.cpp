//===- Report.cpp - What a run is going to be, and its trace -------------------===//
#include "Report.h"

#include "Cpu/BlockedProduct.h"
#include "Process/Messages.h"
#include "Program/Shape.h"
#include "Program/Stages.h"
#include "SentBytes.h"
#include "ds/Runtime/Program/Collective.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_set>

namespace ds::rt {
namespace {

/// What a slice of the trace is called: the place in the model if the program names it, as in a plan's trace.
std::string sliceName(const Program &program, const Command &command) {
  if (command.location < program.strings.size() && !program.strings[command.location].empty())
    return program.strings[command.location];
  if (command.kind == CommandKind::Kernel)
    return program.kernels[command.callee].name;
  if (command.kind == CommandKind::Collective)
    return program.collectives[command.callee].name;
  return command.kind == CommandKind::Library ? spell(static_cast<LibraryFn>(command.callee))
                                              : traitsOf(command.kind).name;
}

/// What a plan's trace says of the same command: of a collective the bytes that this rank sends.
double tracedBytes(const Program &program, const Command &command) {
  return command.kind == CommandKind::Collective ? static_cast<double>(sentBytes(program, command))
                                                 : command.bytes;
}

/// A parameter that several stages share counts once.
uint64_t numParameters(const Program &program) {
  std::unordered_set<std::string_view> seen;
  uint64_t count = 0;
  for (const State &state : program.states)
    if (state.role == Role::Parameter && seen.insert(state.name).second)
      count += elementsOf(state.logicalShape);
  return count;
}

/// "1 MiB device, 0 B host", which each rank has.
std::string spellArenas(const ArenaBytes &arenas) {
  return fmt::format("{} device, {} host{}", bytesText(static_cast<double>(arenas.device)),
                     bytesText(static_cast<double>(arenas.host)),
                     arenas.nvme > 0 ? fmt::format(", {} nvme", bytesText(static_cast<double>(arenas.nvme)))
                                     : "");
}

/// A line, or one for each stage.
std::string spellMemory(const Program &program) {
  if (program.stages.size() == 1)
    return fmt::format("memory      {}{}\n", spellArenas(program.stages.front().arenas),
                       program.world > 1 ? " on each rank" : "");
  std::string text;
  for (size_t stage = 0; stage < program.stages.size(); ++stage)
    text += fmt::format("{}stage {}: {} on each rank\n", stage == 0 ? "memory      " : "            ", stage,
                        spellArenas(program.stages[stage].arenas));
  return text;
}

} // namespace

uint64_t tokensPerStep(const Program &program) {
  for (const Input &input : program.inputs) {
    const Buffer &buffer = program.buffers[input.buffer];
    if (buffer.shape.size() == 2 && (buffer.dtype == DType::I64 || buffer.dtype == DType::I32))
      return static_cast<uint64_t>(numElements(buffer)) * program.accumulation *
             program.mesh.size(program.dataAxes);
  }
  return 0;
}

void printHead(const Program &program, const std::string &data, const std::string &weights, uint64_t steps,
               uint64_t seed) {
  std::string text = program.configText;
  if (!text.empty() && text.back() != '\n')
    text += '\n';
  text += fmt::format("model       {} parameters, weights from {}\n", numParameters(program), weights);
  text += fmt::format("batch       {} x {} x {} (micro-batch, accumulation, ranks)\n", program.microBatch,
                      program.accumulation, program.mesh.size(program.dataAxes));
  text += fmt::format("data        {}\n", data);
  if (program.target == "cpu")
    text += fmt::format("machine     cpu for {}, {} threads, kernels for {}\n", program.targetCpu,
                        program.threads, spell(bestIsa()));
  else
    text += fmt::format("machine     {}, kernels as PTX{}\n", program.target,
                        program.cubin.empty() ? "" : " and assembled");
  if (const std::string products = describeNarrowProducts(program); !products.empty())
    text += fmt::format("products    {}\n", products);
  text += spellMemory(program);
  text += fmt::format("run         {} steps, seed {}", steps, seed);
  printLine(std::move(text));
}

std::string describePhases(const PhaseClock::Phases &phases) {
  constexpr double kShown = 0.01;
  double all = 0;
  std::string text;
  for (const auto &[phase, seconds] : phases) {
    all += seconds;
    if (seconds >= kShown)
      text += fmt::format("{} {} {:.2g}", text.empty() ? ":" : ",", phase, seconds);
  }
  return fmt::format("ready after {:.2g} s{}", all, text);
}

void nameTracks(ChromeTrace &trace, const Program &program, uint32_t rank) {
  const bool hasStages = numStages(program) > 1;
  trace.nameProcess(rank, fmt::format("rank {}", rank) +
                              (hasStages ? fmt::format(", stage {}", stageOf(program, rank)) : ""));
  for (uint32_t stream = 0; stream < program.streams.size(); ++stream)
    trace.nameThread({rank, stream}, spell(program.streams[stream]), static_cast<int>(stream));
}

void addToTrace(ChromeTrace &trace, const Program &program, uint32_t rank, uint64_t step, int64_t beginNs,
                const std::vector<Timing> &timings) {
  trace.instant({rank, 0}, fmt::format("step {}", step), beginNs);
  for (const Timing &timing : timings) {
    const Command &command = program.commands[timing.command];
    trace.slice({rank, timing.stream}, sliceName(program, command), traitsOf(command.kind).category,
                timing.beginNs, timing.endNs - timing.beginNs, tracedBytes(program, command), command.flops);
  }
}

} // namespace ds::rt
