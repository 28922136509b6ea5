//===- PlanNotes.cpp - What a plan's reader is told of its choices ----------------===//
#include "PlanNotes.h"

#include "ds/Dialect/Decisions.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Passes/StateNames.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace mlir;
using namespace mlir::ds;
namespace report = ::ds::report;
namespace rt = ::ds::rt;

void mlir::ds::describeLoss(ModuleOp module, report::PlanReport &report) {
  const std::optional<LossSplit> split = getDecisions(module).lossSplit;
  if (!split || !split->outcome)
    return;
  report::LossChunks loss;
  loss.chunks = split->chunks;
  loss.rows = split->rows;
  loss.savedBytes = split->outcome->savedBytes;
  loss.moreSeconds = split->outcome->moreSeconds;
  const bool isWhole = split->outcome->isRefused, isExpected = split->outcome->isExpected;
  std::string note, exact;
  if (!isExpected) // both are planned
    exact = " (" + ::ds::formatExact(std::abs(loss.savedBytes)) + " bytes)";
  llvm::raw_string_ostream(note) << "logits and their loss are made "
                                 << (isWhole ? "at once: " : "some rows at a time: ") << loss.chunks
                                 << " chunks of " << ::ds::formatExact(loss.rows) << " rows "
                                 << (isWhole ? "would take " : "take ") << (isExpected ? "about " : "")
                                 << ::ds::formatBytes(std::abs(loss.savedBytes)) << exact
                                 << (loss.savedBytes < 0 ? " more" : " less") << " at the peak, and "
                                 << llvm::format("%.4g s", std::abs(loss.moreSeconds))
                                 << (loss.moreSeconds < 0 ? " less" : " more") << " a step";
  report.notes.push_back(note);
  if (!isWhole)
    report.lossChunks = loss;
}

void mlir::ds::describeRecomputed(ModuleOp module, report::PlanReport &report) {
  const std::optional<Residency> residency = getDecisions(module).residency;
  if (!residency)
    return;
  for (const RecomputedKind &kind : residency->again)
    report.recomputed.push_back({kind.what, kind.values, kind.savedBytes, kind.moreSeconds});
  llvm::stable_sort(report.recomputed, [](const report::Recomputed &a, const report::Recomputed &b) {
    return a.moreSeconds > b.moreSeconds;
  });
  // What costs no time needs no reason.
  for (const report::Recomputed &again : report.recomputed) {
    if (again.moreSeconds <= 0)
      break;
    std::string note;
    llvm::raw_string_ostream out(note);
    if (again.values > 0)
      out << "backward recomputes " << again.values << " values of " << again.what << ": "
          << ::ds::formatBytes(again.savedBytes) << " that are not kept, for "
          << llvm::format("%.4g s", again.moreSeconds) << " a step";
    else
      out << "backward recomputes " << again.what << " as well, for what is made of it, in "
          << llvm::format("%.4g s", again.moreSeconds) << " a step";
    out.flush();
    report.notes.push_back(note);
  }
}

/// "kept", "in pieces of 1,024 rows".
static std::string spellWay(const ValueWay &way) {
  switch (way.by) {
  case HadBy::Kept:
    return "kept";
  case HadBy::Host:
    return "on the host";
  case HadBy::Recomputed:
    return "recomputed";
  case HadBy::GatherForUse:
    return "gathered each time";
  case HadBy::GatherForSegment:
    return "kept gathered for a micro-step";
  case HadBy::GatherForStep:
    return "kept gathered for a step";
  case HadBy::SinglePrecision:
    return "in f32";
  case HadBy::Workspace:
    return "in pieces of " + ::ds::formatBytes(way.size);
  case HadBy::Whole:
    return "whole";
  case HadBy::Pieces:
    return "in pieces of " + ::ds::formatExact(way.size) + " rows";
  }
  llvm_unreachable("all ways are spelt");
}

void mlir::ds::describeLargestValues(ModuleOp module, report::PlanReport &report) {
  const std::optional<Residency> residency = getDecisions(module).residency;
  if (!residency)
    return;
  SymbolTable symbols(module);
  for (const ResidentValue &entry : residency->largest) {
    report::ResidentValue value;
    value.what = entry.what;
    value.layer = entry.layer;
    value.bytes = entry.bytes;
    value.way = spellWay(entry.way);
    if (auto state = symbols.lookup<StateOp>(value.what))
      value.what = nameOfState(state, symbols);
    if (entry.next) {
      value.next = spellWay(entry.next->way);
      value.nextSeconds = entry.next->moreSeconds;
      value.nextBytes = entry.next->moreBytes;
      value.isNextRefused = entry.next->isRefused;
    }
    report.largestValues.push_back(std::move(value));
  }
  report.hostActivations = {residency->hostValues, residency->hostBytes};
  if (report.hostActivations.values > 0)
    report.notes.push_back(std::to_string(report.hostActivations.values) +
                           " values that forward makes for backward are on the host in between: " +
                           ::ds::formatBytes(report.hostActivations.bytes));
}

