//===- CudnnPlan.cpp - Finds an engine of cuDNN for a graph ----------------------------===//
#include "CudnnPlan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace ds::rt::cuda {
namespace {

constexpr int kMaxKnobs = CUDNN_KNOB_TYPE_COUNTS;

/// `count` descriptors of a type, for the library to fill.
struct Descriptors {
  std::vector<Descriptor> owned;
  std::vector<cudnnBackendDescriptor_t> raw;

  Descriptors(const Cudnn &cudnn, cudnnBackendDescriptorType_t type, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
      raw.push_back(owned.emplace_back(cudnn, type).get());
  }
};

/// The engine of a configuration.
Descriptor engineOf(const Cudnn &cudnn, const Descriptor &configuration) {
  Descriptor engine(cudnn, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t raw = engine.get();
  configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  return engine;
}

Error tooLarge(uint64_t needed, uint64_t planned) {
  return {ExitCode::Device,
          fmt::format("cuDNN's engine needs {} bytes of workspace, but {} are planned", needed, planned), ""};
}

/// Whether the library notes something of an engine that is not wanted.
bool isUnwanted(const Cudnn &cudnn, const Descriptor &configuration, NumericalNotes unwanted) {
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
  const int64_t count =
      engineOf(cudnn, configuration)
          .get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, std::size(notes), notes);
  return std::any_of(notes, notes + count,
                     [&](cudnnBackendNumericalNote_t note) { return (noteOf(note) & unwanted) != 0; });
}

/// The engine of a configuration and its settings, as CudnnPlan::choice has them.
AlgorithmCache::Value choiceOf(const Cudnn &cudnn, const Descriptor &configuration) {
  int64_t number = 0;
  engineOf(cudnn, configuration).get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &number);
  AlgorithmCache::Value words = {static_cast<uint64_t>(number)};
  Descriptors knobs(cudnn, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, kMaxKnobs);
  const int64_t count = configuration.get(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                          kMaxKnobs, knobs.raw.data());
  for (int64_t i = 0; i < count; ++i) {
    const Descriptor &knob = knobs.owned[static_cast<size_t>(i)];
    cudnnBackendKnobType_t type{};
    int64_t value = 0;
    knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
    words.push_back(static_cast<uint64_t>(type));
    words.push_back(static_cast<uint64_t>(value));
  }
  return words;
}

/// What the library proposes, best first: what it expects to be fast, then what works anyway.
std::vector<Descriptor> propose(const Cudnn &cudnn, const CudnnGraph &graph, const Descriptor &device) {
  std::vector<Descriptor> all;
  for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    Descriptor heuristics(cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.operations())
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode)
        .set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device.get());
    if (!heuristics.finalize("asking for engines"))
      continue;
    const int64_t count =
        heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
    Descriptors found(cudnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count);
    const int64_t filled =
        heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, found.raw.data());
    for (int64_t i = 0; i < std::min(count, filled); ++i)
      all.push_back(std::move(found.owned[static_cast<size_t>(i)]));
  }
  return all;
}

} // namespace

Result<CudnnPlan> CudnnPlan::compile(const Cudnn &cudnn, Descriptor configuration, const Descriptor &device,
                                     uint64_t workspaceBytes) {
  CudnnPlan result;
  result.cudnn = &cudnn;
  result.configuration = std::move(configuration);
  result.plan = Descriptor(cudnn, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  result.plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, result.configuration.get())
      .set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, device.get());
  if (Status status = result.plan.finalize("compiling an engine"); !status)
    return status.error();
  int64_t bytes = 0;
  result.plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
  result.workspace = static_cast<uint64_t>(bytes);
  return result.workspace > workspaceBytes ? tooLarge(result.workspace, workspaceBytes)
                                           : Result<CudnnPlan>(std::move(result));
}

Result<std::vector<CudnnPlan>> CudnnPlan::candidates(const Cudnn &cudnn, const CudnnGraph &graph,
                                                     const Descriptor &device, uint64_t workspaceBytes,
                                                     NumericalNotes unwanted, size_t most) {
  return CudnnCandidates(cudnn, graph, device, workspaceBytes, unwanted, most).take();
}

