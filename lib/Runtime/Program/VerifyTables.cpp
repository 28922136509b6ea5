//===- VerifyTables.cpp - Indices, enumerations and geometry of a program ------===//
//
// After this pass every index names an entry, every enumeration has a known value and every buffer lies
// inside its arena; all arithmetic on values of the file is overflow-checked here, so that later code need
// not.
//
//===---------------------------------------------------------------------------===//
#include "Execution.h"
#include "Stages.h"
#include "Verify.h"
#include "ds/Support/ModelConfig.h"

#include <algorithm>
#include <functional>

namespace ds::rt {
namespace {

constexpr unsigned kMaxRank = 16;
constexpr uint32_t kMaxThreads = 4096;
constexpr uint32_t kMaxWorld = 1 << 16;
constexpr uint32_t kMaxAccumulation = 1 << 20;    // a step that ends
constexpr uint64_t kMaxArena = uint64_t(1) << 47; // what a process can map

/// Where the window is that lies furthest on, of all ranks and slots, or an error naming the overflow.
Result<uint64_t> lastWindow(const Buffer &buffer, size_t index, const Mesh &mesh) {
  uint64_t at = buffer.offset, shift;
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
    if (__builtin_mul_overflow(uint64_t(mesh.axes()[axis].size - 1), axisStride(buffer, axis), &shift) ||
        __builtin_add_overflow(shift, at, &at))
      return refuse("buffers[{}] with a stride of {} along '{}' overflows 64 bits on {} ranks", index,
                    axisStride(buffer, axis), mesh.axes()[axis].name, mesh.axes()[axis].size);
  if (__builtin_mul_overflow(uint64_t(buffer.slots - 1), buffer.slotStride, &shift) ||
      __builtin_add_overflow(shift, at, &at))
    return refuse("buffers[{}] with a slot stride of {} overflows 64 bits in {} slots", index,
                  buffer.slotStride, buffer.slots);
  return at;
}

/// First byte past the last element of that window relative to the arena, or an error naming the overflow.
Result<uint64_t> endOf(const Buffer &buffer, size_t index, const Mesh &mesh) {
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
  const Result<uint64_t> window = lastWindow(buffer, index, mesh);
  if (!window || empty)
    return window;
  uint64_t bytes;
  if (__builtin_mul_overflow(last + 1, static_cast<uint64_t>(byteSize(buffer.dtype)), &bytes) ||
      last == UINT64_MAX || __builtin_add_overflow(bytes, *window, &bytes))
    return refuse("buffers[{}] at offset {} overflows 64 bits", index, buffer.offset);
  return bytes;
}

/// One spelling for windows that lie at one place on all ranks, so that strides can be compared.
Status verifyAxisStrides(const Buffer &buffer, size_t i, const Mesh &mesh) {
  const std::vector<uint64_t> &strides = buffer.axisStrides;
  if (strides.empty())
    return {};
  if (strides.size() != mesh.numAxes())
    return refuse("buffers[{}] has strides along {} axes, but the mesh has {}", i, strides.size(),
                  mesh.numAxes());
  if (std::all_of(strides.begin(), strides.end(), [](uint64_t stride) { return stride == 0; }))
    return refuse("buffers[{}] has strides along {} axes that are all 0, expected none", i, strides.size());
  return {};
}

/// What can be wrong with a buffer's strides in bytes, whatever the arena.
Status verifyWindows(const Buffer &buffer, size_t i, const Mesh &mesh) {
  if (Status status = verifyAxisStrides(buffer, i, mesh); !status)
    return status;
  const auto elements = [&](const char *field, uint64_t bytes) -> Status {
    if (bytes % byteSize(buffer.dtype) == 0)
      return {};
    return refuse("buffers[{}].{} {} is not a multiple of the {} bytes of {}", i, field, bytes,
                  byteSize(buffer.dtype), spell(buffer.dtype));
  };
  std::vector<std::pair<const char *, uint64_t>> fields = {{"offset", buffer.offset},
                                                           {"slotStride", buffer.slotStride}};
  for (uint64_t stride : buffer.axisStrides)
    fields.emplace_back("axisStrides", stride);
  for (auto [field, bytes] : fields)
    if (Status status = elements(field, bytes); !status)
      return status;
  if (buffer.slots < 1 || buffer.slots > kMaxSlots)
    return refuse("buffers[{}] has {} slots, allowed are 1 to {}", i, buffer.slots, kMaxSlots);
  if (buffer.slots == 1 && buffer.slotStride != 0)
    return refuse("buffers[{}] has a slot stride of {}, but one slot", i, buffer.slotStride);
  return {};
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
    if (Status status = verifyWindows(buffer, i, p.mesh); !status)
      return status;
    Result<uint64_t> end = endOf(buffer, i, p.mesh);
    if (!end)
      return end.error();
    if (buffer.slots > 1 && extentBytes(buffer) > buffer.slotStride)
      return refuse("buffers[{}] spans {} bytes, but its {} slots are {} apart", i, extentBytes(buffer),
                    buffer.slots, buffer.slotStride);
    uint64_t most = 0; // of the stages, which of them use it being said by lifetimes
    for (const Stage &stage : p.stages)
      most = std::max(most, bytesOf(stage.arenas, buffer.space));
    if (*end > most)
      return refuse(
          "buffers[{}] ends at byte {}, in the last slot on the last of {} ranks, but the {} arena has {}", i,
          *end, p.world, spell(buffer.space), most);
  }
  return {};
}

/// Ranks of several stages work on the same micro-batches.
Status verifyMesh(const Program &p) {
  if (const std::string mistake = p.mesh.findMistake(p.world); !mistake.empty())
    return refuse("mesh {}: {}", p.mesh.spell(), mistake);
  if (!p.mesh.all().hasAll(p.dataAxes))
    return refuse("data differ along axes {:#x}, but the mesh has {}", p.dataAxes.bits(), p.mesh.numAxes());
  if (!p.mesh.all().hasAll(p.stageAxes))
    return refuse("stages differ along axes {:#x}, but the mesh has {}", p.stageAxes.bits(),
                  p.mesh.numAxes());
  if (p.dataAxes.hasAny(p.stageAxes))
    return refuse("data differ along {}, but the ranks along it have the same micro-batches",
                  p.mesh.spell(p.dataAxes & p.stageAxes));
  return {};
}

/// What the program says of its model goes into checkpoints and, from there, into folders of others.
Status verifyModelConfig(const Program &p) {
  if (p.modelConfig.empty() || isModelConfig(p.modelConfig))
    return {};
  return refuse("modelConfig, {} bytes, is not one JSON object of at most {} bytes", p.modelConfig.size(),
                kMaxModelConfigBytes);
}

Status verifyHead(const Program &p) {
  if (p.target != "cpu" && p.target != "cuda:sm_80" && p.target != "cuda:sm_90")
    return refuse("target is '{}', the known targets are cpu, cuda:sm_80 and cuda:sm_90", p.target);
  if (p.threads < 1 || p.threads > kMaxThreads)
    return refuse("threads is {}, allowed are 1 to {}", p.threads, kMaxThreads);
  const bool hasHost = std::count(p.streams.begin(), p.streams.end(), StreamKind::Host) != 0;
  if (p.hostThreads > kMaxThreads || (hasHost && p.hostThreads < 1))
    return refuse("the host stream has {} threads, allowed are 1 to {}", p.hostThreads, kMaxThreads);
  if (p.world < 1 || p.world > kMaxWorld)
    return refuse("world is {}, allowed are 1 to {}", p.world, kMaxWorld);
  if (Status status = verifyMesh(p); !status)
    return status;
  if (p.microBatch < 1 || p.accumulation < 1 || p.accumulation > kMaxAccumulation)
    return refuse("micro-batch {} and accumulation {} must both be at least 1, accumulation at most {}",
                  p.microBatch, p.accumulation, kMaxAccumulation);
  if (p.stages.size() != numStages(p))
    return refuse("the program has {} stages, but its mesh has {}", p.stages.size(), numStages(p));
  for (const Stage &stage : p.stages)
    for (Space space : {Space::Device, Space::Host, Space::Nvme})
      if (bytesOf(stage.arenas, space) > kMaxArena)
        return refuse("the {} arena has {} bytes, the limit is {}", spell(space),
                      bytesOf(stage.arenas, space), kMaxArena);
  if (p.weightsFile.find('/') != std::string::npos || p.weightsFile == "." || p.weightsFile == "..")
    return refuse("weights file '{}' is not a plain file name", p.weightsFile);
  if (std::count(p.streams.begin(), p.streams.end(), StreamKind::Compute) != 1 || p.streams.size() > 256)
    return refuse("{} streams, expected 1 to 256 with exactly one compute stream", p.streams.size());
  if (p.numEvents > p.commands.size()) // each has a command that records it
    return refuse("{} events, but only {} commands", p.numEvents, p.commands.size());
  if (Status status = verifyStorageSettings(p); !status)
    return status;
  for (size_t i = 0; i < p.streams.size(); ++i)
    if (!isKnown(p.streams[i], kLastStreamKind))
      return refuse("streams[{}] has kind {}, the last known is {}", i, int(p.streams[i]),
                    int(kLastStreamKind));
  return {};
}

/// Copies are between the device and its host, each way on streams of its own.
Status verifyCopy(const Program &p, size_t i) {
  const Command &c = p.commands[i];
  if (c.numOperands != 2)
    return refuse("{} has {} operands, a copy has 2", describeCommand(p, i), c.numOperands);
  const Buffer &from = p.buffers[p.operands[c.firstOperand]], &to = p.buffers[p.operands[c.firstOperand + 1]];
  if (from.space == to.space)
    return refuse("{} copies within the {}'s memory, which no copy does", describeCommand(p, i),
                  spell(from.space));
  const StreamKind way = to.space == Space::Host ? StreamKind::ToHost : StreamKind::ToDevice;
  if (p.streams[c.stream] != way)
    return refuse("{} copies from {} to {} on a stream of kind {}, expected {}", describeCommand(p, i),
                  spell(from.space), spell(to.space), spell(p.streams[c.stream]), spell(way));
  if (from.shape != to.shape || from.dtype != to.dtype)
    return refuse("{} copies {} [{}] to {} [{}]", describeCommand(p, i), spell(from.dtype),
                  fmt::join(from.shape, "x"), spell(to.dtype), fmt::join(to.shape, "x"));
  if (mayOverlap(from, to, p.mesh))
    return refuse("{} copies between buffers that overlap", describeCommand(p, i));
  return {};
}

Status verifyCommandWindows(const Program &p, size_t i) {
  const Command &c = p.commands[i];
  if (!isKnown(c.kind, kLastCommandKind))
    return refuse("commands[{}] has kind {}, the last known is {}", i, int(c.kind), int(kLastCommandKind));
  if (!isKnown(c.part, kLastPart))
    return refuse("commands[{}] is of part {}, the last known is {}", i, int(c.part), int(kLastPart));
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
  if (c.predicate != UINT32_MAX && c.predicate >= p.buffers.size())
    return refuse("{} has predicate {} of {} buffers", describeCommand(p, i), c.predicate, p.buffers.size());
  if (const uint64_t period = slotPeriod(p, c); period > kMaxSlots)
    return refuse(
        "{} has operands of which the slots return together after {} micro-batches, the limit is {}",
        describeCommand(p, i), period, kMaxSlots);
  return {};
}

/// Kernels and library functions run on the compute stream, or on the host's, where all that they touch lies
/// in the host's memory; of the functions the host stream has those that need no library.
Status verifyStream(const Program &p, size_t i) {
  const Command &c = p.commands[i];
  if (p.streams[c.stream] == StreamKind::Compute)
    return {};
  if (p.streams[c.stream] != StreamKind::Host)
    return refuse("{} computes on stream {}, which is not the compute stream", describeCommand(p, i),
                  c.stream);
  auto isElsewhere = [&](uint32_t buffer) { return p.buffers[buffer].space != Space::Host; };
  const auto first = p.operands.begin() + c.firstOperand;
  if (std::any_of(first, first + c.numOperands, isElsewhere) ||
      (c.workspace != UINT32_MAX && isElsewhere(c.workspace)))
    return refuse("{} is on the host's stream, but not all that it touches is in the host's memory",
                  describeCommand(p, i));
  const auto callee = static_cast<LibraryFn>(c.callee);
  if (c.kind == CommandKind::Library && callee != LibraryFn::SumOfSquares && callee != LibraryFn::Fill &&
      callee != LibraryFn::Copy)
    return refuse("{} is on the host's stream, which has no such function", describeCommand(p, i));
  return {};
}

/// What the host's stream does may depend on a truth value in the host's memory, and nothing else may.
Status verifyPredicate(const Program &p, size_t i) {
  const Command &c = p.commands[i];
  if (c.predicate == UINT32_MAX)
    return {};
  const Buffer &truth = p.buffers[c.predicate];
  if (!traitsOf(c.kind).computes() || p.streams[c.stream] != StreamKind::Host)
    return refuse("{} has a predicate, but computes nothing on the host's stream", describeCommand(p, i));
  if (truth.space != Space::Host || truth.dtype != DType::Bool || !truth.shape.empty())
    return refuse("{} has buffers[{}] as predicate, which is no truth value in the host's memory",
                  describeCommand(p, i), c.predicate);
  return {};
}

Status verifyCommand(const Program &p, size_t i) {
  for (auto check : {verifyCommandWindows, verifyPredicate})
    if (Status status = check(p, i); !status)
      return status;
  const Command &c = p.commands[i];
  if (c.kind == CommandKind::Storage)
    return verifyStorageCommand(p, i);
  if (Status status = verifyNoStorage(p, i); !status)
    return status;
  if (Status status = traitsOf(c.kind).computes() ? verifyStream(p, i) : Status(); !status)
    return status;
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
    break; // above
  }
  return {};
}

} // namespace

Status verifyTables(const Program &p) {
  for (auto check :
       {verifyHead, verifyModelConfig, verifyBuffers, verifySignature, verifyKernels, verifyCollectives})
    if (Status status = check(p); !status)
      return status;
  for (size_t i = 0; i < p.commands.size(); ++i)
    if (Status status = verifyCommand(p, i); !status)
      return status;
  return verifyExchanges(p);
}

} // namespace ds::rt