/// Bytes of the workspace that is planned for `call`.
static uint64_t plannedBytes(CallOp call) {
  Value workspace = call.getWorkspace();
  return workspace ? static_cast<uint64_t>(cast<BufferType>(workspace.getType()).getSizeInBytes()) : 0;
}

/// "gradients of attention", or "2 of 5 gradients of attention".
static std::string countOf(int64_t some, const report::AttentionWorkspace &attention) {
  std::string what = "gradients of attention";
  if (some == attention.calls)
    return what;
  return std::to_string(some) + " of " + std::to_string(attention.calls) + " " + what;
}

/// Names the attention that cuDNN is not asked for, by reason: it takes many times as long.
static void noteSlowAttention(ModuleOp module, report::PlanReport &report) {
  std::map<rt::AttentionRefusal, int64_t> commands;
  module.walk([&](CallOp call) {
    if (std::optional<rt::AttentionRefusal> refusal = cudnnRefusal(call))
      ++commands[*refusal];
  });
  for (const auto &[refusal, count] : commands)
    report.notes.push_back("attention without tensor cores: " + std::to_string(count) +
                           (count == 1 ? " command runs" : " commands run") +
                           " in f32 on the runtime's own kernels, for cuDNN is not asked for " +
                           rt::spell(refusal));
}

/// Names attention that drops probabilities without the workspace for what is left of them.
static void noteLackingForward(ModuleOp module, report::PlanReport &report) {
  int64_t lacking = 0;
  module.walk([&](CallOp call) {
    lacking +=
        call.getCallee() == rt::LibraryFn::AttentionForward && lacksWorkspace(call) && cudnnPieces(call, 1);
  });
  if (lacking > 0)
    report.notes.push_back(
        "attention without tensor cores: " + std::to_string(lacking) +
        (lacking == 1 ? " command drops" : " commands drop") +
        " probabilities in f32 on the runtime's own kernels: cuDNN's workspace does not fit");
}

/// Says how the gradients `calls` are added up, and what the other way would take.
static void describeChoice(ArrayRef<CallOp> calls, const ::ds::cost::Rates &rates,
                           report::PlanReport &report) {
  report::AttentionChoice choice;
  choice.isFast = isFastGradient(calls.front());
  for (CallOp call : calls) {
    const auto runs = static_cast<double>(runsPerStep(call->getParentOfType<func::FuncOp>()));
    choice.seconds += runs * attentionGradientSeconds(call, rates, choice.isFast);
    choice.otherSeconds += runs * attentionGradientSeconds(call, rates, !choice.isFast);
    auto usual = [&](bool isFast) { return static_cast<int64_t>(usualWorkspaceBytes(call, isFast)); };
    choice.usualBytes = std::max(choice.usualBytes, usual(choice.isFast));
    choice.otherUsualBytes = std::max(choice.otherUsualBytes, usual(!choice.isFast));
  }
  report.attentionChoice = choice;
  auto spell = [](double seconds, int64_t bytes) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.3g ms", 1e3 * seconds);
    return text + " with a workspace of " + ::ds::formatBytes(bytes);
  };
  report.notes.push_back(
      (choice.isFast
           ? "attention fast: two runs may differ in bits; its gradients are predicted to take "
           : "attention exact: two runs are equal to the bit; its gradients are predicted to take ") +
      spell(choice.seconds, choice.usualBytes) + " in a step, " + (choice.isFast ? "exact " : "fast ") +
      spell(choice.otherSeconds, choice.otherUsualBytes));
}

void mlir::ds::describeAttention(ModuleOp module, const ::ds::cost::Rates &rates,
                                 report::PlanReport &report) {
  noteSlowAttention(module, report);
  noteLackingForward(module, report);
  SmallVector<CallOp> calls = findCudnnGradients(module);
  if (calls.empty())
    return;
  describeChoice(calls, rates, report);
  report::AttentionWorkspace attention;
  attention.calls = calls.size();
  attention.usualBytes = static_cast<int64_t>(gradientWorkspaceBytes(module, rt::kUsualPieceBytes));
  attention.leastBytes = static_cast<int64_t>(gradientWorkspaceBytes(module, 1));
  uint64_t largestPiece = 0;
  int64_t inPieces = 0;
  for (CallOp call : calls) {
    uint64_t planned = plannedBytes(call);
    attention.bytes = std::max(attention.bytes, static_cast<int64_t>(planned));
    attention.callsWithout += planned == 0;
    if (planned == 0 || planned >= cudnnPieces(call, rt::kUsualPieceBytes)->workspaceBytes)
      continue;
    ++inPieces;
    largestPiece = std::max(largestPiece, planned);
  }
  report.attention = attention;
  if (attention.callsWithout > 0)
    report.notes.push_back(countOf(attention.callsWithout, attention) +
                           " are computed in f32 by the runtime's own kernels: cuDNN's workspace of " +
                           ::ds::formatBytes(attention.leastBytes) + " at least does not fit");
  if (inPieces > 0)
    report.notes.push_back(countOf(inPieces, attention) +
                           " are computed by cuDNN in pieces with a workspace of " +
                           ::ds::formatBytes(static_cast<int64_t>(largestPiece)) + ": the usual " +
                           ::ds::formatBytes(attention.usualBytes) + " do not fit");
}
