//===- CheckAdapter.cpp - Whether a folder of PEFT has a program's adapters ---------===//
#include "ds/Runtime/State/Weights.h"

#include "ds/Support/Adapters.h"

#include <fmt/format.h>

namespace ds::rt {

/// How the adapter of `layer` differs from what the program was made for; empty: not at all.
static std::string differenceOf(const AdapterRequest &own, const AdapterRequest &given,
                                std::string_view layer) {
  const std::optional<AdapterSize> ours = own.find(layer), theirs = given.find(layer);
  if (!ours || !theirs)
    return theirs ? "" : fmt::format("target_modules name no layer {}", layer);
  if (ours->rank != theirs->rank)
    return fmt::format("{} has rank {}, but {} in the program", layer, theirs->rank, ours->rank);
  if (own.scaleOf(*ours) != given.scaleOf(*theirs))
    return fmt::format("{} has scale {:g} (lora_alpha {:g}, use_rslora {}), but {:g} in the program", layer,
                       given.scaleOf(*theirs), theirs->alpha, given.isRankStabilized, own.scaleOf(*ours));
  return "";
}

Status checkAdapter(const Program &program, const std::string &folder) {
  const std::string description = adapterConfigOf(program.modelConfig);
  if (description.empty())
    return Error{ExitCode::Invalid, fmt::format("--adapter {}: the program has no adapters", folder),
                 fmt::format("compile the model with ds-opt --lora {}", folder)};
  const Result<AdapterRequest> own = parseAdapterConfig(description, "the program's peft_config");
  if (!own)
    return own.error();
  const Result<AdapterRequest> given = readAdapterFolder(folder);
  if (!given)
    return given.error();
  for (const State &state : program.states) {
    const std::string_view layer = state.trainable ? layerOfAdapter(state.name) : std::string_view();
    if (layer.empty())
      continue;
    if (const std::string difference = differenceOf(*own, *given, layer); !difference.empty())
      return Error{ExitCode::Invalid, fmt::format("{}: {}", given->origin, difference),
                   fmt::format("compile the model with ds-opt --lora {}", folder)};
  }
  return {};
}

} // namespace ds::rt
