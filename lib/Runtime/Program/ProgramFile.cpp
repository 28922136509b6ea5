//===- ProgramFile.cpp - Reads and writes .dsx files ---------------------------===//
//
// The header is checked before the payload is looked at, in the order a reader can make use of the answer:
// magic (not a program), version (another build's), size (truncated), checksum (damaged). Only then
// FlatBuffers runs.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/ProgramFile.h"

#include "program_generated.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>

namespace ds::rt {
namespace {

constexpr char kMagic[8] = {'\x89', 'D', 'S', 'X', '\r', '\n', '\x1a', '\n'};
constexpr uint64_t kMaxPayload = (uint64_t(1) << 31) - 1; // FlatBuffers offsets are signed 32-bit

/// The first bytes of the file, little-endian. Sixteen-byte multiples keep the payload aligned.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t reserved; ///< 0
  uint64_t payloadBytes;
  uint64_t checksum; ///< XXH3-64 of the payload, seeded with the version
};
static_assert(sizeof(Header) == 32);

Error corrupt(const std::string &name, std::string what) {
  return Error{ExitCode::Corrupt, name + ": " + std::move(what), "compile the model again with ds-opt"};
}

using Builder = flatbuffers::FlatBufferBuilder;

template <class T>
auto packNames(Builder &builder, const std::vector<T> &names) {
  return builder.CreateVectorOfStrings(names);
}

auto packStates(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::State>> offsets;
  for (const State &state : program.states)
    offsets.push_back(fb::CreateState(b, b.CreateString(state.name), packNames(b, state.aliases),
                                      static_cast<uint8_t>(state.role), b.CreateString(state.owner),
                                      b.CreateVector(state.logicalShape), state.buffer,
                                      static_cast<uint8_t>(state.init.kind), state.init.a, state.init.b,
                                      state.trainable, state.partition.sharded, state.partition.offset,
                                      state.partition.shardElements, packNames(b, state.readNames)));
  return b.CreateVector(offsets);
}

auto packInputs(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::Input>> offsets;
  for (const Input &input : program.inputs)
    offsets.push_back(fb::CreateInput(b, b.CreateString(input.name), input.buffer, input.indexLimit,
                                      input.hasIgnoreIndex, input.ignoreIndex));
  return b.CreateVector(offsets);
}

auto packOutputs(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::Output>> offsets;
  for (const Output &output : program.outputs)
    offsets.push_back(fb::CreateOutput(b, b.CreateString(output.name), output.buffer));
  return b.CreateVector(offsets);
}

auto packCollectives(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::Collective>> offsets;
  for (const Collective &c : program.collectives)
    offsets.push_back(fb::CreateCollective(b, b.CreateString(c.name), c.elements,
                                           static_cast<uint8_t>(c.kind), static_cast<uint8_t>(c.reduction),
                                           static_cast<uint8_t>(c.dtype), c.axis));
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
                                       kernel.persistent, b.CreateVector(kernel.alignments), kernel.members,
                                       b.CreateVectorOfStructs(operands), kernel.params));
  }
  return b.CreateVector(offsets);
}

auto packSegments(Builder &b, const Program &program) {
  std::vector<flatbuffers::Offset<fb::Segment>> offsets;
  for (const Segment &segment : program.segments)
    offsets.push_back(fb::CreateSegment(b, b.CreateString(segment.name), static_cast<uint8_t>(segment.kind),
                                        segment.firstCommand, segment.numCommands));
  return b.CreateVector(offsets);
}

/// Buffers with their dimensions appended to `shapes` and `strides`.
std::vector<fb::Buffer> flatten(const std::vector<Buffer> &buffers, std::vector<int64_t> &shapes,
                                std::vector<int64_t> &strides) {
  std::vector<fb::Buffer> flat;
  for (const Buffer &buffer : buffers) {
    flat.emplace_back(buffer.offset, buffer.rankStride, static_cast<uint32_t>(shapes.size()),
                      static_cast<uint16_t>(buffer.shape.size()), static_cast<uint8_t>(buffer.space),
                      static_cast<uint8_t>(buffer.dtype));
    shapes.insert(shapes.end(), buffer.shape.begin(), buffer.shape.end());
    strides.insert(strides.end(), buffer.strides.begin(), buffer.strides.end());
  }
  return flat;
}

