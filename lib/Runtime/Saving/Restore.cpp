//===- Restore.cpp - From a checkpoint's tensors to a program's states ---------------===//

#include "Restore.h"

#include "Files/Text.h"
#include "Formats/Convert.h"
#include "Program/Stages.h"
#include "Program/StateNames.h"
#include "State/LocalState.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

namespace ds::rt {
namespace {

/// Matches a program's states with a checkpoint's tensors and collects what does not fit.
class Matcher {
public:
  Matcher(const Program &program, const Checkpoint &checkpoint)
      : program(program), checkpoint(checkpoint), origins(originsOf(program)) {
    for (const CheckpointTensor &tensor : checkpoint.manifest().tensors)
      hasMoments |= tensor.role == Role::Moment;
  }

  /// The tensor of each state of all stages, null for those that none gives a value.
  std::vector<const CheckpointTensor *> match() {
    std::vector<const CheckpointTensor *> tensors;
    for (size_t i = 0; i < program.states.size(); ++i)
      tensors.push_back(program.states[i].role == Role::Gradient ? nullptr : matchState(i));
    // A buffer that the program has no state for, as a mask, is a constant of it: told, but no other model.
    for (const CheckpointTensor &tensor : checkpoint.manifest().tensors)
      if (!used.contains(tensor.name))
        (tensor.role == Role::Parameter ? unknown : unused).push_back(tensor.name);
    std::erase_if(unknown, [&](const std::string &name) {
      return std::ranges::find(program.unusedWeights, name) != program.unusedWeights.end();
    });
    return tensors;
  }

  Status verdict() const {
    if (missing.empty() && unknown.empty() && different.empty())
      return {};
    std::string text = quote(checkpoint.directory()) + " is not a checkpoint of this program";
    if (!missing.empty())
      text += fmt::format("\n  missing ({}): {}", missing.size(), spellNames(missing));
    if (!unknown.empty())
      text += fmt::format("\n  unknown ({}): {}", unknown.size(), spellNames(unknown));
    for (size_t i = 0; i < std::min<size_t>(different.size(), 12); ++i)
      text += "\n  different: " + different[i];
    return Error{ExitCode::Invalid, text, "resume with the model and the optimizer that were saved"};
  }

  std::vector<std::string> notes() const {
    std::vector<std::string> notes;
    if (!fresh.empty())
      notes.push_back(fmt::format("start anew, for the checkpoint has none: {}", spellNames(fresh)));
    if (!unused.empty())
      notes.push_back(fmt::format("in the checkpoint, but not used: {}", spellNames(unused)));
    return notes;
  }

private:
  const CheckpointTensor *matchState(size_t number) {
    const State &state = program.states[number], &origin = *origins[number];
    const CheckpointTensor *tensor = checkpoint.find(origin.name);
    for (size_t i = 0; !tensor && i < origin.aliases.size(); ++i)
      tensor = checkpoint.find(origin.aliases[i]);
    for (size_t i = 0; !tensor && i < origin.readNames.size(); ++i)
      tensor = checkpoint.find(origin.readNames[i]);
    if (!tensor) {
      noteMissing(state);
      return nullptr;
    }
    used.insert(tensor->name);
    return fits(state, *tensor) ? tensor : nullptr;
  }

  /// A checkpoint of weights alone, as of imported ones, has no moments: then they start from zero. Counters
  /// that only one of two precisions has start as in a new run.
  void noteMissing(const State &state) {
    const bool starts = state.role == Role::Scalar ||
                        (state.role == Role::Moment && !hasMoments && checkpoint.manifest().step == 0);
    std::vector<std::string> &names = starts ? fresh : missing;
    if (state.role != Role::Master && std::ranges::find(names, state.name) == names.end()) // copies: once
      names.push_back(state.name);
  }

