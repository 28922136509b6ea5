//===- VerifyTables.cpp - Indices, enumerations and geometry of a program ------===//
//
// After this pass every index names an entry, every enumeration has a known value and every buffer lies
// inside its arena; all arithmetic on values of the file is overflow-checked here, so that later code need
// not.
//
//===---------------------------------------------------------------------------===//
#include "Verify.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

namespace ds::rt {
namespace {

constexpr unsigned kMaxRank = 16;
constexpr uint32_t kMaxThreads = 4096;
constexpr uint32_t kMaxWorld = 1 << 16;
constexpr uint32_t kMaxEvents = 1 << 16;          // commands name them by 16 bits
constexpr uint32_t kMaxAccumulation = 1 << 20;    // a step that ends
constexpr uint64_t kMaxArena = uint64_t(1) << 47; // what a process can map

template <class Enum>
bool isKnown(Enum value, Enum last) {
  return static_cast<unsigned>(value) <= static_cast<unsigned>(last);
}

/// First byte past the last element of the last rank's window relative to the arena, or an error naming the
/// overflow.
Result<uint64_t> endOf(const Buffer &buffer, size_t index, uint32_t world) {
  uint64_t last = 0;
  bool empty = false;
  int64_t elements = 1;
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    const int64_t size = buffer.shape[d], stride = buffer.strides[d];
    if (size < 0 || stride < 0)
      return refuse("buffers[{}] has size {} and stride {} in dimension {}, neither may be negative", index,
                    size, stride, d);
    empty |= size == 0;
    uint64_t reach;
    if (__builtin_mul_overflow(elements, std::max<int64_t>(size, 1), &elements) ||
        __builtin_mul_overflow(static_cast<uint64_t>(std::max<int64_t>(size, 1) - 1),
                               static_cast<uint64_t>(stride), &reach) ||
        __builtin_add_overflow(last, reach, &last))
      return refuse("buffers[{}] overflows 64 bits in dimension {} of size {} and stride {}", index, d, size,
                    stride);
  }
  uint64_t bytes, shift;
  if (__builtin_mul_overflow(uint64_t(world - 1), buffer.rankStride, &shift) ||
      __builtin_add_overflow(shift, buffer.offset, &shift))
    return refuse("buffers[{}] with a rank stride of {} overflows 64 bits on {} ranks", index,
                  buffer.rankStride, world);
  if (__builtin_mul_overflow(last + 1, static_cast<uint64_t>(byteSize(buffer.dtype)), &bytes) ||
      last == UINT64_MAX || __builtin_add_overflow(bytes, shift, &bytes))
    return refuse("buffers[{}] at offset {} overflows 64 bits", index, buffer.offset);
  return empty ? shift : bytes;
}

Status verifyBuffers(const Program &p) {
  for (size_t i = 0; i < p.buffers.size(); ++i) {
    const Buffer &buffer = p.buffers[i];
    if (!isKnown(buffer.space, Space::Nvme) || !isKnown(buffer.dtype, DType::Bool))
      return refuse("buffers[{}] has space {} and dtype {}, the last known are {} and {}", i,
                    int(buffer.space), int(buffer.dtype), int(Space::Nvme), int(DType::Bool));
    if (buffer.shape.size() != buffer.strides.size() || buffer.shape.size() > kMaxRank)
      return refuse("buffers[{}] has rank {} and {} strides, the limit is {}", i, buffer.shape.size(),
                    buffer.strides.size(), kMaxRank);
    if (buffer.offset % byteSize(buffer.dtype) != 0)
      return refuse("buffers[{}].offset {} is not a multiple of the {} bytes of {}", i, buffer.offset,
                    byteSize(buffer.dtype), spell(buffer.dtype));
    if (buffer.rankStride % byteSize(buffer.dtype) != 0)
      return refuse("buffers[{}].rankStride {} is not a multiple of the {} bytes of {}", i, buffer.rankStride,
                    byteSize(buffer.dtype), spell(buffer.dtype));
    Result<uint64_t> end = endOf(buffer, i, p.world);
    if (!end)
      return end.error();
    if (*end > arenaBytes(p, buffer.space))
      return refuse("buffers[{}] ends at byte {}, on the last of {} ranks, but the {} arena has {}", i, *end,
                    p.world, spell(buffer.space), arenaBytes(p, buffer.space));
  }
  return {};
}

/// Each axis divides what the axes before it leave, so that no product can overflow.
Status verifyMesh(const Program &p) {
  uint32_t left = p.world;
  for (uint32_t size : {p.mesh.dp, p.mesh.tp, p.mesh.pp, p.mesh.sp}) {
    if (size < 1 || left % size != 0)
      return refuse("mesh [{}, {}, {}, {}] has not {} ranks", p.mesh.dp, p.mesh.tp, p.mesh.pp, p.mesh.sp,
                    p.world);
    left /= size;
  }
  if (left != 1)
    return refuse("mesh [{}, {}, {}, {}] has not {} ranks", p.mesh.dp, p.mesh.tp, p.mesh.pp, p.mesh.sp,
                  p.world);
  return {};
}

Status verifyHead(const Program &p) {
  if (p.target != "cpu" && p.target != "cuda:sm_80" && p.target != "cuda:sm_90")
    return refuse("target is '{}', the known targets are cpu, cuda:sm_80 and cuda:sm_90", p.target);
  if (p.threads < 1 || p.threads > kMaxThreads)
    return refuse("threads is {}, allowed are 1 to {}", p.threads, kMaxThreads);
  if (p.world < 1 || p.world > kMaxWorld)
    return refuse("world is {}, allowed are 1 to {}", p.world, kMaxWorld);
  if (Status status = verifyMesh(p); !status)
    return status;
  if (p.microBatch < 1 || p.accumulation < 1 || p.accumulation > kMaxAccumulation)
    return refuse("micro-batch {} and accumulation {} must both be at least 1, accumulation at most {}",
                  p.microBatch, p.accumulation, kMaxAccumulation);
  for (Space space : {Space::Device, Space::Host, Space::Nvme})
    if (arenaBytes(p, space) > kMaxArena)
      return refuse("the {} arena has {} bytes, the limit is {}", spell(space), arenaBytes(p, space),
                    kMaxArena);
  if (p.weightsFile.find('/') != std::string::npos || p.weightsFile == "." || p.weightsFile == "..")
    return refuse("weights file '{}' is not a plain file name", p.weightsFile);
  if (std::count(p.streams.begin(), p.streams.end(), StreamKind::Compute) != 1 || p.streams.size() > 256)
    return refuse("{} streams, expected 1 to 256 with exactly one compute stream", p.streams.size());
  if (p.numEvents > kMaxEvents)
    return refuse("{} events, the limit is {}", p.numEvents, kMaxEvents);
  for (size_t i = 0; i < p.streams.size(); ++i)
    if (!isKnown(p.streams[i], StreamKind::Storage))
      return refuse("streams[{}] has kind {}, the last known is {}", i, int(p.streams[i]),
                    int(StreamKind::Storage));
  return {};
}

/// Checks that `name` is new; states and aliases share one name space, for they share the weights file.
Status addName(std::unordered_set<std::string> &names, const std::string &name, const char *list,
               size_t index) {
  if (name.empty() || name.size() > 4096)
    return refuse("{}[{}] has a name of {} bytes, allowed are 1 to 4096", list, index, name.size());
  if (!names.insert(name).second)
    return refuse("{}[{}] has the name '{}' of an earlier entry", list, index, name);
  return {};
}

/// A sharded state's elements lie inside the bucket of which its buffer is one rank's part.
Status verifyPartition(const Program &p, size_t i, int64_t elements) {
  const State &state = p.states[i];
  const Buffer &buffer = p.buffers[state.buffer];
  const Partition &part = state.partition;
  if (!part.sharded && elements != numElements(buffer))
    return refuse("states[{}] '{}' has {} logical elements, but its buffer holds {}", i, state.name, elements,
                  numElements(buffer));
  if (!part.sharded)
    return {};
  if (buffer.shape.size() != 1 || static_cast<uint64_t>(buffer.shape[0]) != part.shardElements)
    return refuse("states[{}] '{}' has shards of {} elements, but its buffer is [{}]", i, state.name,
                  part.shardElements, fmt::join(buffer.shape, "x"));
  const uint64_t bucket = part.shardElements * p.world; // at most 2^47 elements by 2^16 ranks
  if (part.offset > bucket || static_cast<uint64_t>(elements) > bucket - part.offset)
    return refuse("states[{}] '{}' has {} elements at element {} of a bucket of {}", i, state.name, elements,
                  part.offset, bucket);
  return {};
}

Status verifyState(const Program &p, size_t i, std::unordered_set<std::string> &names) {
  const State &state = p.states[i];
  if (Status status = addName(names, state.name, "states", i); !status)
    return status;
  for (const std::string &name : state.readNames)
    if (Status status = addName(names, name, "states", i); !status)
      return status;
  for (const std::string &alias : state.aliases)
    if (Status status = addName(names, alias, "states", i); !status)
      return status;
  if (state.buffer >= p.buffers.size())
    return refuse("states[{}] '{}' names buffer {} of {}", i, state.name, state.buffer, p.buffers.size());
  if (!isKnown(state.role, Role::Scalar) || !isKnown(state.init.kind, Init::Kind::Required))
    return refuse("states[{}] '{}' has role {} and initialisation {}, the last known are {} and {}", i,
                  state.name, int(state.role), int(state.init.kind), int(Role::Scalar),
                  int(Init::Kind::Required));
  const Buffer &buffer = p.buffers[state.buffer];
  if (!isContiguous(buffer) || buffer.rankStride != 0)
    return refuse("states[{}] '{}' is not packed in row-major order, or lies elsewhere on every rank", i,
                  state.name);
  int64_t elements = 1;
  for (int64_t size : state.logicalShape)
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements))
      return refuse("states[{}] '{}' has a logical size of {}, or its product overflows", i, state.name,
                    size);
  return verifyPartition(p, i, elements);
}

