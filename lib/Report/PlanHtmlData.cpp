//===- PlanHtmlData.cpp - What the page's script reads --------------------------------===//
#include "PlanHtmlData.h"

#include "ds/Report/Throughput.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace ds::report {

using Json = nlohmann::ordered_json;

namespace {
/// Numbers texts in the order in which they come.
class Strings {
public:
  uint32_t operator()(const std::string &text) {
    auto [at, isNew] = ids.try_emplace(text, static_cast<uint32_t>(ids.size()));
    if (isNew)
      list.push_back(text);
    return at->second;
  }
  Json list = Json::array();

private:
  std::map<std::string, uint32_t> ids;
};
} // namespace

static int64_t nanoseconds(double seconds) { return std::llround(std::min(seconds, 9e9) * 1e9); }

/// Null where it is not known, or no number.
static Json numberOrNull(const std::optional<double> &value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

/// The ten largest of what lives at a timeline's peak: a plan by rules does not name them itself.
static std::vector<LiveValue> largestAt(const PlanTimeline &timeline) {
  std::vector<LiveValue> live;
  for (const PlanTimeline::Buffer &buffer : timeline.buffers)
    if (buffer.space == "device" && buffer.bytes > 0 && buffer.beginCommand <= timeline.peakCommand &&
        timeline.peakCommand < buffer.endCommand)
      live.push_back({buffer.name, buffer.layer, buffer.bytes, buffer.category});
  std::vector<size_t> order(live.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return live[a].bytes != live[b].bytes ? live[a].bytes > live[b].bytes : a < b;
  });
  std::vector<LiveValue> largest;
  for (size_t i = 0; i < std::min<size_t>(10, order.size()); ++i)
    largest.push_back(live[order[i]]);
  return largest;
}

static Json rankData(const RankPlan &rank, const PlanTimeline *timeline) {
  Json json;
  json["first"] = rank.firstRank;
  json["last"] = rank.lastRank;
  json["stage"] = rank.stage;
  json["host"] = rank.hostArena;
  json["nvme"] = rank.nvmeArena;
  json["peak"] = rank.peakBytes;
  json["peakAt"] = rank.peakAt;
  json["atPeak"] = rank.atPeak;
  json["lowerBound"] = rank.lowerBound;
  json["largest"] = Json::array();
  const std::vector<LiveValue> largest =
      rank.largest.empty() && timeline ? largestAt(*timeline) : rank.largest;
  for (size_t i = 0; i < std::min<size_t>(10, largest.size()); ++i) {
    const LiveValue &value = largest[i];
    json["largest"].push_back({value.name, value.layer, value.bytes, static_cast<unsigned>(value.category)});
  }
  json["byLayer"] = Json::array();
  for (const LayerBytes &layer : rank.byLayer)
    json["byLayer"].push_back({layer.layer, layer.bytes});
  json["memory"] = Json::array();
  for (const MemoryLine &line : rank.memory)
    json["memory"].push_back({line.name, line.where, line.bytes, line.source, line.beyondArenas});
  return json;
}

static Json reportData(const PlanReport &report, const std::vector<PlanTimeline> &timelines) {
  Json json;
  json["model"] = report.model;
  json["target"] = report.target;
  json["programTarget"] = report.programTarget;
  json["programTargetReason"] = report.programTargetReason;
  json["cluster"] = report.cluster;
  json["clusterReason"] = report.clusterReason;
  json["basis"] = report.basis;
  json["basisReason"] = report.basisReason;
  json["world"] = report.world;
  json["mesh"] = {report.mesh.dp, report.mesh.tp, report.mesh.pp, report.mesh.sp};
  json["fits"] = report.fits();
  json["hostsFit"] = report.hostsFit;
  json["limit"] = report.memoryLimit;
  json["parameters"] = report.parameters;
  if (report.activeParameters)
    json["activeParameters"] = *report.activeParameters;
  json["flops"] = numberOrNull(report.flopsPerStep);
  const Prediction &predicted = report.predicted;
  json["step"] = numberOrNull(predicted.stepSeconds);
  json["tflops"] = numberOrNull(predicted.tflopsPerDevice);
  json["compute"] = numberOrNull(predicted.computeSeconds);
  json["exposed"] = numberOrNull(predicted.exposedCommunicationSeconds);
  const Throughput throughput = throughputOf(report);
  json["tokens"] = numberOrNull(throughput.tokensPerSecond);
  json["mfu"] = numberOrNull(throughput.modelUtilisation);
  json["hfu"] = numberOrNull(throughput.hardwareUtilisation);
  json["traffic"] = Json::array();
  for (const auto &[kind, axes, bytes] : predicted.communicationByAxes)
    json["traffic"].push_back({kind + " along " + axes, bytes});
  if (predicted.communicationByAxes.empty())
    for (const auto &[kind, bytes] : predicted.communicationBytes)
      json["traffic"].push_back({kind, bytes});
  json["terms"] = Json::array();
  for (const TimeTerm &term : predicted.terms)
    json["terms"].push_back({term.name, numberOrNull(term.seconds), term.source});
  json["notes"] = report.notes;
  json["changes"] = Json::array();
  for (const PlanChoice &choice : report.changes)
    json["changes"].push_back({choice.change, numberOrNull(choice.stepSeconds), choice.deviceBytes});
  json["ranks"] = Json::array();
  for (size_t i = 0; i < report.ranks.size(); ++i)
    json["ranks"].push_back(rankData(report.ranks[i], timelines.empty() ? nullptr : &timelines[i]));
  return json;
}

