//===- ProgramBuilder.h - Programs made by hand, for the runtime's tests -------===//
//
// Packs buffers one after another into the device arena, so that a test says only what it is about. Buffers
// live for the whole step unless a test gives them a lifetime.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_PROGRAMBUILDER_H
#define DS_UNITTESTS_RUNTIME_PROGRAMBUILDER_H

#include "ds/Runtime/ProgramFile.h"

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
    program.schedule = {{0, 1}};
  }

  /// A packed buffer at a fresh offset; it has no lifetime yet.
  uint32_t place(std::vector<int64_t> shape, DType dtype = DType::F32) {
    Buffer buffer{Space::Device, dtype, program.arenas.device, shape, packed(shape)};
    program.arenas.device += (extentBytes(buffer) + 63) / 64 * 64;
    program.buffers.push_back(std::move(buffer));
    return static_cast<uint32_t>(program.buffers.size() - 1);
  }
  /// As place, live for the whole step.
  uint32_t keep(std::vector<int64_t> shape, DType dtype = DType::F32) {
    const uint32_t id = place(std::move(shape), dtype);
    live(id, Lifetime::kWholeStep, 0, 0);
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
    program.lifetimes.push_back({b.space, b.offset, (extentBytes(b) + 63) / 64 * 64, segment, begin, end});
  }
  uint32_t state(std::string name, std::vector<int64_t> shape, Init init = {}, Role role = Role::Parameter) {
    const uint32_t id = keep(shape);
    program.states.push_back({std::move(name), {}, role, "", shape, id, init, role == Role::Parameter});
    return id;
  }
  uint32_t input(std::string name, std::vector<int64_t> shape, DType dtype = DType::F32, int64_t limit = 0) {
    const uint32_t id = keep(std::move(shape), dtype);
    program.inputs.push_back({std::move(name), id, limit, false, 0});
    return id;
  }
  uint32_t output(std::string name) {
    const uint32_t id = keep({});
    program.outputs.push_back({std::move(name), id});
    return id;
  }

  Command &command(CommandKind kind, uint16_t callee, const std::vector<uint32_t> &operands,
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
    return command(CommandKind::Library, static_cast<uint16_t>(fn), operands, params);
  }
  /// Launches `name`, which becomes a kernel of fixed `extent` when it is new.
  Command &launch(const std::string &name, int64_t extent, const std::vector<uint32_t> &operands,
                  const std::vector<int64_t> &params = {}) {
    uint16_t callee = 0;
    while (callee < program.kernels.size() && program.kernels[callee].name != name)
      ++callee;
    if (callee == program.kernels.size())
      program.kernels.push_back({name, extent, 1});
    return command(CommandKind::Kernel, callee, operands, params);
  }
  /// Makes a segment of the commands since the last one.
  uint32_t segment(SegmentKind kind, std::string name = "step") {
    uint32_t first = 0;
    for (const Segment &s : program.segments)
      first = std::max(first, s.firstCommand + s.numCommands);
    program.segments.push_back(
        {std::move(name), kind, first, static_cast<uint32_t>(program.commands.size()) - first});
    return static_cast<uint32_t>(program.segments.size() - 1);
  }

  static std::vector<int64_t> packed(const std::vector<int64_t> &shape) {
    std::vector<int64_t> strides(shape.size(), 1);
    for (size_t d = shape.size(); d-- > 1;)
      strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
    return strides;
  }
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_PROGRAMBUILDER_H
