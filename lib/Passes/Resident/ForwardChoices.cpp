//===- ForwardChoices.cpp - What of the forward may be kept or recomputed ---------===//
//
// Residual sums would join all layers to one part of the problem, for each can be made from the one before.
// But what must be kept for that alone is as large as the sum, so that nothing is saved: such a value is kept
// or not needed, and layers stay apart.
//
//===---------------------------------------------------------------------------===//
#include "ForwardChoices.h"

#include "ds/Dialect/Work.h"

#include <map>

using namespace mlir;
using namespace mlir::ds;

/// Of what a value is made of alone, so many values are looked at: a chain of cheap ops would be gone through
/// for each of its values. Beyond, less is found, and the value may be recomputed although that saves
/// nothing.
static constexpr size_t kMostPrivate = 512;

ForwardChoices::ForwardChoices(const SegmentMemory &memory, const RecomputeRules &rules,
                               const ValueCosts &costs)
    : memory(memory), rules(rules), costs(costs), isNeeded(memory.memories.size()),
      operands(memory.memories.size()), readers(memory.memories.size()) {
  findNeeded();
  findOnEnds();
  std::vector<ForwardChoice> all;
  for (uint32_t index = 0; index < isNeeded.size(); ++index)
    if (isNeeded[index])
      all.push_back(describe(index));
  // What only values are made of that are not recomputed after all is not needed either.
  std::vector<bool> isUsed(isNeeded.size());
  for (ForwardChoice &choice : llvm::reverse(all)) {
    if (!memory.memories[choice.memory].isRead && !isUsed[choice.memory])
      continue;
    for (uint32_t operand : choice.operands)
      isUsed[operand] = true;
    choices.push_back(std::move(choice));
  }
  std::reverse(choices.begin(), choices.end());
}

/// Of an op with several results only the largest is worth it; the others stay.
bool ForwardChoices::mayRecompute(uint32_t index) const {
  Value value = memory.memories[index].value;
  Operation *maker = value.getDefiningOp();
  auto isLess = [&](Value a, Value b) {
    return memory.memories[*memory.find(a)].bytes < memory.memories[*memory.find(b)].bytes;
  };
  return rules.mayRecompute(maker) &&
         (maker->getNumResults() == 1 || *llvm::max_element(maker->getResults(), isLess) == value);
}

std::vector<uint32_t> ForwardChoices::findOperands(uint32_t index) const {
  std::vector<uint32_t> found;
  if (!mayRecompute(index))
    return found;
  for (Value operand : memory.memories[index].value.getDefiningOp()->getOperands()) {
    std::optional<uint32_t> known = memory.find(operand);
    if (!known || llvm::is_contained(found, *known))
      continue;
    Operation *maker = memory.memories[*known].value.getDefiningOp();
    if (!isa<LoadOp>(maker) && !(rules.recomputesCalls() && isBroughtAgain(maker)))
      found.push_back(*known);
  }
  return found;
}

void ForwardChoices::findNeeded() {
  for (uint32_t index = isNeeded.size(); index-- > 0;) {
    const ValueMemory &entry = memory.memories[index];
    // What is on the host already stays there.
    if (!entry.isForward || entry.space != Space::Device || (!entry.isRead && readers[index].empty()))
      continue;
    isNeeded[index] = true;
    operands[index] = findOperands(index);
    for (uint32_t operand : operands[index])
      readers[operand].push_back(index);
  }
}

/// Notes what is made of a value that cannot be recomputed, by way of such as backward does not read.
void ForwardChoices::findOnEnds() {
  isOnEnd.resize(isNeeded.size());
  for (uint32_t index = 0; index < isNeeded.size(); ++index)
    isOnEnd[index] = llvm::any_of(operands[index], [&](uint32_t operand) {
      return !memory.memories[operand].isRead && (isOnEnd[operand] || !mayRecompute(operand));
    });
}

/// What `index` is made of that nothing else is, by whatever ways: dropout reads a product twice for one sum.
std::set<uint32_t> ForwardChoices::privateOf(uint32_t index) const {
  std::set<uint32_t> among;
  std::set<uint32_t, std::greater<>> pending;
  auto add = [&](uint32_t made) { pending.insert(operands[made].begin(), operands[made].end()); };
  add(index);
  while (!pending.empty() && among.size() < kMostPrivate) { // readers come before what they read
    const uint32_t next = *pending.begin();
    pending.erase(pending.begin());
    const bool isPrivate = llvm::all_of(
        readers[next], [&](uint32_t reader) { return reader == index || among.count(reader) > 0; });
    if (memory.memories[next].isRead || !isPrivate)
      continue;
    among.insert(next);
    add(next);
  }
  return among;
}

