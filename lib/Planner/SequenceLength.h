//===- SequenceLength.h - How long the samples of a plan are ----------------------===//
#ifndef DS_LIB_PLANNER_SEQUENCELENGTH_H
#define DS_LIB_PLANNER_SEQUENCELENGTH_H

#include "ds/Planner/Proposal.h"

namespace ds::planner {

/// The sequence's length, dimension 1 of the first input that has one. `settings` then spells all inputs,
/// also of a config.json that came without. Fails with `question` in its words.
Result<int64_t> findSequence(PlanSettings &settings, const config::Config &config,
                             const std::string &question);

/// The length that `settings` spell; none: that of a config.json, or no input has one.
std::optional<int64_t> spelledSequence(const PlanSettings &settings);

/// A length as one asks for it.
std::string spellLength(int64_t batch, int64_t length);

} // namespace ds::planner

#endif // DS_LIB_PLANNER_SEQUENCELENGTH_H