std::vector<fb::Lifetime> flatten(const std::vector<Lifetime> &lifetimes) {
  std::vector<fb::Lifetime> flat;
  for (const Lifetime &l : lifetimes)
    flat.emplace_back(l.offset, l.bytes, l.segment, l.begin, l.end, static_cast<uint8_t>(l.space));
  return flat;
}

std::vector<fb::Command> flatten(const std::vector<Command> &commands) {
  std::vector<fb::Command> flat;
  for (const Command &c : commands)
    flat.emplace_back(c.flops, c.bytes, c.firstOperand, c.numOperands, c.firstParam, c.numParams, c.location,
                      c.workspace, c.callee, static_cast<uint8_t>(c.kind), c.stream);
  return flat;
}

void pack(Builder &b, const Program &p, bool forHash) {
  std::vector<int64_t> shapes, strides;
  auto buffers = b.CreateVectorOfStructs(flatten(p.buffers, shapes, strides));
  auto shapeList = b.CreateVector(shapes), strideList = b.CreateVector(strides);
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
  std::vector<fb::Slot> slots;
  for (const Slot &slot : p.schedule)
    slots.emplace_back(slot.segment, slot.count);
  auto schedule = b.CreateVectorOfStructs(slots);
  auto collectives = packCollectives(b, p);
  auto kernels = packKernels(b, p);
  auto image = b.CreateVector(p.image), cubin = b.CreateVector(p.cubin);
  auto target = b.CreateString(p.target), cpu = b.CreateString(p.targetCpu);
  auto features = packNames(b, p.cpuFeatures);
  auto hash = b.CreateString(forHash ? std::string() : p.planHash);
  auto config = b.CreateString(p.configText), weights = b.CreateString(p.weightsFile);
  auto unused = packNames(b, p.unusedWeights);
  const Predicted predicted = forHash ? Predicted() : p.predicted;
  b.Finish(fb::CreateProgram(b, target, cpu, features, hash, config, weights, unused, p.threads, p.world,
                             p.mesh.dp, p.mesh.tp, p.mesh.pp, p.mesh.sp, p.microBatch, p.accumulation,
                             p.arenas.device, p.arenas.host, p.arenas.nvme, buffers, shapeList, strideList,
                             lifetimes, states, inputs, outputs, streams, p.numEvents, commands, operands,
                             params, strings, segments, schedule, p.evaluation, collectives, kernels, image,
                             predicted.peakBytes, predicted.stepSeconds, predicted.flopsPerStep,
                             p.convertsWeights, cubin, p.tf32),
           fb::ProgramIdentifier());
}

/// An upper bound of the payload, because FlatBufferBuilder asserts rather than fails above 2 GiB.
uint64_t boundBytes(const Program &p) {
  uint64_t bytes = 4096 + p.image.size() + p.cubin.size() + p.configText.size() + p.lifetimes.size() * 40;
  for (const Buffer &buffer : p.buffers)
    bytes += 40 + 16 * buffer.shape.size();
  bytes += p.commands.size() * 64 + p.operands.size() * 4 + p.params.size() * 8;
  for (const auto *list : {&p.strings, &p.unusedWeights, &p.cpuFeatures})
    for (const std::string &text : *list)
      bytes += text.size() + 16;
  for (const State &state : p.states) {
    bytes += state.name.size() + state.owner.size() + 8 * state.logicalShape.size() + 192;
    for (const auto *list : {&state.aliases, &state.readNames})
      for (const std::string &name : *list)
        bytes += name.size() + 16;
  }
  for (const Collective &collective : p.collectives)
    bytes += collective.name.size() + 64;
  for (const Kernel &kernel : p.kernels)
    bytes += kernel.name.size() + 4 * kernel.alignments.size() + 16 * kernel.operands.size() + 128;
  return bytes + 256 * (p.inputs.size() + p.outputs.size() + p.segments.size() + p.schedule.size());
}

std::vector<std::string>
unpackNames(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>> *list) {
  std::vector<std::string> names;
  for (uint32_t i = 0; list && i < list->size(); ++i)
    names.push_back(list->Get(i)->str());
  return names;
}

template <class T>
std::vector<T> unpackList(const flatbuffers::Vector<T> *list) {
  return list ? std::vector<T>(list->data(), list->data() + list->size()) : std::vector<T>();
}

