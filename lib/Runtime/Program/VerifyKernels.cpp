//===- VerifyKernels.cpp - Generated kernels and their launches ----------------===//
//
// Machine code cannot be checked, so it says what it touches (KernelInterface.h), and every launch is held to
// that: as many operands, each as long as the code goes in it for the launch's extent. A CUDA kernel also
// relies on the alignment of its operands, for one access of 16 bytes that is not aligned ends the whole run.
//
//===---------------------------------------------------------------------------===//
#include "Verify.h"

#include "ds/Runtime/Program/KernelInterface.h"

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
  if (kernel.alignments.size() != kernel.operands.size())
    return refuse("kernels[{}] '{}' has {} operands and {} alignments", i, kernel.name,
                  kernel.operands.size(), kernel.alignments.size());
  if (kernel.sharedBytes > kMaxSharedBytes || kernel.unitsPerBlock < 1)
    return refuse("kernels[{}] '{}' has {} bytes of shared memory and {} units per block", i, kernel.name,
                  kernel.sharedBytes, kernel.unitsPerBlock);
  for (uint32_t alignment : kernel.alignments)
    if (!std::has_single_bit(alignment) || alignment > kMaxAlignment)
      return refuse("kernels[{}] '{}' asks for an alignment of {}, allowed are powers of two up to {}", i,
                    kernel.name, alignment, kMaxAlignment);
  return {};
}

/// What a kernel says of its launches.
Status verifyLaunches(size_t i, const Kernel &kernel) {
  if (kernel.items != 0 && kernel.params != 1)
    return refuse("kernels[{}] '{}' has items of {} params each, expected 1", i, kernel.name, kernel.params);
  if (kernel.extent != 0)
    for (size_t k = 0; k < kernel.operands.size(); ++k)
      if (kernel.operands[k].perUnit)
        return refuse("kernels[{}] '{}' has {} bytes per unit of operand {}, but an extent of its own: {}", i,
                      kernel.name, kernel.operands[k].bytes, k, kernel.extent);
  return {};
}

/// The lines at the beginning of a PTX image that say what its kernels are.
std::string interfacesOfPtx(const std::vector<uint8_t> &image) {
  const std::string_view prefix = kInterfaceComment;
  std::string_view text(reinterpret_cast<const char *>(image.data()), image.size());
  std::string lines;
  while (text.starts_with(prefix)) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos)
      break;
    lines += text.substr(prefix.size(), end + 1 - prefix.size());
    text.remove_prefix(end + 1);
  }
  return lines;
}

/// The operands of a launch are as many as the kernel has, and hold what its code touches.
Status verifyOperands(const Program &p, uint64_t i, const Kernel &kernel, uint32_t items) {
  const Command &c = p.commands[i];
  const size_t operands = kernel.operands.size();
  if (c.numOperands != operands * items)
    return refuse("{} gives kernel '{}' {} operands, but it has {}", describeCommand(p, i), kernel.name,
                  c.numOperands / items, operands);
  for (uint32_t k = 0; k < c.numOperands; ++k) {
    const KernelOperand &operand = kernel.operands[k % operands];
    const uint64_t given = extentBytes(p.buffers[p.operands[c.firstOperand + k]]);
    uint64_t touched = operand.bytes;
    if (operand.perUnit &&
        __builtin_mul_overflow(touched, static_cast<uint64_t>(p.params[c.firstParam + k / operands]),
                               &touched))
      touched = UINT64_MAX;
    if (touched > given)
      return refuse("{} gives kernel '{}' operand {} of {} bytes, but its code touches {}",
                    describeCommand(p, i), kernel.name, k, given, touched);
  }
  return {};
}