static Json commandData(const std::vector<PlanTimeline::Command> &commands, Strings &strings) {
  Json json;
  for (const char *column :
       {"name", "layer", "segment", "kind", "stream", "begin", "length", "flops", "bytes"})
    json[column] = Json::array();
  for (const PlanTimeline::Command &command : commands) {
    json["name"].push_back(strings(command.name));
    json["layer"].push_back(strings(command.layer));
    json["segment"].push_back(strings(command.segment));
    json["kind"].push_back(strings(command.kind));
    json["stream"].push_back(command.stream);
    json["begin"].push_back(nanoseconds(command.begin));
    json["length"].push_back(nanoseconds(command.end) - nanoseconds(command.begin));
    json["flops"].push_back(std::round(std::min(command.flops, 9e15)));
    json["bytes"].push_back(std::round(std::min(command.bytes, 9e15)));
  }
  return json;
}

static Json bufferData(const std::vector<PlanTimeline::Buffer> &buffers, const std::vector<uint32_t> &moved,
                       Strings &strings) {
  Json json;
  for (const char *column :
       {"name", "layer", "type", "category", "space", "offset", "bytes", "begin", "end", "from", "to"})
    json[column] = Json::array();
  auto drawn = [&](uint32_t command) {
    return command < moved.size() ? moved[command] : static_cast<uint32_t>(moved.size());
  };
  for (const PlanTimeline::Buffer &buffer : buffers) {
    json["name"].push_back(strings(buffer.name));
    json["layer"].push_back(strings(buffer.layer));
    json["type"].push_back(strings(buffer.type));
    json["category"].push_back(static_cast<unsigned>(buffer.category));
    json["space"].push_back(strings(buffer.space));
    json["offset"].push_back(buffer.offset);
    json["bytes"].push_back(buffer.bytes);
    json["begin"].push_back(nanoseconds(buffer.begin));
    json["end"].push_back(nanoseconds(buffer.end));
    json["from"].push_back(drawn(buffer.beginCommand));
    json["to"].push_back(buffer.endCommand > 0 ? drawn(buffer.endCommand - 1) : 0);
  }
  return json;
}

/// One number for the time and six for the bytes of each point.
static Json curveData(const std::vector<LivePoint> &curve) {
  Json json = Json::array();
  for (const LivePoint &point : curve) {
    json.push_back(nanoseconds(point.time));
    for (int64_t bytes : point.bytes)
      json.push_back(bytes);
  }
  return json;
}

static Json timelineData(const PlanTimeline &timeline, size_t most, Strings &strings) {
  MergedCommands commands = mergeCommands(timeline.commands, most);
  MergedBuffers buffers = mergeBuffers(timeline.buffers, most);
  std::vector<LivePoint> curve = liveCurve(timeline);
  Json json;
  json["title"] = timeline.title;
  json["streams"] = timeline.streams;
  json["busy"] = timeline.busySeconds;
  json["length"] = nanoseconds(timeline.seconds);
  json["step"] = numberOrNull(timeline.stepSeconds);
  json["arena"] = timeline.arenaBytes;
  json["peak"] = timeline.peakBytes;
  json["peakTime"] = nanoseconds(timeline.peakTime);
  json["peakAt"] = timeline.peakAt;
  json["notes"] = timeline.notes;
  auto note = [&](size_t few, size_t all, const char *what) {
    if (few > 0)
      json["notes"].push_back(formatExact(static_cast<int64_t>(few)) + " of " +
                              formatExact(static_cast<int64_t>(all)) + " " + what);
  };
  note(commands.merged, timeline.commands.size(), "commands are too short to be drawn one by one");
  note(buffers.merged, timeline.buffers.size(), "buffers are too small to be drawn one by one");
  note(curve.size() > most ? most : 0, curve.size(),
       "changes of the curve are drawn, the highest of each run");
  json["commands"] = commandData(commands.commands, strings);
  json["buffers"] = bufferData(buffers.buffers, commands.moved, strings);
  json["curve"] = curveData(thinCurve(curve, most));
  return json;
}

/// Without '<', '>' and '&', which JSON has in texts alone and can spell as numbers.
static std::string escapeForScript(const std::string &json) {
  std::string text;
  text.reserve(json.size());
  for (char c : json)
    if (c == '<')
      text += "\\u003c";
    else if (c == '>')
      text += "\\u003e";
    else if (c == '&')
      text += "\\u0026";
    else
      text += c;
  return text;
}

std::string printPageData(const PlanReport &report, const std::vector<PlanTimeline> &timelines,
                          const PageLimits &limits) {
  size_t most = limits.perTimeline;
  if (!timelines.empty())
    most = std::max<size_t>(100, std::min(most, limits.together / timelines.size()));
  Strings strings;
  Json json;
  json["report"] = reportData(report, timelines);
  json["categories"] = Json::array();
  for (unsigned category = 0; category < kNumCategories; ++category)
    json["categories"].push_back(spell(static_cast<Category>(category)));
  json["timelines"] = Json::array();
  for (const PlanTimeline &timeline : timelines)
    json["timelines"].push_back(timelineData(timeline, most, strings));
  json["strings"] = strings.list;
  return escapeForScript(json.dump(-1, ' ', true, Json::error_handler_t::replace));
}

} // namespace ds::report
