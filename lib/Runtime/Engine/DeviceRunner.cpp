//===- DeviceRunner.cpp - Runs a program's segments on an accelerator ------------===//
//
// Size: as its class, which is still to be divided.
//
//===---------------------------------------------------------------------------===//
#include "DeviceRunner.h"

#include "HostCommands.h"
#include "Process/Clock.h"
#include "Program/Verify.h"
#include "ds/Runtime/Program/HostNeeds.h"
#include "ds/Support/Environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace ds::rt {
namespace {

constexpr uint64_t kWholeStep = UINT64_MAX;
constexpr uint32_t kNoCommand = UINT32_MAX;
constexpr uint32_t kMarks = 64;          ///< in a graph: each takes a few microseconds of its stream
constexpr uint64_t kMaxNodes = 1u << 18; ///< of one graph; longer steps are started command by command

/// A segment that runs alone has other addresses for every micro-batch, and a graph of its own.
uint64_t keyOf(const Execution &alone) { return uint64_t(alone.microBatch) << 32 | alone.segment; }

} // namespace

DeviceRunner::DeviceRunner(Device &device, const Program &program, uint32_t rank)
    : device(device), program(program), rank(rank), checksAlways(isSet("DS_CUDA_CHECK", false)),
      mayRecord(isSet("DS_CUDA_GRAPH", true) && !checksAlways) {
  const char *wish = std::getenv("DS_CUDA_GRAPH");
  mustRecord = mayRecord && wish && std::strcmp(wish, "require") == 0;
}

DeviceRunner::~DeviceRunner() = default;

std::byte *DeviceRunner::base(Space space) const {
  if (space == Space::Nvme)
    return host->storage()->base();
  return space == Space::Device ? deviceBase : hostBase;
}

Result<std::unique_ptr<DeviceRunner>> DeviceRunner::load(Device &device, const Program &program,
                                                         uint32_t rank, std::vector<GroupUse> groups,
                                                         bool poison, Storage *storage) {
  std::unique_ptr<DeviceRunner> runner(new DeviceRunner(device, program, rank));
  Result<std::unique_ptr<HostCommands>> host = HostCommands::make(program, rank, storage);
  if (!host)
    return host.error();
  runner->host = std::move(*host);
  if (Status status = runner->prepare(std::move(groups), poison); !status)
    return status.error();
  return runner;
}

Status DeviceRunner::prepare(std::vector<GroupUse> groups, bool poisons) {
  if (Status status = device.load(program, rank, std::move(groups)); !status)
    return status;
  if (Status status = allocate(); !status)
    return status;
  step = executionsOf(program);
  uint64_t nodes = 0;
  for (const Execution &part : step)
    nodes += program.segments[part.segment].numCommands;
  if (mayRecord && nodes > kMaxNodes)
    if (Status status =
            refuseGraph(fmt::format("the step has {} commands, a graph has at most {}", nodes, kMaxNodes));
        !status)
      return status;
  if (Status status = bindAll(); !status)
    return status;
  if (Status status = device.choose(); !status)
    return status;
  if (Status status = device.synchronize(); !status || !poisons)
    return status;
  checksAlways = true;
  poison = std::make_unique<Poison>(
      program, [this](const Lifetime &lifetime, uint8_t byte) { return setBytes(lifetime, byte); });
  return poison->start();
}

Status DeviceRunner::bindAll() {
  const auto address = [this](uint32_t buffer, uint32_t microBatch) {
    const Buffer &b = program.buffers[buffer];
    return base(b.space) + windowOffset(b, program.mesh, rank, microBatch);
  };
  for (uint32_t i = 0; i < program.commands.size(); ++i) {
    if (traitsOf(program.commands[i].kind).isEvent())
      continue;
    if (Status status = HostCommands::has(program, i) ? host->bind(i, address) : device.bind(i, address);
        !status)
      return explainAt(status.error(), i);
  }
  return {};
}