Status unpackBuffers(const fb::Program &file, const std::string &name, Program &p) {
  const auto &shapes = *file.shapes(), &strides = *file.strides();
  if (shapes.size() != strides.size())
    return corrupt(name, fmt::format("{} shape entries, but {} strides", shapes.size(), strides.size()));
  p.buffers.reserve(file.buffers()->size());
  for (const fb::Buffer *flat : *file.buffers()) {
    const uint64_t first = flat->first_dim(), rank = flat->rank();
    if (first + rank > shapes.size())
      return corrupt(name, fmt::format("buffers[{}] uses shape entries up to {} of {}", p.buffers.size(),
                                       first + rank, shapes.size()));
    Buffer buffer;
    buffer.space = static_cast<Space>(flat->space());
    buffer.dtype = static_cast<DType>(flat->dtype());
    buffer.offset = flat->offset();
    buffer.rankStride = flat->rank_stride();
    buffer.shape.assign(shapes.data() + first, shapes.data() + first + rank);
    buffer.strides.assign(strides.data() + first, strides.data() + first + rank);
    p.buffers.push_back(std::move(buffer));
  }
  return {};
}

void unpackTables(const fb::Program &file, Program &p) {
  for (const fb::State *s : *file.states()) {
    State state;
    state.name = s->name()->str();
    state.aliases = unpackNames(s->aliases());
    state.readNames = unpackNames(s->read_names());
    state.role = static_cast<Role>(s->role());
    state.owner = s->owner()->str();
    state.logicalShape = unpackList(s->logical_shape());
    state.buffer = s->buffer();
    state.init = Init{static_cast<Init::Kind>(s->init_kind()), s->init_a(), s->init_b()};
    state.trainable = s->trainable();
    state.partition = {s->sharded(), s->shard_offset(), s->shard_elements()};
    p.states.push_back(std::move(state));
  }
  for (const fb::Input *i : *file.inputs())
    p.inputs.push_back(
        {i->name()->str(), i->buffer(), i->index_limit(), i->has_ignore_index(), i->ignore_index()});
  for (const fb::Output *o : *file.outputs())
    p.outputs.push_back({o->name()->str(), o->buffer()});
  for (const fb::Collective *c : *file.collectives())
    p.collectives.push_back({static_cast<CollectiveKind>(c->kind()), static_cast<Reduction>(c->reduction()),
                             static_cast<DType>(c->dtype()), c->elements(), c->axis(), c->name()->str()});
  for (const fb::Kernel *k : *file.kernels()) {
    p.kernels.push_back({k->name()->str(), k->extent(), k->grain(), k->block_threads(), k->shared_bytes(),
                         k->units_per_block(), k->persistent(), unpackList(k->alignments()), k->members()});
    for (const fb::KernelOperand *operand : *k->operands())
      p.kernels.back().operands.push_back({operand->bytes(), operand->per_unit()});
    p.kernels.back().params = k->params();
  }
  for (const fb::Segment *s : *file.segments())
    p.segments.push_back(
        {s->name()->str(), static_cast<SegmentKind>(s->kind()), s->first_command(), s->num_commands()});
}

void unpackLists(const fb::Program &file, Program &p) {
  for (const fb::Lifetime *l : *file.lifetimes())
    p.lifetimes.push_back(
        {static_cast<Space>(l->space()), l->offset(), l->bytes(), l->segment(), l->begin(), l->end()});
  for (const fb::Command *c : *file.commands())
    p.commands.push_back({static_cast<CommandKind>(c->kind()), c->stream(), c->callee(), c->first_operand(),
                          c->num_operands(), c->first_param(), c->num_params(), c->location(), c->workspace(),
                          c->flops(), c->bytes()});
  for (const fb::Slot *slot : *file.schedule())
    p.schedule.push_back({slot->segment(), slot->count()});
  for (uint8_t kind : *file.streams())
    p.streams.push_back(static_cast<StreamKind>(kind));
  p.operands = unpackList(file.operands());
  p.params = unpackList(file.params());
  p.strings = unpackNames(file.strings());
  p.image = unpackList(file.image());
  p.cubin = unpackList(file.cubin());
}

