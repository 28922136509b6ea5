//===- ReadCluster.cpp - From JSON to a cluster -------------------------------------===//
//
// Strict, as ds_config.json is read: unknown keys, wrong kinds and figures out of range are all told at once,
// each with its place; a figure that is not there must come from the base. Built-in descriptions pass through
// the same reader.
//
//===---------------------------------------------------------------------------===//
#include "ClusterKeys.h"
#include "Keys.h"
#include "Parser.h"
#include "ReadFile.h"
#include "Resolve.h"
#include "ds/Config/ForeignConfig.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace ds::config {

std::optional<int64_t> Cluster::devices() const {
  return nodes == 0 ? std::nullopt : std::optional(nodes * devicesPerNode);
}

/// The points of a curve; empty when they are not in order.
static std::optional<Curve> readCurve(const Value &value) {
  Curve curve;
  if (value.is(Value::Kind::Number) && value.number > 0)
    return Curve{{{1, value.number}}}; // the same for every size
  if (!value.is(Value::Kind::Array) || value.items.empty())
    return std::nullopt;
  for (const Value &pair : value.items) {
    bool numbers = pair.is(Value::Kind::Array) && pair.items.size() == 2 &&
                   pair.items[0].is(Value::Kind::Number) && pair.items[1].is(Value::Kind::Number);
    if (!numbers || pair.items[0].number <= 0 || pair.items[1].number <= 0)
      return std::nullopt;
    if (!curve.points.empty() && pair.items[0].number <= curve.points.back().first)
      return std::nullopt;
    curve.points.emplace_back(pair.items[0].number, pair.items[1].number);
  }
  return curve;
}

/// The axis values of rows that go through all combinations of some sizes, the last axis fastest; empty when
/// they do not.
static std::vector<std::vector<double>> axesOf(const std::vector<std::vector<double>> &rows, size_t count) {
  std::vector<std::vector<double>> axes(count);
  for (size_t d = 0; d < count; ++d) {
    for (const std::vector<double> &row : rows)
      axes[d].push_back(row[d]);
    std::sort(axes[d].begin(), axes[d].end());
    axes[d].erase(std::unique(axes[d].begin(), axes[d].end()), axes[d].end());
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    size_t rest = i;
    for (size_t d = count; d-- > 0; rest /= axes[d].size())
      if (rows[i][d] != axes[d][rest % axes[d].size()])
        return {};
    if (rest != 0)
      return {};
  }
  return std::accumulate(axes.begin(), axes.end(), size_t{1},
                         [](size_t all, const auto &axis) { return all * axis.size(); }) == rows.size()
             ? axes
             : std::vector<std::vector<double>>();
}

/// A table of `axes` sizes and `columns` rates a row; nothing when the rows are not a full grid.
static std::optional<ShapeTable> readShapes(const Value &value, size_t axes, size_t columns) {
  std::vector<std::vector<double>> rows;
  if (!value.is(Value::Kind::Array) || value.items.empty())
    return std::nullopt;
  for (const Value &item : value.items) {
    rows.emplace_back();
    if (!item.is(Value::Kind::Array) || item.items.size() != axes + columns)
      return std::nullopt;
    for (const Value &number : item.items) {
      if (!number.is(Value::Kind::Number) || !(number.number > 0))
        return std::nullopt;
      rows.back().push_back(number.number);
    }
  }
  ShapeTable table;
  table.axes = axesOf(rows, axes);
  if (table.axes.empty())
    return std::nullopt;
  for (const std::vector<double> &row : rows)
    table.rates.emplace_back(row.begin() + static_cast<ptrdiff_t>(axes), row.end());
  return table;
}

/// "cpu", or "sm_" and two or three digits.
static bool isArchitecture(std::string_view text) {
  auto isDigit = [](char c) { return c >= '0' && c <= '9'; };
  return text == "cpu" || (text.starts_with("sm_") && (text.size() == 5 || text.size() == 6) &&
                           std::all_of(text.begin() + 3, text.end(), isDigit));
}

