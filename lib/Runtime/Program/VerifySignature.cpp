//===- VerifySignature.cpp - States, inputs and outputs of a program -----------===//
//
// What the host and weights files know of a program, by name. A name is one stage's; what several stages call
// by one name is one thing.
//
//===---------------------------------------------------------------------------===//
#include "Shape.h"
#include "Verify.h"
#include "ds/Runtime/Program/Messages.h"

#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

namespace ds::rt {
namespace {

/// The names of a list's entries, each of one stage.
class Names {
public:
  Names(const Program &program, const char *list) : program(program), list(list) {}

  /// Adds `name` of entry `index`, which is new on `stage`. `owner` is the entry's own name: what is
  /// another's name on one stage is so on all, for they share the weights file.
  Status add(uint32_t stage, size_t index, const std::string &name, const std::string &owner) {
    if (stage >= program.stages.size())
      return refuse("{}[{}] '{}' belongs to stage {} of {}", list, index, owner, stage,
                    program.stages.size());
    if (name.empty() || name.size() > 4096)
      return refuse("{}[{}] has a name of {} bytes, allowed are 1 to 4096", list, index, name.size());
    if (!seen.emplace(stage, name).second)
      return refuse("{}[{}] has the name '{}' of an earlier entry", list, index, name);
    const auto [first, isNew] = owners.emplace(name, owner);
    if (first->second != owner)
      return refuse("{}[{}] '{}' has the name '{}' of '{}' on another stage", list, index, owner, name,
                    first->second);
    return {};
  }

private:
  const Program &program;
  const char *list;
  std::set<std::pair<uint32_t, std::string>> seen;
  std::unordered_map<std::string, std::string> owners;
};

/// The layout fits the state's shape, and the buffer what the layout leaves of it on a rank.
Status verifyLayout(const Program &p, size_t i) {
  const State &state = p.states[i];
  const Buffer &buffer = p.buffers[state.buffer];
  const Layout &layout = state.layout;
  if (const std::string mistake = findMistake(p.mesh, layout, state.logicalShape); !mistake.empty())
    return refuse("states[{}] '{}' {}", i, state.name, mistake);
  if (const AxisSet stages = layout.axes() & p.stageAxes; !stages.isEmpty())
    return refuse("states[{}] '{}' is cut along {}, but a state is one stage's", i, state.name,
                  p.mesh.spell(stages));
  const uint64_t elements = localElements(p.mesh, layout, state.logicalShape);
  if (!layout.isBucketed() && elements != static_cast<uint64_t>(numElements(buffer)))
    return refuse("states[{}] '{}' has {} elements on each rank, but its buffer holds {}", i, state.name,
                  elements, numElements(buffer));
  if (layout.isBucketed() &&
      (buffer.shape.size() != 1 || static_cast<uint64_t>(buffer.shape[0]) != layout.shardElements))
    return refuse("states[{}] '{}' has shards of {} elements, but its buffer is [{}]", i, state.name,
                  layout.shardElements, fmt::join(buffer.shape, "x"));
  return {};
}

/// Whether the state can be what its initialisation says: sinusoids are a matrix of sines and as many
/// cosines.
bool isMeaningful(const State &state) {
  if (state.init.kind != Init::Kind::Sinusoid)
    return true;
  const std::vector<int64_t> &shape = state.logicalShape;
  return shape.size() == 2 && shape[1] >= 4 && shape[1] % 2 == 0 && std::isfinite(state.init.a) &&
         state.init.a > 0;
}

Status verifyState(const Program &p, size_t i, Names &names) {
  const State &state = p.states[i];
  if (Status status = names.add(state.stage, i, state.name, state.name); !status)
    return status;
  for (const auto *others : {&state.readNames, &state.aliases})
    for (const std::string &name : *others)
      if (Status status = names.add(state.stage, i, name, state.name); !status)
        return status;
  if (state.buffer >= p.buffers.size())
    return refuse("states[{}] '{}' names buffer {} of {}", i, state.name, state.buffer, p.buffers.size());
  if (!isKnown(state.role, Role::Scalar) || !isKnown(state.init.kind, Init::Kind::Sinusoid))
    return refuse("states[{}] '{}' has role {} and initialisation {}, the last known are {} and {}", i,
                  state.name, int(state.role), int(state.init.kind), int(Role::Scalar),
                  int(Init::Kind::Sinusoid));
  const Buffer &buffer = p.buffers[state.buffer];
  if (!isContiguous(buffer) || !buffer.axisStrides.empty() || buffer.slots != 1)
    return refuse("states[{}] '{}' is not packed in row-major order, or lies elsewhere on every rank or for "
                  "every micro-batch",
                  i, state.name);
  int64_t elements = 1;
  for (int64_t size : state.logicalShape)
    if (size < 0 || __builtin_mul_overflow(elements, size, &elements))
      return refuse("states[{}] '{}' has a logical size of {}, or its product overflows", i, state.name,
                    size);
  if (!isMeaningful(state))
    return refuse("states[{}] '{}' of [{}] cannot start from sinusoids with {}", i, state.name,
                  fmt::join(state.logicalShape, "x"), state.init.a);
  return verifyLayout(p, i);
}

int64_t logicalElements(const State &state) { return static_cast<int64_t>(elementsOf(state.logicalShape)); }

/// A master belongs to a parameter of its stage and has its elements: it takes the parameter's name and
/// initialisation.
Status verifyMasters(const Program &p) {
  std::map<std::pair<uint32_t, std::string_view>, const State *> byName;
  for (const State &state : p.states)
    byName.emplace(std::pair(state.stage, std::string_view(state.name)), &state);
  for (size_t i = 0; i < p.states.size(); ++i) {
    const State &state = p.states[i];
    if (state.role != Role::Master)
      continue;
    const auto owner = byName.find({state.stage, state.owner});
    if (owner == byName.end() || owner->second->role == Role::Master)
      return refuse("states[{}] '{}' is the master of '{}', which is no parameter", i, state.name,
                    state.owner);
    if (logicalElements(*owner->second) != logicalElements(state))
      return refuse("states[{}] '{}' has {} elements, but is the master of '{}' with {}", i, state.name,
                    logicalElements(state), state.owner, logicalElements(*owner->second));
  }
  return {};
}

/// Whether states of `role` belong to a parameter, which has one such state per slot.
bool hasSlot(Role role) { return role == Role::Gradient || role == Role::Moment || role == Role::Master; }

/// Gradients, moments and masters say what they are of their owner, and no two of an owner are the same.
Status verifySlots(const Program &p) {
  std::map<std::tuple<uint32_t, std::string_view, std::string_view>, size_t> firsts;
  for (size_t i = 0; i < p.states.size(); ++i) {
    const State &state = p.states[i];
    if (hasSlot(state.role) == state.slot.empty())
      return refuse("states[{}] '{}' is a {} {} a slot", i, state.name, spell(state.role),
                    state.slot.empty() ? "without" : "with");
    if (state.slot.empty() || state.owner.empty())
      continue;
    const auto [first, isNew] = firsts.try_emplace({state.stage, state.owner, state.slot}, i);
    if (!isNew)
      return refuse("states[{}] '{}' has the slot '{}' of '{}', which states[{}] has", i, state.name,
                    state.slot, state.owner, first->second);
  }
  return {};
}

/// Bit patterns, so that a NaN is its own copy.
bool startAlike(const Init &a, const Init &b) {
  return a.kind == b.kind && std::bit_cast<uint64_t>(a.a) == std::bit_cast<uint64_t>(b.a) &&
         std::bit_cast<uint64_t>(a.b) == std::bit_cast<uint64_t>(b.b);
}

/// States of one name are copies of one value: they start alike, and weights files hold either.
Status verifyCopies(const Program &p) {
  std::unordered_map<std::string_view, size_t> firsts;
  for (size_t i = 0; i < p.states.size(); ++i) {
    const State &b = p.states[i];
    const size_t first = firsts.emplace(b.name, i).first->second;
    const State &a = p.states[first];
    if (a.role != b.role || a.owner != b.owner || a.slot != b.slot || a.logicalShape != b.logicalShape ||
        p.buffers[a.buffer].dtype != p.buffers[b.buffer].dtype || a.trainable != b.trainable ||
        !startAlike(a.init, b.init))
      return refuse(
          "states[{}] '{}' on stage {} is no copy of states[{}] on stage {}: they differ in role, owner, "
          "slot, shape, type or initialisation",
          i, b.name, b.stage, first, a.stage);
  }
  return {};
}

/// Targets that are no elements of a sample, or not in order; empty where all are.
std::string findTargetMistake(const Input &input, const Buffer &buffer) {
  const int64_t samples = buffer.shape.empty() ? 1 : buffer.shape[0];
  const uint64_t elements = samples == 0 ? 0 : static_cast<uint64_t>(numElements(buffer) / samples);
  uint64_t from = 0;
  for (const IndexRange &run : input.targets) {
    if (run.first < from || run.first >= elements || run.count == 0 || run.count > elements - run.first)
      return fmt::format("has {} targets from element {} on, where elements {} to {} of a sample may be",
                         run.count, run.first, from, elements);
    from = run.first + run.count + 1;
  }
  return {};
}

/// Inputs of one name are one input.
Status verifySameInputs(const Program &p) {
  std::unordered_map<std::string_view, size_t> firsts;
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    const Input &b = p.inputs[i];
    const size_t first = firsts.emplace(b.name, i).first->second;
    const Input &a = p.inputs[first];
    if (p.buffers[a.buffer].shape != p.buffers[b.buffer].shape ||
        p.buffers[a.buffer].dtype != p.buffers[b.buffer].dtype || a.indexLimit != b.indexLimit ||
        a.hasIgnoreIndex != b.hasIgnoreIndex || a.ignoreIndex != b.ignoreIndex || a.targets != b.targets)
      return refuse("inputs[{}] '{}' on stage {} is not inputs[{}] on stage {}: they differ in shape, type, "
                    "index limit, ignore index or targets",
                    i, b.name, b.stage, first, a.stage);
  }
  return {};
}

/// An output is one stage's, or all give the same; whether a step is skipped all stages say.
Status verifyGivers(const Program &p) {
  std::map<std::string_view, std::vector<uint32_t>> stages;
  for (const Output &output : p.outputs)
    stages[output.name].push_back(output.stage);
  for (const auto &[name, given] : stages) {
    const bool isForAll = name == "skipped";
    if (given.size() != p.stages.size() && (given.size() != 1 || isForAll))
      return refuse("the output '{}' is given by stages {} of {}, expected {}", name, fmt::join(given, ", "),
                    p.stages.size(), isForAll ? "all" : "one or all");
  }
  return {};
}

} // namespace

