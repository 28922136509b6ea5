//===- VerifyKernels.cpp - Generated kernels and their launches ----------------===//
//
// A CUDA kernel relies on the alignment of its operands, for one access of 16 bytes that is not aligned ends
// the whole run; so every launch is held to it here.
//
//===---------------------------------------------------------------------------===//
#include "Verify.h"

#include <algorithm>
#include <bit>
#include <cctype>

namespace ds::rt {
namespace {

constexpr uint32_t kMaxBlockThreads = 1024;
constexpr uint32_t kMaxSharedBytes = 227 * 1024; // what a block of sm_90 can have
constexpr uint32_t kMaxAlignment = 256;          // arenas start at multiples of it

bool isSymbol(const std::string &name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '$';
  });
}

/// How a CUDA kernel is launched.
Status verifyGeometry(size_t i, const Kernel &kernel) {
  if (kernel.blockThreads < 1 || kernel.blockThreads > kMaxBlockThreads)
    return refuse("kernels[{}] '{}' has blocks of {} threads, allowed are 1 to {}", i, kernel.name,
                  kernel.blockThreads, kMaxBlockThreads);
  if (kernel.sharedBytes > kMaxSharedBytes || kernel.unitsPerBlock < 1)
    return refuse("kernels[{}] '{}' has {} bytes of shared memory and {} units per block", i, kernel.name,
                  kernel.sharedBytes, kernel.unitsPerBlock);
  for (uint32_t alignment : kernel.alignments)
    if (!std::has_single_bit(alignment) || alignment > kMaxAlignment)
      return refuse("kernels[{}] '{}' asks for an alignment of {}, allowed are powers of two up to {}", i,
                    kernel.name, alignment, kMaxAlignment);
  return {};
}

/// The members of a launch: how many, how large, and that they share their scalars.
Status verifyMembers(const Program &p, uint64_t i, const Kernel &kernel) {
  const Command &c = p.commands[i];
  if (kernel.extent != 0 || c.numParams > kernel.members || c.numOperands % c.numParams != 0)
    return refuse(
        "{} launches kernel '{}' of extent {} with {} members and {} operands, allowed are {} members",
        describeCommand(p, i), kernel.name, kernel.extent, c.numParams, c.numOperands, kernel.members);
  const uint32_t operands = c.numOperands / c.numParams;
  uint32_t shared = 0;
  for (uint32_t k = 0; k < c.numOperands; ++k) {
    const uint32_t first = p.operands[c.firstOperand + k % operands], own = p.operands[c.firstOperand + k];
    const bool isScalar = p.buffers[first].shape.empty();
    shared += isScalar && k < operands;
    if (isScalar != p.buffers[own].shape.empty() || (isScalar && own != first))
      return refuse("{} gives a member of kernel '{}' a scalar of its own: operand {}", describeCommand(p, i),
                    kernel.name, k);
    if (p.params[c.firstParam + k / operands] < 0)
      return refuse("{} launches kernel '{}' of variable extent with extent {}", describeCommand(p, i),
                    kernel.name, p.params[c.firstParam + k / operands]);
  }
  const uint64_t most = MemberTable::mostMembers(operands - shared, shared);
  if (p.target != "cpu" && kernel.members > most)
    return refuse("{} launches kernel '{}' made for {} members, but at most {} can be passed",
                  describeCommand(p, i), kernel.name, kernel.members, most);
  return {};
}

} // namespace

Status verifyKernels(const Program &p) {
  for (size_t i = 0; i < p.kernels.size(); ++i) {
    const Kernel &kernel = p.kernels[i];
    if (!isSymbol(kernel.name))
      return refuse("kernels[{}] '{}' is not a symbol name", i, kernel.name);
    if (kernel.extent < 0 || kernel.grain < 1)
      return refuse("kernels[{}] '{}' has extent {} and grain {}", i, kernel.name, kernel.extent,
                    kernel.grain);
    if (p.target != "cpu")
      if (Status status = verifyGeometry(i, kernel); !status)
        return status;
  }
  if (p.kernels.empty() != p.image.empty())
    return refuse("{} kernels with an image of {} bytes", p.kernels.size(), p.image.size());
  if (p.target != "cpu" && !p.image.empty() && p.image.back() != 0)
    return refuse("the PTX image of {} bytes does not end in a 0", p.image.size());
  return {};
}

Status verifyKernelCommand(const Program &p, uint64_t i) {
  const Command &c = p.commands[i];
  if (c.callee >= p.kernels.size())
    return refuse("{} launches kernel {} of {}", describeCommand(p, i), c.callee, p.kernels.size());
  const Kernel &kernel = p.kernels[c.callee];
  if (kernel.extent == 0 && (c.numParams == 0 || p.params[c.firstParam] < 0))
    return refuse("{} launches kernel '{}' of variable extent with extent {}", describeCommand(p, i),
                  kernel.name, c.numParams == 0 ? -1 : p.params[c.firstParam]);
  if (kernel.members != 0)
    if (Status status = verifyMembers(p, i, kernel); !status)
      return status;
  if (p.target == "cpu")
    return {};
  const size_t operands = c.numOperands / (kernel.members != 0 ? c.numParams : 1);
  if (kernel.alignments.size() != operands)
    return refuse("{} gives kernel '{}' {} operands, but it has {}", describeCommand(p, i), kernel.name,
                  operands, kernel.alignments.size());
  for (uint32_t k = 0; k < c.numOperands; ++k) {
    const Buffer &buffer = p.buffers[p.operands[c.firstOperand + k]];
    const uint32_t alignment = kernel.alignments[k % operands];
    if ((buffer.offset | buffer.rankStride) % alignment != 0)
      return refuse("{} gives kernel '{}' operand {} at offset {}, but its code relies on multiples of {}",
                    describeCommand(p, i), kernel.name, k, buffer.offset, alignment);
  }
  return {};
}

} // namespace ds::rt