int64_t logicalElements(const State &state) {
  return std::accumulate(state.logicalShape.begin(), state.logicalShape.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

/// A master is a copy of a parameter: it takes its value from the parameter's name and initialisation.
Status verifyMasters(const Program &p) {
  std::unordered_map<std::string_view, const State *> byName;
  for (const State &state : p.states)
    byName.emplace(state.name, &state);
  for (size_t i = 0; i < p.states.size(); ++i) {
    const State &state = p.states[i];
    if (state.role != Role::Master)
      continue;
    const auto owner = byName.find(state.owner);
    if (owner == byName.end() || owner->second->role == Role::Master)
      return refuse("states[{}] '{}' is the master of '{}', which is no parameter", i, state.name,
                    state.owner);
    if (logicalElements(*owner->second) != logicalElements(state))
      return refuse("states[{}] '{}' has {} elements, but is the master of '{}' with {}", i, state.name,
                    logicalElements(state), state.owner, logicalElements(*owner->second));
  }
  return {};
}

Status verifySignature(const Program &p) {
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < p.states.size(); ++i)
    if (Status status = verifyState(p, i, names); !status)
      return status;
  if (Status status = verifyMasters(p); !status)
    return status;
  names.clear();
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    const Input &input = p.inputs[i];
    if (Status status = addName(names, input.name, "inputs", i); !status)
      return status;
    if (input.buffer >= p.buffers.size() || !isContiguous(p.buffers[input.buffer]) ||
        p.buffers[input.buffer].rankStride != 0)
      return refuse("inputs[{}] '{}' names buffer {} of {}, or one that is not packed or lies elsewhere on "
                    "every rank",
                    i, input.name, input.buffer, p.buffers.size());
    const DType dtype = p.buffers[input.buffer].dtype;
    if (input.indexLimit < 0 || (input.indexLimit > 0 && dtype != DType::I64 && dtype != DType::I32))
      return refuse("inputs[{}] '{}' has index limit {} with dtype {}", i, input.name, input.indexLimit,
                    spell(dtype));
  }
  names.clear();
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    const Output &output = p.outputs[i];
    if (Status status = addName(names, output.name, "outputs", i); !status)
      return status;
    if (output.buffer >= p.buffers.size() || numElements(p.buffers[output.buffer]) != 1 ||
        p.buffers[output.buffer].rankStride != 0)
      return refuse(
          "outputs[{}] '{}' names buffer {} of {}, or one that has not one element or lies elsewhere "
          "on every rank",
          i, output.name, output.buffer, p.buffers.size());
  }
  return {};
}

