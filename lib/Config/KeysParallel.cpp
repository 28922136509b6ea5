//===- KeysParallel.cpp - Keys: pipeline, tensor and expert parallelism, compiler --------===//
//
// Part of the key table (Keys.h). One row a line; the order is the order of the reference.
//
//===---------------------------------------------------------------------------===//
#include "Keys.h"

namespace ds::config {
namespace {
using enum KeyKind;
using enum KeyStatus;
constexpr std::string_view kPresets = "llama|bloom|chatglm|mixtral|deepseek_v2|qwen2|phi3";

// clang-format off
constexpr Key kTable[] = {
  {"pipeline.stages", AutoInt, "\"auto\"", ">0", Honoured, "runs of layers, each on ranks of its own; with any ZeRO stage", ""},
  {"pipeline.partition", Text, "\"best\"", "", Honoured, "by what layers are divided: best (time), uniform, parameters or type:REGEX, which counts layers by their names", ""},
  {"pipeline.schedule", Choice, "\"1f1b\"", "1f1b|gpipe|interleaved|zb-h1|auto", Honoured, "in which order stages run micro-batches forward and backward: 1f1b or gpipe (not DeepSpeed's)", "", true},
  {"pipeline.seed_layers", Bool, "false", "", Noted, "dropout draws by seed, step and op", ""},
  {"pipeline.activation_checkpoint_interval", Int, "0", ">=0", Honoured, "layers of each part that the backward pass recomputes from what enters it; 0: see activation_checkpointing", ""},
  {"pipeline.pipe_partitioned", Bool, "true", "", Noted, "each rank sends what it has", ""},
  {"pipeline.grad_partitioned", Bool, "true", "", Noted, "each rank sends what it has", ""},
  {"pipeline.virtual_stages", Int, "1", ">0", Refused, "stages of programs have one run of layers; chunks of layers that a stage interleaves (not DeepSpeed's; read by plans by rules)", "", true},
  {"pipeline.use_reentrant", Bool, "null", "", Noted, "recomputation is planned, not taped", ""},

  {"tensor_parallel.autotp_size", Int, "0", ">=0", Honoured, "ranks, the closest ones, that share each layer; 0 and 1 are off", ""},
  {"tensor_parallel.dtype", Dtype, "\"fp16\"", "", Noted, "the precision blocks decide", ""},
  {"tensor_parallel.tp_overlap_comm", Bool, "false", "", Honoured, "exchanges beside products that are cut for it; chosen where the key is absent", ""},
  {"tensor_parallel.sequence_parallel", Bool, "false", "", Honoured, "norms and dropout split by the sequence; chosen where the key is absent (not DeepSpeed's)", "", true},
  {"tensor_parallel.tp.tp_size", Int, "1", ">0", Honoured, "the same as autotp_size", ""},
  {"tensor_parallel.tp.tp_grain_size", Int, "1", ">0", Noted, "a size is cut by what it consists of, as heads", ""},
  {"tensor_parallel.tp.mpu", Any, "null", "", Refused, "a Python object cannot be configured", ""},
  {"tensor_parallel.tp.tp_group", Any, "null", "", Refused, "a Python object cannot be configured", ""},
  {"tensor_parallel.injection_policy_tuple", Any, "null", "", Refused, "layers are found by what is computed with them; partition_config.layer_specs names parameters", ""},
  {"tensor_parallel.partition_config.use_default_specs", Bool, "false", "", Noted, "a preset's specs come behind those of layer_specs", ""},
  {"tensor_parallel.partition_config.layer_specs", Any, "null", "", Honoured, "how parameters with matching names are cut, where it is not to be found out", ""},
  {"tensor_parallel.preset_model", Choice, "null", kPresets, Honoured, "DeepSpeed's layer_specs of a model that it knows", ""},
  {"tensor_parallel.keep_module_on_host", Bool, "false", "", Noted, "weights are read straight to where they live", ""},
  {"tensor_parallel.replace_with_kernel_inject", Bool, "false", "", Noted, "kernels are chosen by the compiler", ""},

  {"expert_parallel.enabled", Bool, "false", "", Refused, "programs have no expert parallelism yet", ""},
  {"expert_parallel.autoep_size", Int, "1", ">0", Detail, "ranks that share the experts", ""},
  {"expert_parallel.expert_tensor_parallel_size", Int, "1", ">0", Detail, "tensor parallelism inside an expert", ""},
  {"expert_parallel.validate_folding_routing", Bool, "false", "", Detail, "checks of the routing", ""},
  {"expert_parallel.preset_model", Text, "null", "", Detail, "names of a known architecture", ""},
  {"expert_parallel.moe_layer_pattern", Text, "null", "", Detail, "which modules are expert layers", ""},
  {"expert_parallel.router_pattern", Text, "null", "", Detail, "which modules are routers", ""},
  {"expert_parallel.expert_pattern", Text, "null", "", Detail, "which modules are experts", ""},
  {"expert_parallel.use_grouped_mm", Bool, "true", "", Detail, "grouped matrix products", ""},
  {"expert_parallel.disable_triton_grouped_mm", Bool, "false", "", Detail, "implementation of the grouped products", ""},
  {"expert_parallel.route_norm", Bool, "null", "", Detail, "normalise the routing weights", ""},
  {"expert_parallel.route_scale", Float, "1.0", "", Detail, "factor of the routing weights", ""},
  {"expert_parallel.score_apply", Choice, "\"auto\"", "auto|pre|post", Detail, "where scores are applied", ""},
  {"expert_parallel.combine_impl", Choice, "\"auto\"", "auto|weighted_sum|legacy_bmm", Detail, "how outputs are combined", ""},
  {"expert_parallel.score_func", Choice, "\"auto\"", "auto|softmax|sigmoid", Detail, "scores from logits", ""},
  {"expert_parallel.top_k", AutoInt, "\"auto\"", ">0", Detail, "experts per token", ""},
  {"expert_parallel.load_balance_coeff", Float, "null", "null", Detail, "must be null", ""},
  {"expert_parallel.routed_scaling_factor", AutoFloat, "\"auto\"", "", Detail, "factor of the routed outputs", ""},
  {"expert_parallel.num_expert_groups", Int, "null", ">0", Detail, "groups of experts", ""},
  {"expert_parallel.num_limited_groups", Int, "null", ">0", Detail, "groups a token may use", ""},
  {"expert_parallel.expert_w1", Text, "null", "", Detail, "name of a weight", ""},
  {"expert_parallel.expert_w2", Text, "null", "", Detail, "name of a weight", ""},
  {"expert_parallel.expert_w3", Text, "null", "", Detail, "name of a weight", ""},
  {"expert_parallel.num_experts_attr", Text, "null", "", Detail, "name of an attribute", ""},
  {"expert_parallel.top_k_attr", Text, "null", "", Detail, "name of an attribute", ""},
  {"expert_parallel.has_shared_experts", Bool, "null", "", Detail, "experts every token uses", ""},
  {"expert_parallel.shared_experts_pattern", Text, "null", "", Detail, "which modules are shared experts", ""},
  {"expert_parallel.shared_experts_gate_pattern", Text, "null", "", Detail, "which modules are their gates", ""},

  {"compile.deepcompile", Bool, "false", "", Noted, "every model is compiled", ""},
  {"compile.free_activation", Bool, "false", "", Noted, "lifetimes are planned", ""},
  {"compile.free_activation_threshold", Int, "10485760", ">=0", Noted, "lifetimes are planned (bytes)", ""},
  {"compile.offload_activation", AutoBool, "false", "", Honoured, "what forward makes for backward is on the host in between, but for small values; \"auto\": only what memory has no room for, where nothing else costs less", ""},
  {"compile.offload_activation_pin_memory", Bool, "true", "", Noted, "the host's arena is page-locked on CUDA, always", ""},
  {"compile.offload_opt_states", Bool, "false", "", Honoured, "as `zero_optimization.offload_optimizer.device` cpu", ""},
  {"compile.offload_parameters", Bool, "false", "", Honoured, "as `zero_optimization.offload_param.device` cpu", ""},
  {"compile.double_buffer", Bool, "true", "", Noted, "the planner places buffers", ""},
  {"compile.symmetric_memory", Bool, "false", "", Noted, "the planner chooses the collectives", ""},
  {"compile.debug_log", Bool, "false", "", Noted, "the compiler has its own remarks", ""},
  {"compile.sync_before_reduce", Bool, "false", "", Noted, "streams are ordered by events in the program", ""},
  {"compile.sync_after_reduce", Bool, "false", "", Noted, "streams are ordered by events in the program", ""},
  {"compile.sync_before_allgather", Bool, "false", "", Noted, "streams are ordered by events in the program", ""},
  {"compile.sync_after_allgather", Bool, "false", "", Noted, "streams are ordered by events in the program", ""},
  {"compile.keep_int_input_tensors", Bool, "true", "", Noted, "lifetimes are planned", ""},
  {"compile.keep_all_input_tensors", Bool, "false", "", Noted, "lifetimes are planned", ""},
  {"compile.passes", Texts, "null", "z1|z3|autosp|autotp", Noted, "the pipeline is the compiler's own", ""},
  {"compile.*", Any, "null", "", Noted, "of torch.compile (disable, backend, kwargs): every model is compiled", ""},
};
// clang-format on
} // namespace

std::span<const Key> parallelKeys() { return kTable; }

} // namespace ds::config
