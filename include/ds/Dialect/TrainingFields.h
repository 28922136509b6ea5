//===- TrainingFields.h - The keys of ds.training -------------------------------===//
//
// The keys are listed once, in `visitFields`: whoever reads, writes or compares how a model is trained is a
// visitor of that list, so that they cannot disagree. Words of enumerations are those of `wordsOf`.
//
//===----------------------------------------------------------------------------===//
#ifndef DS_DIALECT_TRAININGFIELDS_H
#define DS_DIALECT_TRAININGFIELDS_H

#include "ds/Dialect/Training.h"

namespace mlir::ds {

using OptimizerKind = OptimizerOptions::Kind;
using ScheduleKind = ScheduleOptions::Kind;

inline constexpr std::pair<StringLiteral, OptimizerKind> kOptimizers[] = {{"sgd", OptimizerKind::Sgd},
                                                                          {"adam", OptimizerKind::Adam},
                                                                          {"adagrad", OptimizerKind::Adagrad},
                                                                          {"lion", OptimizerKind::Lion},
                                                                          {"lamb", OptimizerKind::Lamb}};

inline constexpr std::pair<StringLiteral, ScheduleKind> kSchedules[] = {
    {"constant", ScheduleKind::Constant},         {"LRRangeTest", ScheduleKind::RangeTest},
    {"OneCycle", ScheduleKind::OneCycle},         {"WarmupLR", ScheduleKind::Warmup},
    {"WarmupDecayLR", ScheduleKind::WarmupDecay}, {"WarmupCosineLR", ScheduleKind::WarmupCosine}};

inline constexpr std::pair<StringLiteral, FloatKind> kFloats[] = {
    {"f32", FloatKind::F32}, {"bf16", FloatKind::BF16}, {"f16", FloatKind::F16}};

inline constexpr std::pair<StringLiteral, OffloadOptions::Activations> kActivations[] = {
    {"keep", OffloadOptions::Activations::Kept},
    {"choose", OffloadOptions::Activations::Chosen},
    {"move", OffloadOptions::Activations::Moved}};

inline constexpr std::pair<StringLiteral, RankReduction> kReductions[] = {{"mean", RankReduction::Mean},
                                                                          {"sum", RankReduction::Sum}};

inline constexpr std::pair<StringLiteral, LossMean> kLossMeans[] = {{"micro_batches", LossMean::MicroBatches},
                                                                    {"tokens", LossMean::Tokens}};

inline constexpr std::pair<StringLiteral, TensorOptions::LayerSpec::Cut> kLayerCuts[] = {
    {"column", TensorOptions::LayerSpec::Cut::Column},
    {"row", TensorOptions::LayerSpec::Cut::Row},
    {"skip", TensorOptions::LayerSpec::Cut::Skip}};

/// The words of an enumeration.
inline constexpr auto &wordsOf(OptimizerKind) { return kOptimizers; }
inline constexpr auto &wordsOf(ScheduleKind) { return kSchedules; }
inline constexpr auto &wordsOf(FloatKind) { return kFloats; }
inline constexpr auto &wordsOf(OffloadOptions::Activations) { return kActivations; }
inline constexpr auto &wordsOf(RankReduction) { return kReductions; }
inline constexpr auto &wordsOf(LossMean) { return kLossMeans; }
inline constexpr auto &wordsOf(TensorOptions::LayerSpec::Cut) { return kLayerCuts; }

template <class Visitor>
void visitFields(Visitor &visitor, OptimizerOptions &options) {
  visitor("type", options.kind);
  visitor("lr", options.rate);
  visitor("beta1", options.beta1);
  visitor("beta2", options.beta2);
  visitor("eps", options.epsilon);
  visitor("weight_decay", options.weightDecay);
  visitor("adam_w_mode", options.decoupledDecay);
  visitor("bias_correction", options.biasCorrection);
  visitor("lr_decay", options.rateDecay);
  visitor("initial_accumulator_value", options.startAccumulator);
  visitor("eps_inside_sqrt", options.epsilonInsideRoot);
  visitor("momentum", options.momentum);
  visitor("dampening", options.dampening);
  visitor("nesterov", options.nesterov);
  visitor("min_coeff", options.minTrust);
  visitor("max_coeff", options.maxTrust);
}

template <class Visitor>
void visitFields(Visitor &visitor, ScheduleOptions &options) {
  visitor("type", options.kind);
  visitor("warmup_min_lr", options.warmupMinRate);
  visitor("warmup_max_lr", options.warmupMaxRate);
  visitor("warmup_num_steps", options.warmupSteps);
  visitor("total_num_steps", options.totalSteps);
  visitor("warmup_log", options.logarithmic);
  visitor("warmup_min_ratio", options.warmupMinRatio);
  visitor("cos_min_ratio", options.cosineMinRatio);
  visitor("lr_range_test_min_lr", options.rangeMinRate);
  visitor("lr_range_test_step_rate", options.rangeRate);
  visitor("lr_range_test_step_size", options.rangeSteps);
  visitor("lr_range_test_staircase", options.rangeStaircase);
  visitor("cycle_min_lr", options.cycleMinRate);
  visitor("cycle_max_lr", options.cycleMaxRate);
  visitor("decay_lr_rate", options.decayRate);
  visitor("cycle_first_step_size", options.firstSteps);
  visitor("cycle_second_step_size", options.secondSteps);
  visitor("cycle_first_stair_count", options.firstStairs);
  visitor("cycle_second_stair_count", options.secondStairs);
  visitor("decay_step_size", options.decaySteps);
  visitor("cycle_momentum", options.cycleMomentum);
  visitor("cycle_min_mom", options.cycleMinMomentum);
  visitor("cycle_max_mom", options.cycleMaxMomentum);
  visitor("decay_mom_rate", options.decayMomentumRate);
}

template <class Visitor>
void visitFields(Visitor &visitor, PrecisionOptions &options) {
  visitor("compute", options.compute);
  visitor("autocast", options.autocast);
  visitor("gradient", options.gradient);
  visitor("master", options.master);
  visitor("moment", options.moment);
  visitor("convert_buffers", options.convertsBuffers);
  visitor("buffer", options.buffer);
}

template <class Visitor>
void visitFields(Visitor &visitor, LossScaleOptions &options) {
  visitor("skip", options.skips);
  visitor("scale", options.scales);
  visitor("dynamic", options.dynamic);
  visitor("initial", options.initial);
  visitor("window", options.window);
  visitor("hysteresis", options.hysteresis);
  visitor("consecutive_hysteresis", options.consecutiveHysteresis);
  visitor("minimum", options.minimum);
}

template <class Visitor>
void visitFields(Visitor &visitor, ShardingOptions &options) {
  visitor("stage", options.stage);
  visitor("reduce_bucket_size", options.reduceBucketSize);
  visitor("allgather_bucket_size", options.gatherBucketSize);
  visitor("sub_group_size", options.subGroupSize);
  visitor("stage3_param_persistence_threshold", options.parameterThreshold);
  visitor("stage3_model_persistence_threshold", options.modelThreshold);
  visitor("reduce_each_micro_step", options.reduceEachMicroStep);
  visitor("secondary_axes", options.secondaryAxes);
  visitor("gather_first_axes", options.firstAxes);
}

template <class Visitor>
void visitFields(Visitor &visitor, TensorOptions::LayerSpec &options) {
  visitor("patterns", options.patterns);
  visitor("partition_type", options.cut);
  visitor("shape", options.shape);
  visitor("partition_dim", options.dimension);
  visitor("model_types", options.modelTypes);
}

template <class Visitor>
void visitFields(Visitor &visitor, TensorOptions &options) {
  visitor("sequence_parallel", options.sequenceParallel);
  visitor("tp_overlap_comm", options.overlapsExchanges);
  visitor("layer_specs", options.layerSpecs);
}

template <class Visitor>
void visitFields(Visitor &visitor, RecomputeOptions &options) {
  visitor("checkpoints", options.checkpoints);
  visitor("interval", options.interval);
  visitor("layers", options.layers);
  visitor("ops", options.ops);
}

template <class Visitor>
void visitFields(Visitor &visitor, OffloadOptions &options) {
  visitor("optimizer", options.optimizer);
  visitor("parameters", options.parameters);
  visitor("activations", options.activations);
  visitor("checkpoints", options.checkpoints);
  visitor("optimizer_on_nvme", options.optimizerOnNvme);
  visitor("parameters_on_nvme", options.parametersOnNvme);
  visitor("max_in_cpu", options.maxInCpu);
  visitor("speculate", options.speculates);
}

template <class Visitor>
void visitFields(Visitor &visitor, TrainingOptions &options) {
  visitor("gradient_accumulation_steps", options.accumulation);
  visitor("gradient_clipping", options.clipping);
  visitor("reduce_op", options.rankReduction);
  visitor("communication_data_type", options.communicationType);
  visitor("loss_chunks", options.lossChunks);
  visitor("loss_normalization", options.lossMean);
  visitor("loss_limit", options.boundsLoss);
  visitor("sync_batch_norm", options.syncsBatchNorm);
  visitor("logits", options.givesLogits);
  visitor("no_decay", options.noDecay);
  visitor("optimizer", options.optimizer);
  visitor("scheduler", options.schedule);
  visitor("precision", options.precision);
  visitor("loss_scale", options.lossScale);
  visitor("zero_optimization", options.sharding);
  visitor("tensor_parallel", options.tensors);
  visitor("offload", options.offload);
  visitor("recompute", options.recompute);
}

} // namespace mlir::ds

#endif // DS_DIALECT_TRAININGFIELDS_H
