//===- DecisionNotes.cpp - What was decided, in sentences ---------------------------===//
//
// The IR has decisions as figures (Decisions.h). Readers of a plan get a sentence for each.
//
//===----------------------------------------------------------------------------===//
#include "PlanNotes.h"

#include "ds/Dialect/Decisions.h"
#include "ds/Passes/StateNames.h"
#include "ds/Support/Format.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::ds;
namespace report = ::ds::report;

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// "60 us and 3 GB/s".
static std::string spellRate(const OpenChoice &choice) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g us and %.3g GB/s", choice.latencySeconds * 1e6,
                                                 choice.bytesPerSecond * 1e-9);
  return text;
}

static std::string spellBucket(StringRef key, const OpenChoice &choice) {
  std::string text;
  llvm::raw_string_ostream(text) << key << ": " << choice.elements << " elements, of which a"
                                 << (choice.collective == CollectiveKind::ReduceScatter ? " " : "n ")
                                 << stringifyCollectiveKind(choice.collective) << " reaches "
                                 << llvm::format("%.0f %%", choice.share * 100)
                                 << " of the link's bandwidth (" << spellRate(choice) << ")";
  return text;
}

/// "on the host".
static StringRef placeOf(Space space) { return space == Space::Nvme ? "on NVMe" : "on the host"; }

static std::string spellNarrower(StringRef what) {
  return ("of what forward may keep, recompute or have on the host, a narrower choice is the fastest: " +
          what)
      .str();
}

/// Choices of sizes; none where `choice` is another.
static std::optional<std::string> spellSize(const OpenChoice &choice) {
  switch (choice.kind) {
  case ChoiceOf::ReduceBucket:
    return spellBucket("reduce_bucket_size", choice);
  case ChoiceOf::GatherBucket:
    return spellBucket("allgather_bucket_size", choice);
  case ChoiceOf::SubGroup:
    return "sub_group_size: as the other bounds of a bucket, for nothing is updated piece by piece";
  case ChoiceOf::ParameterThreshold:
    return "stage3_param_persistence_threshold: " + std::to_string(choice.elements) +
           " elements, whose gather alone spends more time waiting than sending (" + spellRate(choice) + ")";
  case ChoiceOf::ModelThreshold:
    return "stage3_model_persistence_threshold: " + std::to_string(choice.elements) + " elements" +
           (choice.part == 0 ? "" : ", one part in " + std::to_string(choice.part));
  default:
    return std::nullopt;
  }
}

static std::string spell(const OpenChoice &choice) {
  if (std::optional<std::string> size = spellSize(choice))
    return *size;
  const std::string bytes = ::ds::formatBytes(choice.bytes),
                    exact = ::ds::formatExact(choice.bytes) + " bytes",
                    elements = std::to_string(choice.elements);
  switch (choice.kind) {
  case ChoiceOf::ReduceEachMicroStep:
    return "gradients are reduced in each micro-step; a rank keeps its part of them (" + bytes + ", " +
           exact + ")";
  case ChoiceOf::ReduceOncePerStep:
    return "gradients are reduced once per step; until then a rank keeps all of them (" + bytes + ", " +
           exact + ")";
  case ChoiceOf::OptimizerPlace:
    return "optimizer states of " + elements + " of " + std::to_string(choice.ofElements) +
           " elements of a rank are kept " + placeOf(choice.space).str();
  case ChoiceOf::ParameterPlace:
    return "parameters of " + elements + " elements of a rank are kept " + placeOf(choice.space).str();
  case ChoiceOf::OnceTooLarge:
    return "reducing gradients once per step would take " + bytes + " (" + exact + "), the limit is " +
           ::ds::formatBytes(choice.limitBytes);
  case ChoiceOf::OnceSlower:
    return llvm::formatv("reducing gradients once per step would fit, and make the step {0:F1} % longer: "
                         "it leaves less room for what saves time",
                         choice.percent);
  case ChoiceOf::NothingOnHost:
    return spellNarrower("nothing on the host");
  case ChoiceOf::NoProductsRecomputed:
    return spellNarrower("no products recomputed");
  default:
    llvm_unreachable("all choices are spelt");
  }
}

void mlir::ds::describeChoices(ModuleOp module, report::PlanReport &report) {
  for (const OpenChoice &choice : getDecisions(module).choices)
    report.notes.push_back(spell(choice));
}

//===----------------------------------------------------------------------===//
// Shared layers
//===----------------------------------------------------------------------===//

