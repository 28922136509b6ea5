//===- ForwardChoices.h - What of the forward may be kept or recomputed -----------===//
#ifndef DS_LIB_PASSES_RESIDENT_FORWARDCHOICES_H
#define DS_LIB_PASSES_RESIDENT_FORWARDCHOICES_H

#include "SegmentMemory.h"
#include "ValueCosts.h"

namespace mlir::ds {

/// How a value of the forward may reach backward.
struct ForwardChoice {
  uint32_t memory = 0;
  bool canKeep = true;
  double writeSeconds = 0, readSeconds = 0; ///< of forward and of backward, to keep it
  bool canRecompute = false;                ///< as the rules have it, and that can save memory
  bool mustRecompute = false;
  double recomputeSeconds = 0;
  std::vector<uint32_t> operands; ///< memories that it would be made of again
};

/// Those of one segment that backward reads, and those that they may be made of, operands first.
class ForwardChoices {
public:
  ForwardChoices(const SegmentMemory &memory, const RecomputeRules &rules, const ValueCosts &costs);

  std::vector<ForwardChoice> choices;

private:
  void findNeeded();
  void findOnEnds();
  std::vector<uint32_t> findOperands(uint32_t memory) const;
  std::set<uint32_t> privateOf(uint32_t memory) const;
  int64_t privateBytes(uint32_t memory) const;
  double storedBytes(uint32_t memory) const;
  bool isOnlyJoined(uint32_t memory) const;
  ForwardChoice describe(uint32_t memory) const;

  bool mayRecompute(uint32_t memory) const;
  double recomputeSeconds(uint32_t memory, double readSeconds) const;

  const SegmentMemory &memory;
  const RecomputeRules &rules;
  const ValueCosts &costs;
  std::vector<bool> isNeeded;
  std::vector<bool> isOnEnd;                   ///< see findOnEnds
  std::vector<std::vector<uint32_t>> operands; ///< that what is needed may be made of again
  std::vector<std::vector<uint32_t>> readers;  ///< values that are needed and may be recomputed from it
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_FORWARDCHOICES_H