/// Whether the window [first, first + count) lies in a list of `size` entries.
bool inRange(uint64_t first, uint64_t count, uint64_t size) { return first + count <= size; }

Status verifyCopy(const Program &p, size_t i) {
  const Command &c = p.commands[i];
  if (c.numOperands != 2)
    return refuse("{} has {} operands, a copy has 2", describeCommand(p, i), c.numOperands);
  const Buffer &from = p.buffers[p.operands[c.firstOperand]], &to = p.buffers[p.operands[c.firstOperand + 1]];
  if (from.shape != to.shape || from.dtype != to.dtype)
    return refuse("{} copies {} [{}] to {} [{}]", describeCommand(p, i), spell(from.dtype),
                  fmt::join(from.shape, "x"), spell(to.dtype), fmt::join(to.shape, "x"));
  if (mayOverlap(from, to, p.world))
    return refuse("{} copies between buffers that overlap", describeCommand(p, i));
  return {};
}

Status verifyCommandWindows(const Program &p, size_t i) {
  const Command &c = p.commands[i];
  if (!isKnown(c.kind, CommandKind::WaitEvent))
    return refuse("commands[{}] has kind {}, the last known is {}", i, int(c.kind),
                  int(CommandKind::WaitEvent));
  if (c.location >= p.strings.size())
    return refuse("commands[{}] has location {} of {}", i, c.location, p.strings.size());
  if (c.stream >= p.streams.size())
    return refuse("{} runs on stream {} of {}", describeCommand(p, i), c.stream, p.streams.size());
  if (!inRange(c.firstOperand, c.numOperands, p.operands.size()))
    return refuse("{} uses operands {} to {} of {}", describeCommand(p, i), c.firstOperand,
                  uint64_t(c.firstOperand) + c.numOperands, p.operands.size());
  if (!inRange(c.firstParam, c.numParams, p.params.size()))
    return refuse("{} uses params {} to {} of {}", describeCommand(p, i), c.firstParam,
                  uint64_t(c.firstParam) + c.numParams, p.params.size());
  for (uint32_t k = 0; k < c.numOperands; ++k)
    if (p.operands[c.firstOperand + k] >= p.buffers.size())
      return refuse("{} operand {} names buffer {} of {}", describeCommand(p, i), k,
                    p.operands[c.firstOperand + k], p.buffers.size());
  if (c.workspace != UINT32_MAX && (c.workspace >= p.buffers.size() || !isContiguous(p.buffers[c.workspace])))
    return refuse("{} has workspace {} of {} buffers, or one that is not packed", describeCommand(p, i),
                  c.workspace, p.buffers.size());
  return {};
}

