//===- ReadProgram.cpp - Programs from the bytes of .dsx files -----------------===//
//
// The header is checked before the payload is looked at, in the order a reader can make use of the answer:
// magic (not a program), version (another build's), size (truncated), checksum (damaged). Only then
// FlatBuffers runs.
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

Error corrupt(const std::string &name, std::string what) {
  return Error{ExitCode::Corrupt, name + ": " + std::move(what), "compile the model again with ds-opt"};
}

/// The file is whole as far as one can say, but this build cannot read it.
Error otherFormat(const std::string &name, uint32_t format) {
  const bool older = format < kProgramFormat;
  return Error{
      ExitCode::Corrupt,
      fmt::format("{}: {} ds-opt has made this program: it has format {}, but this ds-run reads "
                  "format {}",
                  name, older ? "an older" : "a newer", format, kProgramFormat),
      fmt::format("compile the model again with this ds-run's ds-opt: ds-opt MODEL --emit=program -o {}{}",
                  name, older ? "" : ", or run it with the ds-run of its build")};
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
  const auto &axisStrides = *file.axis_strides();
  for (const fb::Buffer *flat : *file.buffers()) {
    const uint64_t first = flat->first_dim(), rank = flat->rank(), axis = flat->first_axis();
    if (first + rank > shapes.size())
      return corrupt(name, fmt::format("buffers[{}] uses shape entries up to {} of {}", p.buffers.size(),
                                       first + rank, shapes.size()));
    if (axis + flat->axes() > axisStrides.size())
      return corrupt(name, fmt::format("buffers[{}] uses strides along axes up to {} of {}", p.buffers.size(),
                                       axis + flat->axes(), axisStrides.size()));
    Buffer buffer;
    buffer.space = static_cast<Space>(flat->space());
    buffer.dtype = static_cast<DType>(flat->dtype());
    buffer.offset = flat->offset();
    buffer.axisStrides.assign(axisStrides.data() + axis, axisStrides.data() + axis + flat->axes());
    buffer.slots = flat->slots();
    buffer.slotStride = flat->slot_stride();
    buffer.shape.assign(shapes.data() + first, shapes.data() + first + rank);
    buffer.strides.assign(strides.data() + first, strides.data() + first + rank);
    p.buffers.push_back(std::move(buffer));
  }
  return {};
}

/// Without a table the state is whole on every rank.
Layout unpackLayout(const fb::Layout *file) {
  Layout layout;
  if (!file)
    return layout;
  for (uint32_t cut : unpackList(file->cuts()))
    layout.cuts.push_back(AxisSet::fromBits(cut));
  layout.bucket = AxisSet::fromBits(file->bucket());
  layout.offset = file->offset();
  layout.shardElements = file->shard_elements();
  layout.view = unpackList(file->view());
  if (const flatbuffers::Optional<uint64_t> existing = file->existing())
    layout.existing = *existing;
  layout.pieces = unpackList(file->pieces());
  return layout;
}

/// Pairs of a first element and a count; what is left of half a pair says nothing.
std::vector<IndexRange> unpackRuns(const flatbuffers::Vector<uint64_t> *file) {
  const std::vector<uint64_t> numbers = unpackList(file);
  std::vector<IndexRange> runs;
  for (size_t i = 0; i + 1 < numbers.size(); i += 2)
    runs.push_back({numbers[i], numbers[i + 1]});
  return runs;
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
    state.layout = unpackLayout(s->layout());
    state.stage = s->stage();
    if (s->slot())
      state.slot = s->slot()->str();
    p.states.push_back(std::move(state));
  }
  for (const fb::Input *i : *file.inputs())
    p.inputs.push_back({i->name()->str(), i->buffer(), i->index_limit(), i->has_ignore_index(),
                        i->ignore_index(), i->stage(), unpackRuns(i->targets())});
  for (const fb::Output *o : *file.outputs())
    p.outputs.push_back({o->name()->str(), o->buffer(), o->stage()});
  for (const fb::Collective *c : *file.collectives())
    p.collectives.push_back({static_cast<CollectiveKind>(c->kind()), static_cast<Reduction>(c->reduction()),
                             static_cast<DType>(c->dtype()), c->elements(), AxisSet::fromBits(c->axes()),
                             c->name()->str()});
  for (const fb::Kernel *k : *file.kernels()) {
    p.kernels.push_back({k->name()->str(), k->extent(), k->grain(), k->block_threads(), k->shared_bytes(),
                         k->units_per_block(), k->persistent(), unpackList(k->alignments()), k->items()});
    for (const fb::KernelOperand *operand : *k->operands())
      p.kernels.back().operands.push_back({operand->bytes(), operand->per_unit()});
    p.kernels.back().params = k->params();
  }
  for (const fb::Segment *s : *file.segments())
    p.segments.push_back({s->name()->str(), s->stage(), s->chunk(), WorkSet::fromBits(s->work()),
                          s->first_command(), s->num_commands()});
}

/// What entries of a schedule wait for; nothing where none does.
Status unpackWaits(const fb::Stage &file, const std::string &name, std::vector<ScheduleEntry> &schedule) {
  if (!file.after())
    return {};
  if (file.after()->size() != schedule.size())
    return corrupt(name, fmt::format("a schedule of {} entries says of {} what they wait for",
                                     schedule.size(), file.after()->size()));
  for (uint32_t i = 0; i < schedule.size(); ++i) {
    const fb::LaneCounts *counts = file.after()->Get(i);
    schedule[i].after = {counts->compute(), counts->transfer(), counts->move()};
  }
  return {};
}

