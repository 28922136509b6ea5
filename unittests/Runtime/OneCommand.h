//===- OneCommand.h - Programs of one library command, and ways to spoil them ---===//
#ifndef DS_UNITTESTS_RUNTIME_ONECOMMAND_H
#define DS_UNITTESTS_RUNTIME_ONECOMMAND_H

#include "Verdict.h"

namespace ds::rt::test::one_command {

/// One library command and what the verifier says of it after a change.
class OneCommand {
public:
  OneCommand(LibraryFn fn, std::vector<std::pair<std::vector<int64_t>, DType>> operands,
             std::vector<int64_t> params)
      : fn(fn), shapes(std::move(operands)), params(std::move(params)) {}

  std::string after(const std::function<void(Program &)> &change = [](Program &) {}) const {
    ProgramBuilder b;
    std::vector<uint32_t> ids;
    for (const auto &[shape, dtype] : shapes)
      ids.push_back(b.keep(shape, dtype));
    b.library(fn, ids, params);
    b.segment();
    return test::verdict(b.program, change);
  }

private:
  LibraryFn fn;
  std::vector<std::pair<std::vector<int64_t>, DType>> shapes;
  std::vector<int64_t> params;
};

constexpr DType F = DType::F32, I = DType::I64;

/// Shortens operand `k` in its first dimension.
inline auto shorten(uint32_t k) {
  return [k](Program &p) { --p.buffers[k].shape[0]; };
}
/// Puts operand `k` where operand `other` is.
inline auto alias(uint32_t k, uint32_t other) {
  return [k, other](Program &p) { p.buffers[k].offset = p.buffers[other].offset; };
}
inline auto retype(uint32_t k, DType dtype) {
  return [k, dtype](Program &p) { p.buffers[k].dtype = dtype; };
}
inline auto param(uint32_t k, int64_t value) {
  return [k, value](Program &p) { p.params[k] = value; };
}

/// Gives the first command a workspace of `bytes` bytes.
inline auto workspace(int64_t bytes) {
  return [bytes](Program &p) {
    Buffer buffer{Space::Device, DType::U8, p.stages[0].arenas.device, {bytes}, {1}};
    p.commands[0].workspace = static_cast<uint32_t>(p.buffers.size());
    p.lifetimes.push_back({Space::Device, buffer.offset, 4096, Lifetime::kWholeStep, 0, 0});
    p.buffers.push_back(buffer);
    p.stages[0].arenas.device += 4096;
  };
}

} // namespace ds::rt::test::one_command

#endif // DS_UNITTESTS_RUNTIME_ONECOMMAND_H
