//===- Schedule.h - Learning rates and momenta by step ----------------------------===//
//
// DeepSpeed's five learning-rate schedulers as pure functions of the step. They are the reference that
// generated code and the runtime are compared with, and need nothing but this header.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_CONFIG_SCHEDULE_H
#define DS_CONFIG_SCHEDULE_H

#include <cstdint>

namespace ds::config {

/// A scheduler with all parameters resolved; the parameters of other kinds keep their defaults.
struct Schedule {
  enum class Kind : uint8_t { None, LRRangeTest, OneCycle, WarmupLR, WarmupDecayLR, WarmupCosineLR };
  enum class Ramp : uint8_t { Log, Linear };
  Kind kind = Kind::None;

  /// A total_num_steps that only the run knows.
  static constexpr int64_t kStepsOfRun = -1;

  // LRRangeTest
  double minLr = 1e-3; ///< lr_range_test_min_lr
  int64_t stepSize = 2000;
  double stepRate = 1;
  bool staircase = false;

  // OneCycle
  double cycleMinLr = 0, cycleMaxLr = 0, decayLrRate = 0;
  int64_t firstStepSize = 2000, secondStepSize = 2000;
  int64_t firstStairCount = 0, secondStairCount = 0; ///< 0: continuous
  int64_t decayStepSize = 0;                         ///< 0: no decay
  bool cycleMomentum = false;                        ///< resolved: false for optimizers that have no betas
  double cycleMinMom = 0.8, cycleMaxMom = 0.9, decayMomRate = 0;

  // WarmupLR, WarmupDecayLR, WarmupCosineLR
  double warmupMinLr = 0, warmupMaxLr = 1e-3; ///< WarmupLR's absent maximum is resolved to the optimizer's lr
  int64_t warmupNumSteps = 1000;              ///< at least 2, as DeepSpeed enforces
  Ramp ramp = Ramp::Log;
  int64_t totalNumSteps = 0; ///< WarmupDecayLR, WarmupCosineLR; kStepsOfRun: the run says
  double warmupMinRatio = 0; ///< WarmupCosineLR: of the optimizer's lr
  double cosMinRatio = 1e-4; ///< WarmupCosineLR
};

/// The learning rate after the scheduler's step number t, counted from 0 (DeepSpeed's last_batch_iteration);
/// t == -1 is the state before its first step. `baseLr` is the optimizer's own rate. DeepSpeed steps the
/// scheduler after the optimizer, so its optimizer step number k, from 0, runs at t = k - 1.
double scheduleLr(const Schedule &schedule, double baseLr, int64_t t);

struct Betas {
  double beta1 = 0, beta2 = 0;
};

/// The betas at t, by the same count. Only OneCycle with cycleMomentum changes them; it moves beta1 against
/// the learning rate and holds beta2 at 0.99 whatever the optimizer's own is.
Betas scheduleBetas(const Schedule &schedule, Betas base, int64_t t);

} // namespace ds::config

#endif // DS_CONFIG_SCHEDULE_H
