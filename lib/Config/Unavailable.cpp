//===- Unavailable.cpp - Going on without what changes no number ---------------------------===//
//
// Published configurations ask for offload and recomputation, that a model fits a certain machine. Where
// programs do not have one of these, training without it gives the same numbers, in more memory or less time:
// whether it fits is the plan's to say. Nothing else may be left out: a configuration must not train
// something that it does not describe.
//
//===---------------------------------------------------------------------------===//
#include "Keys.h"
#include "Resolve.h"
#include "Value.h"
#include "ds/Config/Config.h"

namespace ds::config {

/// Keys, as matchesAny() takes them, that say where values live, when they are made, how they move, and who
/// saves them.
static constexpr std::string_view kNeutral[] = {"zero_optimization.offload_param.",
                                                "zero_optimization.offload_optimizer.",
                                                "activation_checkpointing.",
                                                "pipeline.activation_checkpoint_interval",
                                                "compile.offload_",
                                                "aio.",
                                                "checkpoint.",
                                                "nebula.enabled",
                                                "datastates_ckpt",
                                                "hybrid_engine.enabled",
                                                "autotuning.enabled"};

Result<Config> readIgnoringUnavailable(ConfigSource source) {
  Result<Config> asked = readConfig(source);
  if (!asked)
    return asked;
  std::vector<Notice> ignored;
  for (const Refusal &refusal : refusedForProgram(*asked)) {
    const Key *key = matchesAny(refusal.key, kNeutral) ? findKey(refusal.key) : nullptr;
    if (!key)
      continue;
    source.sets.push_back(refusal.key + "=" + toJson(defaultValue(*key)));
    ignored.push_back({"IGNORED: " + asked->find(refusal.key)->from + ": \"" + refusal.key +
                           "\" = " + refusal.value + " changes no number, and is left out: " + refusal.reason,
                       /*isCostly=*/true});
  }
  if (ignored.empty())
    return asked;
  Result<Config> without = readConfig(source);
  if (without)
    without->notices.insert(without->notices.begin(), ignored.begin(), ignored.end());
  return without;
}

} // namespace ds::config
