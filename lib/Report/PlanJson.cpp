//===- PlanJson.cpp - The plan as JSON ------------------------------------------===//
//
// Schema 1 of the command-line contract. The order of keys is fixed, so that equal plans are equal texts.
//
//===---------------------------------------------------------------------------===//

#include "SharedLayers.h"

#include "ds/Report/PlanReport.h"
#include "ds/Report/Throughput.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

namespace ds::report {

using Json = nlohmann::ordered_json;

/// A double as JSON: whole numbers without a fraction, so that counts look like counts.
static Json number(double value) {
  if (value == std::floor(value) && std::fabs(value) < 9007199254740992.0)
    return int64_t(value);
  return value;
}

static Json numberOrNull(const std::optional<double> &value) {
  return value ? number(*value) : Json(nullptr);
}

static Json explanationJson(const PeakExplanation &peak);

static Json rankJson(const RankPlan &rank) {
  Json json;
  if (rank.firstRank == rank.lastRank)
    json["rank"] = rank.firstRank;
  else
    json["ranks"] = {rank.firstRank, rank.lastRank};
  json["stage"] = rank.stage;
  json["states"] = {{"parameters", rank.states.parameters},
                    {"gradients", rank.states.gradients},
                    {"optimizer", rank.states.optimizer},
                    {"padding", rank.states.padding},
                    {"scalars", rank.states.scalars}};
  if (rank.states.frozen > 0)
    json["states"]["frozen_parameters"] = rank.states.frozen;
  json["arenas"] = {{"device", rank.deviceArena}, {"host", rank.hostArena}, {"nvme", rank.nvmeArena}};
  for (const StorageDirectory &each : rank.nvmePaths)
    json["nvme_paths"].push_back({{"path", each.path}, {"bytes", each.bytes}});
  json["peak"] = {{"bytes", rank.peakBytes}, {"at", rank.peakAt}};
  for (unsigned i = 0; i < kNumCategories; ++i)
    json["at_peak"][spell(Category(i))] = rank.atPeak[i];
  json["lower_bound"] = rank.lowerBound;
  json["largest"] = Json::array();
  for (size_t i = 0; i < std::min<size_t>(10, rank.largest.size()); ++i) {
    const LiveValue &value = rank.largest[i];
    json["largest"].push_back({{"name", value.name},
                               {"layer", value.layer},
                               {"bytes", value.bytes},
                               {"category", spell(value.category)}});
  }
  json["by_layer"] = Json::array();
  for (const LayerBytes &layer : rank.byLayer)
    json["by_layer"].push_back({{"layer", layer.layer}, {"bytes", layer.bytes}});
  for (const MemoryLine &line : rank.memory)
    json["memory"].push_back({{"name", line.name},
                              {"where", line.where},
                              {"bytes", line.bytes},
                              {"source", line.source},
                              {"beyond_arenas", line.beyondArenas}});
  if (rank.explanation)
    json["peak_explained"] = explanationJson(*rank.explanation);
  return json;
}

static Json explanationJson(const PeakExplanation &peak) {
  Json json = {{"op", peak.op}, {"layer", peak.layer}, {"segment", peak.segment}, {"largest", Json::array()}};
  for (const PeakValue &value : peak.largest)
    json["largest"].push_back({{"name", value.name},
                               {"layer", value.layer},
                               {"category", spell(categoryOf(value.part))},
                               {"type", value.type},
                               {"bytes", value.bytes},
                               {"made_by", value.madeBy},
                               {"last_used_by", value.lastUsedBy},
                               {"why", value.reason},
                               {"change", value.remedy}});
  return json;
}

/// A row of `changes`, or of `what_if`, which has no single change to name.
static Json choiceJson(const PlanChoice &choice, const std::optional<double> &before) {
  Json json;
  bool isChange = !choice.change.empty();
  if (isChange)
    json["change"] = choice.change;
  json["zero_stage"] = choice.zeroStage;
  json["recompute"] = choice.recompute;
  json["optimizer"] = choice.optimizerHome;
  json["micro_batch"] = choice.microBatch;
  json["accumulation"] = choice.accumulation;
  json["peak_bytes"] = choice.deviceBytes;
  json["host_bytes"] = choice.hostBytes;
  json["nvme_bytes"] = choice.nvmeBytes;
  json["step_seconds"] = numberOrNull(choice.stepSeconds);
  if (isChange && choice.stepSeconds && before)
    json["more_seconds"] = number(*choice.stepSeconds - *before);
  json["fits"] = choice.fits;
  if (!isChange)
    json["best"] = choice.best;
  json["basis"] = choice.basis;
  json["has_pass"] = choice.hasPass;
  return json;
}

/// The answers to questions about other plans than this one; keys only where they were asked.
static void addAnswers(Json &json, const PlanReport &report) {
  for (const PlanChoice &choice : report.changes)
    json["changes"].push_back(choiceJson(choice, report.predicted.stepSeconds));
  for (const PlanChoice &choice : report.smaller)
    json["smaller_peaks"].push_back(choiceJson(choice, report.predicted.stepSeconds));
  for (const PlanChoice &choice : report.whatIf)
    json["what_if"].push_back(choiceJson(choice, std::nullopt));
  if (report.maxBatch)
    json["max_batch"] = *report.maxBatch;
  if (report.maxSeq)
    json["max_seq"] = *report.maxSeq;
}

/// What saving takes and storage moves, the forms in which losses and attention are computed, and what is
/// recomputed; keys only where there is a choice.
static void addForms(Json &json, const PlanReport &report) {
  if (const std::optional<LossChunks> &loss = report.lossChunks)
    json["loss_chunks"] = {{"chunks", loss->chunks},
                           {"rows", loss->rows},
                           {"saved_bytes", loss->savedBytes},
                           {"more_seconds", number(loss->moreSeconds)}};
  if (const std::optional<CheckpointBytes> &checkpoint = report.checkpoint)
    json["checkpoint"] = {{"bytes", checkpoint->bytes}, {"copy_bytes", checkpoint->copyBytes}};
  if (const std::optional<StorageTraffic> &storage = report.storage)
    json["storage"] = {{"bytes_written_per_step", storage->writtenBytes},
                       {"bytes_read_per_step", storage->readBytes}};
  if (const std::optional<HostUse> &host = report.host)
    json["host"] = {{"node_bytes", host->nodeBytes}, {"page_locked_bytes", host->lockedBytes}};
  if (report.sharedLayers)
    json["shared_layers"] = sharedLayersJson(*report.sharedLayers);
  for (const Recomputed &again : report.recomputed)
    json["made_again"].push_back({{"what", again.what},
                                  {"values", again.values},
                                  {"saved_bytes", again.savedBytes},
                                  {"more_seconds", number(again.moreSeconds)}});
  for (const ProductUse &product : report.products)
    json["products"].push_back({{"product", product.product},
                                {"form", product.form},
                                {"calls", product.calls},
                                {"seconds", number(product.seconds)}});
  for (const ResidentValue &value : report.largestValues) {
    Json entry = {{"what", value.what}, {"layer", value.layer}, {"bytes", value.bytes}, {"way", value.way}};
    if (!value.next.empty()) {
      entry["next"] = value.next;
      entry["next_more_seconds"] = number(value.nextSeconds);
      entry["next_more_bytes"] = value.nextBytes;
      if (value.isNextRefused)
        entry["next_refused"] = true;
    }
    json["largest_values"].push_back(std::move(entry));
  }
  if (report.hostActivations.values > 0)
    json["host_activations"] = {{"values", report.hostActivations.values},
                                {"bytes", report.hostActivations.bytes}};
  if (const std::optional<AttentionChoice> &choice = report.attentionChoice)
    json["attention"] = {{"choice", choice->isFast ? "fast" : "exact"},
                         {"gradient_seconds", number(choice->seconds)},
                         {"other_gradient_seconds", number(choice->otherSeconds)},
                         {"usual_workspace_bytes", choice->usualBytes},
                         {"other_usual_workspace_bytes", choice->otherUsualBytes}};
  if (const std::optional<AttentionWorkspace> &attention = report.attention)
    json["attention_workspace"] = {{"bytes", attention->bytes},
                                   {"usual_bytes", attention->usualBytes},
                                   {"least_bytes", attention->leastBytes},
                                   {"calls", attention->calls},
                                   {"calls_without", attention->callsWithout}};
}

/// What the predicted step amounts to, and the run that was asked about; keys only where they are known.
static void addThroughput(Json &json, const PlanReport &report) {
  const Throughput throughput = throughputOf(report);
  Json &predicted = json["predicted"];
  if (throughput.tokensPerSecond) {
    predicted["tokens_per_step"] = report.tokensPerStep;
    predicted["tokens_per_second"] = number(*throughput.tokensPerSecond);
  }
  if (throughput.modelUtilisation) {
    predicted["mfu"] = number(*throughput.modelUtilisation);
    predicted["hfu"] = number(*throughput.hardwareUtilisation);
    predicted["peak_flops_per_device"] = number(report.peakFlops);
  }
  const std::optional<RunFigures> run = runOf(report, report.predicted.stepSeconds.value_or(0));
  if (!run)
    return;
  predicted["run"] = {{"tokens", number(report.run->tokens)},
                      {"steps", number(run->steps)},
                      {"days", number(run->seconds / 86400)},
                      {"device_hours", number(run->deviceHours)}};
  if (run->cost) {
    predicted["run"]["price_per_hour"] = number(*report.run->pricePerHour);
    predicted["run"]["cost"] = number(*run->cost);
  }
}

/// Whether `value` has more than `levels` levels of lists and objects.
static bool isDeeper(const Json &value, unsigned levels) {
  return value.is_structured() &&
         (levels == 0 || std::any_of(value.begin(), value.end(),
                                     [&](const Json &item) { return isDeeper(item, levels - 1); }));
}

/// The value of an input. Readers bound how deep a document is: what is deeper becomes a text, as does what
/// is JSON to the configuration alone.
static Json inputJson(const std::string &text) {
  constexpr unsigned kMostLevels = 8;
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded() || isDeeper(value, kMostLevels))
    return text;
  return value.is_number_float() ? number(value.get<double>()) : value;
}

