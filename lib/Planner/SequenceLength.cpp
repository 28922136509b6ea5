//===- SequenceLength.cpp - How long the samples of a plan are --------------------===//
#include "SequenceLength.h"

#include "ds/Import/HfShape.h"

using namespace ds;
using namespace ds::planner;

std::optional<int64_t> ds::planner::spelledSequence(const PlanSettings &settings) {
  for (const std::string &input : settings.inputs)
    if (std::vector<int64_t> sizes = sizesOfInput(input); sizes.size() >= 2)
      return sizes[1];
  return std::nullopt;
}

static std::string spellInput(int64_t batch, int64_t length) {
  return "input_ids=" + std::to_string(batch) + "x" + std::to_string(length) + "xi64";
}

Result<int64_t> ds::planner::findSequence(PlanSettings &settings, const config::Config &config,
                                          const std::string &question) {
  if (settings.inputKind() == InputKind::HfConfig && settings.inputs.empty()) {
    Result<HfShape> shape = readHfShape({settings.input, {}, config.batch.micro});
    if (!shape)
      return shape.error();
    settings.inputs = {spellInput(config.batch.micro, shape->shape.seq)};
  }
  if (std::optional<int64_t> length = spelledSequence(settings))
    return *length;
  return Error{ExitCode::Invalid, question + ": no --input has a second dimension, which is the sequence",
               "give the model's inputs as --input NAME=BATCHxLENGTHxTYPE"};
}

std::string ds::planner::spellLength(int64_t batch, int64_t length) {
  return "samples of " + std::to_string(length) + " tokens (--input " + spellInput(batch, length) + ")";
}
