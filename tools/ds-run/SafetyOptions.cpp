//===- SafetyOptions.cpp - What a run does when its numbers go wrong ---------------===//
#include "SafetyOptions.h"

#include "Options.h"

using ds::rt::LossAction;

namespace {

/// An option whose value is one of the actions. `skip` is known for both, so that its refusal can say why.
CLI::Option *addAction(CLI::App &app, const std::string &name, const std::string &help, LossAction &action) {
  const std::map<std::string, LossAction> words = {
      {"stop", LossAction::Stop}, {"skip", LossAction::Skip}, {"rollback", LossAction::Rollback}};
  return app
      .add_option_function<std::string>(
          name, [words, &action](const std::string &word) { action = words.at(word); }, help)
      ->check(CLI::IsMember(words))
      ->type_name("ACTION");
}

} // namespace

void declareSafety(CLI::App &app, ds::rt::TrainOptions &options) {
  ds::rt::LossRules &loss = options.loss;
  addAction(app, "--on-nan", "of a loss that is no number: stop (default), skip or rollback", loss.onNan);
  CLI::Option *factor =
      addReal(app, "--spike-factor", "a loss is a spike from this many times the median of the last ones on",
              1.0 + 1e-6, 1e9, [&](double number) { loss.spikeFactor = number; });
  addWhole(app, "--spike-window", "the last ones: how many steps (default: 100)", 1, 1000000,
           [&](uint64_t steps) { loss.spikeWindow = static_cast<uint32_t>(steps); })
      ->needs(factor);
  addWhole(app, "--check-replicas", "steps between comparisons of what several ranks hold (default: none)", 1,
           UINT64_MAX, [&](uint64_t steps) { options.checkReplicas = steps; });
  app.add_option("--diagnostics", options.diagnostics,
                 "directory for what is known of numbers that end a run (default: that of --save)")
      ->type_name("DIR");
  addAction(app, "--on-spike", "stop (default), skip or rollback", loss.onSpike)->needs(factor);
}