static void addParameters(Json &json, const PlanReport &report) {
  json["parameters"] = report.parameters;
  if (report.trainedParameters)
    json["trained_parameters"] = *report.trainedParameters;
  if (report.activeParameters)
    json["active_parameters"] = *report.activeParameters;
}

/// What a rank sends in a step, by kind of collective.
static Json trafficJson(const PlanReport &report) {
  Json traffic = Json::object();
  for (const auto &[kind, bytes] : report.predicted.communicationBytes)
    traffic[kind] = bytes;
  return traffic;
}

/// What each stage runs, in order.
static void addSchedule(Json &json, const PlanReport &report) {
  for (const std::vector<ScheduledRun> &stage : report.schedule) {
    Json &runs = json["schedule"].emplace_back(Json::array());
    for (const ScheduledRun &run : stage)
      runs.push_back({run.segment, run.microBatch});
  }
}

std::string printPlanJson(const PlanReport &report) {
  Json json;
  json["schema"] = 1;
  json["world"] = report.world;
  json["mesh"] = {
      {"dp", report.mesh.dp}, {"tp", report.mesh.tp}, {"pp", report.mesh.pp}, {"sp", report.mesh.sp}};
  json["ranks"] = Json::array();
  for (const RankPlan &rank : report.ranks)
    json["ranks"].push_back(rankJson(rank));
  addSchedule(json, report);
  json["fits"] = report.fits();
  json["predicted"] = {
      {"step_seconds", numberOrNull(report.predicted.stepSeconds)},
      {"tflops_per_device", numberOrNull(report.predicted.tflopsPerDevice)},
      {"compute_seconds", numberOrNull(report.predicted.computeSeconds)},
      {"exposed_communication_seconds", numberOrNull(report.predicted.exposedCommunicationSeconds)},
      {"communication_bytes", trafficJson(report)}};
  for (const auto &[kind, axes, bytes] : report.predicted.communicationByAxes)
    json["predicted"]["communication_bytes_by_axes"][kind][axes] = bytes;
  for (const auto &[key, seconds] : {std::pair("exposed_copy_seconds", report.predicted.exposedCopySeconds),
                                     {"exposed_to_host_seconds", report.predicted.exposedToHostSeconds},
                                     {"exposed_to_device_seconds", report.predicted.exposedToDeviceSeconds},
                                     {"exposed_storage_seconds", report.predicted.exposedStorageSeconds}})
    if (seconds)
      json["predicted"][key] = number(*seconds);
  addThroughput(json, report);
  for (const TimeTerm &term : report.predicted.terms)
    json["predicted"]["terms"].push_back(
        {{"name", term.name}, {"seconds", number(term.seconds)}, {"source", term.source}});
  json["flops_per_step"] = number(report.flopsPerStep);
  addParameters(json, report);
  json["notes"] = report.notes;
  json["model"] = report.model;
  json["target"] = report.target;
  if (!report.programTarget.empty())
    json["program_target"] = report.programTarget;
  if (report.tf32)
    json["tf32"] = true;
  if (!report.programTargetReason.empty())
    json["program_target_reason"] = report.programTargetReason;
  if (report.isPlanningOnly)
    json["planning_only"] = true;
  if (!report.cluster.empty())
    json["cluster"] = report.cluster;
  if (!report.clusterReason.empty())
    json["cluster_reason"] = report.clusterReason;
  json["memory_limit"] = report.memoryLimit;
  if (report.hostLimit > 0)
    json["host_memory_limit"] = report.hostLimit;
  json["basis"] = report.basis;
  if (!report.basisReason.empty())
    json["basis_reason"] = report.basisReason;
  for (const PlanInput &input : report.inputs)
    json["inputs"][input.name] = inputJson(input.value);
  addForms(json, report);
  addAnswers(json, report);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace ds::report
