//===- ProgramBuilder.h - Programs made by hand, for the runtime's tests -------===//
//
// Packs buffers one after another into the device arena, so that a test says only what it is about. Buffers
// live for the whole step unless a test gives them a lifetime.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_PROGRAMBUILDER_H
#define DS_UNITTESTS_RUNTIME_PROGRAMBUILDER_H

#include "ds/Runtime/Program/ProgramFile.h"

#include <bit>
#include <fstream>
#include <iterator>

namespace ds::rt::test {

inline int64_t bits(double value) { return std::bit_cast<int64_t>(value); }

inline std::vector<uint8_t> readBytes(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

class ProgramBuilder {
public:
  Program program;

  ProgramBuilder() {
    program.target = "cpu";
    program.targetCpu = "x86-64";
    program.threads = 2;
    program.streams = {StreamKind::Compute};
    program.strings = {""};
    program.stages[0].schedule = {{0, 0, 1, Gradients::Set, true}};
  }

  /// From here on everything is another stage's, of which the mesh has one more.
  void addStage() {
    program.stages.emplace_back();
    program.world = static_cast<uint32_t>(program.stages.size());
    program.mesh = {{"pp", program.world}};
    program.stageAxes = {0};
  }
  uint32_t stage() const { return static_cast<uint32_t>(program.stages.size() - 1); }
  ArenaBytes &arenas() { return program.stages.back().arenas; }

  /// A packed buffer at a fresh offset; it has no lifetime yet.
  uint32_t place(std::vector<int64_t> shape, DType dtype = DType::F32) {
    Buffer buffer{Space::Device, dtype, arenas().device, shape, packed(shape)};
    arenas().device += (extentBytes(buffer) + 63) / 64 * 64;
    program.buffers.push_back(std::move(buffer));
    return static_cast<uint32_t>(program.buffers.size() - 1);
  }
  /// A packed buffer that begins at a unit of the host's or the storage's arena, and has all units that it
  /// touches for the whole step.
  uint32_t keepUnits(Space space, std::vector<int64_t> shape, DType dtype = DType::F32) {
    uint64_t &arena = space == Space::Host ? arenas().host : arenas().nvme;
    Buffer buffer{space, dtype, arena, shape, packed(shape)};
    const uint64_t bytes = (extentBytes(buffer) + kStorageUnit - 1) / kStorageUnit * kStorageUnit;
    program.lifetimes.push_back({space, arena, bytes, Lifetime::kWholeStep, 0, 0, stage()});
    arena += bytes;
    program.buffers.push_back(std::move(buffer));
    return static_cast<uint32_t>(program.buffers.size() - 1);
  }
  /// As place, live for the whole step.
  uint32_t keep(std::vector<int64_t> shape, DType dtype = DType::F32) {
    const uint32_t id = place(std::move(shape), dtype);
    live(id, Lifetime::kWholeStep, 0, 0);
    return id;
  }
  /// As keep, with a window for each of `slots` micro-batches, 64 bytes or more apart.
  uint32_t slotted(std::vector<int64_t> shape, uint32_t slots, DType dtype = DType::F32) {
    const uint32_t id = place(std::move(shape), dtype);
    Buffer &buffer = program.buffers[id];
    buffer.slots = slots;
    buffer.slotStride = arenas().device - buffer.offset;
    arenas().device = buffer.offset + slots * buffer.slotStride;
    program.lifetimes.push_back(
        {Space::Device, buffer.offset, slots * buffer.slotStride, Lifetime::kWholeStep, 0, 0, stage()});
    return id;
  }
  /// A view of `base`, `elements` further on.
  uint32_t view(uint32_t base, int64_t elements, std::vector<int64_t> shape, std::vector<int64_t> strides) {
    Buffer buffer = program.buffers[base];
    buffer.offset += static_cast<uint64_t>(elements) * byteSize(buffer.dtype);
    buffer.shape = std::move(shape);
    buffer.strides = std::move(strides);
    program.buffers.push_back(std::move(buffer));
    return static_cast<uint32_t>(program.buffers.size() - 1);
  }
  void live(uint32_t buffer, uint32_t segment, uint32_t begin, uint32_t end) {
    const Buffer &b = program.buffers[buffer];
    if (extentBytes(b) == 0)
      return;
    program.lifetimes.push_back(
        {b.space, b.offset, (extentBytes(b) + 63) / 64 * 64, segment, begin, end, stage()});
  }
  /// What a state of `role` is of its owner.
  static std::string slotOf(Role role) {
    return role == Role::Gradient ? "grad"
           : role == Role::Moment ? "exp_avg"
           : role == Role::Master ? "master"
                                  : "";
  }
  uint32_t state(std::string name, std::vector<int64_t> shape, Init init = {}, Role role = Role::Parameter) {
    const uint32_t id = keep(shape);
    program.states.push_back({std::move(name),
                              {},
                              role,
                              "",
                              shape,
                              id,
                              init,
                              role == Role::Parameter,
                              {},
                              {},
                              stage(),
                              slotOf(role)});
    return id;
  }
  /// A state that is elements [offset, ...) of the bucket of which `shard` holds what one rank along dp has.
  void sharded(std::string name, std::vector<int64_t> shape, uint32_t shard, uint64_t offset, Init init = {},
               Role role = Role::Parameter, std::string owner = "") {
    const auto shardElements = static_cast<uint64_t>(numElements(program.buffers[shard]));
    program.states.push_back({std::move(name),
                              {},
                              role,
                              std::move(owner),
                              std::move(shape),
                              shard,
                              init,
                              role == Role::Parameter,
                              {{}, program.mesh.find("dp").value(), offset, shardElements},
                              {},
                              stage(),
                              slotOf(role)});
  }
  /// The rank's part of `base`, which is cut along `axes`.
  uint32_t rankWindow(uint32_t base, AxisSet axes) {
    const Mesh &mesh = program.mesh;
    const int64_t elements = numElements(program.buffers[base]) / mesh.size(axes);
    const uint32_t id = view(base, 0, {elements}, {1});
    Buffer &buffer = program.buffers[id];
    buffer.axisStrides.resize(mesh.numAxes());
    for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
      if (axes.has(axis))
        buffer.axisStrides[axis] =
            static_cast<uint64_t>(elements) * byteSize(buffer.dtype) * mesh.stride(axis, axes);
    return id;
  }
  /// A run of `world` ranks, all with data of their own, with a stream for gathers and one for reductions.
  void ranks(uint32_t world) { ranks({{"dp", world}}); }
  /// A run on a mesh, of which the ranks along dp have data of their own and those along pp are stages.
  void ranks(const Mesh &mesh) {
    program.world = mesh.size();
    program.mesh = mesh;
    program.dataAxes = mesh.find("dp").value_or(AxisSet());
    program.stageAxes = mesh.find("pp").value_or(AxisSet());
    program.streams = {StreamKind::Compute, StreamKind::Gather, StreamKind::Reduce};
  }
  /// A collective of `elements` of each rank's part along the axes of dp, in a table entry and with a
  /// workspace of its own.
  Command &communicate(CollectiveKind kind, Reduction reduction, uint64_t elements,
                       const std::vector<uint32_t> &operands, uint8_t stream = 0,
                       const std::vector<int64_t> &params = {}) {
    return communicateAlong(program.mesh.find("dp").value(), kind, reduction, elements, operands, stream,
                            params);
  }
  Command &communicateAlong(AxisSet axes, CollectiveKind kind, Reduction reduction, uint64_t elements,
                            const std::vector<uint32_t> &operands, uint8_t stream = 0,
                            const std::vector<int64_t> &params = {}) {
    const DType dtype = program.buffers[operands[0]].dtype;
    const auto callee = static_cast<uint32_t>(program.collectives.size());
    program.collectives.push_back(
        {kind, reduction, dtype, elements, axes, std::string(spell(kind)) + "_" + std::to_string(callee)});
    const uint64_t staging = collectiveStagingBytes(program.collectives.back(), program.mesh.size(axes));
    const uint32_t workspace = staging == 0 ? UINT32_MAX : keep({static_cast<int64_t>(staging)}, DType::U8);
    Command &c = command(CommandKind::Collective, callee, operands, params, stream);
    c.workspace = workspace;
    return c;
  }
  /// One end of a message that is called `name`, for the exchange of a stage with others.
  struct End {
    CollectiveKind kind; ///< Send or Recv
    std::string name;
    uint32_t buffer, partner;
  };
  /// Messages along pp that do not wait for each other. Returns the number of the first command.
  uint32_t exchange(const std::vector<End> &ends, uint8_t stream = 0) {
    const auto first = static_cast<uint32_t>(program.commands.size());
    for (size_t i = 0; i < ends.size(); ++i) {
      const auto callee = static_cast<uint32_t>(program.collectives.size());
      const Buffer &buffer = program.buffers[ends[i].buffer];
      program.collectives.push_back({ends[i].kind,
                                     Reduction::None,
                                     buffer.dtype,
                                     static_cast<uint64_t>(numElements(buffer)),
                                     {0},
                                     ends[i].name});
      command(CommandKind::Collective, callee, {ends[i].buffer},
              {ends[i].partner, static_cast<int64_t>(ends.size() - 1 - i)}, stream);
    }
    return first;
  }
  uint32_t send(std::string name, uint32_t buffer, uint32_t to, uint8_t stream = 0) {
    return exchange({{CollectiveKind::Send, std::move(name), buffer, to}}, stream);
  }
  uint32_t receive(std::string name, uint32_t buffer, uint32_t from, uint8_t stream = 0) {
    return exchange({{CollectiveKind::Recv, std::move(name), buffer, from}}, stream);
  }
  uint32_t input(std::string name, std::vector<int64_t> shape, DType dtype = DType::F32, int64_t limit = 0) {
    const uint32_t id = keep(std::move(shape), dtype);
    program.inputs.push_back({std::move(name), id, limit, false, 0, stage()});
    return id;
  }
  uint32_t output(std::string name) {
    const uint32_t id = keep({});
    program.outputs.push_back({std::move(name), id, stage()});
    return id;
  }

  Command &command(CommandKind kind, uint32_t callee, const std::vector<uint32_t> &operands,
                   const std::vector<int64_t> &params = {}, uint8_t stream = 0) {
    Command c;
    c.kind = kind;
    c.callee = callee;
    c.stream = stream;
    c.firstOperand = static_cast<uint32_t>(program.operands.size());
    c.numOperands = static_cast<uint32_t>(operands.size());
    c.firstParam = static_cast<uint32_t>(program.params.size());
    c.numParams = static_cast<uint32_t>(params.size());
    program.operands.insert(program.operands.end(), operands.begin(), operands.end());
    program.params.insert(program.params.end(), params.begin(), params.end());
    program.commands.push_back(c);
    return program.commands.back();
  }
  Command &library(LibraryFn fn, const std::vector<uint32_t> &operands,
                   const std::vector<int64_t> &params = {}) {
    return command(CommandKind::Library, static_cast<uint32_t>(fn), operands, params);
  }
  /// Launches `name`, which becomes a kernel of fixed `extent` when it is new; it then touches all of its
  /// operands, or elements of them by its extent.
  Command &launch(const std::string &name, int64_t extent, const std::vector<uint32_t> &operands,
                  const std::vector<int64_t> &params = {}) {
    uint32_t callee = 0;
    while (callee < program.kernels.size() && program.kernels[callee].name != name)
      ++callee;
    if (callee == program.kernels.size()) {
      program.kernels.push_back({name, extent, 1});
      touch(program.kernels.back(), operands, params);
    }
    return command(CommandKind::Kernel, callee, operands, params);
  }
  /// Makes `kernel` one that touches all of `operands`, or elements of them where its extent is a param.
  void touch(Kernel &kernel, const std::vector<uint32_t> &operands, const std::vector<int64_t> &params) {
    kernel.params = static_cast<uint32_t>(params.size());
    kernel.operands.clear();
    for (uint32_t operand : operands) {
      const Buffer &buffer = program.buffers[operand];
      const bool perUnit = kernel.extent == 0 && !buffer.shape.empty();
      kernel.operands.push_back({perUnit ? byteSize(buffer.dtype) : extentBytes(buffer), perUnit});
    }
  }
  /// Makes a segment of the commands since the last one: by default all of a step of one micro-batch.
  uint32_t segment(WorkSet work = {Work::Forward, Work::Backward, Work::Update}, std::string name = "step") {
    uint32_t first = 0;
    for (const Segment &s : program.segments)
      first = std::max(first, s.firstCommand + s.numCommands);
    program.segments.push_back(
        {std::move(name), stage(), 0, work, first, static_cast<uint32_t>(program.commands.size()) - first});
    return static_cast<uint32_t>(program.segments.size() - 1);
  }

  /// The first segment is run for each of `count` micro-batches, which keep no gradients, and the update
  /// after them has nothing to do.
  void accumulate(uint32_t count) {
    program.accumulation = count;
    program.segments[0].work = {Work::Forward, Work::Backward};
    program.stages[0].schedule = {{0, 0, count}, {segment({Work::Update}, "update")}};
  }

  static std::vector<int64_t> packed(const std::vector<int64_t> &shape) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;)
      strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
    return strides;
  }
};

/// Scratch memory for a product, which cuBLASLt wants on 256 bytes.
inline uint32_t keepWorkspace(ProgramBuilder &b, int64_t bytes) {
  b.arenas().device = (b.arenas().device + 255) / 256 * 256;
  return b.keep({bytes}, DType::U8);
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_PROGRAMBUILDER_H
