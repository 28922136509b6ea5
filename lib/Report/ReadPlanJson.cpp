//===- ReadPlanJson.cpp - A plan from its JSON ----------------------------------===//
//
// Schema 1 of the command-line contract, as PlanJson.cpp writes it. Nothing is trusted: an error names the
// key
// (`ranks[2].peak.bytes`) or the byte at which a file is wrong. No exception leaves this file.
//
// Size: one schema, an object of it after the other.
//
//===---------------------------------------------------------------------------===//

#include "ds/Report/PlanReport.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace ds::report {

using Json = nlohmann::ordered_json;

namespace {

/// Walks a document and remembers the first fault; after a fault it yields neutral values.
/// Size: a method for each object of the schema; three fields.
class Reader {
public:
  explicit Reader(std::string file) : file(std::move(file)) {}

  PlanReport report(const Json &json);
  std::optional<Error> error;

  void fail(const std::string &where, const std::string &what) {
    if (!error)
      error = Error{ExitCode::Corrupt, file + ": " + where + ": " + what,
                    "write it anew with ds-opt --plan-json"};
  }

private:
  /// The member `key` of the object `json`, or null after a fault.
  const Json &member(const Json &json, const std::string &path, const char *key, bool required = true);
  int64_t integer(const Json &json, const std::string &path, int64_t most = INT64_MAX);
  int64_t bytes(const Json &json, const std::string &path, const char *key) {
    return integer(member(json, path, key), join(path, key));
  }
  uint32_t small(const Json &json, const std::string &path, const char *key) {
    return uint32_t(integer(member(json, path, key), join(path, key), UINT32_MAX));
  }
  std::string text(const Json &json, const std::string &path, const char *key, bool required = true);
  std::optional<double> real(const Json &json, const std::string &path, const char *key);
  bool flag(const Json &json, const std::string &path, const char *key);
  const Json &list(const Json &json, const std::string &path, const char *key, bool required = true);
  RankPlan rank(const Json &json, const std::string &path);
  void figures(RankPlan &rank, const Json &json, const std::string &path);
  void details(RankPlan &rank, const Json &json, const std::string &path);
  void memory(RankPlan &rank, const Json &json, const std::string &path);
  Prediction prediction(const Json &json, const std::string &path);
  void terms(Prediction &prediction, const Json &json, const std::string &path);
  void inputs(PlanReport &report, const Json &json);
  void lossChunks(PlanReport &report, const Json &json);
  void checkpoint(PlanReport &report, const Json &json);
  void storage(PlanReport &report, const Json &json);
  void host(PlanReport &report, const Json &json);
  void checkRanks(const PlanReport &report);
  static std::string join(const std::string &path, const std::string &key) {
    return path.empty() ? key : path + "." + key;
  }

  std::string file;
  const Json nothing;
};

} // namespace

const Json &Reader::member(const Json &json, const std::string &path, const char *key, bool required) {
  if (!json.is_object()) {
    fail(path.empty() ? "top level" : path, "expects an object, but got " + std::string(json.type_name()));
    return nothing;
  }
  auto found = json.find(key);
  if (found == json.end()) {
    if (required)
      fail(join(path, key), "the key is missing");
    return nothing;
  }
  return *found;
}

int64_t Reader::integer(const Json &json, const std::string &path, int64_t most) {
  if (error)
    return 0;
  bool whole = json.is_number_unsigned() && json.get<uint64_t>() <= uint64_t(most);
  if (!whole)
    fail(path, "expects a whole number from 0 to " + std::to_string(most) + ", but got " +
                   json.dump().substr(0, 40));
  return whole ? json.get<int64_t>() : 0;
}

std::string Reader::text(const Json &json, const std::string &path, const char *key, bool required) {
  const Json &value = member(json, path, key, required);
  if (value.is_null() && !required)
    return "";
  if (!error && !value.is_string())
    fail(join(path, key), "expects a text, but got " + std::string(value.type_name()));
  return error ? "" : value.get<std::string>();
}

std::optional<double> Reader::real(const Json &json, const std::string &path, const char *key) {
  const Json &value = member(json, path, key);
  if (error || value.is_null())
    return std::nullopt;
  if (!value.is_number() || !(value.get<double>() >= 0)) {
    fail(join(path, key), "expects a number >= 0, but got " + value.dump().substr(0, 40));
    return std::nullopt;
  }
  return value.get<double>();
}

/// False where the key is missing.
bool Reader::flag(const Json &json, const std::string &path, const char *key) {
  const Json &value = member(json, path, key, false);
  if (!error && !value.is_null() && !value.is_boolean())
    fail(join(path, key), "expects true or false, but got " + std::string(value.type_name()));
  return value.is_boolean() && value.get<bool>();
}