/// The figure that a value gives, or empty when it is not of this kind or out of range.
static std::optional<Figure> readFigure(FigureKind kind, const Value &value) {
  Figure figure;
  switch (kind) {
  case FigureKind::Text:
    figure.text = value.text;
    return value.is(Value::Kind::String) && !value.text.empty() ? std::optional(figure) : std::nullopt;
  case FigureKind::Architecture:
    figure.text = value.text;
    return value.is(Value::Kind::String) && isArchitecture(value.text) ? std::optional(figure) : std::nullopt;
  case FigureKind::Switch:
    figure.flag = value.boolean;
    return value.is(Value::Kind::Bool) ? std::optional(figure) : std::nullopt;
  case FigureKind::Count:
  case FigureKind::Bytes:
    figure.integer = (value.is(Value::Kind::Number) ? exactInteger(value.text) : std::nullopt).value_or(0);
    return figure.integer > 0 && (kind == FigureKind::Bytes || figure.integer <= INT32_MAX)
               ? std::optional(figure)
               : std::nullopt;
  case FigureKind::Positive:
  case FigureKind::Share:
    figure.number = value.number;
    return value.is(Value::Kind::Number) && value.number > 0 &&
                   (kind == FigureKind::Positive || value.number <= 1)
               ? std::optional(figure)
               : std::nullopt;
  case FigureKind::Rates:
    if (std::optional<Curve> curve = readCurve(value)) {
      figure.curve = std::move(*curve);
      return figure;
    }
    return std::nullopt;
  case FigureKind::Products:
  case FigureKind::Strips:
  case FigureKind::Scores:
    if (std::optional<ShapeTable> table = kind == FigureKind::Products ? readShapes(value, 3, 3)
                                          : kind == FigureKind::Strips ? readShapes(value, 2, 1)
                                                                       : readShapes(value, 2, 2)) {
      figure.shapes = std::move(*table);
      return figure;
    }
    return std::nullopt;
  }
  return std::nullopt;
}

namespace {
/// The walk over one description.
class ClusterReader {
public:
  ClusterReader(const std::string &name, Cluster base) : cluster(std::move(base)) { report.name = name; }

  Cluster cluster;
  Report report;
  std::vector<std::string_view> given;

  void walk(const Value &object, const std::string &path) {
    for (const Value &member : object.items) {
      std::string child = path.empty() ? member.key : path + "." + member.key;
      if (const ClusterKey *key = find(child))
        take(*key, member);
      else if (isSection(child) && member.is(Value::Kind::Object))
        walk(member, child);
      else if (isSection(child))
        report.complain(member.place, quote(child) + " expects an object, but got " + describe(member));
      else
        complainUnknown(child, member);
    }
  }

  /// Figures that count in place of what a base says more closely.
  void overrideBase() {
    auto isGiven = [&](std::string_view path) {
      return std::find(given.begin(), given.end(), path) != given.end();
    };
    if (isGiven("device.attention_efficiency") && !isGiven("device.attention_shapes"))
      cluster.device.attentionShapes = {};
    if (isGiven("device.launch_seconds") && !isGiven("device.graph_launch_seconds"))
      cluster.device.graphLaunchSeconds = 0;
    if (isGiven("device.matmul_flops.bf16") && !isGiven("device.kernels.tile_flops"))
      cluster.device.kernels.tileFlops = {};
    if (isGiven("device.launch_seconds") && !isGiven("device.kernels.shortest_seconds"))
      cluster.device.kernels.shortestSeconds = 0; // what is measured has a kernel in it
  }

  /// Keys that no base gives and the file has not.
  void requireAll() {
    for (const ClusterKey &key : clusterKeys())
      if (key.required && !(isAlone() && key.path.starts_with("inside.")) &&
          std::find(given.begin(), given.end(), key.path) == given.end())
        report.complaints.push_back({report.name + ": " + quote(key.path) + " is missing",
                                     "give it, or name a built-in cluster as \"base\""});
  }