/// Bytes that have to be kept to make `index` again, and for nothing else. Not less than the least cut: that
/// through all that cannot be recomputed, or what each operand takes for itself, where what two are made of
/// counts twice.
int64_t ForwardChoices::privateBytes(uint32_t index) const {
  if (!isOnEnd[index])
    return 0;
  int64_t ends = 0;
  std::map<uint32_t, int64_t> cuts; ///< of what is private: bytes to keep for it
  auto cutBelow = [&](uint32_t made) {
    int64_t bytes = 0;
    for (uint32_t operand : operands[made])
      if (auto cut = cuts.find(operand); cut != cuts.end())
        bytes += cut->second;
    return bytes;
  };
  for (uint32_t of : privateOf(index)) { // operands first
    const int64_t bytes = memory.memories[of].bytes;
    const bool isEnd = !mayRecompute(of);
    ends += isEnd ? bytes : 0;
    cuts[of] = isEnd ? bytes : std::min(bytes, cutBelow(of));
  }
  return std::min(ends, cutBelow(index));
}

/// Bytes that a kernel reads that makes `index` again: what is in memory of all that it is made of, once
/// each.
double ForwardChoices::storedBytes(uint32_t index) const {
  double bytes = 0;
  std::set<uint32_t> seen = {index};
  for (std::vector<uint32_t> pending = {index}; !pending.empty();) {
    uint32_t made = pending.back();
    pending.pop_back();
    for (uint32_t operand : operands[made]) {
      if (!seen.insert(operand).second)
        continue;
      if (memory.memories[operand].isStored)
        bytes += double(memory.memories[operand].bytes);
      else
        pending.push_back(operand);
    }
  }
  return bytes;
}

/// Whether `index` is read for a join in whose memory it lies, and for nothing else: what keeps it keeps the
/// join's memory, and so the join may as well be kept.
bool ForwardChoices::isOnlyJoined(uint32_t index) const {
  const ValueMemory &entry = memory.memories[index];
  return entry.joined >= 0 && !entry.isRead &&
         readers[index] == std::vector<uint32_t>{uint32_t(entry.joined)} &&
         isa<ConcatOp>(memory.memories[entry.joined].value.getDefiningOp());
}

ForwardChoice ForwardChoices::describe(uint32_t index) const {
  const ValueMemory &entry = memory.memories[index];
  Operation *maker = entry.value.getDefiningOp();
  const OpForm form = formOf(maker);
  ForwardChoice choice;
  choice.memory = index;
  choice.canRecompute = mayRecompute(index);
  if (!choice.canRecompute)
    return choice;
  choice.operands = operands[index];
  // Each kernel has its own copy of what is free: only a call makes it a value to be kept.
  choice.canKeep = (form != OpForm::Free || entry.isReadByCall) && !isOnlyJoined(index);
  if (choice.canKeep && !rules.isNamed(maker) && privateBytes(index) >= entry.bytes) {
    choice.canRecompute = false, choice.operands.clear();
    return choice;
  }
  choice.mustRecompute = rules.isForced(maker);
  choice.readSeconds = double(entry.kernels.size()) * costs.movingSeconds(double(entry.bytes));
  choice.writeSeconds = entry.isStored ? 0 : costs.movingSeconds(double(entry.bytes));
  choice.recomputeSeconds = recomputeSeconds(index, choice.readSeconds);
  return choice;
}

double ForwardChoices::recomputeSeconds(uint32_t index, double readSeconds) const {
  const ValueMemory &entry = memory.memories[index];
  Operation *maker = entry.value.getDefiningOp();
  if (formOf(maker) == OpForm::Call)
    return costs.callSeconds(maker) + readSeconds;
  if (!isCheap(maker)) // a kernel of its own
    return costs.kernelSeconds(maker, storedBytes(index)) + readSeconds;
  if (formOf(maker) == OpForm::Join) // each kernel that reads it has one made before it
    return std::max<double>(1, double(entry.kernels.size())) *
               costs.kernelSeconds(maker, storedBytes(index)) +
           readSeconds;
  if (entry.isReadByCall)
    return costs.kernelSeconds(maker, storedBytes(index));
  return formOf(maker) == OpForm::Free ? 0 : costs.ridingSeconds(maker);
}
