//===- StepLine.h - What a run prints of a step, and of which ------------------------===//
//
// One line a step, whose fields stand below one another: each is as wide as the widest of its kind so far.
// Colour only on a terminal, and not where NO_COLOR is set (no-color.org) or a launcher passes the lines on.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_STEPLINE_H
#define DS_LIB_RUNTIME_TRAINING_STEPLINE_H

#include "ds/Runtime/Formats/JsonLog.h"
#include "ds/Runtime/Program/Program.h"

#include <map>
#include <optional>
#include <string>

namespace ds::rt {

/// "1:02:03", "2d 01:02:03", "0:09"; of durations that cannot be said "?".
std::string durationText(double seconds);

/// What a step's operations are against its time.
struct Throughput {
  double flopsPerSecond = 0;           ///< of one rank, with what is recomputed
  std::optional<double> utilisation;   ///< share of the device's peak that the model needs: MFU
  std::optional<double> withRecompute; ///< the same with what is recomputed (HFU), where there is such
};
/// Nothing where the program counts no operations.
std::optional<Throughput> throughputOf(const Predicted &predicted, double seconds);

/// Whether lines on this descriptor may have colour.
bool mayColour(int fd);

/// Which steps are printed. `--log-every K` prints each K-th and no others, for whoever counts lines. A
/// configuration's `steps_per_print`, which is 2000 in many, also prints the first steps, by which one sees
/// that a run works and how fast it is, and one when none has been printed for a minute.
class PrintedSteps {
public:
  static constexpr unsigned kFirstSteps = 3;
  static constexpr double kLongestSilence = 60; ///< seconds

  /// `logEvery` is the command line's, `stepsPerPrint` the configuration's; 0: each.
  PrintedSteps(std::optional<uint64_t> logEvery, uint64_t stepsPerPrint)
      : every(logEvery.value_or(stepsPerPrint)), exact(logEvery.has_value()) {}

  /// Whether a step that ends at `seconds` of a clock that never goes back is printed; those that are
  /// `forced` always are. Asked once of each step, in their order.
  bool isNext(uint64_t step, double seconds, bool forced);

private:
  uint64_t every;
  bool exact;
  unsigned seen = 0; ///< steps of this run, kFirstSteps at most
  double last = 0;   ///< seconds, of the step that was printed last
};

class StepLine {
public:
  /// `tokens`: of all ranks in a step; 0: samples are counted instead.
  StepLine(uint64_t steps, uint64_t tokens, const Predicted &predicted, bool colour)
      : steps(steps), tokens(tokens), predicted(predicted), colour(colour) {}

  /// The line of a step. Every step is told, printed or not: the time that is left is the mean of those but
  /// the first, which warms up, times the steps that are left.
  std::string spell(const StepRecord &record);

private:
  enum class Tone { Plain, Dim, Warning, Good };
  /// Appends a field, as wide as those of its name before it.
  void add(std::string &line, const char *name, const std::string &text, Tone tone = Tone::Plain);
  std::string timeLeft(const StepRecord &record);

  uint64_t steps, tokens;
  Predicted predicted;
  bool colour;
  std::map<std::string, size_t> widths; ///< by name of the field
  double seconds = 0;                   ///< of `timed` steps
  uint64_t timed = 0;
  bool sawFirst = false;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_STEPLINE_H