/// The items of a launch: how many, how large, and that they share their scalars.
Status verifyItems(const Program &p, uint64_t i, const Kernel &kernel) {
  const Command &c = p.commands[i];
  if (kernel.extent != 0 || c.numParams > kernel.items || c.numOperands % c.numParams != 0)
    return refuse("{} launches kernel '{}' of extent {} with {} items and {} operands, allowed are {} items",
                  describeCommand(p, i), kernel.name, kernel.extent, c.numParams, c.numOperands,
                  kernel.items);
  const uint32_t operands = c.numOperands / c.numParams;
  uint32_t shared = 0;
  for (uint32_t k = 0; k < c.numOperands; ++k) {
    const uint32_t first = p.operands[c.firstOperand + k % operands], own = p.operands[c.firstOperand + k];
    const bool isScalar = p.buffers[first].shape.empty();
    shared += isScalar && k < operands;
    if (isScalar != p.buffers[own].shape.empty() || (isScalar && own != first))
      return refuse("{} gives a item of kernel '{}' a scalar of its own: operand {}", describeCommand(p, i),
                    kernel.name, k);
    if (p.params[c.firstParam + k / operands] < 0)
      return refuse("{} launches kernel '{}' of variable extent with extent {}", describeCommand(p, i),
                    kernel.name, p.params[c.firstParam + k / operands]);
  }
  const uint64_t most = ItemTable::mostItems(operands - shared, shared);
  if (p.target != "cpu" && !runsOnCpu(kernel) && kernel.items > most)
    return refuse("{} launches kernel '{}' made for {} items, but at most {} can be passed",
                  describeCommand(p, i), kernel.name, kernel.items, most);
  return {};
}

/// There is an image where there are kernels for it.
Status verifyImages(const Program &p) {
  const bool isCuda = p.target != "cpu";
  const auto ofCpu = std::count_if(p.kernels.begin(), p.kernels.end(), runsOnCpu);
  const auto onHost = isCuda ? ofCpu : 0, others = std::ssize(p.kernels) - onHost;
  if ((others == 0) != p.image.empty())
    return refuse("{} kernels with an image of {} bytes", others, p.image.size());
  if ((onHost == 0) != p.hostImage.empty())
    return refuse("{} kernels of the host with an image of {} bytes", onHost, p.hostImage.size());
  if (isCuda && !p.image.empty() && p.image.back() != 0)
    return refuse("the PTX image of {} bytes does not end in a 0", p.image.size());
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
    if (Status status = verifyLaunches(i, kernel); !status)
      return status;
    if (p.target != "cpu" && !runsOnCpu(kernel))
      if (Status status = verifyGeometry(i, kernel); !status)
        return status;
  }
  if (Status status = verifyImages(p); !status)
    return status;
  const std::string lines = p.target == "cpu" ? std::string() : interfacesOfPtx(p.image);
  return lines.empty() ? Status() : verifyInterfaces(p, lines, /*ofHost=*/false);
}

Status verifyInterfaces(const Program &p, std::string_view lines, bool ofHost) {
  for (size_t i = 0; i < p.kernels.size(); ++i) {
    if (p.target != "cpu" && runsOnCpu(p.kernels[i]) != ofHost)
      continue;
    const std::string described = spellInterface(p.kernels[i]);
    const std::string_view said = lines.substr(0, lines.find('\n'));
    if (said != described)
      return refuse("kernels[{}] is described as '{}', but its code is '{}'", i, described, said);
    lines.remove_prefix(std::min(lines.size(), said.size() + 1));
  }
  if (!lines.empty())
    return refuse("{} kernels, but the image also has '{}'", p.kernels.size(),
                  lines.substr(0, lines.find('\n')));
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
  if (kernel.items == 0 && c.numParams != kernel.params)
    return refuse("{} gives kernel '{}' {} params, but it has {}", describeCommand(p, i), kernel.name,
                  c.numParams, kernel.params);
  if (kernel.items != 0)
    if (Status status = verifyItems(p, i, kernel); !status)
      return status;
  if (Status status = verifyOperands(p, i, kernel, kernel.items != 0 ? c.numParams : 1); !status)
    return status;
  if (p.target == "cpu")
    return {};
  if (runsOnCpu(kernel) != (p.streams[c.stream] == StreamKind::Host))
    return refuse("{} launches kernel '{}', which is code for the {}, on stream {}", describeCommand(p, i),
                  kernel.name, runsOnCpu(kernel) ? "host" : "device", c.stream);
  if (runsOnCpu(kernel))
    return {};
  const size_t operands = kernel.operands.size();
  for (uint32_t k = 0; k < c.numOperands; ++k) {
    const Buffer &buffer = p.buffers[p.operands[c.firstOperand + k]];
    const uint32_t alignment = kernel.alignments[k % operands];
    if (offsetBits(buffer) % alignment != 0)
      return refuse("{} gives kernel '{}' operand {} at offset {}, but its code relies on multiples of {}",
                    describeCommand(p, i), kernel.name, k, buffer.offset, alignment);
  }
  return {};
}

} // namespace ds::rt
