//===- LogitsRun.cpp - The entry for logits, as the host runs it ----------------------===//
#include "LogitsRun.h"

#include "Files/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ds::rt {

Result<LogitsShape> LogitsShape::find(const Program &program, const std::string &path) {
  const LogitsEntry &entry = program.stages.front().logits;
  if (entry.segment < 0)
    return Error{ExitCode::Invalid, quote(path) + ": --sample: the program has no entry for logits",
                 "compile it with ds-opt --entry logits"};
  LogitsShape shape;
  shape.specs = inputSpecs(program);
  const Result<TokenInputs> places = findTokenInputs(path, shape.specs);
  if (!places)
    return Error{places.error().code, places.error().message, "--sample is of models that read tokens"};
  shape.places = *places;
  const InputSpec &tokens = shape.specs[places->tokens];
  shape.known = program.buffers[entry.logits].shape[1];
  if (tokens.indexLimit > 0)
    shape.known = std::min(shape.known, tokens.indexLimit);
  if (shape.samples() != program.buffers[entry.rows].shape[0])
    return Error{ExitCode::Corrupt,
                 fmt::format("{}: its entry for logits is of {} samples, and its tokens of {}", quote(path),
                             program.buffers[entry.rows].shape[0], shape.samples()),
                 "compile the model again with ds-opt"};
  return shape;
}

LogitsRun::LogitsRun(Executor &executor, LogitsShape shape) : executor(executor), what(std::move(shape)) {}

/// What input `input` has at `position` of a sample. Targets have no say in logits.
int64_t LogitsRun::valueOf(size_t input, int64_t position, std::span<const int64_t> tokens,
                           int64_t padding) const {
  if (input == what.places.tokens)
    return position < static_cast<int64_t>(tokens.size()) ? tokens[static_cast<size_t>(position)] : padding;
  return input == what.places.positions ? position : 0; // one document
}

Status LogitsRun::fill(std::span<const int64_t> tokens, int64_t padding) {
  const std::vector<void *> inputs = executor.inputs();
  for (size_t input = 0; input < inputs.size(); ++input) {
    const size_t width = byteSize(what.specs[input].dtype);
    auto *to = static_cast<std::byte *>(inputs[input]);
    for (int64_t row = 0; row < what.samples(); ++row)
      for (int64_t position = 0; position < what.length(); ++position, to += width) {
        const int64_t value = valueOf(input, position, tokens, padding); // its low bytes come first
        std::memcpy(to, &value, width);
      }
  }
  const size_t bytes = static_cast<size_t>(what.samples()) * sizeof(int64_t);
  return executor.change(static_cast<std::byte *>(executor.data(entry().rows)), bytes, [&](std::byte *host) {
    for (int64_t row = 0; row < what.samples(); ++row) {
      const int64_t last = row * what.length() + static_cast<int64_t>(tokens.size()) - 1;
      std::memcpy(host + static_cast<size_t>(row) * sizeof last, &last, sizeof last);
    }
    return Status();
  });
}

Result<std::vector<float>> LogitsRun::after(std::span<const int64_t> tokens, int64_t padding) {
  if (Status status = fill(tokens, padding); !status)
    return status.error();
  if (Status status = executor.run(static_cast<uint32_t>(entry().segment)); !status)
    return status.error();
  std::vector<float> logits(static_cast<size_t>(what.vocabulary()));
  const Status read = executor.inspect(static_cast<const std::byte *>(executor.data(entry().logits)),
                                       logits.size() * sizeof(float), [&](const std::byte *host) {
                                         std::memcpy(logits.data(), host, logits.size() * sizeof(float));
                                         return Status();
                                       });
  return read ? Result<std::vector<float>>(std::move(logits)) : read.error();
}

/// What is hidden has weight 0 exactly, so that the bits are the same.
Status LogitsRun::checkCausal(std::span<const int64_t> tokens) {
  const Result<std::vector<float>> one = after(tokens, 0), other = after(tokens, what.vocabulary() - 1);
  for (const auto *logits : {&one, &other})
    if (!*logits)
      return logits->error();
  if (std::memcmp(one->data(), other->data(), one->size() * sizeof(float)) == 0)
    return {};
  return Error{
      ExitCode::Invalid,
      fmt::format("--sample: the model is not causal: what it gives behind token {} depends on the tokens "
                  "that come later",
                  tokens.size()),
      "only a model that writes from left to right can be asked for the next token"};
}

} // namespace ds::rt
