//===- OperandChecker.h - What can be wrong with a library command's operands ---===//
#ifndef DS_LIB_RUNTIME_PROGRAM_OPERANDCHECKER_H
#define DS_LIB_RUNTIME_PROGRAM_OPERANDCHECKER_H

#include "Verify.h"

#include "ds/Runtime/Program/Library.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ds::rt {

/// First failure of a list of checks; each is evaluated only if those before it held.
#define DS_CHECK(...)                                                                                        \
  if (Status status = (__VA_ARGS__); !status)                                                                \
  return status

/// The operands and params of one library command, and what can be wrong with them.
class OperandChecker {
public:
  OperandChecker(const Program &program, uint64_t index)
      : program(program), command(program.commands[index]), index(index) {}

  const Program &program;
  const Command &command;

  const Buffer &operand(unsigned k) const {
    return program.buffers[program.operands[command.firstOperand + k]];
  }
  std::vector<const Buffer *> operands() const {
    std::vector<const Buffer *> all;
    for (unsigned k = 0; k < numOperands(); ++k)
      all.push_back(&operand(k));
    return all;
  }
  int64_t param(unsigned k) const { return program.params[command.firstParam + k]; }
  unsigned numOperands() const { return command.numOperands; }
  unsigned numParams() const { return command.numParams; }
  std::string where() const { return describeCommand(program, index); }

  /// Between `least` and `most` operands and exactly `params` params.
  Status counts(unsigned least, unsigned most, unsigned params) const {
    if (command.numOperands < least || command.numOperands > most)
      return refuse("{} has {} operands, expected {} to {}", where(), command.numOperands, least, most);
    if (command.numParams != params)
      return refuse("{} has {} params, expected {}", where(), command.numParams, params);
    return {};
  }
  /// Operands 0 to `count` - 1 may be looked at.
  Status atLeast(unsigned count) const {
    if (command.numOperands >= count)
      return {};
    return refuse("{} has {} operands, expected {}", where(), command.numOperands, count);
  }
  Status dtype(unsigned k, std::initializer_list<DType> allowed) const {
    if (std::find(allowed.begin(), allowed.end(), operand(k).dtype) != allowed.end())
      return {};
    return refuse("{} operand {} has dtype {}, expected {}", where(), k, spell(operand(k).dtype),
                  spell(*allowed.begin()));
  }
  /// Operand `k` has one of the types that products and kernels compute with.
  Status isFloat(unsigned k) const { return dtype(k, {DType::F32, DType::BF16, DType::F16}); }
  /// Operand `k` has the type of operand `other`.
  Status sameType(unsigned k, unsigned other) const { return dtype(k, {operand(other).dtype}); }
  Status rank(unsigned k, size_t rank) const {
    if (operand(k).shape.size() == rank)
      return {};
    return refuse("{} operand {} has rank {}, expected {}", where(), k, operand(k).shape.size(), rank);
  }
  Status shape(unsigned k, const std::vector<int64_t> &shape) const {
    if (operand(k).shape == shape)
      return {};
    return refuse("{} operand {} has shape [{}], expected [{}]", where(), k, fmt::join(operand(k).shape, "x"),
                  fmt::join(shape, "x"));
  }
  Status unitInnermost(unsigned k) const {
    const Buffer &b = operand(k);
    if (b.shape.empty() || b.shape.back() <= 1 || b.strides.back() == 1)
      return {};
    return refuse("{} operand {} has innermost stride {}, expected 1", where(), k, b.strides.back());
  }
  Status contiguous(unsigned k) const {
    if (isContiguous(operand(k)))
      return {};
    return refuse("{} operand {} is not packed in row-major order", where(), k);
  }
  Status flag(unsigned k, int64_t limit = 1) const {
    if (param(k) >= 0 && param(k) <= limit)
      return {};
    return refuse("{} param {} is {}, allowed are 0 to {}", where(), k, param(k), limit);
  }
  /// Param `k` is 0 or what c * tanh(x / c) can be computed with in f32.
  Status cap(unsigned k) const {
    const double cap = std::bit_cast<double>(param(k));
    const auto single = static_cast<float>(cap);
    if (cap == 0 || (single > 0 && std::isfinite(single)))
      return {};
    return refuse("{} has a cap of {}, expected 0 or a positive f32", where(), cap);
  }
  /// Operand `k` is written: its elements are distinct and none is one of operand `other`.
  Status written(unsigned k, std::initializer_list<unsigned> others) const {
    const Buffer &b = operand(k);
    for (size_t d = 0; d < b.shape.size(); ++d)
      if (b.shape[d] > 1 && b.strides[d] == 0)
        return refuse("{} writes operand {}, which has stride 0 in dimension {}", where(), k, d);
    if (!hasDistinctElements(b))
      return refuse("{} writes operand {}, of which elements share bytes: shape [{}], strides [{}]", where(),
                    k, fmt::join(b.shape, "x"), fmt::join(b.strides, ", "));
    for (unsigned other : others)
      if (other < numOperands() && mayOverlap(b, operand(other), program.mesh))
        return refuse("{} writes operand {}, which shares bytes with operand {}", where(), k, other);
    return {};
  }

  MatmulExtras extras() const { return matmulExtras(program, command); }

private:
  uint64_t index;
};

/// The planned workspace is what the function will use on the program's target.
Status verifyWorkspace(const OperandChecker &c);

// Checks of single functions that have a file of their own.
Status verifyAttentionForward(const OperandChecker &c);
Status verifyAttentionBackward(const OperandChecker &c);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_OPERANDCHECKER_H
