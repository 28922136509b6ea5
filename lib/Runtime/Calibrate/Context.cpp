//===- Context.cpp - What all parts of a calibration share ------------------------===//
#include "Context.h"

#include "ds/Runtime/Program.h"

#include <fmt/format.h>

#include <cstdio>

namespace ds::rt {

/// Seconds after which a machine that is slow, or shared, is asked less: `elapsed` is the same on every rank.
static constexpr double kHurry = 40;

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

Status Calibration::agree(Sample &sample) {
  elapsed = static_cast<double>(clock() - begin) * 1e-9;
  if (world() == 1)
    return {};
  double values[3] = {sample.seconds, sample.spread, elapsed};
  alignas(64) std::byte staging[4096];
  Status status =
      group->channel(0).allReduce(values, values, staging, 3, DType::F64, Reduction::Max, "calibration");
  sample.seconds = values[0];
  sample.spread = values[1];
  elapsed = values[2];
  return status;
}

Result<Sample> Calibration::measure(const std::string &figure,
                                    const std::function<Result<Sample>()> &measure) {
  constexpr double kCalm = 0.2;
  constexpr int kAttempts = 5;
  constexpr double kPatience = 30; // seconds: on a machine that is never calm, once has to do
  Sample best;
  for (int attempt = 0; attempt < (quick ? 1 : kAttempts); ++attempt) {
    if (Status status = start(); !status)
      return status.error();
    Result<Sample> sample = measure();
    if (!sample)
      return sample;
    if (Status status = agree(*sample); !status)
      return status.error();
    if (attempt == 0 || sample->seconds < best.seconds)
      best = *sample;
    if (sample->spread < kCalm || elapsed > kPatience) // on every rank
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
