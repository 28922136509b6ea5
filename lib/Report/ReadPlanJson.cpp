//===- ReadPlanJson.cpp - A plan from its JSON ----------------------------------===//
//
// Schema 1 of the command-line contract, as PlanJson.cpp writes it: a function for each of its objects.
// Nothing is trusted; JsonReader has the faults.
//
//===---------------------------------------------------------------------------===//

#include "JsonReader.h"

#include "ds/Report/PlanReport.h"

#include <algorithm>

namespace ds::report {

static void readFigures(JsonReader &in, RankPlan &rank, const Json &json, const std::string &path) {
  rank.stage = in.small(json, path, "stage");
  const std::string statesPath = joinKeys(path, "states"), arenasPath = joinKeys(path, "arenas");
  const Json &states = in.member(json, path, "states"), &arenas = in.member(json, path, "arenas");
  rank.states = {in.bytes(states, statesPath, "parameters"),
                 in.bytes(states, statesPath, "gradients"),
                 in.bytes(states, statesPath, "optimizer"),
                 in.bytes(states, statesPath, "padding"),
                 states.contains("scalars") ? in.bytes(states, statesPath, "scalars") : 0,
                 states.contains("frozen_parameters") ? in.bytes(states, statesPath, "frozen_parameters")
                                                      : 0};
  rank.deviceArena = in.bytes(arenas, arenasPath, "device");
  rank.hostArena = in.bytes(arenas, arenasPath, "host");
  rank.nvmeArena = in.bytes(arenas, arenasPath, "nvme");
  const Json &peak = in.member(json, path, "peak"), &atPeak = in.member(json, path, "at_peak");
  rank.peakBytes = in.bytes(peak, joinKeys(path, "peak"), "bytes");
  rank.peakAt = in.text(peak, joinKeys(path, "peak"), "at");
  for (unsigned i = 0; i < kNumCategories; ++i)
    rank.atPeak[i] = in.bytes(atPeak, joinKeys(path, "at_peak"), spell(Category(i)));
  rank.lowerBound = in.bytes(json, path, "lower_bound");
}

static void readDetails(JsonReader &in, RankPlan &rank, const Json &json, const std::string &path) {
  const Json &largest = in.list(json, path, "largest", false),
             &layers = in.list(json, path, "by_layer", false);
  for (size_t i = 0; i < largest.size() && !in.error; ++i) {
    const std::string at = joinKeys(path, "largest[" + std::to_string(i) + "]");
    LiveValue value;
    value.name = in.text(largest[i], at, "name");
    value.layer = in.text(largest[i], at, "layer");
    value.bytes = in.bytes(largest[i], at, "bytes");
    std::string category = in.text(largest[i], at, "category");
    unsigned index = 0;
    while (index < kNumCategories && category != spell(Category(index)))
      ++index;
    if (index == kNumCategories)
      in.fail(at + ".category", "expects one of the keys of at_peak, but got \"" + category + "\"");
    value.category = Category(index % kNumCategories);
    rank.largest.push_back(std::move(value));
  }
  for (size_t i = 0; i < layers.size() && !in.error; ++i) {
    const std::string at = joinKeys(path, "by_layer[" + std::to_string(i) + "]");
    std::string layer = in.text(layers[i], at, "layer");
    rank.byLayer.push_back({std::move(layer), in.bytes(layers[i], at, "bytes")});
  }
}

static void readMemory(JsonReader &in, RankPlan &rank, const Json &json, const std::string &path) {
  const Json &lines = in.list(json, path, "memory", false);
  for (size_t i = 0; i < lines.size() && !in.error; ++i) {
    const std::string at = joinKeys(path, "memory[" + std::to_string(i) + "]");
    MemoryLine line;
    line.name = in.text(lines[i], at, "name");
    line.where = in.text(lines[i], at, "where");
    line.bytes = in.bytes(lines[i], at, "bytes");
    line.source = in.text(lines[i], at, "source");
    line.beyondArenas = in.flag(lines[i], at, "beyond_arenas");
    rank.memory.push_back(std::move(line));
  }
  const Json &paths = in.list(json, path, "nvme_paths", false);
  for (size_t i = 0; i < paths.size() && !in.error; ++i) {
    const std::string at = joinKeys(path, "nvme_paths[" + std::to_string(i) + "]");
    std::string name = in.text(paths[i], at, "path");
    rank.nvmePaths.push_back({std::move(name), in.bytes(paths[i], at, "bytes")});
  }
}

static RankPlan readRank(JsonReader &in, const Json &json, const std::string &path) {
  RankPlan rank;
  if (json.is_object() && json.contains("ranks")) {
    const Json &range = in.list(json, path, "ranks");
    if (range.size() != 2)
      in.fail(joinKeys(path, "ranks"),
              "expects [first, last], but got " + std::to_string(range.size()) + " numbers");
    if (in.error)
      return rank;
    rank.firstRank = uint32_t(in.integer(range[0], joinKeys(path, "ranks[0]"), UINT32_MAX));
    rank.lastRank = uint32_t(in.integer(range[1], joinKeys(path, "ranks[1]"), UINT32_MAX));
  } else {
    rank.firstRank = rank.lastRank = in.small(json, path, "rank");
  }
  readFigures(in, rank, json, path);
  readDetails(in, rank, json, path);
  readMemory(in, rank, json, path);
  return rank;
}

/// The parts of the step. What is no number was none when it was written.
static void readTerms(JsonReader &in, Prediction &prediction, const Json &json, const std::string &path) {
  const Json &list = in.list(json, path, "terms", false);
  for (size_t i = 0; i < list.size() && !in.error; ++i) {
    const std::string at = joinKeys(path, "terms[" + std::to_string(i) + "]");
    TimeTerm term;
    term.name = in.text(list[i], at, "name");
    const Json &seconds = in.member(list[i], at, "seconds");
    if (!in.error && !seconds.is_number() && !seconds.is_null())
      in.fail(joinKeys(at, "seconds"), "expects a number, but got " + std::string(seconds.type_name()));
    term.seconds = seconds.is_number() ? seconds.get<double>() : 0;
    term.source = in.text(list[i], at, "source");
    prediction.terms.push_back(std::move(term));
  }
}

/// What a rank sends by kind and axes, where the plan says it.
static void readTrafficByAxes(JsonReader &in, Prediction &prediction, const Json &json,
                              const std::string &path) {
  const char *key = "communication_bytes_by_axes";
  const Json &all = in.member(json, path, key, false);
  if (in.error || all.is_null())
    return;
  const std::string at = joinKeys(path, key);
  if (!all.is_object())
    return in.fail(at, "expects an object, but got " + std::string(all.type_name()));
  for (const auto &[kind, ofKind] : all.items()) {
    if (!ofKind.is_object())
      return in.fail(joinKeys(at, kind), "expects an object, but got " + std::string(ofKind.type_name()));
    for (const auto &[axes, bytes] : ofKind.items())
      prediction.communicationByAxes.push_back(
          {kind, axes, in.integer(bytes, joinKeys(joinKeys(at, kind), axes))});
  }
}

static Prediction readPrediction(JsonReader &in, const Json &json, const std::string &path) {
  Prediction result;
  result.stepSeconds = in.real(json, path, "step_seconds");
  result.tflopsPerDevice = in.real(json, path, "tflops_per_device");
  result.computeSeconds = in.real(json, path, "compute_seconds");
  result.exposedCommunicationSeconds = in.real(json, path, "exposed_communication_seconds");
  for (auto [key, field] : {std::pair("exposed_copy_seconds", &result.exposedCopySeconds),
                            {"exposed_to_host_seconds", &result.exposedToHostSeconds},
                            {"exposed_to_device_seconds", &result.exposedToDeviceSeconds},
                            {"exposed_storage_seconds", &result.exposedStorageSeconds}})
    if (json.is_object() && json.contains(key))
      *field = in.real(json, path, key);
  const Json &traffic = in.member(json, path, "communication_bytes");
  if (!in.error && !traffic.is_object())
    in.fail(joinKeys(path, "communication_bytes"),
            "expects an object, but got " + std::string(traffic.type_name()));
  if (!in.error)
    for (const auto &[kind, value] : traffic.items())
      result.communicationBytes.push_back(
          {kind, in.integer(value, joinKeys(path, "communication_bytes." + kind))});
  readTrafficByAxes(in, result, json, path);
  readTerms(in, result, json, path);
  return result;
}

/// What the plan was asked for with; any JSON may be a value.
static void readInputs(JsonReader &in, PlanReport &report, const Json &json) {
  const Json &inputs = in.member(json, "", "inputs", false);
  if (!in.error && !inputs.is_null() && !inputs.is_object())
    in.fail("inputs", "expects an object, but got " + std::string(inputs.type_name()));
  if (inputs.is_object())
    for (const auto &[name, value] : inputs.items())
      report.inputs.push_back({name, value.dump()});
}

static void readCheckpoint(JsonReader &in, PlanReport &report, const Json &json) {
  const Json &checkpoint = in.member(json, "", "checkpoint", false);
  if (!in.error && !checkpoint.is_null())
    report.checkpoint = {in.bytes(checkpoint, "checkpoint", "bytes"),
                         in.bytes(checkpoint, "checkpoint", "copy_bytes")};
}

static void readStorage(JsonReader &in, PlanReport &report, const Json &json) {
  const Json &storage = in.member(json, "", "storage", false);
  if (!in.error && !storage.is_null())
    report.storage = {in.bytes(storage, "storage", "bytes_read_per_step"),
                      in.bytes(storage, "storage", "bytes_written_per_step")};
}

static void readHost(JsonReader &in, PlanReport &report, const Json &json) {
  const Json &host = in.member(json, "", "host", false);
  if (!in.error && !host.is_null())
    report.host = {in.bytes(host, "host", "node_bytes"), in.bytes(host, "host", "page_locked_bytes")};
}

static void readLossChunks(JsonReader &in, PlanReport &report, const Json &json) {
  const std::string path = "loss_chunks";
  const Json &chunks = in.member(json, "", "loss_chunks", false);
  if (in.error || chunks.is_null())
    return;
  LossChunks loss{in.bytes(chunks, path, "chunks"), in.bytes(chunks, path, "rows")};
  const Json &saved = in.member(chunks, path, "saved_bytes"), &more = in.member(chunks, path, "more_seconds");
  if (!in.error && !saved.is_number_integer())
    in.fail(joinKeys(path, "saved_bytes"),
            "expects a whole number, but got " + std::string(saved.type_name()));
  if (!in.error && !more.is_number())
    in.fail(joinKeys(path, "more_seconds"), "expects a number, but got " + std::string(more.type_name()));
  if (in.error)
    return;
  loss.savedBytes = saved.get<int64_t>(), loss.moreSeconds = more.get<double>();
  report.lossChunks = loss;
}

/// Every rank of the world exactly once, in order.
static void checkRanks(JsonReader &in, const PlanReport &report) {
  uint64_t next = 0;
  for (size_t i = 0; i < report.ranks.size(); ++i) {
    const RankPlan &rank = report.ranks[i];
    if (rank.firstRank != next || rank.lastRank < rank.firstRank || rank.lastRank >= report.world)
      in.fail("ranks[" + std::to_string(i) + "]", "expects ranks from " + std::to_string(next) +
                                                      " below the world of " + std::to_string(report.world) +
                                                      ", but got " + std::to_string(rank.firstRank) + " to " +
                                                      std::to_string(rank.lastRank));
    next = uint64_t(rank.lastRank) + 1;
  }
  if (next != report.world)
    in.fail("ranks", "expects " + std::to_string(report.world) + " ranks, but got " + std::to_string(next));
}

static PlanReport readReport(JsonReader &in, const Json &json) {
  PlanReport report;
  int64_t schema = in.bytes(json, "", "schema");
  if (!in.error && schema != 1)
    in.fail("schema", "expects 1, but got " + std::to_string(schema));
  report.world = in.small(json, "", "world");
  const Json &mesh = in.member(json, "", "mesh");
  report.mesh = {in.small(mesh, "mesh", "dp"), in.small(mesh, "mesh", "tp"), in.small(mesh, "mesh", "pp"),
                 in.small(mesh, "mesh", "sp")};
  const Json &ranks = in.list(json, "", "ranks");
  for (size_t i = 0; i < ranks.size() && !in.error; ++i)
    report.ranks.push_back(readRank(in, ranks[i], "ranks[" + std::to_string(i) + "]"));
  if (!in.error)
    checkRanks(in, report);
  const Json &fits = in.member(json, "", "fits");
  if (!in.error && !fits.is_boolean())
    in.fail("fits", "expects true or false, but got " + std::string(fits.type_name()));
  report.predicted = readPrediction(in, in.member(json, "", "predicted"), "predicted");
  report.flopsPerStep = in.real(json, "", "flops_per_step").value_or(0);
  report.parameters = in.bytes(json, "", "parameters");
  if (json.is_object() && json.contains("trained_parameters"))
    report.trainedParameters = in.bytes(json, "", "trained_parameters");
  if (json.is_object() && json.contains("active_parameters"))
    report.activeParameters = in.bytes(json, "", "active_parameters");
  report.model = in.text(json, "", "model", false);
  const Json &notes = in.list(json, "", "notes", false);
  for (size_t i = 0; i < notes.size() && !in.error; ++i)
    if (notes[i].is_string())
      report.notes.push_back(notes[i].get<std::string>());
    else
      in.fail("notes[" + std::to_string(i) + "]", "expects a text");
  report.target = in.text(json, "", "target", false);
  report.programTarget = in.text(json, "", "program_target", false);
  report.programTargetReason = in.text(json, "", "program_target_reason", false);
  report.isPlanningOnly = in.flag(json, "", "planning_only");
  report.cluster = in.text(json, "", "cluster", false);
  report.clusterReason = in.text(json, "", "cluster_reason", false);
  report.tf32 = in.flag(json, "", "tf32");
  if (json.is_object() && json.contains("memory_limit"))
    report.memoryLimit = in.bytes(json, "", "memory_limit");
  if (std::string basis = in.text(json, "", "basis", false); !basis.empty())
    report.basis = basis;
  report.basisReason = in.text(json, "", "basis_reason", false);
  readInputs(in, report, json);
  readLossChunks(in, report, json);
  readCheckpoint(in, report, json), readStorage(in, report, json), readHost(in, report, json);
  if (json.is_object() && json.contains("host_memory_limit"))
    report.hostLimit = in.bytes(json, "", "host_memory_limit");
  bool usesHost = std::any_of(report.ranks.begin(), report.ranks.end(),
                              [](const RankPlan &rank) { return rank.hostArena > 0; });
  if (!in.error && (report.basis == "rules" || usesHost) && !fits.get<bool>() && report.fits())
    report.hostsFit = false; // the device would do
  if (!in.error && fits.get<bool>() != report.fits() && report.memoryLimit > 0)
    in.fail("fits", "contradicts memory_limit and the arenas");
  return report;
}

Result<PlanReport> readPlanJson(const std::string &text, const std::string &file) {
  JsonReader reader(file);
  const Json json = reader.parse(text);
  PlanReport report;
  if (!reader.error)
    report = readReport(reader, json);
  if (reader.error)
    return *reader.error;
  return report;
}

} // namespace ds::report
