//===- SameOptimizer.cpp - Whether a checkpoint is of a program's optimizer ---------===//

#include "SameOptimizer.h"

#include "Files/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace ds::rt {
namespace {

/// An optimizer as far as checkpoints know it.
struct Kept {
  std::string name;              ///< empty: not known
  std::set<std::string> moments; ///< of a parameter: "exp_avg", ...
  std::string spell() const {
    return (name.empty() ? "an optimizer" : quote(name)) +
           (moments.empty() ? "" : " with " + spellNames(std::vector(moments.begin(), moments.end())));
  }
};

Kept keptBy(const Program &program) {
  Kept kept{optimizerOf(program.configText), {}};
  for (const State &state : program.states)
    if (state.role == Role::Moment)
      kept.moments.insert(state.slot);
  return kept;
}

/// A checkpoint names a moment by its parameter and its slot: "h.0.w.exp_avg".
Kept keptIn(const Manifest &manifest) {
  Kept kept{manifest.optimizer, {}};
  for (const CheckpointTensor &tensor : manifest.tensors)
    if (tensor.role == Role::Moment && tensor.name.starts_with(tensor.owner + "."))
      kept.moments.insert(tensor.name.substr(tensor.owner.size() + 1));
  return kept;
}

/// The name that optimizers have in common which go on with each other's moments. DeepSpeed's Adam is AdamW
/// unless it is told otherwise.
std::string familyOf(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return name == "adamw" ? "adam" : name;
}

} // namespace

Status checkSameOptimizer(const Program &program, const Manifest &manifest, const std::string &directory) {
  const Kept saved = keptIn(manifest), own = keptBy(program);
  const bool isOther = !saved.name.empty() && !own.name.empty() && familyOf(saved.name) != familyOf(own.name);
  if (!isOther && std::ranges::includes(own.moments, saved.moments))
    return {};
  return Error{ExitCode::Invalid,
               fmt::format("{} was trained by {}, but the program trains by {}", quote(directory),
                           saved.spell(), own.spell()),
               "resume with the optimizer that was saved, or begin anew with its weights: ds-ckpt export and "
               "ds-run --weights"};
}

} // namespace ds::rt