  bool fits(const State &state, const CheckpointTensor &tensor) {
    const DType own = program.buffers[state.buffer].dtype;
    if (!std::ranges::equal(tensor.shape, state.logicalShape))
      different.push_back(fmt::format("{} is {}, expected {}", quote(tensor.name), spellShape(tensor.shape),
                                      spellShape(state.logicalShape)));
    else if (!isConvertible(tensor.dtype, own))
      different.push_back(
          fmt::format("{} is {}, expected {}", quote(tensor.name), spell(tensor.dtype), spell(own)));
    else
      return true;
    return false;
  }

  const Program &program;
  const Checkpoint &checkpoint;
  const std::vector<const State *> origins;
  bool hasMoments = false;
  std::unordered_set<std::string> used;
  std::vector<std::string> missing, unknown, different, fresh, unused;
};

} // namespace

/// What a rank is told whose bytes, by tensor, are on other nodes.
static Error missingParts(const Checkpoint &checkpoint, const std::map<std::string, uint64_t> &elsewhere) {
  uint64_t bytes = 0;
  std::vector<std::string> names;
  for (const auto &[name, missing] : elsewhere) {
    bytes += missing;
    names.push_back(name);
  }
  return checkpoint.elsewhere(
      fmt::format("{} bytes that this rank needs of {} are", bytes, spellNames(names)));
}

Result<RestorePlan> planRestore(const Program &program, uint32_t rank, const Checkpoint &checkpoint) {
  Matcher matcher(program, checkpoint);
  const std::vector<const CheckpointTensor *> tensors = matcher.match();
  if (Status status = matcher.verdict(); !status)
    return status.error();
  RestorePlan plan;
  plan.notes = matcher.notes();
  std::map<std::string, uint64_t> elsewhere;
  const uint32_t stage = stageWithin(program, rank);
  uint32_t number = 0; // of the state among those of the stage
  for (uint32_t i = 0; i < program.states.size(); ++i) {
    const State &state = program.states[i];
    const uint32_t own = state.stage == stage ? number++ : number;
    if (!tensors[i] || state.stage != stage)
      continue;
    ElementRuns runs(program.mesh, state.layout, state.logicalShape, rank);
    while (const std::optional<ElementRun> run = runs.next()) {
      const uint64_t missing =
          checkpoint.want(*tensors[i], run->first, run->count, [&](WantedBytes wanted, uint64_t element) {
            wanted.tag = plan.destinations.size();
            plan.wanted.push_back(wanted);
            plan.destinations.push_back({own, run->at + (element - run->first), tensors[i]->dtype});
            plan.bytes += wanted.bytes;
          });
      elsewhere[tensors[i]->name] += missing * bitSize(tensors[i]->dtype) / 8;
    }
  }
  std::erase_if(elsewhere, [](const auto &each) { return each.second == 0; });
  return elsewhere.empty() ? Result<RestorePlan>(std::move(plan)) : missingParts(checkpoint, elsewhere);
}

Status restoreStates(Executor &executor, const Checkpoint &checkpoint, const RestorePlan &plan) {
  const Program &program = executor.program();
  StateWriter writer(executor);
  std::vector<LocalState> locals;
  for (const State &state : program.states) {
    if (Status status = clearPadding(executor, writer, state);
        !status) // a step that is taken back may have lost it
      return status;
    locals.emplace_back(executor, state);
  }
  const Status read = checkpoint.read(
      plan.wanted, [&](const WantedBytes &wanted, uint64_t from, std::span<const std::byte> part) -> Status {
        const Destination &to = plan.destinations[wanted.tag];
        const LocalState &local = locals[to.state];
        const uint64_t size = bitSize(to.from) / 8;
        return writer.write(
            local.address(to.at + from / size), part.size() / size, local.elementBytes(),
            [&](uint64_t first, uint64_t count, std::byte *host) -> Status {
              BadElement bad;
              if (convertElements(to.from, part.data() + first * size, local.dtype, host, count, {}, bad))
                return {};
              return Error{ExitCode::Invalid,
                           fmt::format("'{}': value {} is outside {}", program.states[to.state].name,
                                       bad.value, bad.limit),
                           "train in bf16 or f32, which hold it"};
            });
      });
  return read ? writer.finish() : read;
}

} // namespace ds::rt
