//===- KeysParallel.cpp - Keys: pipeline, tensor and expert parallelism, compiler --------===//
//
// Part of the key table (Keys.h). One row a line; the order is the order of the reference.
//
//===---------------------------------------------------------------------------===//
#include "Keys.h"

namespace ds::config {
namespace {
using enum KeyKind;
constexpr auto N = KeyStatus::Noted, R = KeyStatus::Refused, D = KeyStatus::Detail;
constexpr std::string_view kPresets = "llama|bloom|chatglm|mixtral|deepseek_v2|qwen2|phi3";

// clang-format off
constexpr Key kTable[] = {
  {"pipeline.stages", AutoInt, "\"auto\"", ">0", R, "programs have one pipeline stage", ""},
  {"pipeline.partition", Text, "\"best\"", "", N, "one stage holds every layer", ""},
  {"pipeline.seed_layers", Bool, "false", "", N, "dropout draws by seed, step and op", ""},
  {"pipeline.activation_checkpoint_interval", Int, "0", ">=0", R, "programs have no recomputation yet", ""},
  {"pipeline.pipe_partitioned", Bool, "true", "", N, "one stage has no neighbour", ""},
  {"pipeline.grad_partitioned", Bool, "true", "", N, "one stage has no neighbour", ""},
  {"pipeline.use_reentrant", Bool, "null", "", N, "recomputation is planned, not taped", ""},

  {"tensor_parallel.autotp_size", Int, "0", ">=0", R, "programs have no tensor parallelism yet; 0 and 1 are off", ""},
  {"tensor_parallel.dtype", Dtype, "\"fp16\"", "", N, "the precision blocks decide", ""},
  {"tensor_parallel.tp_overlap_comm", Bool, "false", "", N, "the schedule overlaps what can overlap", ""},
  {"tensor_parallel.tp.tp_size", Int, "1", ">0", R, "programs have no tensor parallelism yet", ""},
  {"tensor_parallel.tp.tp_grain_size", Int, "1", ">0", N, "read by tensor parallelism", ""},
  {"tensor_parallel.tp.mpu", Any, "null", "", R, "a Python object cannot be configured", ""},
  {"tensor_parallel.tp.tp_group", Any, "null", "", R, "a Python object cannot be configured", ""},
  {"tensor_parallel.injection_policy_tuple", Any, "null", "", R, "programs have no tensor parallelism yet", ""},
  {"tensor_parallel.partition_config.use_default_specs", Bool, "false", "", N, "read by tensor parallelism", ""},
  {"tensor_parallel.partition_config.layer_specs", Any, "null", "", R, "programs have no tensor parallelism yet", ""},
  {"tensor_parallel.preset_model", Choice, "null", kPresets, N, "read by tensor parallelism", ""},
  {"tensor_parallel.keep_module_on_host", Bool, "false", "", N, "weights are read straight to where they live", ""},
  {"tensor_parallel.replace_with_kernel_inject", Bool, "false", "", N, "kernels are chosen by the compiler", ""},

  {"expert_parallel.enabled", Bool, "false", "", R, "programs have no expert parallelism yet", ""},
  {"expert_parallel.autoep_size", Int, "1", ">0", D, "ranks that share the experts", ""},
  {"expert_parallel.expert_tensor_parallel_size", Int, "1", ">0", D, "tensor parallelism inside an expert", ""},
  {"expert_parallel.validate_folding_routing", Bool, "false", "", D, "checks of the routing", ""},
  {"expert_parallel.preset_model", Text, "null", "", D, "names of a known architecture", ""},
  {"expert_parallel.moe_layer_pattern", Text, "null", "", D, "which modules are expert layers", ""},
  {"expert_parallel.router_pattern", Text, "null", "", D, "which modules are routers", ""},
  {"expert_parallel.expert_pattern", Text, "null", "", D, "which modules are experts", ""},
  {"expert_parallel.use_grouped_mm", Bool, "true", "", D, "grouped matrix products", ""},
  {"expert_parallel.disable_triton_grouped_mm", Bool, "false", "", D, "implementation of the grouped products", ""},
  {"expert_parallel.route_norm", Bool, "null", "", D, "normalise the routing weights", ""},
  {"expert_parallel.route_scale", Float, "1.0", "", D, "factor of the routing weights", ""},
  {"expert_parallel.score_apply", Choice, "\"auto\"", "auto|pre|post", D, "where scores are applied", ""},
  {"expert_parallel.combine_impl", Choice, "\"auto\"", "auto|weighted_sum|legacy_bmm", D, "how outputs are combined", ""},
  {"expert_parallel.score_func", Choice, "\"auto\"", "auto|softmax|sigmoid", D, "scores from logits", ""},
  {"expert_parallel.top_k", AutoInt, "\"auto\"", ">0", D, "experts per token", ""},
  {"expert_parallel.load_balance_coeff", Float, "null", "null", D, "must be null", ""},
  {"expert_parallel.routed_scaling_factor", AutoFloat, "\"auto\"", "", D, "factor of the routed outputs", ""},
  {"expert_parallel.num_expert_groups", Int, "null", ">0", D, "groups of experts", ""},
  {"expert_parallel.num_limited_groups", Int, "null", ">0", D, "groups a token may use", ""},
  {"expert_parallel.expert_w1", Text, "null", "", D, "name of a weight", ""},
  {"expert_parallel.expert_w2", Text, "null", "", D, "name of a weight", ""},
  {"expert_parallel.expert_w3", Text, "null", "", D, "name of a weight", ""},
  {"expert_parallel.num_experts_attr", Text, "null", "", D, "name of an attribute", ""},
  {"expert_parallel.top_k_attr", Text, "null", "", D, "name of an attribute", ""},
  {"expert_parallel.has_shared_experts", Bool, "null", "", D, "experts every token uses", ""},
  {"expert_parallel.shared_experts_pattern", Text, "null", "", D, "which modules are shared experts", ""},
  {"expert_parallel.shared_experts_gate_pattern", Text, "null", "", D, "which modules are their gates", ""},

  {"compile.deepcompile", Bool, "false", "", N, "every model is compiled", ""},
  {"compile.free_activation", Bool, "false", "", N, "lifetimes are planned", ""},
  {"compile.free_activation_threshold", Int, "10485760", ">=0", N, "lifetimes are planned (bytes)", ""},
  {"compile.offload_activation", Bool, "false", "", R, "programs have no offload yet", ""},
  {"compile.offload_activation_pin_memory", Bool, "true", "", N, "read by offload", ""},
  {"compile.offload_opt_states", Bool, "false", "", R, "programs have no offload yet", ""},
  {"compile.offload_parameters", Bool, "false", "", R, "programs have no offload yet", ""},
  {"compile.double_buffer", Bool, "true", "", N, "the planner places buffers", ""},
  {"compile.symmetric_memory", Bool, "false", "", N, "the planner chooses the collectives", ""},
  {"compile.debug_log", Bool, "false", "", N, "the compiler has its own remarks", ""},
  {"compile.sync_before_reduce", Bool, "false", "", N, "streams are ordered by events in the program", ""},
  {"compile.sync_after_reduce", Bool, "false", "", N, "streams are ordered by events in the program", ""},
  {"compile.sync_before_allgather", Bool, "false", "", N, "streams are ordered by events in the program", ""},
  {"compile.sync_after_allgather", Bool, "false", "", N, "streams are ordered by events in the program", ""},
  {"compile.keep_int_input_tensors", Bool, "true", "", N, "lifetimes are planned", ""},
  {"compile.keep_all_input_tensors", Bool, "false", "", N, "lifetimes are planned", ""},
  {"compile.passes", Texts, "null", "z1|z3|autosp|autotp", N, "the pipeline is the compiler's own", ""},
};
// clang-format on
} // namespace

std::span<const Key> parallelKeys() { return kTable; }

} // namespace ds::config
