//===- RankText.cpp - What a plan says of one rank, for a terminal ------------------===//
//
// The peak and where it is, the curve of live bytes over the step, what the peak consists of, the largest
// values, and the layers. Runs of layers that need the same are one line.
//
//===---------------------------------------------------------------------------===//

#include "TextPage.h"

#include <algorithm>
#include <utility>

namespace ds::report {

static void printCategories(TextPage &page, const RankPlan &rank) {
  page.heading("At the peak");
  const unsigned room = page.width() - 48;
  for (unsigned i = 0; i < kNumCategories; ++i) {
    int64_t bytes = rank.atPeak[i];
    page.line("  " + left(spell(Category(i)), 14) + right(formatBytes(bytes), 11) +
              right(percent(bytes, rank.peakBytes), 9) + "  " +
              page.paint(page.bar(bytes, rank.peakBytes, room), "36"));
  }
}

static void printStates(TextPage &page, const RankPlan &rank,
                        const std::optional<CheckpointBytes> &checkpoint) {
  page.heading("Kept for the whole step");
  const StateBytes &states = rank.states;
  int64_t total = states.parameters + states.gradients + states.optimizer + states.padding + states.scalars;
  auto row = [&](const char *name, int64_t bytes) {
    page.line("  " + left(name, 14) + right(formatBytes(bytes), 11) + right(formatExact(bytes), 22) +
              " bytes");
  };
  row("parameters", states.parameters);
  if (states.frozen > 0)
    row("of them frozen", states.frozen);
  row("gradients", states.gradients), row("optimizer", states.optimizer);
  row("scalars", states.scalars), row("padding", states.padding), row("together", total);
  if (checkpoint)
    page.line("  A checkpoint has " + formatBytes(checkpoint->bytes) +
              "; to write it while training continues, a rank copies " + formatBytes(checkpoint->copyBytes) +
              " to host memory.");
}

static void printLargest(TextPage &page, const RankPlan &rank) {
  if (rank.largest.empty())
    return;
  page.heading("Largest values live at the peak");
  const unsigned room = page.width() - 34, layerRoom = std::min(28u, room * 2 / 5);
  for (size_t i = 0; i < std::min<size_t>(10, rank.largest.size()); ++i) {
    const LiveValue &value = rank.largest[i];
    page.line(right(std::to_string(i + 1), 4) + right(formatBytes(value.bytes), 12) + "  " +
              left(spell(value.category), 14) +
              (value.layer.empty()
                   ? left(value.name, room + 2)
                   : left(value.layer, layerRoom) + "  " + left(value.name, room - layerRoom)));
  }
}

static void printLayers(TextPage &page, const RankPlan &rank) {
  if (rank.byLayer.empty())
    return;
  page.heading("Live at the peak, by layer");
  int64_t most = 0;
  for (const LayerBytes &layer : rank.byLayer)
    most = std::max(most, layer.bytes);
  const unsigned nameRoom = page.width() * 34 / 100, room = page.width() - nameRoom - 24;
  for (LayerRun run : findLayerRuns(rank.byLayer)) {
    int64_t bytes = rank.byLayer[run.first].bytes;
    std::string each = run.count() > 1 ? " x " + std::to_string(run.count()) : "";
    page.line("  " + left(nameRun(rank.byLayer, run), nameRoom) + right(formatBytes(bytes), 11) +
              left(each, 7) + "  " + page.paint(page.bar(bytes, most, room), "36"));
  }
}

/// The parts of "12 layers of 512 bytes; read by the backward pass: 144"; at least one.
static std::vector<std::string> splitSource(const std::string &source) {
  std::vector<std::string> parts;
  for (size_t begin = 0, end; begin != std::string::npos; begin = end == source.npos ? end : end + 2) {
    end = source.find("; ", begin);
    parts.push_back(source.substr(begin, end - begin));
  }
  return parts;
}

/// What an arena holds at its peak, a line each with its source: that of the memory `where`, or what begins
/// so.
static void printParts(TextPage &page, const RankPlan &rank, const std::string &where) {
  auto isPart = [&](const MemoryLine &line) { return !line.beyondArenas && line.where.starts_with(where); };
  if (std::none_of(rank.memory.begin(), rank.memory.end(), isPart))
    return;
  page.heading("Memory by part, at the peak of the " + where + "'s arena");
  const unsigned room = page.width() - 15, nameRoom = room * 45 / 100;
  int64_t total = 0;
  auto row = [&](int64_t bytes, const std::string &name, const std::string &source) {
    std::string head = right(formatBytes(bytes), 11) + "  " + left(name, nameRoom - 2);
    for (const std::string &part : splitSource(source)) {
      page.line("  " + head + "  " + left(part, room - nameRoom));
      head.assign(11 + nameRoom, ' ');
    }
  };
  for (const MemoryLine &memory : rank.memory)
    if (isPart(memory))
      row(memory.bytes, memory.name, memory.source), total += memory.bytes;
  row(total, "together", formatExact(total) + " bytes");
}

/// What lies outside the arenas, on the device or on the host, a line each with its source.
static void printBeyond(TextPage &page, const RankPlan &rank) {
  bool isFirst = true;
  for (const MemoryLine &memory : rank.memory) {
    if (!memory.beyondArenas)
      continue;
    if (std::exchange(isFirst, false))
      page.heading("Beyond the arenas");
    page.line("    " + formatBytes(memory.bytes) + "  " + memory.name +
              (memory.where == "device" ? "" : " (" + memory.where + ")") + ", " + memory.source);
  }
}

void printRank(TextPage &page, const PlanReport &report, const RankPlan &rank) {
  std::string who = rank.firstRank == rank.lastRank ? "Rank " + std::to_string(rank.firstRank)
                                                    : "Ranks " + std::to_string(rank.firstRank) + " to " +
                                                          std::to_string(rank.lastRank) + ", each";
  if (report.mesh.pp > 1)
    who += ", stage " + std::to_string(rank.stage);
  page.section(who);
  page.line("  peak    " + right(formatBytes(rank.peakBytes), 11) + "  " + formatExact(rank.peakBytes) +
            " bytes, at " + rank.peakAt);
  page.line("  bound   " + right(formatBytes(rank.lowerBound), 11) +
            "  no order of addresses needs less; the plan is " +
            percent(rank.peakBytes - rank.lowerBound, rank.lowerBound, 2) + " above");
  auto elsewhere = [&](const char *name, int64_t bytes) {
    if (bytes > 0)
      page.line("  " + left(name, 8) + right(formatBytes(bytes), 11) + "  " + formatExact(bytes) + " bytes");
  };
  elsewhere("host", rank.hostArena), elsewhere("nvme", rank.nvmeArena);
  for (const StorageDirectory &each : rank.nvmePaths)
    page.line("  " + right(formatBytes(each.bytes), 19) + "  " + formatExact(each.bytes) + " bytes in " +
              each.path);
  if (!rank.liveBytes.empty()) {
    auto [least, most] = std::minmax_element(rank.liveBytes.begin(), rank.liveBytes.end());
    page.line("  live    " + right(formatBytes(*least), 11) + "  " +
              page.paint(page.curve(rank.liveBytes, page.width() - 36), "36") + "  " + formatBytes(*most));
  }
  printCategories(page, rank);
  if (report.basis == "program")
    for (const char *where : {"device", "host", "nvme"})
      printParts(page, rank, where);
  printStates(page, rank, report.checkpoint);
  printLargest(page, rank), printLayers(page, rank), printBeyond(page, rank);
}

} // namespace ds::report
