//===- Length.cpp - How long samples are ----------------------------------------------===//
#include "Length.h"

#include "ds/Import/HfShape.h"
#include "ds/Planner/Proposal.h"

using namespace ds;
using namespace ds::opt;

/// Dimension 1 of the first input that has one.
static std::optional<int64_t> givenLength(const Options &options) {
  for (const std::string &input : options.inputs)
    if (std::vector<int64_t> sizes = planner::sizesOfInput(input); sizes.size() >= 2)
      return sizes[1];
  return std::nullopt;
}

Status ds::opt::settleLength(Options &options, const config::Config &config) {
  if (!options.length)
    return {};
  const std::string length = std::to_string(*options.length);
  if (options.inputKind() == InputKind::Mlir)
    return Error{ExitCode::Invalid, options.input + ": --length " + length + ": MLIR has its shapes already",
                 "give the TorchScript archive or the config.json that it was made from"};
  if (options.inputKind() == InputKind::HfConfig && options.inputs.empty()) {
    options.inputs = {lengthInput(options.input) + "=" + std::to_string(config.batch.micro) + "x" + length +
                      "xi64"};
    return {};
  }
  const std::optional<int64_t> given = givenLength(options);
  if (!given)
    return Error{ExitCode::Invalid,
                 "--length " + length + ": no --input has a second dimension, which is the length",
                 "give the model's inputs as --input NAME=BATCHxLENGTHxTYPE"};
  planner::Proposal resized(options, config);
  resized.resizeInputs(1, *given, *options.length);
  options.inputs = resized.settings.inputs;
  return {};
}