Status unpackStages(const fb::Program &file, const std::string &name, Program &p) {
  p.stages.clear();
  for (const fb::Stage *s : *file.stages()) {
    Stage stage{{s->arena_device(), s->arena_host(), s->arena_nvme()},
                {},
                s->evaluation(),
                {s->logits(), s->logits_rows(), s->logits_values()}};
    for (const fb::ScheduleEntry *e : *s->schedule())
      stage.schedule.push_back({e->segment(), e->first_micro_batch(), e->count(),
                                static_cast<Gradients>(e->gradients()), e->reduces()});
    if (Status status = unpackWaits(*s, name, stage.schedule); !status)
      return status;
    p.stages.push_back(std::move(stage));
  }
  return {};
}

void unpackLists(const fb::Program &file, Program &p) {
  for (const fb::Lifetime *l : *file.lifetimes())
    p.lifetimes.push_back({static_cast<Space>(l->space()), l->offset(), l->bytes(), l->segment(), l->begin(),
                           l->end(), l->stage()});
  for (const fb::Command *c : *file.commands())
    p.commands.push_back({static_cast<CommandKind>(c->kind()), c->stream(), c->callee(), c->first_operand(),
                          c->num_operands(), c->first_param(), c->num_params(), c->location(), c->workspace(),
                          c->flops(), c->bytes(), static_cast<Part>(c->part()), c->predicate()});
  for (uint8_t kind : *file.streams())
    p.streams.push_back(static_cast<StreamKind>(kind));
  p.operands = unpackList(file.operands());
  p.params = unpackList(file.params());
  p.strings = unpackNames(file.strings());
  p.image = unpackList(file.image());
  p.cubin = unpackList(file.cubin());
  p.hostImage = unpackList(file.host_image());
}

WatchSettings unpackWatch(const fb::Watch &file) {
  const auto monitor = [](const fb::Monitor *from) {
    return from ? std::optional(MonitorSettings{from->path()->str(), from->job()->str()}) : std::nullopt;
  };
  WatchSettings watch{
      file.steps_per_print(), monitor(file.tensorboard()), monitor(file.csv()), file.comms(), {}};
  if (const fb::Profile *profile = file.profile())
    watch.profile = {profile->step(), profile->depth(), profile->top(), profile->detailed(),
                     profile->output()->str()};
  return watch;
}

void unpackHead(const fb::Program &file, Program &p) {
  p.target = file.target()->str();
  p.targetCpu = file.target_cpu()->str();
  p.cpuFeatures = unpackNames(file.cpu_features());
  p.planHash = file.plan_hash()->str();
  p.configText = file.config_text()->str();
  p.modelConfig = file.model_config() ? file.model_config()->str() : std::string();
  p.weightsFile = file.weights_file()->str();
  p.unusedWeights = unpackNames(file.unused_weights());
  p.convertsWeights = file.converts_weights();
  p.tf32 = file.tf32();
  if (const fb::Storage *storage = file.storage())
    p.storage = {storage->path()->str(),
                 storage->block_bytes(),
                 storage->queue_depth(),
                 storage->parallelism(),
                 storage->single_submit(),
                 storage->overlap_events(),
                 storage->parameter_path() ? storage->parameter_path()->str() : std::string()};
  p.threads = file.threads();
  p.hostThreads = file.host_threads();
  p.nodeLocalSaves = file.node_local_saves();
  p.world = file.world();
  std::vector<MeshAxis> axes;
  for (const fb::Axis *axis : *file.mesh())
    axes.push_back({axis->name()->str(), axis->size()});
  p.mesh = Mesh(std::move(axes));
  p.dataAxes = AxisSet::fromBits(file.data_axes());
  p.stageAxes = AxisSet::fromBits(file.stage_axes());
  p.microBatch = file.micro_batch();
  p.accumulation = file.accumulation();
  p.numEvents = file.num_events();
  p.predicted = {file.peak_bytes(), file.step_seconds(), file.flops_per_step(), file.again_flops(),
                 file.peak_flops()};
  if (file.watch())
    p.watch = unpackWatch(*file.watch());
}

/// Whether the elements of `list` are aligned as their type asks: the FlatBuffers verifier checks offsets
/// only. The builder aligns elements, so an empty list (the shape of a scalar) lies anywhere.
template <class T, class List>
bool isAligned(const List *list) {
  return list->size() == 0 || reinterpret_cast<uintptr_t>(list->Data()) % alignof(T) == 0;
}

bool isAligned(const fb::Program &file) {
  bool aligned = isAligned<fb::Buffer>(file.buffers()) && isAligned<int64_t>(file.shapes()) &&
                 isAligned<int64_t>(file.strides()) && isAligned<uint64_t>(file.axis_strides()) &&
                 isAligned<fb::Lifetime>(file.lifetimes()) && isAligned<fb::Command>(file.commands()) &&
                 isAligned<int64_t>(file.params()) && isAligned<uint32_t>(file.operands());
  for (const fb::Stage *stage : *file.stages())
    aligned &= isAligned<fb::ScheduleEntry>(stage->schedule()) &&
               (!stage->after() || isAligned<fb::LaneCounts>(stage->after()));
  for (const fb::State *state : *file.states()) {
    aligned &= isAligned<int64_t>(state->logical_shape());
    if (const fb::Layout *layout = state->layout())
      aligned &= (!layout->cuts() || isAligned<uint32_t>(layout->cuts())) &&
                 (!layout->view() || isAligned<int64_t>(layout->view()));
  }
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
    return otherFormat(name, header.version);
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
  if (Status status = unpackStages(file, name, program); !status)
    return status.error();
  unpackLists(file, program);
  if (Status status = verifyProgram(program); !status)
    return corrupt(name, status.error().message);
  return program;
}

} // namespace ds::rt