const Json &Reader::list(const Json &json, const std::string &path, const char *key, bool required) {
  const Json &value = member(json, path, key, required);
  if (!error && !value.is_array() && (required || !value.is_null()))
    fail(join(path, key), "expects a list, but got " + std::string(value.type_name()));
  return value.is_array() ? value : nothing;
}

void Reader::figures(RankPlan &rank, const Json &json, const std::string &path) {
  rank.stage = small(json, path, "stage");
  const std::string statesPath = join(path, "states"), arenasPath = join(path, "arenas");
  const Json &states = member(json, path, "states"), &arenas = member(json, path, "arenas");
  rank.states = {bytes(states, statesPath, "parameters"), bytes(states, statesPath, "gradients"),
                 bytes(states, statesPath, "optimizer"), bytes(states, statesPath, "padding"),
                 states.contains("scalars") ? bytes(states, statesPath, "scalars") : 0};
  rank.deviceArena = bytes(arenas, arenasPath, "device");
  rank.hostArena = bytes(arenas, arenasPath, "host");
  rank.nvmeArena = bytes(arenas, arenasPath, "nvme");
  const Json &peak = member(json, path, "peak"), &atPeak = member(json, path, "at_peak");
  rank.peakBytes = bytes(peak, join(path, "peak"), "bytes");
  rank.peakAt = text(peak, join(path, "peak"), "at");
  for (unsigned i = 0; i < kNumCategories; ++i)
    rank.atPeak[i] = bytes(atPeak, join(path, "at_peak"), spell(Category(i)));
  rank.lowerBound = bytes(json, path, "lower_bound");
}

void Reader::details(RankPlan &rank, const Json &json, const std::string &path) {
  const Json &largest = list(json, path, "largest", false), &layers = list(json, path, "by_layer", false);
  for (size_t i = 0; i < largest.size() && !error; ++i) {
    const std::string at = join(path, "largest[" + std::to_string(i) + "]");
    LiveValue value;
    value.name = text(largest[i], at, "name");
    value.layer = text(largest[i], at, "layer");
    value.bytes = bytes(largest[i], at, "bytes");
    std::string category = text(largest[i], at, "category");
    unsigned index = 0;
    while (index < kNumCategories && category != spell(Category(index)))
      ++index;
    if (index == kNumCategories)
      fail(at + ".category", "expects one of the keys of at_peak, but got \"" + category + "\"");
    value.category = Category(index % kNumCategories);
    rank.largest.push_back(std::move(value));
  }
  for (size_t i = 0; i < layers.size() && !error; ++i) {
    const std::string at = join(path, "by_layer[" + std::to_string(i) + "]");
    std::string layer = text(layers[i], at, "layer");
    rank.byLayer.push_back({std::move(layer), bytes(layers[i], at, "bytes")});
  }
}

void Reader::memory(RankPlan &rank, const Json &json, const std::string &path) {
  const Json &lines = list(json, path, "memory", false);
  for (size_t i = 0; i < lines.size() && !error; ++i) {
    const std::string at = join(path, "memory[" + std::to_string(i) + "]");
    MemoryLine line;
    line.name = text(lines[i], at, "name");
    line.where = text(lines[i], at, "where");
    line.bytes = bytes(lines[i], at, "bytes");
    line.source = text(lines[i], at, "source");
    line.beyondArenas = flag(lines[i], at, "beyond_arenas");
    rank.memory.push_back(std::move(line));
  }
  const Json &paths = list(json, path, "nvme_paths", false);
  for (size_t i = 0; i < paths.size() && !error; ++i) {
    const std::string at = join(path, "nvme_paths[" + std::to_string(i) + "]");
    std::string name = text(paths[i], at, "path");
    rank.nvmePaths.push_back({std::move(name), bytes(paths[i], at, "bytes")});
  }
}

RankPlan Reader::rank(const Json &json, const std::string &path) {
  RankPlan rank;
  if (json.is_object() && json.contains("ranks")) {
    const Json &range = list(json, path, "ranks");
    if (range.size() != 2)
      fail(join(path, "ranks"),
           "expects [first, last], but got " + std::to_string(range.size()) + " numbers");
    if (error)
      return rank;
    rank.firstRank = uint32_t(integer(range[0], join(path, "ranks[0]"), UINT32_MAX));
    rank.lastRank = uint32_t(integer(range[1], join(path, "ranks[1]"), UINT32_MAX));
  } else {
    rank.firstRank = rank.lastRank = small(json, path, "rank");
  }
  figures(rank, json, path);
  details(rank, json, path);
  memory(rank, json, path);
  return rank;
}

