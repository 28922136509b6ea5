//===- LogitsRun.h - The entry for logits, as the host runs it ------------------------===//
#ifndef DS_LIB_RUNTIME_SAMPLING_LOGITSRUN_H
#define DS_LIB_RUNTIME_SAMPLING_LOGITSRUN_H

#include "Data/TokenInputs.h"

#include "ds/Runtime/Engine/Executor.h"

#include <span>
#include <vector>

namespace ds::rt {

/// What is asked of a program before it is loaded: an entry for logits, and inputs of tokens.
class LogitsShape {
public:
  /// Invalid: the program at `path` has no such entry, or takes other inputs than tokens.
  static Result<LogitsShape> find(const Program &program, const std::string &path);

  int64_t samples() const { return specs[places.tokens].shape[0]; }
  int64_t length() const { return specs[places.tokens].shape[1]; } ///< tokens of a sample
  /// How many tokens the model knows: those of its table, as far as there are logits for them.
  int64_t vocabulary() const { return known; }

  std::vector<InputSpec> specs;
  TokenInputs places;

private:
  int64_t known = 0;
};

class LogitsRun {
public:
  /// `executor` outlives the run.
  LogitsRun(Executor &executor, LogitsShape shape);

  /// The logits behind the last of `tokens`, at most the shape's length of them; what stands behind is
  /// `padding`. Collective where several ranks run the program.
  Result<std::vector<float>> after(std::span<const int64_t> tokens, int64_t padding = 0);

  /// Refuses a model whose logits change with tokens that come later: it is not causal, and would see the
  /// padding. One token at least is behind `tokens`. Collective.
  Status checkCausal(std::span<const int64_t> tokens);

  const LogitsShape &shape() const { return what; }

private:
  Status fill(std::span<const int64_t> tokens, int64_t padding);
  int64_t valueOf(size_t input, int64_t position, std::span<const int64_t> tokens, int64_t padding) const;
  const LogitsEntry &entry() const { return executor.stage().logits; }

  Executor &executor;
  LogitsShape what;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAMPLING_LOGITSRUN_H
