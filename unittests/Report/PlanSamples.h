//===- PlanSamples.h - Plans that tests print, compare and refuse ----------------===//
#ifndef DS_UNITTESTS_REPORT_PLANSAMPLES_H
#define DS_UNITTESTS_REPORT_PLANSAMPLES_H

#include "ds/Report/PlanReport.h"

namespace ds::report {

inline constexpr int64_t kMiB = 1024 * 1024;

/// A plan with every field in use.
inline PlanReport sample() {
  PlanReport report;
  report.model = "gpt.pt", report.target = "cpu";
  report.parameters = 124439808, report.flopsPerStep = 1.25e12;
  report.memoryLimit = 16 * 1024 * kMiB;
  report.inputs = {{"train_micro_batch_size_per_gpu", "4"},
                   {"precision", "\"bf16\""},
                   {"zero_optimization.offload_param", "{\"device\":\"cpu\"}"},
                   {"optimizer.params.lr", "0.001"}};
  RankPlan rank;
  rank.states = {474 * kMiB, 0, 949 * kMiB, 4096};
  rank.deviceArena = rank.peakBytes = 2000 * kMiB;
  rank.peakAt = "cross_entropy backward, lm_head";
  rank.atPeak = {474 * kMiB, 1 * kMiB, 949 * kMiB, 500 * kMiB, 0, 76 * kMiB};
  rank.lowerBound = 1990 * kMiB;
  rank.largest = {{"logits", "lm_head", 393 * kMiB, Category::Activations},
                  {"wte.weight", "wte", 147 * kMiB, Category::Parameters}};
  rank.byLayer = {{"wte", 150 * kMiB},
                  {"h.0", 24 * kMiB},
                  {"h.1", 24 * kMiB},
                  {"h.2", 24 * kMiB},
                  {"lm_head", 400 * kMiB}};
  rank.liveBytes = {1, 2, 4, 8, 7, 3};
  report.ranks = {rank};
  return report;
}

inline PlanReport twoGroups() {
  PlanReport report = sample();
  report.world = 8, report.mesh = {4, 1, 2, 1};
  report.ranks.push_back(report.ranks[0]);
  report.ranks[0].lastRank = 6;
  report.ranks[1].firstRank = report.ranks[1].lastRank = 7, report.ranks[1].stage = 1;
  report.predicted.stepSeconds = 0.125, report.predicted.tflopsPerDevice = 40;
  report.predicted.communicationBytes = {{"all_gather", 10 * kMiB}, {"reduce_scatter", 20 * kMiB}};
  return report;
}

} // namespace ds::report

#endif // DS_UNITTESTS_REPORT_PLANSAMPLES_H