/// At once: the next command may be on any stream.
Status DeviceRunner::setBytes(const Lifetime &lifetime, uint8_t byte) {
  if (lifetime.space == Space::Nvme)
    return {}; // as on the CPU
  std::byte *at = base(lifetime.space) + lifetime.offset;
  if (lifetime.space == Space::Host) {
    std::memset(at, byte, lifetime.bytes);
    return {};
  }
  if (Status status = device.fill(at, byte, lifetime.bytes); !status)
    return status;
  return device.synchronize();
}

Status DeviceRunner::allocate() {
  stagedOffsets = stagedInputOffsets(program);
  struct Wish {
    std::byte *&at;
    Space space;
    uint64_t bytes;
    const char *what;
  };
  for (const Wish &wish :
       {Wish{deviceBase, Space::Device, program.stages.front().arenas.device, "device arena"},
        Wish{hostBase, Space::Host, program.stages.front().arenas.host, "host arena"},
        Wish{staging, Space::Host, inputStagingBytes(program), "input staging"}}) {
    if (wish.bytes == 0)
      continue;
    Result<std::byte *> memory = device.allocate(wish.space, wish.bytes, wish.what);
    if (!memory)
      return memory.error();
    wish.at = *memory;
  }
  return host->useHost(hostBase);
}

/// All work is done, the host's included.
Status DeviceRunner::synchronize() {
  Status status = device.synchronize();
  Status done = host->takeFailure();
  return done ? status : done; // what the device says then comes of it
}

std::byte *DeviceRunner::staged(size_t input, uint32_t microBatch) const {
  return staging + microBatch * stagedOffsets.back() + stagedOffsets[input];
}

std::vector<void *> DeviceRunner::inputs(uint32_t microBatch) const {
  std::vector<void *> addresses;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    addresses.push_back(staged(i, microBatch));
  return addresses;
}

bool DeviceRunner::isRemote(const std::byte *address) const {
  return address >= deviceBase && address < deviceBase + program.stages.front().arenas.device;
}

