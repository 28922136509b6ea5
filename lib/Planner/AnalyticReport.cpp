//===- AnalyticReport.cpp - A plan by rules, in words and as a report ----------------===//
#include "ds/Planner/AnalyticReport.h"

#include "AnalyticExplanation.h"
#include "ds/Report/Throughput.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace ds;
using namespace ds::planner;
using cost::MemoryEstimate;

int64_t ds::planner::whole(double bytes) { return static_cast<int64_t>(std::ceil(std::min(bytes, 1e18))); }

std::string ds::planner::gibi(double bytes) { return llvm::formatv("{0:F1}", bytes / (1 << 30)).str(); }

const char *ds::planner::spell(config::DType dtype) {
  switch (dtype) {
  case config::DType::F32:
    return "fp32";
  case config::DType::F16:
    return "fp16";
  case config::DType::BF16:
    return "bf16";
  case config::DType::I8:
    return "int8";
  }
  return "";
}

const char *ds::planner::spell(config::Home home) {
  return home == config::Home::Device ? "device" : home == config::Home::Cpu ? "cpu" : "nvme";
}

const char *ds::planner::spell(cost::Recompute recompute) {
  return recompute == cost::Recompute::None        ? "none"
         : recompute == cost::Recompute::Selective ? "attention"
                                                   : "all";
}

report::CategoryBytes ds::planner::peakParts(const MemoryEstimate &memory) {
  return {whole(memory.parameters),  whole(memory.gradients), whole(memory.optimizer),
          whole(memory.activations), whole(memory.working()), whole(memory.workspace)};
}

int64_t ds::planner::sum(const report::CategoryBytes &parts) {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0});
}

std::string ds::planner::spellLimit(const config::Cluster &cluster) {
  auto spell = [](int64_t bytes) { return gibi(static_cast<double>(bytes)) + " GiB"; };
  return spell(cost::peakLimit(cluster)) + ", beside " + spell(cluster.device.contextBytes) +
         " of the device's context";
}

bool ds::planner::everyStageFits(const AnalyticCase &what) {
  return llvm::all_of(llvm::seq<int64_t>(0, what.plan.pp), [&](int64_t stage) {
    const config::Cluster &cluster = what.rates.cluster();
    return fits(estimateStageMemory(what.shape, what.plan, cluster, stage), cluster);
  });
}

std::string ds::planner::spellPlan(const cost::ParallelPlan &plan) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << plan.ranks() << (plan.ranks() == 1 ? " rank" : " ranks") << " (dp " << plan.dp << ", tp " << plan.tp
      << ", pp " << plan.pp << ", sp " << plan.sp << "), ZeRO stage " << plan.zeroStage << ", micro-batch "
      << plan.microBatch << " x " << plan.accumulation << ", " << spell(plan.dtype);
  if (plan.recompute != cost::Recompute::None)
    out << ", recompute " << spell(plan.recompute);
  if (plan.optimizerHome != config::Home::Device)
    out << ", optimizer on " << spell(plan.optimizerHome);
  if (plan.parameterHome != config::Home::Device)
    out << ", parameters on " << spell(plan.parameterHome);
  return text;
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

/// Every part of a rank's memory, on its device and its share of the node's host and storage.
static void addMemoryLines(report::RankPlan &rank, const MemoryEstimate &memory, double onNode) {
  auto add = [&](const char *name, const char *where, double bytes, const char *source,
                 bool isBeyond = false) {
    if (bytes > 0)
      rank.memory.push_back({name, where, whole(bytes), source, isBeyond});
  };
  const char *zero = "ZeRO's shares of 2, 2 and 12 bytes per parameter in 16 bits, 4, 4 and 8 in fp32";
  add("parameters", "device", memory.parameters, zero);
  add("gradients", "device", memory.gradients, zero);
  add("optimizer states", "device", memory.optimizer, zero);
  add("activations", "device", memory.activations, "the published bytes per layer, arXiv 2205.05198");
  add("workspace", "device", memory.workspace, kWorkspaceText);
  add("buckets of gathered parameters", "device", memory.gathered, "two layers or buckets of 5e8 elements");
  add("buckets of gradients", "device", memory.reduced, "two layers or buckets of 5e8 elements");
  add("device context and libraries", "device", memory.context, "device.context_bytes",
      /*isBeyond=*/true);
  const char *pinned = "host, page-locked";
  add("parameters", pinned, memory.host.parameters / onNode, zero);
  add("gradients", pinned, memory.host.gradients / onNode, zero);
  add("checkpoints", pinned, memory.host.checkpoints / onNode, "the inputs of layers, arXiv 2104.07857");
  add("staging to storage", pinned, memory.host.staging / onNode,
      "offload_optimizer and offload_param.buffer_count");
  add("optimizer states", "host", memory.host.optimizer / onNode, zero);
  add("parameters", "nvme", memory.storage.parameters / onNode, zero);
  add("gradients", "nvme", memory.storage.gradients / onNode, zero);
  add("optimizer states", "nvme", memory.storage.optimizer / onNode, zero);
}

