//===- StepLine.cpp - What a run prints of a step ------------------------------------===//

#include "StepLine.h"

#include "Process/Messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <unistd.h>

namespace ds::rt {

std::string durationText(double seconds) {
  constexpr double kMostSeconds = 1e10; // three centuries
  if (!(seconds >= 0) || seconds > kMostSeconds)
    return "?";
  const auto whole = static_cast<uint64_t>(std::llround(seconds));
  const uint64_t days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60;
  if (days > 0)
    return fmt::format("{}d {:02}:{:02}:{:02}", days, hours, minutes, whole % 60);
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

std::optional<Throughput> throughputOf(const Predicted &predicted, double seconds) {
  if (!(predicted.flopsPerStep > 0) || !(seconds > 0))
    return std::nullopt;
  Throughput throughput{predicted.flopsPerStep / seconds, {}, {}};
  if (predicted.peakFlopsPerSecond > 0) {
    const double most = predicted.peakFlopsPerSecond * seconds;
    throughput.utilisation = (predicted.flopsPerStep - predicted.recomputeFlops) / most;
    if (predicted.recomputeFlops > 0)
      throughput.withRecompute = predicted.flopsPerStep / most;
  }
  return throughput;
}

bool mayColour(int fd) {
  const char *no = std::getenv("NO_COLOR"), *terminal = std::getenv("TERM");
  // mpirun reads what a rank writes through a terminal of its own, wherever it writes that to.
  const bool isLaunched = std::getenv("PMIX_RANK") != nullptr;
  return ::isatty(fd) && !isLaunched && !(no && *no) && !(terminal && std::strcmp(terminal, "dumb") == 0);
}

bool PrintedSteps::isNext(uint64_t step, double seconds, bool forced) {
  const bool isFirst = seen < kFirstSteps;
  seen += isFirst;
  bool isPrinted = forced || every <= 1 || step % every == 0;
  if (!exact)
    isPrinted |= isFirst || seconds - last >= kLongestSilence;
  if (isPrinted)
    last = seconds;
  return isPrinted;
}

void StepLine::add(std::string &line, const char *name, const std::string &text, Tone tone) {
  static constexpr const char *kBegin[] = {"", "\033[2m", "\033[33m", "\033[32m"};
  size_t &width = widths[name];
  width = std::max(width, text.size());
  const bool coloured = colour && tone != Tone::Plain;
  line +=
      fmt::format("{}{}{}{}{:{}}", line.empty() ? "" : "  ", coloured ? kBegin[static_cast<int>(tone)] : "",
                  text, coloured ? "\033[0m" : "", "", width - text.size());
}

/// "eval_loss 3.25", or with names "eval_loss 3.25 of valid, 2.5 of code".
static std::string spellEvaluations(std::span<const EvalLoss> losses) {
  std::string text = "eval_loss ";
  for (const EvalLoss &each : losses) {
    text += fmt::format("{}{:.6g}", &each == losses.data() ? "" : ", ", each.loss);
    text += each.name.empty() ? "" : " of " + each.name;
  }
  return text;
}

std::string StepLine::timeLeft(const StepRecord &record) {
  if (record.stepSeconds && std::exchange(sawFirst, true)) {
    seconds += *record.stepSeconds;
    ++timed;
  }
  if (timed == 0 || record.step >= steps)
    return {};
  return durationText(seconds / static_cast<double>(timed) * static_cast<double>(steps - record.step));
}

std::string StepLine::spell(const StepRecord &record) {
  std::string line;
  add(line, "step", fmt::format("step {}/{}", record.step, steps));
  if (record.loss)
    add(line, "loss", fmt::format("loss {:.6g}", *record.loss));
  if (record.gradNorm)
    add(line, "grad_norm", fmt::format("grad_norm {:.4g}", *record.gradNorm));
  if (record.lr)
    add(line, "lr", fmt::format("lr {:.3e}", *record.lr));
  if (record.lossScale)
    add(line, "loss_scale", fmt::format("loss_scale {:g}", *record.lossScale));
  if (record.skipped.value_or(false))
    add(line, "skipped", record.targets == 0 ? "skipped, no target counts" : "skipped", Tone::Warning);
  if (tokens > 0)
    add(line, "rate",
        fmt::format("{:.0f} tokens/s", static_cast<double>(tokens) / record.stepSeconds.value_or(1)));
  else
    add(line, "rate", fmt::format("{:.1f} samples/s", record.samplesPerSecond.value_or(0)));
  if (const auto throughput = throughputOf(predicted, record.stepSeconds.value_or(0))) {
    add(line, "flops", fmt::format("{:.3g} TFLOP/s", throughput->flopsPerSecond * 1e-12));
    if (throughput->utilisation)
      add(line, "mfu", fmt::format("MFU {:.1f} %", 100 * *throughput->utilisation));
  }
  const uint64_t used = record.peakBytes ? record.peakBytes->device : 0;
  const uint64_t planned = predicted.peakBytes > 0 ? predicted.peakBytes : used;
  add(line, "memory",
      fmt::format("memory {} of {}", bytesText(static_cast<double>(used)),
                  bytesText(static_cast<double>(planned))),
      Tone::Dim);
  if (const std::string left = timeLeft(record); !left.empty())
    add(line, "left", fmt::format("{} left", left), Tone::Dim);
  if (!record.evaluations.empty())
    add(line, "eval_loss", spellEvaluations(record.evaluations), Tone::Good);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

} // namespace ds::rt