  /// What figures must be to each other.
  void checkTogether() {
    for (DType dtype : {DType::F32, DType::F16, DType::BF16})
      for (auto [size, rate] : cluster.device.matmulFlops[dtype].points)
        if (double peak = cluster.device.peakFlops[dtype]; rate > peak && report.complaints.empty())
          report.complaints.push_back(
              {report.name + ": a matmul rate of " + spellDouble(rate) + " exceeds the device's peak of " +
                   spellDouble(peak),
               "\"device.matmul_flops\" is what is achieved, \"device.peak_flops\" what the units could do"});
    if (cluster.device.contextBytes >= cluster.device.memoryBytes)
      report.complaints.push_back(
          {report.name + ": \"device.context_bytes\" = " + std::to_string(cluster.device.contextBytes) +
               " leaves nothing of \"device.memory_bytes\" = " + std::to_string(cluster.device.memoryBytes),
           "both count bytes"});
    if (cluster.nvme.bytes > 0 &&
        (cluster.nvme.readBytesPerSecond <= 0 || cluster.nvme.writeBytesPerSecond <= 0))
      report.complaints.push_back(
          {report.name + ": \"nvme\" has no rates", "give read_bytes_per_second and write_bytes_per_second"});
    if (cluster.between.portBytesPerSecond > 0 && cluster.between.latencySeconds <= 0)
      report.complaints.push_back(
          {report.name + ": \"between.latency_seconds\" is missing", "give it beside the port's rate"});
  }

private:
  static const ClusterKey *find(std::string_view path) {
    for (const ClusterKey &key : clusterKeys())
      if (key.path == path)
        return &key;
    return nullptr;
  }

  /// Whether the description says that a node has one device, which nothing joins to others.
  bool isAlone() const {
    bool isSaid = std::find(given.begin(), given.end(), "devices_per_node") != given.end();
    return isSaid && cluster.devicesPerNode == 1;
  }

  static bool isSection(const std::string &path) {
    return std::any_of(clusterKeys().begin(), clusterKeys().end(),
                       [&](const ClusterKey &key) { return key.path.starts_with(path + "."); });
  }

  void take(const ClusterKey &key, const Value &value) {
    std::optional<Figure> figure = readFigure(key.kind, value);
    if (!figure) {
      std::string unit = key.unit.empty() ? "" : " (" + std::string(key.unit) + ")";
      return report.complain(value.place,
                             quote(key.path) + " expects " + std::string(spellExpected(key.kind)) + unit +
                                 ", but got " + describe(value),
                             std::string(key.note));
    }
    given.push_back(key.path);
    if (key.set)
      key.set(cluster, std::move(*figure));
  }

  void complainUnknown(const std::string &path, const Value &member) {
    std::vector<std::string_view> names;
    for (const ClusterKey &key : clusterKeys())
      names.push_back(key.path);
    std::string near = nearestWord(path, names);
    report.complain(member.place, "unknown key " + quote(path),
                    near.empty() ? "docs/cluster.md lists the keys" : "did you mean " + quote(near) + "?");
  }
};
} // namespace

/// "did you mean": the built-in names, or the nearest.
static std::string hintNames(const std::string &name) {
  std::vector<std::string_view> names = builtinClusterNames();
  if (std::string near = nearestWord(name, names); !near.empty())
    return "did you mean " + quote(near) + "?";
  std::string all;
  for (std::string_view each : names)
    all += (all.empty() ? "" : ", ") + std::string(each);
  return "give a file, or one of " + all;
}

/// The cluster that "base" names; a default one when there is none.
static Result<Cluster> readBase(const Value &root, const std::string &name, unsigned depth);

