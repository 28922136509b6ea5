//===- TokenInputs.h - What a window of tokens says beside its tokens ----------===//
//
// A window often has several documents one after another, each ended by a token of its own. Where it is known
// which one, three things can be told for each token without looking beyond the window: that the target
// behind an end belongs to the next document, how far the token is in its own, and which one that is. A
// window that begins inside a document counts from its own beginning.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_DATA_TOKENINPUTS_H
#define DS_LIB_RUNTIME_DATA_TOKENINPUTS_H

#include "ds/Runtime/Data/DataSource.h"

namespace ds::rt {

/// The inputs of a program that a token stream fills, by their places.
struct TokenInputs {
  size_t tokens = 0, targets = 1;
  std::optional<size_t> positions; ///< position_ids
  std::optional<size_t> documents; ///< document_ids or segment_ids
};

/// Two integer inputs of the same shape [M, T] in their order, and of the same shape those that are known by
/// name. Invalid: they are not so. `path` is for the message.
Result<TokenInputs> findTokenInputs(const std::string &path, std::span<const InputSpec> inputs);

/// Usage: documents are asked for, and the data or the program does not have what that takes.
Status checkDocuments(const DataOptions &options, std::span<const InputSpec> inputs, bool isTokenStream);

/// What the tokens of one window say of each of them.
struct WindowFacts {
  std::vector<uint8_t> keep;      ///< 0: the target belongs to the next document
  std::vector<int64_t> positions; ///< from the window's beginning, or from the document's
  std::vector<int64_t> documents; ///< how many ended before, in the window
};
WindowFacts factsOf(std::span<const int64_t> tokens, std::optional<int64_t> documentToken,
                    bool resetPositions);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_DATA_TOKENINPUTS_H