/// The ranks of one pipeline stage.
static report::RankPlan rankPlan(const AnalyticCase &what, int64_t stage) {
  const config::Cluster &cluster = what.rates.cluster();
  MemoryEstimate memory = estimateStageMemory(what.shape, what.plan, cluster, stage);
  int64_t ranks = what.plan.ranks() / what.plan.pp;
  double onNode = static_cast<double>(std::min(what.plan.ranks(), cluster.devicesPerNode));
  report::RankPlan rank;
  rank.firstRank = stage * ranks;
  rank.lastRank = (stage + 1) * ranks - 1;
  rank.stage = stage;
  rank.states = {whole(memory.parameters), whole(memory.gradients), whole(memory.optimizer), 0};
  rank.atPeak = peakParts(memory);
  rank.peakBytes = sum(rank.atPeak);
  rank.peakAt = "backward of the last layer in flight";
  rank.explanation = explainStage(what, stage);
  rank.deviceArena = rank.lowerBound = rank.peakBytes;
  rank.hostArena = whole(memory.host.bytes() / onNode);
  rank.nvmeArena = whole(memory.storage.bytes() / onNode);
  rank.nvmeParameters = whole(memory.storage.parameters / onNode);
  addMemoryLines(rank, memory, onNode);
  return rank;
}

/// What a term is: compute, or an exchange that compute waits for, or neither.
static bool isCompute(llvm::StringRef term) {
  return llvm::is_contained({"forward", "backward", "recompute", "logits", "update", "update on the host"},
                            term);
}
static bool isExchange(llvm::StringRef term) {
  return term.contains("exchange") || term.contains("gathers") || term.contains("reduction") ||
         term.contains("transfers");
}

static report::Prediction predict(const AnalyticCase &what) {
  cost::StepEstimate step = estimateStep(what.shape, what.plan, what.rates);
  report::Prediction predicted;
  double compute = 0, exposed = 0;
  for (const cost::Term &term : step.terms) {
    predicted.terms.push_back({term.name, term.seconds, term.source});
    (isCompute(term.name) ? compute : exposed) +=
        isCompute(term.name) || isExchange(term.name) ? term.seconds : 0;
  }
  predicted.stepSeconds = step.seconds;
  predicted.tflopsPerDevice = step.modelFlops / step.seconds / static_cast<double>(what.plan.ranks()) / 1e12;
  predicted.computeSeconds = compute;
  predicted.exposedCommunicationSeconds = exposed;
  predicted.communicationBytes = {{"all_gather", whole(step.gatheredBytes)},
                                  {"reduce_scatter", whole(step.scatteredBytes)},
                                  {"all_reduce", whole(step.reducedBytes)}};
  return predicted;
}