Prediction Reader::prediction(const Json &json, const std::string &path) {
  Prediction result;
  result.stepSeconds = real(json, path, "step_seconds");
  result.tflopsPerDevice = real(json, path, "tflops_per_device");
  result.computeSeconds = real(json, path, "compute_seconds");
  result.exposedCommunicationSeconds = real(json, path, "exposed_communication_seconds");
  for (auto [key, field] : {std::pair("exposed_copy_seconds", &result.exposedCopySeconds),
                            {"exposed_to_host_seconds", &result.exposedToHostSeconds},
                            {"exposed_to_device_seconds", &result.exposedToDeviceSeconds},
                            {"exposed_storage_seconds", &result.exposedStorageSeconds}})
    if (json.is_object() && json.contains(key))
      *field = real(json, path, key);
  const Json &traffic = member(json, path, "communication_bytes");
  if (!error && !traffic.is_object())
    fail(join(path, "communication_bytes"), "expects an object, but got " + std::string(traffic.type_name()));
  if (!error)
    for (const auto &[kind, value] : traffic.items())
      result.communicationBytes.push_back({kind, integer(value, join(path, "communication_bytes." + kind))});
  terms(result, json, path);
  return result;
}

/// The parts of the step. What is no number was none when it was written.
void Reader::terms(Prediction &prediction, const Json &json, const std::string &path) {
  const Json &list = this->list(json, path, "terms", false);
  for (size_t i = 0; i < list.size() && !error; ++i) {
    const std::string at = join(path, "terms[" + std::to_string(i) + "]");
    TimeTerm term;
    term.name = text(list[i], at, "name");
    const Json &seconds = member(list[i], at, "seconds");
    if (!error && !seconds.is_number() && !seconds.is_null())
      fail(join(at, "seconds"), "expects a number, but got " + std::string(seconds.type_name()));
    term.seconds = seconds.is_number() ? seconds.get<double>() : 0;
    term.source = text(list[i], at, "source");
    prediction.terms.push_back(std::move(term));
  }
}

/// What the plan was asked for with; any JSON may be a value.
void Reader::inputs(PlanReport &report, const Json &json) {
  const Json &inputs = member(json, "", "inputs", false);
  if (!error && !inputs.is_null() && !inputs.is_object())
    fail("inputs", "expects an object, but got " + std::string(inputs.type_name()));
  if (inputs.is_object())
    for (const auto &[name, value] : inputs.items())
      report.inputs.push_back({name, value.dump()});
}

void Reader::checkpoint(PlanReport &report, const Json &json) {
  const Json &checkpoint = member(json, "", "checkpoint", false);
  if (!error && !checkpoint.is_null())
    report.checkpoint = {bytes(checkpoint, "checkpoint", "bytes"),
                         bytes(checkpoint, "checkpoint", "copy_bytes")};
}

void Reader::storage(PlanReport &report, const Json &json) {
  const Json &storage = member(json, "", "storage", false);
  if (!error && !storage.is_null())
    report.storage = {bytes(storage, "storage", "bytes_read_per_step"),
                      bytes(storage, "storage", "bytes_written_per_step")};
}

void Reader::host(PlanReport &report, const Json &json) {
  const Json &host = member(json, "", "host", false);
  if (!error && !host.is_null())
    report.host = {bytes(host, "host", "node_bytes"), bytes(host, "host", "page_locked_bytes")};
}

void Reader::lossChunks(PlanReport &report, const Json &json) {
  const std::string path = "loss_chunks";
  const Json &chunks = member(json, "", "loss_chunks", false);
  if (error || chunks.is_null())
    return;
  LossChunks loss{bytes(chunks, path, "chunks"), bytes(chunks, path, "rows")};
  const Json &saved = member(chunks, path, "saved_bytes"), &more = member(chunks, path, "more_seconds");
  if (!error && !saved.is_number_integer())
    fail(join(path, "saved_bytes"), "expects a whole number, but got " + std::string(saved.type_name()));
  if (!error && !more.is_number())
    fail(join(path, "more_seconds"), "expects a number, but got " + std::string(more.type_name()));
  if (error)
    return;
  loss.savedBytes = saved.get<int64_t>(), loss.moreSeconds = more.get<double>();
  report.lossChunks = loss;
}

/// Every rank of the world exactly once, in order.
void Reader::checkRanks(const PlanReport &report) {
  uint64_t next = 0;
  for (size_t i = 0; i < report.ranks.size(); ++i) {
    const RankPlan &rank = report.ranks[i];
    if (rank.firstRank != next || rank.lastRank < rank.firstRank || rank.lastRank >= report.world)
      fail("ranks[" + std::to_string(i) + "]", "expects ranks from " + std::to_string(next) +
                                                   " below the world of " + std::to_string(report.world) +
                                                   ", but got " + std::to_string(rank.firstRank) + " to " +
                                                   std::to_string(rank.lastRank));
    next = uint64_t(rank.lastRank) + 1;
  }
  if (next != report.world)
    fail("ranks", "expects " + std::to_string(report.world) + " ranks, but got " + std::to_string(next));
}

