//===- Context.cpp - What all parts of a calibration share ------------------------===//
#include "Context.h"

#include "ds/Runtime/Program/Program.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include <sys/resource.h>

namespace ds::rt {

/// Seconds after which a machine that is slow, or shared, is asked less: `elapsed` is the same on every rank.
static constexpr double kHurry = 40;

int64_t countPreemptions() {
  rusage usage{};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

SamplingOptions Calibration::sampling() const {
  if (quick)
    return {1, 2, 3, 0.0005, {}};
  return elapsed > kHurry ? SamplingOptions{1, 1, 9, 0.003, {}} : SamplingOptions{1, 3, 41, 0.012, {}};
}

void Calibration::progress(const std::string &what) const {
  if (leads())
    std::fprintf(stderr, "calibrate: %s\n", what.c_str());
}

Status Calibration::start() { return world() > 1 ? group->channel(0).barrier("calibration") : Status(); }

Status Calibration::agree(Sample &sample, int64_t &preempted) {
  elapsed = static_cast<double>(clock() - begin) * 1e-9;
  if (world() == 1)
    return {};
  double values[4] = {sample.seconds, sample.spread, elapsed, static_cast<double>(preempted)};
  alignas(64) std::byte staging[4096];
  Status status =
      group->channel(0).allReduce(values, values, staging, 4, DType::F64, Reduction::Max, "calibration");
  sample.seconds = values[0];
  sample.spread = values[1];
  elapsed = values[2];
  preempted = static_cast<int64_t>(values[3]);
  return status;
}

Result<Sample> Calibration::measure(const std::string &figure,
                                    const std::function<Result<Sample>()> &measure) {
  constexpr double kCalm = 0.2;
  constexpr int kAttempts = 5;
  constexpr std::chrono::milliseconds kPause(10); // doubled each time
  constexpr double kPatience = 30;                // seconds: on a machine that is never calm, once has to do
  Sample best;
  for (int attempt = 0; attempt < (quick ? 1 : kAttempts); ++attempt) {
    if (attempt > 0)
      std::this_thread::sleep_for(kPause * (1 << (attempt - 1)));
    if (Status status = start(); !status)
      return status.error();
    const int64_t before = preemptions();
    Result<Sample> sample = measure();
    if (!sample)
      return sample;
    int64_t preempted = preemptions() - before;
    if (Status status = agree(*sample, preempted); !status)
      return status.error();
    if (attempt == 0 || sample->seconds < best.seconds)
      best = *sample;
    if ((sample->spread < kCalm && preempted == 0) || elapsed > kPatience) // on every rank
      break;
  }
  if (best.spread > worstSpread) {
    worstSpread = best.spread;
    worstFigure = figure;
  }
  return best;
}

Result<Sample> Calibration::measure(const std::string &figure, Workbench &bench, uint32_t command) {
  return measure(figure, [&] { return bench.measure(command, sampling(), clock); });
}

std::string Calibration::provenance(double spread) const {
  return fmt::format("measured {}, {}, spread {:.0f} %", date, processor, spread * 100);
}

} // namespace ds::rt
