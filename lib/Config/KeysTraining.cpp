//===- KeysTraining.cpp - Keys: batch, optimizer, scheduler, precision ---------------===//
//
// Part of the key table (Keys.h). One row a line; the order is the order of the reference.
//
//===---------------------------------------------------------------------------===//
#include "Keys.h"

namespace ds::config {
namespace {
using enum KeyKind;
using enum KeyStatus;

// clang-format off
constexpr Key kTable[] = {
  {"train_batch_size", Int, "null", ">0", Honoured, "samples per optimizer step over all ranks; derived when absent", ""},
  {"train_micro_batch_size_per_gpu", Int, "null", "1..2147483647", Honoured, "samples per micro-step and rank; derived when absent", ""},
  {"gradient_accumulation_steps", Int, "null", "1..2147483647", Honoured, "micro-steps per optimizer step; derived when absent", ""},
  {"managed_gradient_accumulation", Bool, "true", "", Refused, "programs always manage the accumulation themselves", ""},
  {"gradient_clipping", Float, "1.0", ">=0", Honoured, "global L2 norm that gradients are clipped to; 0 is off", ""},
  {"prescale_gradients", Bool, "false", "", Noted, "the backward pass starts from a scaled loss, so that nothing is left to scale before or after the sum", ""},
  {"gradient_predivide_factor", Float, "1.0", ">0", Noted, "the backward pass starts from a scaled loss, so that nothing is left to scale before or after the sum", ""},
  {"gradient_allreduce_op", Choice, "\"mean\"", "mean|sum", Honoured, "what becomes of the ranks' gradients", ""},
  {"gradient_reduction", Choice, "\"auto\"", "auto|once_per_step|each_micro_step", Honoured, "not DeepSpeed's: when ZeRO reduces the gradients of several micro-steps; auto: stages 2 and 3 in each, stage 1 once, or in each where keeping all of them until then does not fit", ""},
  {"skip_bad_steps", Bool, "false", "", Honoured, "not DeepSpeed's: a step whose gradients are not finite, or whose loss ds-run calls a spike, changes no state (ds-run --on-nan skip, --on-spike skip); without gradient_clipping all gradients then wait for the last one", ""},
  {"loss_chunks", AutoInt, "\"auto\"", ">0", Honoured, "not DeepSpeed's: parts in which the rows of logits and their cross-entropy are made one after the other; 1: the logits of a micro-batch are stored; auto: 1 where memory holds that", ""},
  {"allow_tf32", Bool, "false", "", Honoured, "not DeepSpeed's, PyTorch's: on CUDA, products and convolutions of fp32 factors keep 10 bits of their fractions and are summed up in fp32; the CPU multiplies in fp32", ""},
  {"communication_data_type", Choice, "null", "fp16|bf16|fp32", Honoured, "type in which gradients are exchanged; absent: their own", ""},
  {"seq_parallel_communication_data_type", Choice, "\"fp32\"", "fp16|bf16|fp32", Refused, "programs have no sequence parallelism yet", ""},
  {"sparse_gradients", Bool, "false", "", Noted, "embedding gradients are dense; the numbers are the same", ""},
  {"disable_allgather", Bool, "false", "", Noted, "the planner chooses the collectives", ""},
  {"dump_state", Bool, "false", "", Noted, "--print-config shows the whole configuration", ""},
  {"graph_harvesting", Bool, "false", "", Noted, "whole steps are captured wherever the program allows it", ""},
  {"dataloader_drop_last", Bool, "false", "", Noted, "every batch is whole: ds-run wraps at the end of the data", ""},
  {"use_data_before_expert_parallelism", Bool, "false", "", Refused, "programs have no expert parallelism yet", ""},
  {"memory_breakdown", Bool, "false", "", Noted, "--emit=plan prints memory by category", ""},
  {"wall_clock_breakdown", Bool, "false", "", Noted, "ds-run --trace writes the time of every command", ""},
  {"steps_per_print", Int, "null", ">=0", Noted, "ds-run prints one line for every step", ""},
  {"vocabulary_size", Int, "null", ">0", Noted, "only checked: a multiple of 8 is faster", ""},
  {"log_level", Text, "null", "", Noted, "the tools have their own logging options", ""},
  {"sequence_parallel_size", Int, "null", ">0", Refused, "programs have no sequence parallelism yet", ""},
  {"data_parallel_size", Int, "null", ">0", Honoured, "checked against ranks / (tp * pp * sp)", ""},
  {"zero_allow_untested_optimizer", Bool, "false", "", Noted, "every optimizer is computed in the same way under every ZeRO stage", ""},
  {"zero_force_ds_cpu_optimizer", Bool, "true", "", Noted, "updates are generated for the place they run at", ""},

  {"optimizer.type", Text, "null", "", Honoured, "Adam, AdamW, Adagrad, Lamb, Lion, SGD in whatever case; others are known but refused; absent: AdamW with its defaults", ""},
  {"optimizer.params.lr", Float, "0.001", ">=0", Honoured, "learning rate", "Adam AdamW Lamb Lion SGD"},
  {"optimizer.params.lr", Float, "0.01", ">=0", Honoured, "learning rate", "Adagrad"},
  {"optimizer.params.betas", Floats, "[0.9, 0.999]", "2", Honoured, "decay of the moments, each in [0, 1)", "Adam AdamW Lamb Lion"},
  {"optimizer.params.eps", Float, "1e-8", ">=0", Honoured, "added to the denominator", "Adam AdamW Lamb"},
  {"optimizer.params.eps", Float, "1e-10", ">=0", Honoured, "added to the denominator", "Adagrad"},
  {"optimizer.params.weight_decay", Float, "0.0", ">=0", Honoured, "decay of the weights (0.01 for AdamW with torch_adam)", "Adam AdamW Adagrad Lamb Lion SGD"},
  {"optimizer.params.adam_w_mode", Bool, "true", "", Honoured, "decoupled decay; type AdamW is decoupled whatever this says", "Adam AdamW"},
  {"optimizer.params.torch_adam", Bool, "false", "", Noted, "the mathematics is the same; weight_decay and amsgrad mean what they mean in torch.optim", "Adam AdamW"},
  {"optimizer.params.bias_correction", Bool, "true", "", Honoured, "moments are divided by 1 - beta^t", "Adam AdamW Lamb"},
  {"optimizer.params.amsgrad", Bool, "false", "", Refused, "programs have no amsgrad yet", "Adam AdamW Lamb"},
  {"optimizer.params.fp32_optimizer_states", Bool, "true", "", Refused, "programs keep optimizer states in fp32", "Adam AdamW Adagrad Lion"},
  {"optimizer.params.max_coeff", Float, "10.0", ">0", Honoured, "largest trust ratio", "Lamb"},
  {"optimizer.params.min_coeff", Float, "0.01", ">=0", Honoured, "smallest trust ratio", "Lamb"},
  {"optimizer.params.eps_inside_sqrt", Bool, "false", "", Refused, "programs add eps outside the root", "Lamb"},
  {"optimizer.params.lr_decay", Float, "0.0", ">=0", Honoured, "lr / (1 + step * lr_decay)", "Adagrad"},
  {"optimizer.params.initial_accumulator_value", Float, "0.0", ">=0", Honoured, "start of the sum of squares", "Adagrad"},
  {"optimizer.params.momentum", Float, "0.0", ">=0", Honoured, "momentum", "SGD"},
  {"optimizer.params.dampening", Float, "0.0", "", Honoured, "dampening of the momentum", "SGD"},
  {"optimizer.params.nesterov", Bool, "false", "", Honoured, "needs momentum and no dampening", "SGD"},
  {"optimizer.params.foreach", Bool, "null", "", Noted, "updates are generated fused", "SGD Adagrad Adam AdamW"},
  {"optimizer.params.fused", Bool, "null", "", Noted, "updates are generated fused", "SGD Adagrad Adam AdamW"},
  {"optimizer.legacy_fusion", Bool, "false", "", Noted, "updates are generated fused", ""},

  {"scheduler.type", Text, "null", "", Honoured, "LRRangeTest, OneCycle, WarmupLR, WarmupDecayLR or WarmupCosineLR; absent: the optimizer's lr at every step", ""},
  {"scheduler.params.lr_range_test_min_lr", Float, "0.001", ">=0", Honoured, "first learning rate", "LRRangeTest"},
  {"scheduler.params.lr_range_test_step_size", Int, "2000", ">0", Honoured, "steps between increases", "LRRangeTest"},
  {"scheduler.params.lr_range_test_step_rate", Float, "1.0", "", Honoured, "increase, in units of the minimum", "LRRangeTest"},
  {"scheduler.params.lr_range_test_staircase", Bool, "false", "", Honoured, "increase in stairs", "LRRangeTest"},
  {"scheduler.params.cycle_min_lr", Float, "null", ">=0", Honoured, "required", "OneCycle"},
  {"scheduler.params.cycle_max_lr", Float, "null", ">=0", Honoured, "required", "OneCycle"},
  {"scheduler.params.decay_lr_rate", Float, "0.0", ">=0", Honoured, "decay after the cycle", "OneCycle"},
  {"scheduler.params.cycle_first_step_size", Int, "2000", ">0", Honoured, "steps of the rising half", "OneCycle"},
  {"scheduler.params.cycle_second_step_size", Int, "null", ">0", Honoured, "steps of the falling half; absent: as the first", "OneCycle"},
  {"scheduler.params.cycle_first_stair_count", Int, "0", ">=0", Honoured, "stairs of the rising half; 0: continuous", "OneCycle"},
  {"scheduler.params.cycle_second_stair_count", Int, "null", ">=0", Honoured, "stairs of the falling half; absent: as the first", "OneCycle"},
  {"scheduler.params.decay_step_size", Int, "0", ">=0", Honoured, "steps per decay; 0: no decay", "OneCycle"},
  {"scheduler.params.cycle_momentum", Bool, "true", "", Honoured, "beta1 moves against the lr, beta2 is 0.99; only optimizers with betas", "OneCycle"},
  {"scheduler.params.cycle_min_mom", Float, "0.8", "0..1", Honoured, "smallest beta1", "OneCycle"},
  {"scheduler.params.cycle_max_mom", Float, "0.9", "0..1", Honoured, "largest beta1", "OneCycle"},
  {"scheduler.params.decay_mom_rate", Float, "0.0", ">=0", Honoured, "growth of beta1 after the cycle", "OneCycle"},
  {"scheduler.params.total_num_steps", Int, "null", ">0", Honoured, "required", "WarmupDecayLR WarmupCosineLR"},
  {"scheduler.params.warmup_min_lr", Float, "0.0", ">=0", Honoured, "first learning rate", "WarmupLR WarmupDecayLR"},
  {"scheduler.params.warmup_max_lr", Float, "null", ">=0", Honoured, "learning rate after the warm-up; absent: the optimizer's", "WarmupLR"},
  {"scheduler.params.warmup_max_lr", Float, "0.001", ">=0", Honoured, "learning rate after the warm-up", "WarmupDecayLR"},
  {"scheduler.params.warmup_min_ratio", Float, "0.0", ">=0", Honoured, "first share of the optimizer's lr", "WarmupCosineLR"},
  {"scheduler.params.warmup_num_steps", Int, "1000", ">0", Honoured, "steps of the warm-up; 1 means 2", "WarmupLR WarmupDecayLR WarmupCosineLR"},
  {"scheduler.params.warmup_type", Choice, "\"log\"", "log|linear", Honoured, "shape of the warm-up", "WarmupLR WarmupDecayLR WarmupCosineLR"},
  {"scheduler.params.cos_min_ratio", Float, "0.0001", ">=0", Honoured, "last share of the optimizer's lr", "WarmupCosineLR"},
  {"scheduler.params.last_batch_iteration", Int, "-1", ">=-1", Refused, "programs start schedules at step 0; --resume continues them", "LRRangeTest OneCycle WarmupLR WarmupDecayLR WarmupCosineLR"},

  {"data_types.grad_accum_dtype", Dtype, "null", "", Honoured, "type in which gradients add up over micro-steps; absent: the model's, but fp32 for bf16 without ZeRO", ""},
  {"data_types.param_dtype", Dtype, "null", "", Honoured, "checked against the mode that is on", ""},
  {"data_types.buffer_dtype", Dtype, "null", "", Honoured, "type of the model's buffers; absent: as they are", ""},
  {"amp.enabled", Bool, "false", "", Refused, "programs have no apex; use bf16, fp16 or torch_autocast", ""},
  {"amp.*", Any, "null", "", Detail, "handed to apex", ""},
  {"torch_autocast.enabled", Bool, "false", "", Honoured, "parameters stay fp32, and products compute in dtype", ""},
  {"torch_autocast.dtype", Dtype, "null", "", Honoured, "bf16 or fp16, which is scaled as torch.amp.GradScaler does; absent: bf16", ""},
  {"torch_autocast.lower_precision_safe_modules", Texts, "null", "", Noted, "names whose parameters DeepSpeed exchanges in dtype; programs exchange fp32 parameters in fp32, with the same numbers at their use", ""},
  {"fp16.enabled", Bool, "false", "", Honoured, "fp16 parameters and activations, fp32 masters, scaled loss", ""},
  {"fp16.auto_cast", Bool, "false", "", Noted, "float inputs are always converted", ""},
  {"fp16.loss_scale", Float, "0.0", ">=0", Honoured, "0: dynamic", ""},
  {"fp16.initial_scale_power", Int, "16", "0..127", Honoured, "dynamic scaling starts at 2 to this", ""},
  {"fp16.loss_scale_window", Int, "1000", "", Honoured, "good steps before the scale doubles", ""},
  {"fp16.hysteresis", Int, "2", ">=0", Honoured, "overflows that are let pass before the scale halves", ""},
  {"fp16.consecutive_hysteresis", Bool, "false", "", Honoured, "refill the hysteresis on good steps", ""},
  {"fp16.min_loss_scale", Int, "1", "", Honoured, "smallest scale", ""},
  {"fp16.fp16_master_weights_and_grads", Bool, "false", "", Refused, "16-bit masters need the optimizer on the CPU, which programs do not have yet", ""},
  {"bf16.enabled", Bool, "false", "", Honoured, "bf16 parameters and activations, fp32 masters", ""},
  {"bf16.immediate_grad_update", Bool, "false", "", Noted, "gradients are always added as they come", ""},
  {"bf16.check_grad_overflow", Bool, "true", "", Honoured, "infinite gradients skip the step", ""},
  {"bf16.bf16_master_weights_and_grads", Bool, "false", "", Honoured, "masters and gradients in bf16", ""},
  {"bf16.bf16_optimizer_states", Bool, "false", "", Honoured, "moments in bf16", ""},
};
// clang-format on
} // namespace

std::span<const Key> trainingKeys() { return kTable; }

} // namespace ds::config
