//===- EditDistance.h - How far a word is from another --------------------------===//
//
// For "did you mean": a misspelt key or option is a few edits from the one that is meant.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_SUPPORT_EDITDISTANCE_H
#define DS_SUPPORT_EDITDISTANCE_H

#include <cstddef>
#include <string_view>

namespace ds {

/// Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours each cost 1. Time
/// is the product of both lengths.
size_t editDistance(std::string_view a, std::string_view b);

} // namespace ds

#endif // DS_SUPPORT_EDITDISTANCE_H
