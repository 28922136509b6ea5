//===- VerifyCollectives.cpp - What ranks do together, against Program.h -------===//
//
// A collective moves as many bytes as its table entry says, whatever the operands' shapes are: each rule here
// is a memory-safety rule, for every rank. That all ranks of a stage issue the same sequence needs no check:
// they run one program, and nothing in it branches. What stages have with each other is checked behind
// schedules (VerifyMeetings.cpp).
//
//===---------------------------------------------------------------------------===//
#include "Execution.h"
#include "Stages.h"
#include "Verify.h"

namespace ds::rt {
namespace {

constexpr uint64_t kMaxBytes = uint64_t(1) << 47; // what a process can map

bool isReducible(DType dtype) { return dtype != DType::Bool && dtype != DType::I8 && dtype != DType::U8; }

Status verifyEntry(const Program &p, size_t i) {
  const Collective &c = p.collectives[i];
  if (c.kind > kLastCollective || c.reduction > Reduction::Min || c.dtype > DType::Bool)
    return refuse("collectives[{}] has kind {}, reduction {} and dtype {}, the last known are {}, {} and {}",
                  i, int(c.kind), int(c.reduction), int(c.dtype), int(kLastCollective), int(Reduction::Min),
                  int(DType::Bool));
  if (c.name.empty() || c.name.size() > 4096)
    return refuse("collectives[{}] has a name of {} bytes, allowed are 1 to 4096", i, c.name.size());
  if (traitsOf(c.kind).reduces != (c.reduction != Reduction::None))
    return refuse("collectives[{}] '{}' is a {} with reduction {}", i, c.name, spell(c.kind),
                  spell(c.reduction));
  if (traitsOf(c.kind).reduces && !isReducible(c.dtype))
    return refuse("collectives[{}] '{}' reduces elements of {}", i, c.name, spell(c.dtype));
  if (c.axes.isEmpty() || !p.mesh.all().hasAll(c.axes))
    return refuse("collectives[{}] '{}' runs along axes {:#x}, expected some of the {} of the mesh", i,
                  c.name, c.axes.bits(), p.mesh.numAxes());
  if (traitsOf(c.kind).isMessage && !p.stageAxes.hasAll(c.axes))
    return refuse("collectives[{}] '{}' is a {} along {}, but messages run along the stages' axes: {}", i,
                  c.name, spell(c.kind), p.mesh.spell(c.axes), p.mesh.spell(p.stageAxes));
  if (const uint32_t ranks = p.mesh.size(c.axes);
      c.elements < 1 || c.elements > kMaxBytes / byteSize(c.dtype) / ranks)
    return refuse("collectives[{}] '{}' moves {} elements of each of {} ranks, allowed are 1 to {} bytes", i,
                  c.name, c.elements, ranks, kMaxBytes);
  return {};
}

/// How many parts of the collective's elements each operand of its command has.
std::vector<uint64_t> partsOf(const CollectiveTraits &traits, uint64_t ranks) {
  std::vector<uint64_t> parts;
  if (traits.input != Parts::None)
    parts.push_back(traits.count(traits.input, ranks));
  if (traits.output != Parts::None && !traits.isOneOperand)
    parts.push_back(traits.count(traits.output, ranks));
  return parts;
}

/// Whether `part` is, on every rank, the part of `whole` that the rank's position in its group along `axes`
/// has: each step along one of them is as many parts as it is positions.
bool isRankWindow(const Mesh &mesh, AxisSet axes, const Buffer &part, const Buffer &whole,
                  uint64_t partBytes) {
  for (unsigned axis = 0; axis < mesh.numAxes(); ++axis) {
    const uint64_t step = axes.has(axis) ? mesh.stride(axis, axes) * partBytes : 0;
    if (mesh.axes()[axis].size > 1 && axisStride(part, axis) != axisStride(whole, axis) + step)
      return false;
  }
  return part.space == whole.space && part.offset == whole.offset && haveSameSlots(part, whole);
}

/// The two operands may not share a byte but in the ways Program.h names.
bool mayShare(const Mesh &mesh, const Collective &c, const Buffer &in, const Buffer &out) {
  const CollectiveTraits &traits = traitsOf(c.kind);
  if (traits.sharing == Sharing::Same)
    return in.space == out.space && in.offset == out.offset && in.axisStrides == out.axisStrides &&
           haveSameSlots(in, out);
  if (traits.sharing == Sharing::None)
    return false;
  const bool isInputPart = traits.input == Parts::One;
  return isRankWindow(mesh, c.axes, isInputPart ? in : out, isInputPart ? out : in,
                      c.elements * byteSize(c.dtype));
}

Status verifyStaging(const Program &p, uint64_t index, const Collective &collective) {
  const Command &c = p.commands[index];
  const uint32_t ranks = p.mesh.size(collective.axes);
  const uint64_t needed =
      p.target == "cpu" ? collectiveStagingBytes(collective, ranks) : 0; // NCCL has its own
  if (c.workspace == UINT32_MAX && needed == 0)
    return {};
  const uint64_t given = c.workspace == UINT32_MAX ? 0 : extentBytes(p.buffers[c.workspace]);
  if (given < needed)
    return refuse("{} has a workspace of {} bytes, but {} '{}' on {} ranks needs {}",
                  describeCommand(p, index), given, spell(collective.kind), collective.name, ranks, needed);
  for (uint32_t k = 0; k < c.numOperands; ++k)
    if (mayOverlap(p.buffers[c.workspace], p.buffers[p.operands[c.firstOperand + k]], p.mesh))
      return refuse("{} has a workspace that shares bytes with operand {}", describeCommand(p, index), k);
  return {};
}

Status verifyOperand(const Program &p, uint64_t index, uint32_t k, const Collective &collective,
                     uint64_t parts) {
  const Buffer &buffer = p.buffers[p.operands[p.commands[index].firstOperand + k]];
  if (buffer.dtype != collective.dtype || !isContiguous(buffer) ||
      static_cast<uint64_t>(numElements(buffer)) != parts * collective.elements)
    return refuse("{} operand {} is {} [{}], expected {} packed elements of {} for {} '{}'",
                  describeCommand(p, index), k, spell(buffer.dtype), fmt::join(buffer.shape, "x"),
                  parts * collective.elements, spell(collective.dtype), spell(collective.kind),
                  collective.name);
  return {};
}

/// The rank that it names, and of a message how many of its exchange are behind it.
Status verifyParams(const Program &p, uint64_t index, const Collective &collective) {
  const Command &c = p.commands[index];
  const auto ranks = static_cast<int64_t>(p.mesh.size(collective.axes));
  const int64_t *params = p.params.data() + c.firstParam;
  if (c.numParams >= 1 && (params[0] < 0 || params[0] >= ranks))
    return refuse("{} names rank {} of {} for {} '{}'", describeCommand(p, index), params[0], ranks,
                  spell(collective.kind), collective.name);
  if (traitsOf(collective.kind).isMessage && (params[1] < 0 || params[1] >= int64_t(kMaxMessages)))
    return refuse("{} has {} messages of its exchange after it, allowed are 0 to {}",
                  describeCommand(p, index), params[1], kMaxMessages - 1);
  return {};
}

} // namespace

Status verifyCollectives(const Program &p) {
  for (size_t i = 0; i < p.collectives.size(); ++i)
    if (Status status = verifyEntry(p, i); !status)
      return status;
  return {};
}

/// A message that is not the last of its exchange has the next one right behind it.
static Status verifyNextMessage(const Program &p, uint64_t index) {
  const Command &c = p.commands[index];
  const uint32_t behind = behindOf(p, c);
  if (behind == 0)
    return {};
  const bool isLast = index + 1 == p.commands.size();
  const Command &next = p.commands[isLast ? index : index + 1];
  if (!isLast && isMessage(p, next) && next.stream == c.stream && behindOf(p, next) == behind - 1 &&
      p.collectives[next.callee].axes == p.collectives[c.callee].axes)
    return {};
  return refuse("{} has {} messages of its exchange after it, but {} is none along {} on stream {} with {}",
                describeCommand(p, index), behind, isLast ? "what follows" : describeCommand(p, index + 1),
                p.mesh.spell(p.collectives[c.callee].axes), c.stream, behind - 1);
}

/// What is received shares no byte with other messages of the exchange.
static Status verifyApart(const Program &p, Exchange exchange) {
  const auto bufferOf = [&](uint32_t i) -> const Buffer & {
    return p.buffers[p.operands[p.commands[i].firstOperand]];
  };
  for (uint32_t i = exchange.first; i < exchange.end(); ++i)
    for (uint32_t other = exchange.first; other < exchange.end(); ++other)
      if (other != i && p.collectives[p.commands[i].callee].kind == CollectiveKind::Recv &&
          mayOverlap(bufferOf(i), bufferOf(other), p.mesh))
        return refuse("{} receives bytes that {} of the same exchange has too", describeCommand(p, i),
                      describeCommand(p, other));
  return {};
}

Status verifyExchanges(const Program &p) {
  for (uint64_t i = 0; i < p.commands.size(); ++i)
    if (isMessage(p, p.commands[i]))
      if (Status status = verifyNextMessage(p, i); !status)
        return status;
  for (uint32_t i = 0; i < p.commands.size(); ++i) {
    if (!isMessage(p, p.commands[i]))
      continue;
    const Exchange exchange = exchangeOf(p, i);
    if (const uint64_t period = slotPeriod(p, exchange); period > kMaxSlots)
      return refuse("{} begins an exchange of which the slots return together after {} micro-batches, the "
                    "limit is {}",
                    describeCommand(p, i), period, kMaxSlots);
    if (Status status = verifyApart(p, exchange); !status)
      return status;
    i = exchange.end() - 1;
  }
  return {};
}

Status verifyCollectiveCommand(const Program &p, uint64_t index) {
  const Command &c = p.commands[index];
  if (c.callee >= p.collectives.size())
    return refuse("{} runs collective {} of {}", describeCommand(p, index), c.callee, p.collectives.size());
  if (!communicates(p.streams[c.stream]))
    return refuse("{} runs a collective on stream {}, which is not for communication",
                  describeCommand(p, index), c.stream);
  const Collective &collective = p.collectives[c.callee];
  const uint32_t ranks = p.mesh.size(collective.axes);
  const CollectiveTraits &traits = traitsOf(collective.kind);
  const std::vector<uint64_t> parts = partsOf(traits, ranks);
  if (c.numOperands != parts.size() || c.numParams != traits.params)
    return refuse("{} has {} operands and {} params, {} '{}' has {} and {}", describeCommand(p, index),
                  c.numOperands, c.numParams, spell(collective.kind), collective.name, parts.size(),
                  traits.params);
  for (uint32_t k = 0; k < c.numOperands; ++k)
    if (Status status = verifyOperand(p, index, k, collective, parts[k]); !status)
      return status;
  if (Status status = verifyParams(p, index, collective); !status)
    return status;
  if (c.numOperands == 2) {
    const Buffer &in = p.buffers[p.operands[c.firstOperand]],
                 &out = p.buffers[p.operands[c.firstOperand + 1]];
    if (!mayShare(p.mesh, collective, in, out) && mayOverlap(in, out, p.mesh))
      return refuse("{} has operands that share bytes in a way that {} does not allow",
                    describeCommand(p, index), spell(collective.kind));
  }
  return verifyStaging(p, index, collective);
}

} // namespace ds::rt