Status DeviceRunner::transfer(std::byte *to, const std::byte *from, uint64_t bytes) {
  if (Status status = device.copy(to, from, bytes); !status)
    return status;
  return device.synchronize();
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

Status DeviceRunner::run(uint32_t segment, uint32_t microBatch) {
  const Execution alone = executeAlone(program, segment, microBatch);
  return runParts(keyOf(alone), {alone});
}

Status DeviceRunner::runStep(const std::function<Status(uint32_t)> &fill) {
  for (const Execution &part : step)
    if (part.fills)
      if (Status status = fill(part.microBatch); !status)
        return status;
  return runParts(kWholeStep, step);
}

Status DeviceRunner::retrace(const std::function<Status(uint32_t)> &fill, const After &after) {
  for (const Execution &part : step)
    if (part.fills)
      if (Status status = fill(part.microBatch); !status)
        return status;
  watch = after;
  Status status = runDirectly(step, Way::Checked);
  watch = {};
  return status;
}

Status DeviceRunner::runParts(uint64_t key, const Parts &parts) {
  device.resetMarks(kNoCommand);
  asGraph = false;
  if (checksAlways || !std::exchange(known[key], true))
    return runDirectly(parts, Way::Checked);
  if (measuring)
    return observes && device.startObserving() ? runObserved(parts) : runDirectly(parts, Way::Measured);
  if (mayRecord)
    return runGraph(key, parts);
  return runDirectly(parts, Way::Free);
}

Status DeviceRunner::runDirectly(const Parts &parts, Way way) {
  numStamps = 0;
  const int64_t origin = nowNs();
  if (way == Way::Measured || measuring)
    if (Status status = device.stamp(numStamps++, 0); !status)
      return explain(status.error());
  if (Status status = issueParts(parts, way); !status)
    return status;
  if (Status status = synchronize(); !status)
    return explain(status.error());
  if (way != Way::Measured)
    return {};
  const size_t before = timings.size();
  Status status = takeTimings(parts);
  for (size_t i = before; i < timings.size(); ++i) {
    timings[i].beginNs += origin;
    timings[i].endNs += origin;
  }
  return status;
}

/// Directly, while the device notes when each command's work runs.
Status DeviceRunner::runObserved(const Parts &parts) {
  const int64_t origin = nowNs();
  numStamps = 0;
  host->measure(true);
  Status status = issueParts(parts, Way::Observed);
  device.observe(Device::kNoIndex);
  if (Status done = synchronize(); status && !done)
    status = explain(done.error());
  host->measure(false);
  const std::vector<Device::Observed> observed = device.takeObserved();
  const std::vector<Timing> hosts = host->takeTimings();
  if (!status)
    return status;
  observes = !observed.empty();   // else the next run asks events
  std::vector<uint32_t> commands; // by index: as they were issued
  for (const Execution &part : parts)
    for (uint32_t i = 0; i < program.segments[part.segment].numCommands; ++i)
      commands.push_back(program.segments[part.segment].firstCommand + i);
  for (const Device::Observed &each : observed)
    if (!HostCommands::has(program, commands[each.index]))
      timings.push_back({commands[each.index], program.commands[commands[each.index]].stream,
                         origin + each.beginNs, origin + each.endNs});
  if (observes) // of the host's commands the device sees nothing
    timings.insert(timings.end(), hosts.begin(), hosts.end());
  return {};
}

Status DeviceRunner::runGraph(uint64_t key, const Parts &parts) {
  if (!graphs.contains(key)) {
    Result<bool> recorded = record(key, parts);
    if (!recorded)
      return recorded.error();
    if (!*recorded)
      return runDirectly(parts, Way::Free);
  }
  asGraph = true;
  if (Status status = device.launch(graphs.at(key)); !status)
    return explain(status.error());
  Status status = synchronize();
  return status ? status : explain(status.error());
}

/// Records `parts` as the graph of `key`; false if something in them cannot be recorded.
Result<bool> DeviceRunner::record(uint64_t key, const Parts &parts) {
  if (Status status = device.beginGraph(); !status)
    return status.error();
  if (Status issuing = issueParts(parts, Way::Free); !issuing) {
    device.abandonGraph();
    if (issuing.error().code == ExitCode::Peer)
      return issuing.error();
    Status status = refuseGraph(issuing.error().message);
    return status ? Result<bool>(false) : status.error();
  }
  Result<GraphId> graph = device.endGraph();
  if (!graph && graph.error().code == ExitCode::Invalid) {
    Status status = refuseGraph(graph.error().message);
    return status ? Result<bool>(false) : status.error();
  }
  if (!graph)
    return graph.error();
  graphs.emplace(key, *graph);
  return true;
}

/// From now on commands are started one by one; an error where the user wants graphs.
Status DeviceRunner::refuseGraph(const std::string &why) {
  mayRecord = false;
  refusal = why;
  if (!mustRecord)
    return {};
  return Error{ExitCode::Device, "DS_CUDA_GRAPH=require, but no graph can be recorded: " + why,
               "DS_CUDA_GRAPH=1 runs such steps command by command"};
}

Status DeviceRunner::issueParts(const Parts &parts, Way way) {
  for (const Execution &part : parts) {
    if (part.fills)
      if (Status status = stageInputs(part.microBatch, way); !status)
        return status;
    if (Status status = device.fork(); !status)
      return status;
    if (Status status = poison ? issuePoisoned(part) : issueSegment(part, way); !status)
      return status;
    if (Status status = device.join(); !status)
      return status;
  }
  return {};
}

Status DeviceRunner::stageInputs(uint32_t microBatch, Way way) {
  if (way == Way::Observed)
    device.observe(Device::kNoIndex);
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Buffer &buffer = program.buffers[program.inputs[i].buffer];
    if (Status status = device.copy(base(buffer.space) + windowOffset(buffer, program.mesh, rank, microBatch),
                                    staged(i, microBatch), extentBytes(buffer));
        !status)
      return status;
  }
  return {};
}