Status verifyCommand(const Program &p, size_t i) {
  if (Status status = verifyCommandWindows(p, i); !status)
    return status;
  const Command &c = p.commands[i];
  const bool computes = c.kind == CommandKind::Kernel || c.kind == CommandKind::Library;
  if (computes && p.streams[c.stream] != StreamKind::Compute)
    return refuse("{} computes on stream {}, which is not the compute stream", describeCommand(p, i),
                  c.stream);
  switch (c.kind) {
  case CommandKind::Kernel:
    return verifyKernelCommand(p, i);
  case CommandKind::Library:
    return verifyLibraryCommand(p, i);
  case CommandKind::Copy:
    return verifyCopy(p, i);
  case CommandKind::RecordEvent:
  case CommandKind::WaitEvent:
    if (c.callee >= p.numEvents)
      return refuse("{} names event {} of {}", describeCommand(p, i), c.callee, p.numEvents);
    return {};
  case CommandKind::Collective:
    return verifyCollectiveCommand(p, i);
  case CommandKind::Storage:
    return refuse("{} is a storage command, which format {} does not have", describeCommand(p, i),
                  kProgramFormat);
  }
  return {};
}

/// Segments are disjoint windows of the commands; the schedule runs `accumulation` micro-steps.
Status verifySchedule(const Program &p) {
  std::vector<std::pair<uint64_t, uint64_t>> windows;
  for (size_t i = 0; i < p.segments.size(); ++i) {
    const Segment &s = p.segments[i];
    if (!isKnown(s.kind, SegmentKind::Evaluation) ||
        !inRange(s.firstCommand, s.numCommands, p.commands.size()))
      return refuse("segments[{}] has kind {} and commands {} to {} of {}", i, int(s.kind), s.firstCommand,
                    uint64_t(s.firstCommand) + s.numCommands, p.commands.size());
    windows.emplace_back(s.firstCommand, uint64_t(s.firstCommand) + s.numCommands);
  }
  std::sort(windows.begin(), windows.end());
  for (size_t i = 1; i < windows.size(); ++i)
    if (windows[i].first < windows[i - 1].second)
      return refuse("two segments share command {}", windows[i].first);
  uint64_t microSteps = 0;
  for (size_t i = 0; i < p.schedule.size(); ++i) {
    const Slot &slot = p.schedule[i];
    if (slot.segment >= p.segments.size() || slot.count < 1 ||
        p.segments[slot.segment].kind == SegmentKind::Evaluation)
      return refuse("schedule[{}] runs segment {} of {} {} times, or one for evaluation", i, slot.segment,
                    p.segments.size(), slot.count);
    const Segment &segment = p.segments[slot.segment];
    if (segment.kind == SegmentKind::Update && slot.count != 1)
      return refuse("schedule[{}] runs the update '{}' {} times, expected once", i, segment.name, slot.count);
    if (segment.kind != SegmentKind::Update)
      microSteps += slot.count;
  }
  if (microSteps != p.accumulation)
    return refuse("the schedule runs {} micro-steps, but accumulation is {}", microSteps, p.accumulation);
  if (p.evaluation < -1 || (p.evaluation >= 0 && uint64_t(p.evaluation) >= p.segments.size()) ||
      (p.evaluation >= 0 && p.segments[p.evaluation].kind != SegmentKind::Evaluation))
    return refuse("evaluation segment {} of {} does not exist or has another kind", p.evaluation,
                  p.segments.size());
  return {};
}

} // namespace

Status verifyTables(const Program &p) {
  for (auto check : {verifyHead, verifyBuffers, verifySignature, verifyKernels, verifyCollectives})
    if (Status status = check(p); !status)
      return status;
  for (size_t i = 0; i < p.commands.size(); ++i)
    if (Status status = verifyCommand(p, i); !status)
      return status;
  return verifySchedule(p);
}

} // namespace ds::rt
