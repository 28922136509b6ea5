//===- KeysMemory.cpp - Keys: ZeRO, offload, storage, recomputation --------------------===//
//
// Part of the key table (Keys.h). One row a line; the order is the order of the reference.
//
//===---------------------------------------------------------------------------===//
#include "Keys.h"

namespace ds::config {
namespace {
using enum KeyKind;
using enum KeyStatus;
#define ZERO "zero_optimization."

// clang-format off
constexpr Key kTable[] = {
  {ZERO "stage", Int, "0", "0..3", Honoured, "what data-parallel ranks shard: 1 optimizer states, 2 also gradients, 3 also parameters; one rank holds everything", ""},
  {ZERO "contiguous_gradients", Bool, "true", "", Noted, "gradients of a bucket are made side by side; there is nothing to copy together", ""},
  {ZERO "reduce_scatter", Bool, "true", "", Noted, "stages 2 and 3 always reduce-scatter: the numbers of an all-reduce at half its traffic", ""},
  {ZERO "reduce_bucket_size", AutoInt, "500000000", ">=0", Honoured, "elements of a bucket of gradients; a larger parameter is a bucket alone; \"auto\": the planner's choice", ""},
  {ZERO "use_multi_rank_bucket_allreduce", Bool, "true", "", Noted, "every bucket is cut evenly over all ranks", ""},
  {ZERO "allgather_partitions", Bool, "true", "", Noted, "updated parameters are gathered, which gives what a broadcast from each owner would", ""},
  {ZERO "allgather_bucket_size", AutoInt, "500000000", "even", Honoured, "elements of a bucket of parameters; \"auto\": the planner's choice", ""},
  {ZERO "overlap_comm", Bool, "null", "", Noted, "collectives have streams of their own; the schedule overlaps what can overlap (absent: on under stage 3)", ""},
  {ZERO "load_from_fp32_weights", Bool, "true", "", Noted, "masters are always read from the widest weights there are", ""},
  {ZERO "elastic_checkpoint", Bool, "false", "", Noted, "checkpoints are resharded on loading", ""},
  {ZERO "sub_group_size", AutoInt, "1000000000", ">=0", Honoured, "elements of a bucket, and of what the host updates in one piece; 0: no bound of its own; \"auto\": the planner's choice", ""},
  {ZERO "ignore_unused_parameters", Bool, "true", "", Noted, "a parameter that does not influence the loss is known when compiling and never updated; --ds-differentiate=remarks names each", ""},
  {ZERO "legacy_stage1", Bool, "false", "", Refused, "DeepSpeed refuses it as well", ""},
  {ZERO "round_robin_gradients", Bool, "false", "", Noted, "every bucket is cut evenly, so that no rank has more to copy than another", ""},
  {ZERO "stage3_prefetch_bucket_size", AutoInt, "50000000", ">=0", Honoured, "elements that are gathered ahead of their use at most; \"auto\": as far as memory allows", ""},
  {ZERO "stage3_param_persistence_threshold", AutoInt, "100000", ">=0", Honoured, "parameters of at most so many elements stay whole on every rank; \"auto\": the planner's choice", ""},
  {ZERO "stage3_model_persistence_threshold", AutoInt, "9223372036854775807", ">=0", Honoured, "elements that stay whole altogether; \"auto\": the planner's choice", ""},
  {ZERO "stage3_max_live_parameters", AutoInt, "1000000000", ">=0", Honoured, "gathered elements at any time at most, beyond what the running op reads; \"auto\": as memory allows", ""},
  {ZERO "stage3_max_reuse_distance", AutoInt, "1000000000", ">=0", Honoured, "gathered elements are kept over at most so many others until their next use; \"auto\": kept or gathered again by cost alone", ""},
  {ZERO "stage3_gather_16bit_weights_on_model_save", Bool, "false", "", Noted, "ds-run --save-weights writes whole tensors", ""},
  {ZERO "stage3_module_granularity_threshold", Int, "0", "", Noted, "buckets are gathered, whatever the size of the modules that use them", ""},
  {ZERO "stage3_use_all_reduce_for_fetch_params", Bool, "false", "", Noted, "parameters are always gathered: the same values at half the traffic of an all-reduce", ""},
  {ZERO "stage3_allgather_sequential", Bool, "false", "", Noted, "a bucket is gathered by one collective into its place; there are no pieces to take in turn", ""},
  {ZERO "stage3_partition_stream_chunk_size", Int, "0", ">=0", Noted, "weights are read straight into their shards", ""},
  {ZERO "zero_hpz_partition_size", Int, "1", ">=0", Honoured, "data-parallel ranks, side by side, that keep all parameters together a second time once a step has gathered them: what is gathered after that is gathered among them; 1, or all ranks: none", ""},
  {ZERO "zero_quantized_weights", Bool, "false", "", Refused, "programs have no quantised gathers yet", ""},
  {ZERO "zero_quantized_nontrainable_weights", Bool, "false", "", Refused, "programs have no quantised weights yet", ""},
  {ZERO "zero_quantized_gradients", Bool, "false", "", Refused, "programs have no quantised reductions yet", ""},
  {ZERO "zeropp_loco_param", Section, "null", "", Refused, "programs have no quantised reductions yet", ""},
  {ZERO "zeropp_loco_param.err_beta", Float, "0.8", "0..1", Detail, "moving average of the quantisation error", ""},
  {ZERO "zeropp_loco_param.reset_T", Int, "1024", ">0", Detail, "steps between resets", ""},
  {ZERO "mics_shard_size", Int, "-1", "", Honoured, "ranks, side by side, that hold all parameters together; each such group has a copy, and gradients are added up over all; -1: all ranks", ""},
  {ZERO "mics_hierarchical_params_gather", Bool, "false", "", Honoured, "where a group of mics_shard_size ranks spans several nodes of the cluster, parameters are gathered between nodes first, and within each then", ""},
  {ZERO "memory_efficient_linear", Bool, "true", "", Noted, "the backward pass keeps what its formulas read and nothing else", ""},
  {ZERO "override_module_apply", Bool, "true", "", Noted, "there are no modules at run time: parameters are read straight into their shards", ""},
  {ZERO "pipeline_loading_checkpoint", Bool, "false", "", Noted, "every rank reads its own shards only", ""},
  {ZERO "log_trace_cache_warnings", Bool, "false", "", Noted, "there is no trace to invalidate: the order of gathers is in the program", ""},
  {ZERO "enable_sanity_checks", Bool, "false", "", Noted, "collectives are proved to match when compiling, and programs compared when ranks start", ""},
  {ZERO "save_muon_momentum_buffer_in_memory", Bool, "false", "", Noted, "only Muon has such a buffer, and no program has Muon", ""},
  {ZERO "leaf_module.classes", Texts, "[\"transformers.models.mixtral.modeling_mixtral.MixtralSparseMoeBlock\", \"transformers.models.qwen2_moe.modeling_qwen2_moe.Qwen2MoeSparseMoeBlock\", \"transformers.models.qwen3_moe.modeling_qwen3_moe.Qwen3MoeSparseMoeBlock\"]", "", Noted, "buckets follow layers and are gathered by the program; there are no module hooks", ""},
  {ZERO "leaf_module.names", Texts, "[]", "", Noted, "buckets follow layers and are gathered by the program; there are no module hooks", ""},
  {ZERO "leaf_module.name_suffixes", Texts, "[]", "", Noted, "buckets follow layers and are gathered by the program; there are no module hooks", ""},

  {ZERO "offload_param.device", Choice, "\"none\"", "none|cpu|nvme", Honoured, "where parameters are kept: they are loaded for forward, again for backward, and stored once a step", ""},
  {ZERO "offload_param.nvme_path", Text, "null", "", Honoured, "directory of parameters on NVMe, of all that is there where offload_optimizer gives none; ds-run --nvme-parameters or --nvme names another", ""},
  {ZERO "offload_param.buffer_count", Int, "5", ">=0", Noted, "two pieces of staging memory take turns: more would wait for the slower way", ""},
  {ZERO "offload_param.buffer_size", Int, "100000000", ">=0", Honoured, "elements of a piece of staging memory at most; larger parameters move in pieces", ""},
  {ZERO "offload_param.max_in_cpu", Int, "1000000000", ">=0", Honoured, "with device nvme, elements of a rank's parameters that stay on the host, the first in order", ""},
  {ZERO "offload_param.pin_memory", Bool, "true", "", Noted, "the host's arena is page-locked on CUDA, always", ""},
  {ZERO "offload_optimizer.device", Choice, "\"none\"", "none|cpu|nvme", Honoured, "where moments, masters and accumulated gradients are kept, gradients on the host with nvme too; the host updates them, on threads of its own", ""},
  {ZERO "offload_optimizer.nvme_path", Text, "null", "", Honoured, "directory of what is on NVMe beside parameters, and of them where offload_param gives none; ds-run --nvme names another for all", ""},
  {ZERO "offload_optimizer.buffer_count", Int, "4", ">=0", Noted, "each state of a sub-group has a piece of staging memory in each of two sets, however many there are", ""},
  {ZERO "offload_optimizer.pin_memory", Bool, "true", "", Noted, "the host's arena is page-locked on CUDA, always", ""},
  {ZERO "offload_optimizer.pipeline_read", Bool, "false", "", Honoured, "with device nvme, sub-groups are read ahead and written behind in two sets of staging memory, unless this and pipeline_write are given as false: then in one", ""},
  {ZERO "offload_optimizer.pipeline_write", Bool, "false", "", Honoured, "as pipeline_read", ""},
  {ZERO "offload_optimizer.fast_init", Bool, "false", "", Noted, "states start where they live, and are written there once", ""},
  {ZERO "offload_optimizer.ratio", Float, "1.0", "0..1", Honoured, "share of the elements whose states are offloaded, by whole buckets or parameters", ""},
  {ZERO "offload_optimizer.super_offload", Bool, "false", "", Honoured, "with device cpu, each sub-group is updated as soon as its own gradient is there, as if nothing were clipped or overflowed; where that was wrong its old values, which are kept until then, are updated again", ""},
  {ZERO "offload_optimizer.cpuadam_cores_perc", Float, "0.8", "0..1", Honoured, "share of the rank's threads that update on the host, rounded up", ""},
  {ZERO "zenflow", Section, "null", "", Refused, "programs have no ZenFlow yet", ""},
  {ZERO "zenflow.topk_ratio", Float, "0.1", "0..1", Detail, "share of the gradient columns updated at once, exclusive of 0 and 1", ""},
  {ZERO "zenflow.select_strategy", Choice, "\"auto\"", "auto|step|epoch", Detail, "how columns are selected", ""},
  {ZERO "zenflow.select_interval", AutoInt, "\"auto\"", ">0", Detail, "how often columns are selected", ""},
  {ZERO "zenflow.update_interval", AutoInt, "\"auto\"", ">0", Detail, "how often the rest is applied", ""},
  {ZERO "zenflow.overlap_step", Bool, "false", "", Detail, "update beside the forward and backward passes", ""},
  {ZERO "zenflow.offload", Bool, "false", "", Detail, "selected states on the host", ""},
  {ZERO "zenflow.auto_ratio", Float, "0.99", "0..1", Detail, "threshold of the automatic interval", ""},
  {ZERO "zenflow.full_warm_up_rounds", Int, "0", ">=0", Detail, "rounds without selection", ""},
  {ZERO "zenflow.pt_reserved_cores_perc", Float, "0.5", "0..1", Detail, "share of the cores kept free", ""},
  {ZERO "zenflow.steps_per_epoch", Int, "null", ">0", Detail, "set by DeepSpeed itself", ""},

  {"aio.block_size", Int, "1048576", ">0", Honoured, "bytes of a request to NVMe", ""},
  {"aio.queue_depth", Int, "8", ">0", Honoured, "requests under way, for each of intra_op_parallelism", ""},
  {"aio.intra_op_parallelism", Int, "1", ">0", Honoured, "how often queue_depth requests are under way", ""},
  {"aio.single_submit", Bool, "false", "", Honoured, "requests are started one by one", ""},
  {"aio.overlap_events", Bool, "true", "", Honoured, "requests are started while others are waited for", ""},
  {"aio.use_gds", Bool, "false", "", Refused, "programs have no GPU direct storage", ""},

  {"activation_checkpointing.partition_activations", Bool, "false", "", Honoured, "every layer is recomputed in the backward pass, where number_checkpoints does not say otherwise; there is one tensor rank, so that there is nothing to divide", ""},
  {"activation_checkpointing.contiguous_memory_optimization", Bool, "false", "", Noted, "every buffer has its place in the plan: memory does not fragment", ""},
  {"activation_checkpointing.cpu_checkpointing", Bool, "false", "", Honoured, "what layers are recomputed from is on the host in between; without number_checkpoints every layer is recomputed", ""},
  {"activation_checkpointing.number_checkpoints", AutoInt, "null", ">0", Honoured, "every layer is recomputed in the backward pass, from what enters it, whatever the number, which counts buffers in DeepSpeed: see pipeline.activation_checkpoint_interval for parts of several; absent or \"auto\": what is recomputed is chosen, and only where memory asks for it", ""},
  {"activation_checkpointing.granularity", Choice, "\"full\"", "full|selective", Honoured, "what is recomputed; selective: the attention core alone (Megatron's word, not DeepSpeed's)", "", true},
  {"activation_checkpointing.layers", Ints, "[]", ">=0", Honoured, "numbers of the layers that are recomputed; the others are kept (not DeepSpeed's)", "", true},
  {"activation_checkpointing.ops", Texts, "[]", "", Honoured, "ops whose results are recomputed, by the names that plans give them: \"attention\", \"matmul\", \"softmax\" (not DeepSpeed's)", "", true},
  {"activation_checkpointing.synchronize_checkpoint_boundary", Bool, "false", "", Noted, "streams are ordered by events in the program", ""},
  {"activation_checkpointing.profile", Bool, "false", "", Noted, "ds-run --trace writes the time of every command", ""},
};
// clang-format on
#undef ZERO
} // namespace

std::span<const Key> memoryKeys() { return kTable; }

} // namespace ds::config