static std::string spell(SharedFor reason, int64_t ranks) {
  switch (reason) {
  case SharedFor::Parts:
    return "divides what the optimizer keeps, too";
  case SharedFor::Asked:
    return "the configuration names it";
  case SharedFor::Indivisible:
    return "it has no " + std::to_string(ranks) + " equal parts for its readers";
  case SharedFor::Cost:
    return "exchanges would cost more than parts save";
  }
  llvm_unreachable("all reasons are spelt");
}

void mlir::ds::describeSharedLayers(ModuleOp module, report::PlanReport &report) {
  const std::optional<SharedLayers> shared = getDecisions(module).shared;
  if (!shared)
    return;
  report::SharedLayers &to = report.sharedLayers.emplace();
  to.ranks = shared->ranks;
  for (const SharedStates &each : shared->parameters)
    to.parameters.push_back({each.names, each.count, each.bytes, each.dim, each.outer, each.ratio,
                             spell(each.reason, shared->ranks)});
  for (const SharedWork &each : shared->whole)
    to.whole.push_back({each.what, each.layers, each.count, spell(each.reason, shared->ranks)});
  for (const SharedExchange &each : shared->exchanges)
    to.exchanges.push_back({stringifyCollectiveKind(each.kind).str(), each.maker, each.layers, each.reader,
                            each.isForward, each.count, each.bytes});
}

//===----------------------------------------------------------------------===//
// Gathers
//===----------------------------------------------------------------------===//

/// "3 gathered values", "1 gathered value".
static std::string count(size_t number, StringRef what) {
  return std::to_string(number) + " " + what.str() + (number == 1 ? "" : "s");
}

/// At most four of `states`, as readers know them, who know no buckets, and how many more there are.
static std::string list(ArrayRef<std::string> states, SymbolTable &symbols) {
  const size_t shown = std::min<size_t>(states.size(), 4);
  std::string text;
  for (const std::string &name : states.take_front(shown)) {
    auto state = symbols.lookup<StateOp>(name);
    text += (text.empty() ? "" : ", ") + (state ? nameOfState(state, symbols) : name);
  }
  return text + (shown < states.size() ? ", and " + std::to_string(states.size() - shown) + " more" : "");
}

/// Why values are not kept, of which the one that needs least would need `wanted`.
static std::string spellReason(const RepeatedGathers &gathers) {
  auto elements = [&](StringRef key) {
    return (key + ": keeping one takes " + Twine(gathers.wanted) + " elements, the limit is " +
            Twine(gathers.limit))
        .str();
  };
  switch (gathers.reason) {
  case KeptFrom::Choice:
    return "keeping one saves no time, or was expected to take memory that saves more elsewhere";
  case KeptFrom::Memory:
    return "memory: keeping one takes " + ::ds::formatBytes(gathers.wanted) + ", the limit is " +
           ::ds::formatBytes(gathers.limit);
  case KeptFrom::LiveElements:
    return elements("stage3_max_live_parameters");
  case KeptFrom::ReuseElements:
    return elements("stage3_max_reuse_distance");
  }
  llvm_unreachable("all reasons are spelt");
}

/// The sentences on `gathers`.
static SmallVector<std::string> spell(const KeptGathers &gathers, SymbolTable &symbols) {
  SmallVector<std::string> notes;
  auto stays = [&](ArrayRef<std::string> states) {
    return count(states.size(), "gathered value") + (states.size() == 1 ? " stays" : " stay");
  };
  if (!gathers.forStep.empty())
    notes.push_back(stays(gathers.forStep) + " for all micro-steps (" +
                    ::ds::formatBytes(gathers.forStepBytes) + "): " + list(gathers.forStep, symbols) +
                    "; there is room, and one gather takes the place of " +
                    std::to_string(gathers.savedGathers));
  if (!gathers.forBackward.empty())
    notes.push_back(stays(gathers.forBackward) + " for backward (" +
                    ::ds::formatBytes(gathers.forBackwardBytes) + "): " + list(gathers.forBackward, symbols) +
                    "; there is room, and each saves a gather");
  for (const RepeatedGathers &again : gathers.again)
    notes.push_back(
        count(again.states.size(), "value") + (again.states.size() == 1 ? " is" : " are") +
        (again.isForBackward ? " gathered again for backward: " : " gathered anew in each micro-step: ") +
        list(again.states, symbols) + "; " + spellReason(again));
  return notes;
}

void mlir::ds::describeGathers(func::FuncOp func, report::PlanReport &report) {
  auto module = func->getParentOfType<ModuleOp>();
  SymbolTable symbols(module);
  for (const KeptGathers &gathers : getDecisions(module).gathers)
    if (gathers.function == func.getSymName())
      for (const std::string &note : spell(gathers, symbols))
        report.notes.push_back("@" + gathers.function + ": " + note);
}
