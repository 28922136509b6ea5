//===- Prompt.h - Tokens from what the user writes, and back --------------------------===//
#ifndef DS_LIB_RUNTIME_SAMPLING_PROMPT_H
#define DS_LIB_RUNTIME_SAMPLING_PROMPT_H

#include "ds/Runtime/Sampling/Sample.h"
#include "ds/Runtime/Tokenizer/Tokenizer.h"

#include <optional>

namespace ds::rt {

/// How tokens are read and written: by a tokenizer, as bytes, or as their numbers.
class Language {
public:
  /// The tokenizer that is named, or beside the weights at `weights` or the program; else bytes for a
  /// vocabulary of 256. Numbers where the user gives numbers and has named no tokenizer. Invalid: text, and
  /// none of these.
  static Result<Language> find(const SampleOptions &options, const std::string &program,
                               const std::string &weights, int64_t vocabulary);

  /// The tokens that the text begins with, one at least and each below `vocabulary`.
  Result<std::vector<int64_t>> begin(const SampleOptions &options, int64_t vocabulary) const;
  /// What is printed of one token.
  std::string spell(int64_t token) const;

private:
  enum class Kind : uint8_t { Numbers, Bytes, Words };
  Kind kind = Kind::Numbers;
  std::optional<Tokenizer> tokenizer; ///< of words
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAMPLING_PROMPT_H