void unpackHead(const fb::Program &file, Program &p) {
  p.target = file.target()->str();
  p.targetCpu = file.target_cpu()->str();
  p.cpuFeatures = unpackNames(file.cpu_features());
  p.planHash = file.plan_hash()->str();
  p.configText = file.config_text()->str();
  p.weightsFile = file.weights_file()->str();
  p.unusedWeights = unpackNames(file.unused_weights());
  p.convertsWeights = file.converts_weights();
  p.tf32 = file.tf32();
  p.threads = file.threads();
  p.world = file.world();
  p.mesh = {file.mesh_dp(), file.mesh_tp(), file.mesh_pp(), file.mesh_sp()};
  p.microBatch = file.micro_batch();
  p.accumulation = file.accumulation();
  p.arenas = {file.arena_device(), file.arena_host(), file.arena_nvme()};
  p.numEvents = file.num_events();
  p.evaluation = file.evaluation();
  p.predicted = {file.peak_bytes(), file.step_seconds(), file.flops_per_step()};
}

/// Whether the elements of `list` are aligned as their type asks: the FlatBuffers verifier checks offsets
/// only. The builder aligns elements, so an empty list (the shape of a scalar) lies anywhere.
template <class T, class List>
bool isAligned(const List *list) {
  return list->size() == 0 || reinterpret_cast<uintptr_t>(list->Data()) % alignof(T) == 0;
}

bool isAligned(const fb::Program &file) {
  bool aligned = isAligned<fb::Buffer>(file.buffers()) && isAligned<int64_t>(file.shapes()) &&
                 isAligned<int64_t>(file.strides()) && isAligned<fb::Lifetime>(file.lifetimes()) &&
                 isAligned<fb::Command>(file.commands()) && isAligned<int64_t>(file.params()) &&
                 isAligned<uint32_t>(file.operands()) && isAligned<fb::Slot>(file.schedule());
  for (const fb::State *state : *file.states())
    aligned &= isAligned<int64_t>(state->logical_shape());
  for (const fb::Kernel *kernel : *file.kernels())
    aligned &= (!kernel->alignments() || isAligned<uint32_t>(kernel->alignments())) &&
               isAligned<fb::KernelOperand>(kernel->operands());
  return aligned;
}

/// Checks the header and returns the payload's size, or the reason why the file cannot be read.
Result<uint64_t> checkHeader(const std::vector<uint8_t> &bytes, const std::string &name) {
  Header header;
  if (bytes.size() < sizeof header)
    return corrupt(name,
                   fmt::format("{} bytes, but a program has a header of {}", bytes.size(), sizeof header));
  std::memcpy(&header, bytes.data(), sizeof header);
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
    return corrupt(name, "not a program: the first 8 bytes are not those of a .dsx file");
  if (header.version != kProgramFormat)
    return corrupt(name, fmt::format("program format {}, but this ds-run reads format {}", header.version,
                                     kProgramFormat));
  if (header.reserved != 0)
    return corrupt(name, fmt::format("reserved header field is {}, not 0", header.reserved));
  const uint64_t payload = bytes.size() - sizeof header;
  if (header.payloadBytes != payload)
    return corrupt(name, fmt::format("header promises {} bytes of payload, but the file has {}",
                                     header.payloadBytes, payload));
  const uint64_t checksum = XXH3_64bits_withSeed(bytes.data() + sizeof header, payload, header.version);
  if (checksum != header.checksum)
    return corrupt(
        name, fmt::format("checksum is {:016x}, but the header says {:016x}", checksum, header.checksum));
  return payload;
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

Result<Program> parseProgram(const std::vector<uint8_t> &bytes, const std::string &name) {
  Result<uint64_t> payload = checkHeader(bytes, name);
  if (!payload)
    return payload.error();
  if (*payload > kMaxPayload)
    return corrupt(name, fmt::format("payload of {} bytes exceeds the limit of {}", *payload, kMaxPayload));
  const uint8_t *data = bytes.data() + sizeof(Header);
  flatbuffers::Verifier verifier(data, *payload, /*max_depth=*/8, /*max_tables=*/1000000);
  if (!fb::VerifyProgramBuffer(verifier))
    return corrupt(name, "the FlatBuffers structure is damaged or the identifier is not DSXP");
  const fb::Program &file = *fb::GetProgram(data);
  if (!isAligned(file))
    return corrupt(name, "a list of the FlatBuffers payload is not aligned");
  Program program;
  unpackHead(file, program);
  if (Status status = unpackBuffers(file, name, program); !status)
    return status.error();
  unpackTables(file, program);
  unpackLists(file, program);
  if (Status status = verifyProgram(program); !status)
    return corrupt(name, status.error().message);
  return program;
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