static Result<Cluster> readText(std::string_view text, const std::string &name, unsigned depth) {
  if (std::optional<ForeignConfig> foreign = findForeignConfig(text))
    return Error{ExitCode::Invalid, name + ": expects a description of a cluster, but got " + foreign->what,
                 foreign->hint};
  Result<Value> root = parseText(text, name);
  if (!root)
    return root.error();
  if (!root->is(Value::Kind::Object))
    return Error{ExitCode::Invalid,
                 spellLocation(name, root->place) + ": expects an object, but got " + describe(*root),
                 "a cluster description starts with { and ends with }"};
  Result<Cluster> base = readBase(*root, name, depth);
  if (!base)
    return base.error();
  ClusterReader reader(name, std::move(*base));
  reader.walk(*root, "");
  reader.overrideBase();
  if (!root->member("base"))
    reader.requireAll();
  if (reader.report.complaints.empty())
    reader.checkTogether();
  if (!reader.report.complaints.empty())
    return toError(reader.report);
  return std::move(reader.cluster);
}

static Result<Cluster> readBase(const Value &root, const std::string &name, unsigned depth) {
  const Value *base = root.member("base");
  if (!base || !base->is(Value::Kind::String))
    return Cluster();
  std::string_view text = builtinClusterText(base->text);
  if (text.empty() || depth > 3)
    return Error{ExitCode::Invalid,
                 spellLocation(name, base->place) +
                     ": \"base\" names no built-in cluster: " + quote(base->text),
                 hintNames(base->text)};
  return readText(text, base->text, depth + 1);
}

/// N of "NxDEVICE", and the device's name; empty when the name is no such thing.
static std::optional<std::pair<int64_t, std::string>> splitCount(const std::string &name) {
  int64_t count = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), count);
  std::string rest(end, name.data() + name.size());
  if (error != std::errc() || count < 1 || count > 1024 || !rest.starts_with("x"))
    return std::nullopt;
  rest.erase(0, rest.starts_with("x-") ? 2 : 1);
  return std::pair(count, rest);
}

Result<Cluster> readClusterText(std::string_view text, const std::string &name) {
  return readText(text, name, 0);
}

Result<Cluster> readCluster(const std::string &fileOrName) {
  if (std::string_view text = builtinClusterText(fileOrName); !text.empty())
    return readText(text, fileOrName, 0);
  if (auto node = splitCount(fileOrName))
    if (std::string_view text = builtinClusterText(node->second); !text.empty()) {
      Result<Cluster> cluster = readText(text, node->second, 0);
      if (!cluster)
        return cluster.error();
      cluster->name = fileOrName;
      cluster->nodes = 1;
      cluster->devicesPerNode = node->first;
      return cluster;
    }
  bool isPath = fileOrName.find_first_of("/.") != std::string::npos;
  if (!isPath)
    return Error{ExitCode::Invalid, quote(fileOrName) + " is no built-in cluster", hintNames(fileOrName)};
  Result<std::string> text = readFile(fileOrName, "check the path of the cluster description");
  if (!text)
    return text.error();
  return readText(*text, fileOrName, 0);
}

Cluster builtinCluster(std::string_view name) {
  Result<Cluster> cluster = readText(builtinClusterText(name), std::string(name), 0);
  assert(cluster && "built-in descriptions are tested");
  return std::move(*cluster);
}

Status checkRanksFit(const Cluster &cluster, int64_t ranks) {
  std::optional<int64_t> devices = cluster.devices();
  if (devices && ranks > *devices)
    return Error{ExitCode::Invalid,
                 "--ranks " + std::to_string(ranks) + " exceeds the " + std::to_string(*devices) +
                     " devices of cluster " + quote(cluster.name),
                 "lower --ranks, or give the cluster more nodes"};
  if (ranks > cluster.devicesPerNode && cluster.between.portBytesPerSecond <= 0)
    return Error{ExitCode::Invalid,
                 "--ranks " + std::to_string(ranks) + " needs several nodes of " +
                     std::to_string(cluster.devicesPerNode) +
                     " devices, but nothing joins the nodes of cluster " + quote(cluster.name),
                 "give it \"between.port_bytes_per_second\""};
  return {};
}

} // namespace ds::config
