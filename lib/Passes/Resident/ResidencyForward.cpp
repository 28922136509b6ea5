//===- ResidencyForward.cpp - What forward makes and backward reads, in a step's problem ---===//
//
// It is kept, or recomputed by the ops that the rules let run twice, or, where the configuration has it so,
// copied to the host and back. What leaves for the host is to be gone when forward ends, for memory is short
// then, and what is loaded comes while backward runs.
//
//===----------------------------------------------------------------------------------===//
#include "StepProblem.h"

#include <numeric>

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// Copies of fewer bytes take as long as larger ones, and hardly save memory.
static constexpr int64_t kLeastHostBytes = int64_t{16} << 10;

namespace {
/// Whether a value may go to the host, or must.
enum class HostUse { No, May, Must };

/// The values of one segment's forward.
class ForwardValues {
public:
  ForwardValues(StepProblem &step, uint32_t index)
      : step(step), index(index), segment(step.segments[index]) {}
  /// Whether there is more than one way, or none that is always taken.
  bool isOpen(const ForwardChoice &choice) const;
  /// Holds what is kept whatever is chosen.
  void keep(const ForwardChoice &choice);
  /// Adds what is open. Requires that all that is always kept is held.
  void add(const ForwardChoice &choice);

private:
  HostUse hostUseOf(const ValueMemory &memory) const;
  analysis::ResidencyHold holdOf(const ValueMemory &memory, uint32_t begin, uint32_t end) const;
  analysis::ResidencyHold holdOfKept(uint32_t memory) const;
  analysis::ResidencyHold holdOfRepeated(uint32_t memory) const;
  bool isOfLoss(uint32_t memory) const;
  analysis::ResidencyWay wayByHost(const ForwardChoice &choice) const;
  void addRecompute(const ForwardChoice &choice, analysis::ResidencyValue &value);

  StepProblem &step;
  uint32_t index;
  StepSegment &segment;
  DenseMap<uint32_t, uint32_t> heldUntil; ///< by memory that is in no other: the moment of the problem up to
                                          ///< which it is held, for what is always kept of it
};
} // namespace

HostUse ForwardValues::hostUseOf(const ValueMemory &memory) const {
  const OffloadOptions &offload = step.limits.offload;
  if (!step.usesHost())
    return HostUse::No;
  // Parts of a join lie in it, and go with it.
  if (memory.joined >= 0 || memory.bytes < kLeastHostBytes || memory.firstRead <= memory.end ||
      memory.firstRead > memory.lastRead || isBroughtAgain(memory.value.getDefiningOp()))
    return HostUse::No;
  double gap =
      std::accumulate(segment.seconds.begin() + memory.end, segment.seconds.begin() + memory.firstRead, 0.0);
  if (gap <= 2 * step.costs.hostCopySeconds(double(memory.bytes))) // it would be back before it is gone
    return HostUse::No;
  using Activations = OffloadOptions::Activations;
  if (offload.activations == Activations::Moved)
    return HostUse::Must;
  if (offload.checkpoints && segment.rules->isCheckpoint(memory.value.getDefiningOp()))
    return HostUse::Must;
  return offload.activations == Activations::Chosen ? HostUse::May : HostUse::No;
}

/// `memory` at moments [begin, end) of the segment; none where they end before they begin.
analysis::ResidencyHold ForwardValues::holdOf(const ValueMemory &memory, uint32_t begin, uint32_t end) const {
  return {StepProblem::kDevice, memory.bytes, segment.since(begin), segment.since(std::max(begin, end))};
}

/// What it takes beside what forward takes, and what is always kept, for memory `index` to stay up to its
/// last reader: of a part of a join all of the join, in whose memory it lies.
analysis::ResidencyHold ForwardValues::holdOfKept(uint32_t index) const {
  const uint32_t in = segment.memory.wholeOf(index);
  const ValueMemory &whole = segment.memory.memories[in];
  analysis::ResidencyHold hold = holdOf(whole, whole.isStored ? whole.end + 1 : whole.begin,
                                        segment.memory.memories[index].lastRead + 1);
  hold.begin = std::min(hold.end, std::max(hold.begin, heldUntil.lookup(in)));
  return hold;
}

/// On the host from its last use in forward until shortly before the first in backward, and on the device for
/// as long as the copies should take.
analysis::ResidencyWay ForwardValues::wayByHost(const ForwardChoice &choice) const {
  const ValueMemory &memory = segment.memory.memories[choice.memory];
  const double copy = step.costs.hostCopySeconds(double(memory.bytes));
  uint32_t begin = memory.isStored ? memory.end + 1 : memory.begin, end = memory.lastRead + 1;
  uint32_t gone = begin, back = memory.firstRead;
  for (double passed = 0; gone < memory.firstRead && passed < copy; ++gone)
    passed += segment.seconds[gone];
  for (double passed = 0; back > gone && passed < copy; --back)
    passed += segment.seconds[back - 1];
  analysis::ResidencyHold onHost = holdOf(memory, begin, end);
  onHost.space = StepProblem::kHost;
  const double seconds = segment.runs * copy;
  std::vector<analysis::ResidencyCharge> charges =
      step.chargesOf(segment, choice.writeSeconds, choice.readSeconds);
  charges.insert(charges.end(), {{StepProblem::kStoring, seconds},
                                 {StepProblem::kLoading, seconds},
                                 {StepProblem::kCopying, 2 * seconds}});
  return {{holdOf(memory, begin, gone), holdOf(memory, back, end), onHost}, std::move(charges)};
}