CudnnCandidates::CudnnCandidates(const Cudnn &cudnn, const CudnnGraph &graph, const Descriptor &device,
                                 uint64_t workspaceBytes, NumericalNotes unwanted, size_t most)
    : cudnn(cudnn), device(device), workspaceBytes(workspaceBytes), most(most) {
  std::set<AlgorithmCache::Value> seen;
  for (Descriptor &configuration : propose(cudnn, graph, device)) {
    // Proposals that turn out not to be supported have no size.
    int64_t bytes = 0;
    const bool supported =
        configuration.get(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes) != 0;
    if (!supported || isUnwanted(cudnn, configuration, unwanted))
      continue;
    // The second mode proposes again what the first one has.
    if (seen.insert(choiceOf(cudnn, configuration)).second)
      proposals.push_back({std::move(configuration), static_cast<uint64_t>(bytes)});
  }
}

/// Compiling takes time: what is known to be too large is not compiled.
void CudnnCandidates::compile(Proposal &proposal) const {
  proposal.plan = proposal.bytes > workspaceBytes
                      ? tooLarge(proposal.bytes, workspaceBytes)
                      : CudnnPlan::compile(cudnn, std::move(proposal.configuration), device, workspaceBytes);
}

std::vector<std::function<void()>> CudnnCandidates::jobs() {
  std::vector<std::function<void()>> jobs;
  for (Proposal &proposal : proposals)
    if (jobs.size() < most && proposal.bytes <= workspaceBytes)
      jobs.emplace_back([this, &proposal] { compile(proposal); });
  return jobs;
}

Result<std::vector<CudnnPlan>> CudnnCandidates::take() {
  std::optional<Error> first;
  std::vector<CudnnPlan> found;
  for (Proposal &proposal : proposals) {
    if (found.size() == most)
      break;
    if (!proposal.plan)
      compile(proposal);
    Result<CudnnPlan> &plan = *proposal.plan;
    if (!plan && !first)
      first = plan.error();
    if (plan)
      found.push_back(std::move(*plan));
  }
  if (found.empty())
    return first.value_or(Error{ExitCode::Device, "cuDNN has no engine for it", ""});
  return found;
}

AlgorithmCache::Value CudnnPlan::choice() const { return choiceOf(*cudnn, configuration); }

Result<CudnnPlan> CudnnPlan::recall(const Cudnn &cudnn, const CudnnGraph &graph, const Descriptor &device,
                                    const AlgorithmCache::Value &kept, uint64_t workspaceBytes) {
  if (kept.size() % 2 == 0)
    return Error{ExitCode::Device, "a choice of cuDNN's engine that cannot be read", ""};
  Descriptor engine(cudnn, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  engine.set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph.operations())
      .set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, static_cast<int64_t>(kept[0]))
      .set(CUDNN_ATTR_ENGINE_DEVICEPROP, device.get());
  if (Status status = engine.finalize("finding an engine again"); !status)
    return status.error();
  Descriptors knobs(cudnn, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, static_cast<int64_t>(kept.size() / 2));
  for (size_t i = 0; i < knobs.owned.size(); ++i) {
    const auto type = static_cast<cudnnBackendKnobType_t>(kept[2 * i + 1]);
    knobs.owned[i].set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    knobs.owned[i].set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, static_cast<int64_t>(kept[2 * i + 2]));
    if (Status status = knobs.owned[i].finalize("setting an engine"); !status)
      return status.error();
  }
  Descriptor configuration(cudnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
  configuration.set(CUDNN_ATTR_ENGINECFG_ENGINE, engine.get());
  if (!knobs.raw.empty())
    configuration.set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                      static_cast<int64_t>(knobs.raw.size()), knobs.raw.data());
  if (Status status = configuration.finalize("setting an engine"); !status)
    return status.error();
  return compile(cudnn, std::move(configuration), device, workspaceBytes);
}

} // namespace ds::rt::cuda