report::PlanReport ds::planner::makeAnalyticReport(const AnalyticCase &what) {
  const config::Cluster &cluster = what.rates.cluster();
  report::PlanReport report;
  report.model = what.model;
  report.target = report.cluster = cluster.name;
  report.basis = "rules";
  report.basisReason = what.reason;
  report.world = what.plan.ranks();
  report.mesh = {static_cast<uint32_t>(what.plan.dp), static_cast<uint32_t>(what.plan.tp),
                 static_cast<uint32_t>(what.plan.pp), static_cast<uint32_t>(what.plan.sp)};
  for (int64_t stage = 0; stage < what.plan.pp; ++stage)
    report.ranks.push_back(rankPlan(what, stage));
  report.memoryLimit = cost::peakLimit(cluster);
  report.hostsFit = llvm::all_of(llvm::seq<int64_t>(0, what.plan.pp), [&](int64_t stage) {
    MemoryEstimate memory = estimateStageMemory(what.shape, what.plan, cluster, stage);
    return memory.host.bytes() <= static_cast<double>(cluster.host.memoryBytes) &&
           memory.storage.bytes() <= static_cast<double>(cluster.nvme.bytes);
  });
  report.predicted = predict(what);
  report.flopsPerStep = report.modelFlops = stepWork(what.shape, what.plan);
  report.hardwareFlops = report.modelFlops + stepFlops(what.shape, what.plan, /*recomputed=*/true) -
                         stepFlops(what.shape, what.plan, /*recomputed=*/false);
  report.peakFlops = cost::peakFlops(cluster, what.plan.dtype);
  report.tokensPerStep = what.plan.globalBatch() * what.shape.seq;
  report.parameters = what.shape.parameters();
  if (const int64_t active = what.shape.activeParameters(); active < report.parameters)
    report.activeParameters = active;
  report.notes = what.notes;
  return report;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// A row of figures under the heads of printMemory.
static void printRow(llvm::raw_ostream &out, const std::string &stages, const MemoryEstimate &memory) {
  out << llvm::left_justify(stages, 8);
  for (double bytes :
       {memory.parameters, memory.gradients, memory.optimizer, memory.activations, memory.working(),
        memory.workspace, memory.peakBytes(), memory.context, memory.host.bytes(), memory.storage.bytes()})
    out << llvm::right_justify(gibi(bytes), 12);
  out << "\n";
}

/// What a node's host has of a stage, where it has anything.
static void printHost(llvm::raw_ostream &out, const std::string &stages, const MemoryEstimate &memory) {
  const MemoryEstimate::Offloaded &host = memory.host;
  if (host.bytes() <= 0)
    return;
  out << llvm::left_justify("", 8) << "host of stage " << stages << ":";
  const std::pair<const char *, double> parts[] = {{"parameters", host.parameters},
                                                   {"gradients", host.gradients},
                                                   {"optimizer", host.optimizer},
                                                   {"checkpoints", host.checkpoints},
                                                   {"staging", host.staging}};
  for (auto [name, bytes] : parts)
    if (bytes > 0)
      out << " " << name << " " << gibi(bytes) << ",";
  out << " page-locked " << gibi(memory.pinnedBytes()) << "\n";
}

/// One row for each run of stages that need the same.
static void printMemory(llvm::raw_ostream &out, const AnalyticCase &what) {
  out << "memory of a rank in GiB, host and nvme of a node, by pipeline stage\n"
      << llvm::left_justify("stage", 8);
  for (const char *head : {"parameters", "gradients", "optimizer", "activations", "buckets", "workspace",
                           "peak", "context", "host", "nvme"})
    out << llvm::right_justify(head, 12);
  out << "\n";
  auto of = [&](int64_t stage) {
    return estimateStageMemory(what.shape, what.plan, what.rates.cluster(), stage);
  };
  for (int64_t first = 0, last = 0; first < what.plan.pp; first = last + 1) {
    MemoryEstimate memory = of(first);
    for (last = first; last + 1 < what.plan.pp; ++last)
      if (MemoryEstimate next = of(last + 1); next.deviceBytes() != memory.deviceBytes() ||
                                              next.host.bytes() != memory.host.bytes() ||
                                              next.storage.bytes() != memory.storage.bytes())
        break;
    std::string stages = std::to_string(first) + (last > first ? "-" + std::to_string(last) : "");
    printRow(out, stages, memory);
    printHost(out, stages, memory);
  }
}

static void printTime(llvm::raw_ostream &out, const report::Prediction &predicted) {
  out << "step: "
      << llvm::format("%.4g s, %.1f TFLOP/s per device\n", *predicted.stepSeconds,
                      *predicted.tflopsPerDevice);
  for (const report::TimeTerm &term : predicted.terms)
    out << "  " << llvm::left_justify(term.name, 44) << llvm::format("%10.4g s  ", term.seconds)
        << term.source << "\n";
}

std::string ds::planner::printAnalyticText(const AnalyticCase &what, const report::PlanReport &report) {
  const config::Cluster &cluster = what.rates.cluster();
  std::string text;
  llvm::raw_string_ostream out(text);
  out << what.model << " on " << cluster.name << ": " << formatExact(report.parameters) << " parameters, ";
  if (report.activeParameters)
    out << formatExact(*report.activeParameters) << " of them active for a token, ";
  out << "sequences of " << what.shape.seq << "\n"
      << spellPlan(what.plan) << "\nbasis: rules (" << what.reason << ")\n\n";
  printMemory(out, what);
  out << "\n";
  printTime(out, report.predicted);
  out << printThroughput(report);
  for (const std::string &note : what.notes)
    out << "note: " << note << "\n";
  double most = 0;
  for (int64_t stage = 0; stage < what.plan.pp; ++stage)
    most = std::max(most, estimateStageMemory(what.shape, what.plan, cluster, stage).peakBytes());
  out << "\n"
      << (everyStageFits(what) ? "fits: " : "does not fit: ") << gibi(most) << " GiB of "
      << spellLimit(cluster) << "\n";
  return text;
}