PlanReport Reader::report(const Json &json) {
  PlanReport report;
  int64_t schema = bytes(json, "", "schema");
  if (!error && schema != 1)
    fail("schema", "expects 1, but got " + std::to_string(schema));
  report.world = small(json, "", "world");
  const Json &mesh = member(json, "", "mesh");
  report.mesh = {small(mesh, "mesh", "dp"), small(mesh, "mesh", "tp"), small(mesh, "mesh", "pp"),
                 small(mesh, "mesh", "sp")};
  const Json &ranks = list(json, "", "ranks");
  for (size_t i = 0; i < ranks.size() && !error; ++i)
    report.ranks.push_back(rank(ranks[i], "ranks[" + std::to_string(i) + "]"));
  if (!error)
    checkRanks(report);
  const Json &fits = member(json, "", "fits");
  if (!error && !fits.is_boolean())
    fail("fits", "expects true or false, but got " + std::string(fits.type_name()));
  report.predicted = prediction(member(json, "", "predicted"), "predicted");
  report.flopsPerStep = real(json, "", "flops_per_step").value_or(0);
  report.parameters = bytes(json, "", "parameters");
  report.model = text(json, "", "model", false);
  const Json &notes = list(json, "", "notes", false);
  for (size_t i = 0; i < notes.size() && !error; ++i)
    if (notes[i].is_string())
      report.notes.push_back(notes[i].get<std::string>());
    else
      fail("notes[" + std::to_string(i) + "]", "expects a text");
  report.target = text(json, "", "target", false);
  report.programTarget = text(json, "", "program_target", false);
  report.programTargetReason = text(json, "", "program_target_reason", false);
  report.isPlanningOnly = flag(json, "", "planning_only");
  report.cluster = text(json, "", "cluster", false);
  report.clusterReason = text(json, "", "cluster_reason", false);
  report.tf32 = flag(json, "", "tf32");
  if (json.is_object() && json.contains("memory_limit"))
    report.memoryLimit = bytes(json, "", "memory_limit");
  if (std::string basis = text(json, "", "basis", false); !basis.empty())
    report.basis = basis;
  report.basisReason = text(json, "", "basis_reason", false);
  inputs(report, json);
  lossChunks(report, json);
  checkpoint(report, json), storage(report, json), host(report, json);
  if (json.is_object() && json.contains("host_memory_limit"))
    report.hostLimit = bytes(json, "", "host_memory_limit");
  bool usesHost = std::any_of(report.ranks.begin(), report.ranks.end(),
                              [](const RankPlan &rank) { return rank.hostArena > 0; });
  if (!error && (report.basis == "rules" || usesHost) && !fits.get<bool>() && report.fits())
    report.hostsFit = false; // the device would do
  if (!error && fits.get<bool>() != report.fits() && report.memoryLimit > 0)
    fail("fits", "contradicts memory_limit and the arenas");
  return report;
}

/// What a fault says behind "[json.exception.out_of_range.406] ", or all of it.
static std::string reasonOf(const std::exception &fault) {
  std::string text = fault.what();
  size_t bracket = text.starts_with('[') ? text.find("] ") : std::string::npos;
  return bracket == std::string::npos ? text : text.substr(bracket + 2);
}

/// Parses with duplicate keys and deep nests refused. Sets `where` and `what` on failure.
static Json parse(const std::string &text, std::string &where, std::string &what) {
  std::vector<std::set<std::string>> keys;
  auto watch = [&](int depth, Json::parse_event_t event, Json &value) {
    if (depth > 32) // no plan is; what walks a document later may recurse
      throw std::length_error("is nested more than 32 levels deep");
    if (event == Json::parse_event_t::object_start)
      keys.emplace_back();
    else if (event == Json::parse_event_t::object_end)
      keys.pop_back();
    else if (event == Json::parse_event_t::key && !keys.back().insert(value.get<std::string>()).second &&
             what.empty())
      where = "key \"" + value.get<std::string>() + "\"", what = "is given twice";
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error &fault) {
    where = "byte " + std::to_string(fault.byte), what = "is no JSON: ";
    std::string reason = reasonOf(fault); // "parse error at line 1, column 2: why"
    size_t colon = reason.find(": ");
    what += colon == std::string::npos ? reason : reason.substr(colon + 2);
  } catch (const std::exception &fault) {
    where = "top level", what = reasonOf(fault);
  }
  return Json();
}

Result<PlanReport> readPlanJson(const std::string &text, const std::string &file) {
  Reader reader(file);
  std::string where, what;
  Json json = parse(text, where, what);
  if (!what.empty())
    reader.fail(where, what);
  PlanReport report;
  if (!reader.error)
    report = reader.report(json);
  if (reader.error)
    return *reader.error;
  return report;
}

} // namespace ds::report