Status verifySignature(const Program &p) {
  Names states(p, "states"), inputs(p, "inputs"), outputs(p, "outputs");
  for (size_t i = 0; i < p.states.size(); ++i)
    if (Status status = verifyState(p, i, states); !status)
      return status;
  for (auto check : {verifyMasters, verifySlots, verifyCopies})
    if (Status status = check(p); !status)
      return status;
  for (size_t i = 0; i < p.inputs.size(); ++i) {
    const Input &input = p.inputs[i];
    if (Status status = inputs.add(input.stage, i, input.name, input.name); !status)
      return status;
    if (input.buffer >= p.buffers.size() || !isContiguous(p.buffers[input.buffer]) ||
        !p.buffers[input.buffer].axisStrides.empty())
      return refuse("inputs[{}] '{}' names buffer {} of {}, or one that is not packed or lies elsewhere on "
                    "every rank",
                    i, input.name, input.buffer, p.buffers.size());
    if (p.buffers[input.buffer].space == Space::Nvme)
      return refuse("inputs[{}] '{}' lies in storage, where no host can put it", i, input.name);
    const DType dtype = p.buffers[input.buffer].dtype;
    if (const std::string mistake = findTargetMistake(input, p.buffers[input.buffer]); !mistake.empty())
      return refuse("inputs[{}] '{}' {}", i, input.name, mistake);
    if (input.indexLimit < 0 || (input.indexLimit > 0 && dtype != DType::I64 && dtype != DType::I32))
      return refuse("inputs[{}] '{}' has index limit {} with dtype {}", i, input.name, input.indexLimit,
                    spell(dtype));
  }
  for (size_t i = 0; i < p.outputs.size(); ++i) {
    const Output &output = p.outputs[i];
    if (Status status = outputs.add(output.stage, i, output.name, output.name); !status)
      return status;
    if (output.buffer >= p.buffers.size() || numElements(p.buffers[output.buffer]) != 1 ||
        !p.buffers[output.buffer].axisStrides.empty() || p.buffers[output.buffer].slots != 1)
      return refuse(
          "outputs[{}] '{}' names buffer {} of {}, or one that has not one element or lies elsewhere "
          "on every rank or for every micro-batch",
          i, output.name, output.buffer, p.buffers.size());
  }
  const Status same = verifySameInputs(p);
  return same ? verifyGivers(p) : same;
}

} // namespace ds::rt
