//===- WriteProgram.cpp - Programs as the bytes of .dsx files ------------------===//
//
// What grows with the model becomes flat vectors of structs (program.fbs). A plan's digest is that of the
// same bytes, with what is predicted left out.
//
//===---------------------------------------------------------------------------===//
#include "FileHeader.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include "program_generated.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

namespace ds::rt {
namespace {

using Builder = flatbuffers::FlatBufferBuilder;

template <class T>
auto packNames(Builder &builder, const std::vector<T> &names) {
  return builder.CreateVectorOfStrings(names);
}

/// Bits of sets of axes.
std::vector<uint32_t> flatten(const std::vector<AxisSet> &sets) {
  std::vector<uint32_t> bits;
  for (AxisSet set : sets)
    bits.push_back(set.bits());
  return bits;
}

/// None for a state that is whole on every rank.
flatbuffers::Offset<fb::Layout> packLayout(Builder &b, const Layout &layout) {
  if (layout == Layout())
    return {};
  const auto cuts = b.CreateVector(flatten(layout.cuts));
  const auto view = layout.view.empty() ? 0 : b.CreateVector(layout.view);
  const flatbuffers::Optional<uint64_t> existing =
      layout.existing ? flatbuffers::Optional<uint64_t>(*layout.existing) : flatbuffers::nullopt;
  const auto pieces = layout.pieces.empty() ? 0 : b.CreateVector(layout.pieces);
  return fb::CreateLayout(b, cuts, layout.bucket.bits(), layout.offset, layout.shardElements, view, existing,
                          pieces);
}

auto packMesh(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::Axis>> offsets;
  for (const MeshAxis &axis : program.mesh.axes())
    offsets.push_back(fb::CreateAxis(b, b.CreateString(axis.name), axis.size));
  return b.CreateVector(offsets);
}

auto packStates(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::State>> offsets;
  for (const State &state : program.states)
    offsets.push_back(fb::CreateState(
        b, b.CreateString(state.name), packNames(b, state.aliases), static_cast<uint8_t>(state.role),
        b.CreateString(state.owner), b.CreateVector(state.logicalShape), state.buffer,
        static_cast<uint8_t>(state.init.kind), state.init.a, state.init.b, state.trainable,
        packLayout(b, state.layout), packNames(b, state.readNames), state.stage,
        state.slot.empty() ? 0 : b.CreateString(state.slot)));
  return b.CreateVector(offsets);
}

/// None where there are no runs.
flatbuffers::Offset<flatbuffers::Vector<uint64_t>> packRuns(Builder &b, const std::vector<IndexRange> &runs) {
  std::vector<uint64_t> numbers;
  for (const IndexRange &run : runs)
    numbers.insert(numbers.end(), {run.first, run.count});
  return numbers.empty() ? 0 : b.CreateVector(numbers);
}

auto packInputs(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::Input>> offsets;
  for (const Input &input : program.inputs)
    offsets.push_back(fb::CreateInput(b, b.CreateString(input.name), input.buffer, input.indexLimit,
                                      input.hasIgnoreIndex, input.ignoreIndex, input.stage,
                                      packRuns(b, input.targets)));
  return b.CreateVector(offsets);
}

auto packOutputs(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::Output>> offsets;
  for (const Output &output : program.outputs)
    offsets.push_back(fb::CreateOutput(b, b.CreateString(output.name), output.buffer, output.stage));
  return b.CreateVector(offsets);
}

auto packCollectives(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::Collective>> offsets;
  for (const Collective &c : program.collectives)
    offsets.push_back(fb::CreateCollective(b, b.CreateString(c.name), c.elements,
                                           static_cast<uint8_t>(c.kind), static_cast<uint8_t>(c.reduction),
                                           static_cast<uint8_t>(c.dtype), c.axes.bits()));
  return b.CreateVector(offsets);
}

auto packKernels(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::Kernel>> offsets;
  for (const Kernel &kernel : program.kernels) {
    std::vector<fb::KernelOperand> operands;
    for (const KernelOperand &operand : kernel.operands)
      operands.emplace_back(operand.bytes, operand.perUnit);
    offsets.push_back(fb::CreateKernel(b, b.CreateString(kernel.name), kernel.extent, kernel.grain,
                                       kernel.blockThreads, kernel.sharedBytes, kernel.unitsPerBlock,
                                       kernel.persistent, b.CreateVector(kernel.alignments), kernel.items,
                                       b.CreateVectorOfStructs(operands), kernel.params));
  }
  return b.CreateVector(offsets);
}

auto packSegments(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::Segment>> offsets;
  for (const Segment &segment : program.segments)
    offsets.push_back(fb::CreateSegment(b, b.CreateString(segment.name), segment.stage, segment.chunk,
                                        segment.work.bits(), segment.firstCommand, segment.numCommands));
  return b.CreateVector(offsets);
}

/// What buffers have windows of, one after the other's.
struct BufferLists {
  std::vector<int64_t> shapes, strides;
  std::vector<uint64_t> axisStrides;
};

/// Buffers with what they have lists of appended to `lists`.
std::vector<fb::Buffer> flatten(const std::vector<Buffer> &buffers, BufferLists &lists) {
  const auto append = [](auto &to, const auto &from) { to.insert(to.end(), from.begin(), from.end()); };
  std::vector<fb::Buffer> flat;
  for (const Buffer &buffer : buffers) {
    flat.emplace_back(
        buffer.offset, buffer.slotStride, buffer.slots, static_cast<uint32_t>(lists.shapes.size()),
        static_cast<uint32_t>(lists.axisStrides.size()), static_cast<uint16_t>(buffer.shape.size()),
        static_cast<uint8_t>(buffer.axisStrides.size()), static_cast<uint8_t>(buffer.space),
        static_cast<uint8_t>(buffer.dtype));
    append(lists.shapes, buffer.shape);
    append(lists.strides, buffer.strides);
    append(lists.axisStrides, buffer.axisStrides);
  }
  return flat;
}

std::vector<fb::Lifetime> flatten(const std::vector<Lifetime> &lifetimes) {
  std::vector<fb::Lifetime> flat;
  for (const Lifetime &l : lifetimes)
    flat.emplace_back(l.offset, l.bytes, l.segment, l.begin, l.end, l.stage, static_cast<uint8_t>(l.space));
  return flat;
}

std::vector<fb::Command> flatten(const std::vector<Command> &commands) {
  std::vector<fb::Command> flat;
  for (const Command &c : commands)
    flat.emplace_back(c.flops, c.bytes, c.firstOperand, c.numOperands, c.firstParam, c.numParams, c.location,
                      c.workspace, c.callee, c.predicate, static_cast<uint8_t>(c.kind), c.stream,
                      static_cast<uint8_t>(c.part));
  return flat;
}

std::vector<fb::ScheduleEntry> flatten(const std::vector<ScheduleEntry> &schedule) {
  std::vector<fb::ScheduleEntry> flat;
  for (const ScheduleEntry &e : schedule)
    flat.emplace_back(e.segment, e.firstMicroBatch, e.count, static_cast<uint8_t>(e.gradients), e.reduces);
  return flat;
}

/// Nothing where no entry waits.
flatbuffers::Offset<flatbuffers::Vector<const fb::LaneCounts *>>
packWaits(Builder &b, const std::vector<ScheduleEntry> &schedule) {
  std::vector<fb::LaneCounts> flat;
  bool waits = false;
  for (const ScheduleEntry &e : schedule) {
    flat.emplace_back(e.after[0], e.after[1], e.after[2]);
    waits |= e.after != LaneCounts{};
  }
  static_assert(kNumLanes == 3);
  return waits ? b.CreateVectorOfStructs(flat) : 0;
}

auto packStages(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::Stage>> offsets;
  for (const Stage &stage : program.stages)
    offsets.push_back(fb::CreateStage(b, stage.arenas.device, stage.arenas.host, stage.arenas.nvme,
                                      b.CreateVectorOfStructs(flatten(stage.schedule)), stage.evaluation,
                                      stage.logits.segment, stage.logits.rows, stage.logits.logits,
                                      packWaits(b, stage.schedule)));
  return b.CreateVector(offsets);
}

flatbuffers::Offset<fb::Watch> packWatch(Builder &b, const WatchSettings &watch) {
  const auto monitor = [&](const std::optional<MonitorSettings> &from) {
    return from ? fb::CreateMonitor(b, b.CreateString(from->path), b.CreateString(from->job))
                : flatbuffers::Offset<fb::Monitor>();
  };
  const auto tensorboard = monitor(watch.tensorboard), csv = monitor(watch.csv);
  flatbuffers::Offset<fb::Profile> profile;
  if (const std::optional<ProfileSettings> &from = watch.profile)
    profile = fb::CreateProfile(b, from->step, from->depth, from->top, from->detailed,
                                b.CreateString(from->output));
  return fb::CreateWatch(b, watch.stepsPerPrint, tensorboard, csv, watch.comms, profile);
}

void pack(Builder &b, const Program &p, bool forHash) {
  BufferLists lists;
  auto buffers = b.CreateVectorOfStructs(flatten(p.buffers, lists));
  auto shapes = b.CreateVector(lists.shapes), strides = b.CreateVector(lists.strides);
  auto axisStrides = b.CreateVector(lists.axisStrides);
  auto mesh = packMesh(b, p);
  auto lifetimes = b.CreateVectorOfStructs(flatten(p.lifetimes));
  auto states = packStates(b, p);
  auto inputs = packInputs(b, p);
  auto outputs = packOutputs(b, p);
  std::vector<uint8_t> kinds;
  for (StreamKind kind : p.streams)
    kinds.push_back(static_cast<uint8_t>(kind));
  auto streams = b.CreateVector(kinds);
  auto commands = b.CreateVectorOfStructs(flatten(p.commands));
  auto operands = b.CreateVector(p.operands);
  auto params = b.CreateVector(p.params);
  auto strings = packNames(b, p.strings);
  auto segments = packSegments(b, p);
  auto stages = packStages(b, p);
  auto collectives = packCollectives(b, p);
  auto kernels = packKernels(b, p);
  auto image = b.CreateVector(p.image), cubin = b.CreateVector(p.cubin);
  const auto hostImage = p.hostImage.empty() ? 0 : b.CreateVector(p.hostImage);
  auto target = b.CreateString(p.target), cpu = b.CreateString(p.targetCpu);
  auto features = packNames(b, p.cpuFeatures);
  auto hash = b.CreateString(forHash ? std::string() : p.planHash);
  auto config = b.CreateString(p.configText), weights = b.CreateString(p.weightsFile);
  auto unused = packNames(b, p.unusedWeights);
  const auto model = p.modelConfig.empty() ? 0 : b.CreateString(p.modelConfig);
  const StorageSettings &s = p.storage;
  const auto parameterPath = s.parameterPath.empty() ? 0 : b.CreateString(s.parameterPath);
  auto storage = fb::CreateStorage(b, b.CreateString(s.path), s.blockBytes, s.queueDepth, s.parallelism,
                                   s.singleSubmit, s.overlapEvents, parameterPath);
  const Predicted predicted = forHash ? Predicted() : p.predicted;
  const auto watch = forHash ? flatbuffers::Offset<fb::Watch>() : packWatch(b, p.watch);
  b.Finish(fb::CreateProgram(b, target, cpu, features, hash, config, weights, unused, p.threads, p.world,
                             mesh, p.dataAxes.bits(), p.microBatch, p.accumulation, stages, buffers, shapes,
                             strides, axisStrides, lifetimes, states, inputs, outputs, streams, p.numEvents,
                             commands, operands, params, strings, segments, collectives, kernels, image,
                             predicted.peakBytes, predicted.stepSeconds, predicted.flopsPerStep,
                             p.convertsWeights, cubin, p.tf32, model, storage, p.hostThreads,
                             p.nodeLocalSaves, watch, predicted.peakFlopsPerSecond, predicted.recomputeFlops,
                             hostImage, p.stageAxes.bits()),
           fb::ProgramIdentifier());
}

uint64_t boundBytes(const WatchSettings &watch) {
  uint64_t bytes = 512;
  for (const auto *monitor : {&watch.tensorboard, &watch.csv})
    bytes += *monitor ? (*monitor)->path.size() + (*monitor)->job.size() : 0;
  return bytes + (watch.profile ? watch.profile->output.size() : 0);
}

/// An upper bound of the payload, because FlatBufferBuilder asserts rather than fails above 2 GiB.
uint64_t boundBytes(const Program &p) {
  uint64_t bytes = 4096 + p.storage.path.size() + p.storage.parameterPath.size() + p.image.size() +
                   p.cubin.size() + p.hostImage.size() + p.configText.size() + p.modelConfig.size() +
                   boundBytes(p.watch) + p.lifetimes.size() * 48;
  for (const Buffer &buffer : p.buffers)
    bytes += 48 + 16 * buffer.shape.size() + 8 * buffer.axisStrides.size();
  for (const MeshAxis &axis : p.mesh.axes())
    bytes += axis.name.size() + 32;
  bytes += p.commands.size() * 64 + p.operands.size() * 4 + p.params.size() * 8;
  for (const auto *list : {&p.strings, &p.unusedWeights, &p.cpuFeatures})
    for (const std::string &text : *list)
      bytes += text.size() + 16;
  for (const State &state : p.states) {
    bytes += state.name.size() + state.owner.size() + state.slot.size() + 8 * state.logicalShape.size() +
             256 + 4 * state.layout.cuts.size() + 8 * (state.layout.view.size() + state.layout.pieces.size());
    for (const auto *list : {&state.aliases, &state.readNames})
      for (const std::string &name : *list)
        bytes += name.size() + 16;
  }
  for (const Collective &collective : p.collectives)
    bytes += collective.name.size() + 64;
  for (const Kernel &kernel : p.kernels)
    bytes += kernel.name.size() + 4 * kernel.alignments.size() + 16 * kernel.operands.size() + 128;
  for (const Stage &stage : p.stages)
    bytes += 256 + 32 * stage.schedule.size();
  return bytes + 256 * (p.inputs.size() + p.outputs.size() + p.segments.size());
}

} // namespace

Result<std::vector<uint8_t>> serializeProgram(const Program &program) {
  if (const uint64_t bound = boundBytes(program); bound > kMaxPayload)
    return Error{ExitCode::Invalid,
                 fmt::format("program of up to {} bytes exceeds the limit of {}", bound, kMaxPayload), ""};
  Builder builder(1 << 20);
  pack(builder, program, /*forHash=*/false);
  Header header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kProgramFormat;
  header.payloadBytes = builder.GetSize();
  header.checksum = XXH3_64bits_withSeed(builder.GetBufferPointer(), builder.GetSize(), kProgramFormat);
  std::vector<uint8_t> bytes(sizeof header + builder.GetSize());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, builder.GetBufferPointer(), builder.GetSize());
  return bytes;
}

std::string hashPlan(const Program &program) {
  if (boundBytes(program) > kMaxPayload)
    return {};
  Builder builder(1 << 20);
  pack(builder, program, /*forHash=*/true);
  const XXH128_hash_t hash = XXH3_128bits(builder.GetBufferPointer(), builder.GetSize());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

} // namespace ds::rt
