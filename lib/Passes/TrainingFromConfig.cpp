//===- TrainingFromConfig.cpp - From ds_config.json to ds.training ---------------===//
#include "ds/Passes/TrainingFromConfig.h"

#include "TrainingAttr.h"

using namespace mlir;
using namespace mlir::ds;
namespace config = ::ds::config;

static OptimizerOptions::Kind kindOf(config::Optimizer::Kind kind) {
  switch (kind) {
  case config::Optimizer::Kind::Sgd:
    return OptimizerOptions::Kind::Sgd;
  case config::Optimizer::Kind::Adagrad:
    return OptimizerOptions::Kind::Adagrad;
  case config::Optimizer::Kind::Lion:
    return OptimizerOptions::Kind::Lion;
  case config::Optimizer::Kind::Lamb:
    return OptimizerOptions::Kind::Lamb;
  default:
    return OptimizerOptions::Kind::Adam;
  }
}

static OptimizerOptions convert(const config::Optimizer &from) {
  OptimizerOptions to;
  to.kind = kindOf(from.kind);
  to.rate = from.lr;
  to.beta1 = from.beta1;
  to.beta2 = from.beta2;
  to.epsilon = from.eps;
  to.weightDecay = from.weightDecay;
  to.decoupledDecay = from.kind != config::Optimizer::Kind::Adam;
  to.biasCorrection = from.biasCorrection;
  to.rateDecay = from.lrDecay;
  to.startAccumulator = from.initialAccumulator;
  to.epsilonInsideRoot = from.epsInsideSqrt;
  to.momentum = from.momentum;
  to.dampening = from.dampening;
  to.nesterov = from.nesterov;
  to.minTrust = from.minCoeff;
  to.maxTrust = from.maxCoeff;
  return to;
}

static ScheduleOptions::Kind kindOf(config::Schedule::Kind kind) {
  switch (kind) {
  case config::Schedule::Kind::None:
    return ScheduleOptions::Kind::Constant;
  case config::Schedule::Kind::LRRangeTest:
    return ScheduleOptions::Kind::RangeTest;
  case config::Schedule::Kind::OneCycle:
    return ScheduleOptions::Kind::OneCycle;
  case config::Schedule::Kind::WarmupLR:
    return ScheduleOptions::Kind::Warmup;
  case config::Schedule::Kind::WarmupDecayLR:
    return ScheduleOptions::Kind::WarmupDecay;
  case config::Schedule::Kind::WarmupCosineLR:
    return ScheduleOptions::Kind::WarmupCosine;
  }
  llvm_unreachable("all kinds are listed");
}

static ScheduleOptions convert(const config::Schedule &from) {
  ScheduleOptions to;
  to.kind = kindOf(from.kind);
  to.warmupMinRate = from.warmupMinLr;
  to.warmupMaxRate = from.warmupMaxLr;
  to.warmupSteps = from.warmupNumSteps;
  to.totalSteps = from.totalNumSteps;
  to.logarithmic = from.ramp == config::Schedule::Ramp::Log;
  to.warmupMinRatio = from.warmupMinRatio;
  to.cosineMinRatio = from.cosMinRatio;
  to.rangeMinRate = from.minLr;
  to.rangeRate = from.stepRate;
  to.rangeSteps = from.stepSize;
  to.rangeStaircase = from.staircase;
  to.cycleMinRate = from.cycleMinLr;
  to.cycleMaxRate = from.cycleMaxLr;
  to.decayRate = from.decayLrRate;
  to.firstSteps = from.firstStepSize;
  to.secondSteps = from.secondStepSize;
  to.firstStairs = from.firstStairCount;
  to.secondStairs = from.secondStairCount;
  to.decaySteps = from.decayStepSize;
  to.cycleMomentum = from.cycleMomentum;
  to.cycleMinMomentum = from.cycleMinMom;
  to.cycleMaxMomentum = from.cycleMaxMom;
  to.decayMomentumRate = from.decayMomRate;
  return to;
}

DictionaryAttr mlir::ds::trainingFromConfig(MLIRContext *context, const config::Config &config,
                                            ArrayRef<std::string> noDecay) {
  TrainingOptions options;
  options.accumulation = config.batch.accumulation;
  options.clipping = config.gradientClipping;
  options.optimizer = convert(config.optimizer);
  options.schedule = convert(config.schedule);
  options.noDecay.assign(noDecay.begin(), noDecay.end());
  return makeTrainingAttr(context, options);
}