/// From the call that makes memory `index` again, or the first that reads it, to its last reader: that may be
/// another of those calls.
analysis::ResidencyHold ForwardValues::holdOfRepeated(uint32_t index) const {
  const ValueMemory &memory = segment.memory.memories[index];
  const Repeats::Use &use = segment.repeats->uses[index];
  const uint32_t last = isCheap(memory.value.getDefiningOp()) ? memory.firstRead : memory.lastRead;
  const uint32_t calls = segment.since(memory.firstRead), reader = segment.at(memory.firstRead);
  const bool isReadAgain = segment.memory.isReadAgainFirst(index);
  analysis::ResidencyHold hold = holdOf(memory, memory.firstRead, last + 1);
  hold.begin = use.made      ? calls + *use.made
               : use.read    ? calls + use.read->first
               : isReadAgain ? calls
                             : reader;
  if (last == memory.firstRead && isReadAgain)
    hold.end = use.read ? calls + use.read->second + 1 : std::max(reader, hold.begin + 1);
  return hold;
}

void ForwardValues::addRecompute(const ForwardChoice &choice, analysis::ResidencyValue &value) {
  const ValueMemory &memory = segment.memory.memories[choice.memory];
  Operation *maker = memory.value.getDefiningOp();
  value.recompute = analysis::ResidencyWay{{}, step.chargesOf(segment, 0, choice.recomputeSeconds)};
  // A call's result is made once and stays for all that read it; what is cheap is recomputed for each.
  if (!isCheap(maker) || memory.isReadByCall || formOf(maker) == OpForm::Join)
    value.recompute->holds.push_back(holdOfRepeated(choice.memory));
  for (uint32_t operand : choice.operands)
    if (auto known = segment.values.find(operand); known != segment.values.end())
      value.operands.push_back(known->second);
  for (Value operand : maker->getOperands())
    if (std::optional<uint32_t> early = addEarly(step, index, rootOf(operand), memory.firstRead))
      value.operands.push_back(*early);
}

void ForwardValues::add(const ForwardChoice &choice) {
  const ValueMemory &memory = segment.memory.memories[choice.memory];
  analysis::ResidencyValue value;
  value.isRead = memory.isRead;
  const HostUse host = hostUseOf(memory);
  std::vector<analysis::ResidencyWay> refused;
  if (choice.canKeep) {
    analysis::ResidencyWay kept{{holdOfKept(choice.memory)},
                                step.chargesOf(segment, choice.writeSeconds, choice.readSeconds)};
    const bool isRecomputed = choice.canRecompute && choice.mustRecompute;
    if (isRecomputed || host == HostUse::Must)
      refused.push_back(std::move(kept));
    else
      value.homes.push_back(std::move(kept));
    if (!isRecomputed && host != HostUse::No)
      value.homes.push_back(wayByHost(choice));
  }
  if (choice.canRecompute)
    addRecompute(choice, value);
  segment.values[choice.memory] =
      step.add(std::move(value), {index, choice.memory, {}, nullptr, std::move(refused)});
}

/// Whether pieces of a loss have a share of `memory`. Logits are read at once: to make them again buys
/// nothing that pieces of them do not.
bool ForwardValues::isOfLoss(uint32_t memory) const {
  return llvm::any_of(segment.losses,
                      [&](const LossPieces &loss) { return llvm::is_contained(loss.ofPiece, memory); });
}

bool ForwardValues::isOpen(const ForwardChoice &choice) const {
  const ValueMemory &memory = segment.memory.memories[choice.memory];
  const bool canRecompute =
      choice.canRecompute && (choice.mustRecompute || !choice.canKeep || !isOfLoss(choice.memory));
  return canRecompute || !memory.isRead || hostUseOf(memory) != HostUse::No;
}

void ForwardValues::keep(const ForwardChoice &choice) {
  const analysis::ResidencyHold hold = holdOfKept(choice.memory);
  segment.alwaysKept[choice.memory] = hold;
  step.live.hold(hold);
  uint32_t &until = heldUntil[segment.memory.wholeOf(choice.memory)];
  until = std::max(until, hold.end);
}

void mlir::ds::addForward(StepProblem &step, uint32_t index, ArrayRef<ForwardChoice> choices) {
  ForwardValues values(step, index);
  for (const ForwardChoice &choice : choices)
    if (!values.isOpen(choice))
      values.keep(choice);
  for (const ForwardChoice &choice : choices)
    if (values.isOpen(choice))
      values.add(choice);
}
