//===- Defaults.cpp - The typed structs from the resolved entries ------------------------===//
//
// Plain transcription of what something reads, but for the optimizer's kind, the schedule's dynamic defaults
// and the precision mode, whose meaning depends on several keys.
//
//===---------------------------------------------------------------------------===//
#include "Build.h"

#include <algorithm>

namespace ds::config {

#define ZERO "zero_optimization."

void deriveDefaults(Resolved &resolved, Report &report) {
  int64_t stage = resolved.integer(ZERO "stage");
  if (resolved.isNull(ZERO "overlap_comm"))
    resolved.derive(ZERO "overlap_comm", makeBool(stage == 3), "stage == 3");
  bool offload = resolved.text(ZERO "offload_optimizer.device") != "none";
  if (offload && !resolved.flag(ZERO "contiguous_gradients")) {
    report.notices.push_back(
        report.name + ": \"zero_optimization.contiguous_gradients\" is turned on by offload_optimizer");
    resolved.derive(ZERO "contiguous_gradients", makeBool(true), "offload_optimizer turns it on");
  }
  if (resolved.text(ZERO "offload_param.device") != "none" && stage != 3) {
    report.notices.push_back(
        {report.name + ": \"zero_optimization.offload_param\" has no effect under stage " +
             std::to_string(stage) + ": DeepSpeed offloads parameters under stage 3 only",
         /*isCostly=*/true});
    resolved.derive(ZERO "offload_param.device", makeString("none"), "stage is not 3");
  }
  if (resolved.maybeInteger("pipeline.stages").value_or(1) > 1 && resolved.flag(ZERO "overlap_comm")) {
    report.notices.push_back(report.name +
                             ": \"zero_optimization.overlap_comm\" is dropped under a pipeline");
    resolved.derive(ZERO "overlap_comm", makeBool(false), "a pipeline drops it");
  }
}

/// Adam's decay is decoupled unless adam_w_mode is false; type AdamW is decoupled in any case.
static Optimizer::Kind optimizerKind(std::string_view name, const Resolved &resolved) {
  if (name == "AdamW")
    return Optimizer::Kind::AdamW;
  if (name == "Adam")
    return resolved.flag("optimizer.params.adam_w_mode") ? Optimizer::Kind::AdamW : Optimizer::Kind::Adam;
  if (name == "SGD")
    return Optimizer::Kind::Sgd;
  if (name == "Adagrad")
    return Optimizer::Kind::Adagrad;
  if (name == "Lion")
    return Optimizer::Kind::Lion;
  return name == "Lamb" ? Optimizer::Kind::Lamb : Optimizer::Kind::Other;
}

/// Parameters that only some kinds have are read where the table gave them a value.
static void fillParameters(Optimizer &optimizer, const Resolved &resolved) {
  auto number = [&](std::string_view name, double &into) {
    std::string path = "optimizer.params." + std::string(name);
    if (resolved.find(path))
      into = resolved.number(path);
  };
  auto flag = [&](std::string_view name, bool &into) {
    std::string path = "optimizer.params." + std::string(name);
    if (resolved.find(path))
      into = resolved.flag(path);
  };
  number("lr", optimizer.lr);
  number("eps", optimizer.eps);
  number("weight_decay", optimizer.weightDecay);
  number("momentum", optimizer.momentum);
  number("dampening", optimizer.dampening);
  number("lr_decay", optimizer.lrDecay);
  number("initial_accumulator_value", optimizer.initialAccumulator);
  number("max_coeff", optimizer.maxCoeff);
  number("min_coeff", optimizer.minCoeff);
  flag("bias_correction", optimizer.biasCorrection);
  flag("amsgrad", optimizer.amsgrad);
  flag("nesterov", optimizer.nesterov);
  flag("eps_inside_sqrt", optimizer.epsInsideSqrt);
  std::vector<double> betas = resolved.numbers("optimizer.params.betas");
  if (betas.size() == 2) {
    optimizer.beta1 = betas[0];
    optimizer.beta2 = betas[1];
  }
}

Optimizer fillOptimizer(Resolved &resolved, Report &report) {
  Optimizer optimizer;
  optimizer.given = resolved.given("optimizer.type");
  if (!optimizer.given) {
    resolved.derive("optimizer.type", makeString("AdamW"), "no optimizer is given");
    report.notices.push_back(report.name + ": no optimizer type is given: AdamW takes its place");
  }
  optimizer.name = canonicalOptimizer(resolved.text("optimizer.type"));
  optimizer.kind = optimizerKind(optimizer.name, resolved);
  if (optimizer.name == "AdamW" && resolved.given("optimizer.params.adam_w_mode") &&
      !resolved.flag("optimizer.params.adam_w_mode"))
    report.notices.push_back(report.name +
                             ": \"optimizer.params.adam_w_mode\": false has no effect on type AdamW; "
                             "write type Adam to let the decay enter the gradient");
  bool torchAdam = resolved.flag("optimizer.params.torch_adam");
  if (torchAdam && optimizer.kind == Optimizer::Kind::AdamW &&
      !resolved.given("optimizer.params.weight_decay"))
    resolved.derive("optimizer.params.weight_decay", makeNumber(0.01), "torch.optim.AdamW's own default");
  fillParameters(optimizer, resolved);
  return optimizer;
}

static void fillCycle(Schedule &schedule, const Resolved &r, const Optimizer &optimizer, Report &report) {
#define PARAM "scheduler.params."
  schedule.cycleMinLr = r.number(PARAM "cycle_min_lr");
  schedule.cycleMaxLr = r.number(PARAM "cycle_max_lr");
  schedule.decayLrRate = r.number(PARAM "decay_lr_rate");
  schedule.firstStepSize = r.integer(PARAM "cycle_first_step_size");
  schedule.secondStepSize = r.maybeInteger(PARAM "cycle_second_step_size").value_or(schedule.firstStepSize);
  schedule.firstStairCount = r.integer(PARAM "cycle_first_stair_count");
  schedule.secondStairCount =
      r.maybeInteger(PARAM "cycle_second_stair_count").value_or(schedule.firstStairCount);
  schedule.decayStepSize = r.integer(PARAM "decay_step_size");
  schedule.cycleMinMom = r.number(PARAM "cycle_min_mom");
  schedule.cycleMaxMom = r.number(PARAM "cycle_max_mom");
  schedule.decayMomRate = r.number(PARAM "decay_mom_rate");
  bool hasBetas = optimizer.kind != Optimizer::Kind::Sgd && optimizer.kind != Optimizer::Kind::Adagrad;
  schedule.cycleMomentum = r.flag(PARAM "cycle_momentum") && hasBetas;
  if (r.flag(PARAM "cycle_momentum") && !hasBetas)
    report.notices.push_back(report.name + ": \"scheduler.params.cycle_momentum\" has no effect: " +
                             optimizer.name + " has no betas");
}

/// Whether the length of the schedule is that of the run: "auto", and no --steps says it already.
static bool isOfRun(const Resolved &r) {
  const Entry *total = r.find(PARAM "total_num_steps");
  return total && total->isAuto && total->value.is(Value::Kind::Null);
}

static void fillWarmup(Schedule &schedule, const Resolved &r, const Optimizer &optimizer, Report &report) {
  schedule.warmupMinLr = r.number(PARAM "warmup_min_lr");
  schedule.warmupMaxLr = r.isNull(PARAM "warmup_max_lr") ? optimizer.lr : r.number(PARAM "warmup_max_lr");
  schedule.warmupNumSteps = std::max<int64_t>(2, r.integer(PARAM "warmup_num_steps"));
  schedule.ramp = r.text(PARAM "warmup_type") == "linear" ? Schedule::Ramp::Linear : Schedule::Ramp::Log;
  schedule.totalNumSteps = isOfRun(r) ? Schedule::kStepsOfRun : r.integer(PARAM "total_num_steps");
  schedule.warmupMinRatio = r.number(PARAM "warmup_min_ratio");
  schedule.cosMinRatio = r.number(PARAM "cos_min_ratio");
  if (schedule.kind != Schedule::Kind::WarmupLR && schedule.totalNumSteps != Schedule::kStepsOfRun &&
      schedule.totalNumSteps < schedule.warmupNumSteps)
    report.notices.push_back(
        report.name + ": \"scheduler.params.total_num_steps\" = " + std::to_string(schedule.totalNumSteps) +
        " is less than warmup_num_steps = " + std::to_string(schedule.warmupNumSteps));
  if (schedule.kind == Schedule::Kind::WarmupDecayLR && !r.given(PARAM "warmup_max_lr") &&
      optimizer.lr != 0.001)
    report.notices.push_back(report.name +
                             ": \"scheduler.params.warmup_max_lr\" is absent: WarmupDecayLR takes 0.001, "
                             "not the optimizer's lr");
}

/// Complains about every parameter without which this type cannot be built.
static void requireParameters(const Resolved &r, std::initializer_list<std::string_view> names,
                              Report &report) {
  for (std::string_view name : names)
    if (r.isNull(PARAM + std::string(name)))
      report.complaints.push_back({report.name + ": \"scheduler.params." + std::string(name) +
                                       "\" is required by " + r.text("scheduler.type"),
                                   "give it a value"});
}

Schedule fillSchedule(const Resolved &resolved, const Optimizer &optimizer, Report &report) {
  Schedule schedule;
  std::string type = resolved.text("scheduler.type");
  for (size_t i = 0; i < schedulerNames().size(); ++i)
    if (type == schedulerNames()[i])
      schedule.kind = static_cast<Schedule::Kind>(i + 1);
  switch (schedule.kind) {
  case Schedule::Kind::None:
    break;
  case Schedule::Kind::LRRangeTest:
    schedule.minLr = resolved.number(PARAM "lr_range_test_min_lr");
    schedule.stepSize = resolved.integer(PARAM "lr_range_test_step_size");
    schedule.stepRate = resolved.number(PARAM "lr_range_test_step_rate");
    schedule.staircase = resolved.flag(PARAM "lr_range_test_staircase");
    break;
  case Schedule::Kind::OneCycle:
    requireParameters(resolved, {"cycle_min_lr", "cycle_max_lr"}, report);
    fillCycle(schedule, resolved, optimizer, report);
    break;
  case Schedule::Kind::WarmupDecayLR:
  case Schedule::Kind::WarmupCosineLR:
    if (!isOfRun(resolved))
      requireParameters(resolved, {"total_num_steps"}, report);
    [[fallthrough]];
  case Schedule::Kind::WarmupLR:
    fillWarmup(schedule, resolved, optimizer, report);
    break;
  }
  return schedule;
}
#undef PARAM

static Precision fillPrecision(const Resolved &r) {
  Precision p;
  Fp16 &f = p.fp16;
  // A mode that is off asks for no masters.
  const bool isFp16 = r.flag("fp16.enabled"), isBf16 = r.flag("bf16.enabled");
  f = {isFp16,
       r.number("fp16.loss_scale"),
       r.integer("fp16.initial_scale_power"),
       r.integer("fp16.loss_scale_window"),
       r.integer("fp16.hysteresis"),
       r.flag("fp16.consecutive_hysteresis"),
       r.integer("fp16.min_loss_scale"),
       isFp16 && r.flag("fp16.fp16_master_weights_and_grads")};
  p.bf16 = {isBf16, r.flag("bf16.check_grad_overflow"),
            isBf16 && r.flag("bf16.bf16_master_weights_and_grads"),
            isBf16 && r.flag("bf16.bf16_optimizer_states")};
  DType mode = f.enabled ? DType::F16 : p.bf16.enabled ? DType::BF16 : DType::F32;
  p.model = r.maybeDtype("data_types.param_dtype").value_or(mode);
  p.gradAccum = r.maybeDtype("data_types.grad_accum_dtype");
  p.buffers = r.maybeDtype("data_types.buffer_dtype");
  p.communication = r.maybeDtype("communication_data_type");
  p.autocast = r.flag("torch_autocast.enabled");
  p.autocastDtype = r.maybeDtype("torch_autocast.dtype");
  return p;
}

static void fillBlocks(Config &config, const Resolved &r, Report &report) {
  config.activationCheckpointing = {r.flag("activation_checkpointing.partition_activations"),
                                    r.flag("activation_checkpointing.contiguous_memory_optimization"),
                                    r.flag("activation_checkpointing.cpu_checkpointing"),
                                    r.maybeInteger("activation_checkpointing.number_checkpoints"),
                                    r.text("activation_checkpointing.granularity") == "selective",
                                    r.integers("activation_checkpointing.layers"),
                                    r.texts("activation_checkpointing.ops")};
  config.pipeline = {r.maybeInteger("pipeline.stages"), r.text("pipeline.partition"),
                     r.text("pipeline.schedule"), r.integer("pipeline.activation_checkpoint_interval"),
                     r.integer("pipeline.virtual_stages")};
  auto asked = [&](std::string_view path) {
    return r.given(path) ? std::optional(r.flag(path)) : std::nullopt;
  };
  config.tensorParallel = {config.mesh.tp, asked("tensor_parallel.tp_overlap_comm"),
                           asked("tensor_parallel.sequence_parallel"), readLayerSpecs(r, report)};
  config.aio = {r.integer("aio.block_size"), r.integer("aio.queue_depth"),
                r.integer("aio.intra_op_parallelism"), r.flag("aio.single_submit"),
                r.flag("aio.overlap_events")};
  config.watch = {
      r.maybeInteger("steps_per_print").value_or(0),
      {r.flag("tensorboard.enabled"), r.text("tensorboard.output_path"), r.text("tensorboard.job_name")},
      {r.flag("csv_monitor.enabled"), r.text("csv_monitor.output_path"), r.text("csv_monitor.job_name")},
      r.flag("comms_logger.enabled"),
      {r.flag("flops_profiler.enabled"), r.integer("flops_profiler.profile_step"),
       r.integer("flops_profiler.module_depth"), r.integer("flops_profiler.top_modules"),
       r.flag("flops_profiler.detailed"), r.text("flops_profiler.output_file")}};
  config.nodeLocalSaves = r.flag("checkpoint.use_node_local_storage");
}

void fillConfig(Config &config, Resolved &resolved, Report &report) {
  config.optimizer = fillOptimizer(resolved, report);
  config.schedule = fillSchedule(resolved, config.optimizer, report);
  config.gradientClipping = resolved.number("gradient_clipping");
  config.skipsBadSteps = resolved.flag("skip_bad_steps");
  config.syncsBatchNorm = resolved.flag("sync_batch_norm");
  config.lossChunks = resolved.maybeInteger("loss_chunks");
  config.allowTf32 = resolved.flag("allow_tf32");
  config.fastAttention = resolved.text("attention") == "fast";
  config.prescaleGradients = resolved.flag("prescale_gradients");
  config.gradientPredivideFactor = resolved.number("gradient_predivide_factor");
  config.sumGradients = resolved.text("gradient_allreduce_op") == "sum";
  config.managedGradientAccumulation = resolved.flag("managed_gradient_accumulation");
  config.vocabularySize = resolved.maybeInteger("vocabulary_size");
  config.precision = fillPrecision(resolved);
  config.zero = fillZero(resolved);
  fillBlocks(config, resolved, report);
}
#undef ZERO

} // namespace ds::config
