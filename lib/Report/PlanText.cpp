//===- PlanText.cpp - The plan as tables for a terminal -------------------------===//
//
// One screen for one rank: the peak and where it is, the curve of live bytes over the step, what the peak
// consists of, the largest values, and the layers. Runs of layers that need the same are one line.
//
// Size: all tables of the plan; those of its layers are still to be parted.
//
//===---------------------------------------------------------------------------===//

#include "ds/Report/PlanReport.h"
#include "ds/Report/Throughput.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace ds::report {

namespace {

/// Number of columns of a UTF-8 text without control sequences (one for each code point).
unsigned columns(const std::string &text) {
  return unsigned(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

/// `text` in exactly `width` columns; what is too long loses its middle.
std::string left(std::string text, unsigned width) {
  // Control characters of foreign names would break the table.
  std::replace_if(
      text.begin(), text.end(), [](char c) { return (unsigned char)c < 0x20 || c == 0x7F; }, '?');
  if (columns(text) > width) {
    std::string head, tail;
    unsigned keep = width - 2, at = 0, total = columns(text);
    for (char c : text) {
      at += (c & 0xC0) != 0x80;
      if (at <= keep / 2)
        head += c;
      else if (at > total - (keep - keep / 2))
        tail += c;
    }
    text = head + ".." + tail;
  }
  return text + std::string(width - columns(text), ' ');
}

std::string right(const std::string &text, unsigned width) {
  unsigned used = columns(text);
  return std::string(used < width ? width - used : 0, ' ') + text;
}

std::string trimmed(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string percent(int64_t part, int64_t whole, int digits = 1) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f %%", digits, whole > 0 ? 100.0 * double(part) / double(whole) : 0.0);
  return text;
}

/// 1.2 G, 340.5 M, 12.0 k: counts, in powers of 1000.
std::string count(double value) {
  const char *units[] = {"", " k", " M", " G", " T", " P", " E"};
  unsigned unit = 0;
  for (; value >= 999.95 && unit < 6; ++unit)
    value /= 1000;
  char text[48];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f%s" : "%.1f%s", value, units[unit]);
  return text;
}

/// Size: a method for each table of the plan; four fields.
class Printer {
public:
  Printer(const PlanReport &report, const TextOptions &options)
      : report(report), options(options), width(std::max(60u, options.width)) {}
  std::string run();

private:
  void line(const std::string &text) { out += trimmed(text) + "\n"; }
  std::string paint(const std::string &text, const char *code) const {
    return options.colour ? "\x1b[" + std::string(code) + "m" + text + "\x1b[0m" : text;
  }
  void heading(const std::string &text) { out += "\n  " + paint(text, "1") + "\n"; }
  std::string bar(int64_t part, int64_t whole, unsigned room) const;
  std::string curve(const std::vector<int64_t> &values, unsigned room) const;
  void title();
  void host();
  void storage();
  void communication();
  void time();
  void choices();
  void notes();
  std::string stepOf(const PlanChoice &choice) const;
  void verdict();
  void rank(const RankPlan &rank);
  void categories(const RankPlan &rank);
  void states(const RankPlan &rank);
  void largest(const RankPlan &rank);
  void layers(const RankPlan &rank);
  void parts(const RankPlan &rank, const std::string &where);
  void beyond(const RankPlan &rank);

  const PlanReport &report;
  const TextOptions &options;
  unsigned width;
  std::string out;
};

} // namespace

/// A bar of part / whole of `room` columns, in eighths of a column; anything above zero is visible.
std::string Printer::bar(int64_t part, int64_t whole, unsigned room) const {
  if (part <= 0 || whole <= 0)
    return "";
  int64_t eighths = std::max<int64_t>(1, std::llround(double(part) / double(whole) * room * 8));
  std::string text;
  if (!options.unicode)
    return std::string(size_t(std::max<int64_t>(1, (eighths + 4) / 8)), '#');
  for (; eighths >= 8; eighths -= 8)
    text += "█";
  const char *parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  return text + parts[eighths];
}

/// The values as a line of columns of eight heights between the least and the most; each column shows the
/// largest value it stands for.
std::string Printer::curve(const std::vector<int64_t> &values, unsigned room) const {
  const char *heights[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const char ascii[] = {'_', '.', ',', '-', '=', '+', '*', '#'};
  size_t n = values.size(), cells = std::min<size_t>(room, n);
  auto [least, most] = std::minmax_element(values.begin(), values.end());
  double bottom = double(*least), range = double(*most) - bottom;
  std::string text;
  for (size_t cell = 0; cell < cells; ++cell) {
    auto first = values.begin() + cell * n / cells, last = values.begin() + (cell + 1) * n / cells;
    double value = double(*std::max_element(first, last));
    int height = range > 0 ? std::clamp(int((value - bottom) / range * 8), 0, 7) : 7;
    text += options.unicode ? std::string(heights[height]) : std::string(1, ascii[height]);
  }
  return text;
}

void Printer::title() {
  std::string mesh = "dp " + std::to_string(report.mesh.dp) + ", tp " + std::to_string(report.mesh.tp) +
                     ", pp " + std::to_string(report.mesh.pp) + ", sp " + std::to_string(report.mesh.sp);
  std::string text = "Memory plan" + (report.model.empty() ? "" : " of " + report.model) +
                     (report.target.empty() ? "" : " for " + report.target);
  line(paint(text, "1"));
  text = count(double(report.parameters)) + " parameters";
  if (report.flopsPerStep > 0)
    text +=
        ", " + count(report.flopsPerStep) + (report.flopsPerStep >= 999.95 ? "FLOP" : " FLOP") + " a step";
  text += report.world == 1 ? ", one rank" : ", " + std::to_string(report.world) + " ranks (" + mesh + ")";
  if (report.predicted.stepSeconds) {
    char seconds[48];
    std::snprintf(seconds, sizeof seconds, ", %.3g s a step predicted", *report.predicted.stepSeconds);
    text += seconds;
  }
  line(text);
  if (!report.basisReason.empty())
    line("basis: " + report.basis + " (" + report.basisReason + ")");
  if (!report.clusterReason.empty())
    line("cluster: " + report.cluster + " (" + report.clusterReason + ")");
  if (!report.programTargetReason.empty())
    line("target: " + report.programTarget + " (" + report.programTargetReason + ")");
}

void Printer::categories(const RankPlan &rank) {
  heading("At the peak");
  const unsigned room = width - 48;
  for (unsigned i = 0; i < kNumCategories; ++i) {
    int64_t bytes = rank.atPeak[i];
    line("  " + left(spell(Category(i)), 14) + right(formatBytes(bytes), 11) +
         right(percent(bytes, rank.peakBytes), 9) + "  " + paint(bar(bytes, rank.peakBytes, room), "36"));
  }
}

void Printer::states(const RankPlan &rank) {
  heading("Kept for the whole step");
  const StateBytes &states = rank.states;
  int64_t total = states.parameters + states.gradients + states.optimizer + states.padding + states.scalars;
  auto row = [&](const char *name, int64_t bytes) {
    line("  " + left(name, 14) + right(formatBytes(bytes), 11) + right(formatExact(bytes), 22) + " bytes");
  };
  row("parameters", states.parameters), row("gradients", states.gradients),
      row("optimizer", states.optimizer);
  row("scalars", states.scalars), row("padding", states.padding), row("together", total);
  if (const std::optional<CheckpointBytes> &checkpoint = report.checkpoint)
    line("  A checkpoint has " + formatBytes(checkpoint->bytes) +
         "; to write it while training goes on, a rank copies " + formatBytes(checkpoint->copyBytes) +
         " to host memory.");
}

void Printer::largest(const RankPlan &rank) {
  if (rank.largest.empty())
    return;
  heading("Largest values live at the peak");
  const unsigned room = width - 34, layerRoom = std::min(28u, room * 2 / 5);
  for (size_t i = 0; i < std::min<size_t>(10, rank.largest.size()); ++i) {
    const LiveValue &value = rank.largest[i];
    line(right(std::to_string(i + 1), 4) + right(formatBytes(value.bytes), 12) + "  " +
         left(spell(value.category), 14) +
         (value.layer.empty() ? left(value.name, room + 2)
                              : left(value.layer, layerRoom) + "  " + left(value.name, room - layerRoom)));
  }
}

void Printer::layers(const RankPlan &rank) {
  if (rank.byLayer.empty())
    return;
  heading("Live at the peak, by layer");
  int64_t most = 0;
  for (const LayerBytes &layer : rank.byLayer)
    most = std::max(most, layer.bytes);
  const unsigned nameRoom = width * 34 / 100, room = width - nameRoom - 24;
  for (LayerRun run : findLayerRuns(rank.byLayer)) {
    int64_t bytes = rank.byLayer[run.first].bytes;
    std::string each = run.count() > 1 ? " x " + std::to_string(run.count()) : "";
    line("  " + left(nameRun(rank.byLayer, run), nameRoom) + right(formatBytes(bytes), 11) + left(each, 7) +
         "  " + paint(bar(bytes, most, room), "36"));
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
void Printer::parts(const RankPlan &rank, const std::string &where) {
  auto isPart = [&](const MemoryLine &line) { return !line.beyondArenas && line.where.starts_with(where); };
  if (report.basis != "program" || std::none_of(rank.memory.begin(), rank.memory.end(), isPart))
    return;
  heading("Memory by part, at the peak of the " + where + "'s arena");
  const unsigned room = width - 15, nameRoom = room * 45 / 100;
  int64_t total = 0;
  auto row = [&](int64_t bytes, const std::string &name, const std::string &source) {
    std::string head = right(formatBytes(bytes), 11) + "  " + left(name, nameRoom - 2);
    for (const std::string &part : splitSource(source)) {
      line("  " + head + "  " + left(part, room - nameRoom));
      head.assign(11 + nameRoom, ' ');
    }
  };
  for (const MemoryLine &memory : rank.memory)
    if (isPart(memory))
      row(memory.bytes, memory.name, memory.source), total += memory.bytes;
  row(total, "together", formatExact(total) + " bytes");
}

/// What lies outside the arenas, on the device or on the host, a line each with its source.
void Printer::beyond(const RankPlan &rank) {
  bool isFirst = true;
  for (const MemoryLine &memory : rank.memory) {
    if (!memory.beyondArenas)
      continue;
    if (std::exchange(isFirst, false))
      heading("Beyond the arenas");
    line("    " + formatBytes(memory.bytes) + "  " + memory.name +
         (memory.where == "device" ? "" : " (" + memory.where + ")") + ", " + memory.source);
  }
}

void Printer::rank(const RankPlan &rank) {
  std::string who = rank.firstRank == rank.lastRank ? "Rank " + std::to_string(rank.firstRank)
                                                    : "Ranks " + std::to_string(rank.firstRank) + " to " +
                                                          std::to_string(rank.lastRank) + ", each";
  if (report.mesh.pp > 1)
    who += ", stage " + std::to_string(rank.stage);
  out += "\n" + paint(who, "1") + "\n";
  line("  peak    " + right(formatBytes(rank.peakBytes), 11) + "  " + formatExact(rank.peakBytes) +
       " bytes, at " + rank.peakAt);
  line("  bound   " + right(formatBytes(rank.lowerBound), 11) +
       "  no order of addresses needs less; the plan is " +
       percent(rank.peakBytes - rank.lowerBound, rank.lowerBound, 2) + " above");
  auto elsewhere = [&](const char *name, int64_t bytes) {
    if (bytes > 0)
      line("  " + left(name, 8) + right(formatBytes(bytes), 11) + "  " + formatExact(bytes) + " bytes");
  };
  elsewhere("host", rank.hostArena), elsewhere("nvme", rank.nvmeArena);
  for (const StorageDirectory &each : rank.nvmePaths)
    line("  " + right(formatBytes(each.bytes), 19) + "  " + formatExact(each.bytes) + " bytes in " +
         each.path);
  if (!rank.liveBytes.empty()) {
    auto [least, most] = std::minmax_element(rank.liveBytes.begin(), rank.liveBytes.end());
    line("  live    " + right(formatBytes(*least), 11) + "  " +
         paint(curve(rank.liveBytes, width - 36), "36") + "  " + formatBytes(*most));
  }
  categories(rank);
  for (const char *where : {"device", "host", "nvme"})
    parts(rank, where);
  states(rank), largest(rank), layers(rank), beyond(rank);
}

void Printer::host() {
  if (!report.host)
    return;
  out += "\n" + paint("Host memory", "1") + "\n";
  for (const auto &[name, bytes] : {std::pair("of the ranks of a node", report.host->nodeBytes),
                                    {"page-locked, each rank", report.host->lockedBytes}})
    line("  " + left(name, 24) + right(formatBytes(bytes), 11) + right(formatExact(bytes), 22) + " bytes");
}

void Printer::storage() {
  if (!report.storage)
    return;
  out += "\n" + paint("Moved by each rank from and to storage in a step", "1") + "\n";
  for (const auto &[name, bytes] :
       {std::pair("read", report.storage->readBytes), {"written", report.storage->writtenBytes}})
    line("  " + left(name, 16) + right(formatBytes(bytes), 11) + right(formatExact(bytes), 22) + " bytes");
}

void Printer::communication() {
  if (report.predicted.communicationBytes.empty())
    return;
  out += "\n" + paint("Sent by each rank in a step", "1") + "\n";
  int64_t total = 0;
  auto row = [&](const std::string &name, int64_t bytes) {
    line("  " + left(name, 16) + right(formatBytes(bytes), 11) + right(formatExact(bytes), 22) + " bytes");
  };
  for (const auto &[kind, bytes] : report.predicted.communicationBytes)
    row(kind, bytes), total += bytes;
  row("together", total);
}

/// What the predicted step is made of, and the cluster's figures behind it.
void Printer::time() {
  if (!report.predicted.stepSeconds || report.predicted.terms.empty())
    return;
  double step = *report.predicted.stepSeconds;
  char text[64];
  std::snprintf(text, sizeof text, "Predicted step: %.4g s, %.4g TFLOP/s per device", step,
                report.predicted.tflopsPerDevice.value_or(0));
  out += "\n" + paint(text, "1") + "\n";
  for (const TimeTerm &term : report.predicted.terms) {
    std::snprintf(text, sizeof text, "%9.4g s%6.1f %%  ", term.seconds, 100 * term.seconds / step);
    line("  " + left(term.name, 23) + text + left(term.source, width - 46));
  }
  if (std::string throughput = printThroughput(report); !throughput.empty())
    out += "\n" + throughput;
}

/// How the largest values are had and what else could be done, where memory asked for more than keeping all.
void Printer::choices() {
  bool isFree = std::all_of(report.largestValues.begin(), report.largestValues.end(),
                            [](const ResidentValue &value) { return value.way.starts_with("kept"); });
  if (isFree)
    return;
  out +=
      "\n" + paint("Largest values with a choice, and what another would add to step and peak", "1") + "\n";
  bool anyRefused = false;
  for (const ResidentValue &value : report.largestValues) {
    std::string what = value.layer.empty() ? value.what : value.what + " " + value.layer;
    std::string row =
        "  " + left(what, 28) + right(formatBytes(value.bytes), 11) + "  " + left(value.way, 20);
    // Another way that is as good says nothing.
    const bool differs = std::fabs(value.nextSeconds) > 1e-9 || value.nextBytes != 0;
    if (!value.next.empty() && differs) {
      char seconds[48];
      std::snprintf(seconds, sizeof seconds, "%+.3g s, ", value.nextSeconds);
      row += value.next + (value.isNextRefused ? "*: " : ": ") + seconds + (value.nextBytes < 0 ? "-" : "+") +
             formatBytes(std::abs(value.nextBytes));
      anyRefused |= value.isNextRefused;
    }
    line(row);
  }
  if (anyRefused)
    line("  * not taken, for the configuration asks for what was done");
}

void Printer::notes() {
  if (!report.notes.empty())
    out += "\n" + paint("Notes", "1") + "\n";
  for (const std::string &note : report.notes)
    line("  " + note);
}

/// ": 0.125 s a step (+3.2 %)" of a change, beside the step of the plan that does not fit.
std::string Printer::stepOf(const PlanChoice &choice) const {
  if (!choice.stepSeconds || !report.predicted.stepSeconds)
    return "";
  char text[80];
  std::snprintf(text, sizeof text, ": %.4g s a step (%+.1f %%)", *choice.stepSeconds,
                100 * (*choice.stepSeconds / *report.predicted.stepSeconds - 1));
  return text;
}

void Printer::verdict() {
  int64_t most = 0;
  for (const RankPlan &rank : report.ranks)
    most = std::max(most, rank.deviceArena);
  out += "\n";
  if (report.memoryLimit <= 0)
    line("needs: " + formatBytes(most) + " (no limit is known)");
  else if (report.fits())
    line(paint("fits: " + formatBytes(most) + " of " + formatBytes(report.memoryLimit), "32"));
  else
    line(paint("does not fit: " + formatBytes(most) + " of " + formatBytes(report.memoryLimit) + ", " +
                   formatBytes(most - report.memoryLimit) + " too much",
               "31"));
  for (const PlanChoice &choice : report.changes)
    line("would fit: " + choice.change + stepOf(choice) + ", " + formatBytes(choice.deviceBytes) +
         (choice.hasPass ? "" : ", by rules") + report.remarkOn(choice));
}

std::string Printer::run() {
  title();
  for (const RankPlan &plan : report.ranks)
    rank(plan);
  host(), storage(), communication(), time(), choices(), notes();
  verdict();
  return std::move(out);
}

std::string printPlanText(const PlanReport &report, const TextOptions &options) {
  return Printer(report, options).run();
}

} // namespace ds::report