/// One command after another.
Status DeviceRunner::issuePoisoned(const Execution &part) {
  const Segment &segment = program.segments[part.segment];
  for (uint32_t t = 0; t < segment.numCommands; ++t) {
    Status status = poison->before(part.segment, t);
    if (status)
      status = issueCommand(segment.firstCommand + t, part.microBatch, Way::Checked);
    if (status)
      status = poison->after(part.segment, t);
    if (!status)
      return explainAt(status.error(), segment.firstCommand + t);
  }
  return {};
}

Status DeviceRunner::issueSegment(const Execution &part, Way way) {
  const Segment &segment = program.segments[part.segment];
  const auto every = static_cast<uint32_t>((segment.numCommands * step.size() + kMarks - 1) / kMarks);
  for (uint32_t i = 0; i < segment.numCommands; ++i) {
    const uint32_t index = segment.firstCommand + i;
    if (Status status = issueCommand(index, part.microBatch, way); !status)
      return explainAt(status.error(), index);
    const bool waits = program.commands[index].kind == CommandKind::Collective && program.world > 1;
    if (way == Way::Free && (waits || i % std::max(every, 1u) == 0))
      if (Status status = device.mark(program.commands[index].stream, index); !status)
        return explainAt(status.error(), index);
  }
  return {};
}

Status DeviceRunner::issueCommand(uint32_t index, uint32_t microBatch, Way way) {
  const uint32_t stream = program.commands[index].stream;
  if (way == Way::Measured)
    if (Status status = device.stamp(numStamps++, stream); !status)
      return status;
  if (way == Way::Observed)
    device.observe(numStamps++);
  if (Status status = issueOnly(index, microBatch); !status)
    return status;
  if (way == Way::Measured)
    return device.stamp(numStamps++, stream);
  if (way != Way::Checked)
    return {};
  if (Status status = synchronize(); !status || !watch)
    return status;
  return watch(index, microBatch);
}

Status DeviceRunner::issueOnly(uint32_t index, uint32_t microBatch) {
  const Command &command = program.commands[index];
  if (command.kind == CommandKind::RecordEvent)
    return device.record(command.callee, command.stream);
  if (command.kind == CommandKind::WaitEvent)
    return device.wait(command.callee, command.stream);
  if (HostCommands::has(program, index))
    return host->issue(device, index, microBatch);
  device.beginRange(program.strings[command.location].c_str());
  Status status = device.issue(index, microBatch);
  device.endRange();
  return status;
}

/// Turns stamps into timings relative to the first; events of the program are not told.
Status DeviceRunner::takeTimings(const Parts &parts) {
  uint32_t at = 1;
  for (const Execution &part : parts) {
    const Segment &segment = program.segments[part.segment];
    for (uint32_t i = 0; i < segment.numCommands; ++i, at += 2) {
      const Command &command = program.commands[segment.firstCommand + i];
      if (traitsOf(command.kind).isEvent())
        continue;
      const Result<double> begin = device.secondsBetween(0, at), end = device.secondsBetween(0, at + 1);
      if (!begin || !end)
        return (begin ? end : begin).error();
      timings.push_back({segment.firstCommand + i, command.stream, static_cast<int64_t>(*begin * 1e9),
                         static_cast<int64_t>(*end * 1e9)});
    }
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

Error DeviceRunner::explainAt(const Error &error, uint32_t command) const {
  return Error{error.code, fmt::format("{}: {}", describeCommand(program, command), error.message),
               error.hint};
}

/// An error of work that was started as one: the last mark of each stream says how far it came.
Error DeviceRunner::explain(const Error &error) const {
  std::string where;
  for (uint32_t stream = 0; stream < program.streams.size(); ++stream)
    if (const uint32_t command = device.reached(stream); command < program.commands.size())
      where += fmt::format("{}{}", where.empty() ? "after " : " and ", describeCommand(program, command));
  return Error{error.code, where.empty() ? error.message : fmt::format("{}: {}", where, error.message),
               error.hint.empty() ? "set DS_CUDA_CHECK=1 to wait after each command: the message then "
                                    "names the one that fails"
                                  : error.hint};
}

} // namespace ds::rt
