//===- Aliases.cpp - Old and informal spellings ------------------------------------===//
//
// What DeepSpeed itself renamed, what its documentation calls differently from its code, and what is often
// written though DeepSpeed never read it. Each is translated to the table's key with a notice; the old and
// the new spelling together are a mistake.
//
//===---------------------------------------------------------------------------===//
#include "Resolve.h"

#include <cassert>

namespace ds::config {

namespace {
struct Alias {
  std::string_view from, to; ///< dotted; `to` empty: dropped
  std::string_view why;
};
} // namespace

#define ZERO "zero_optimization."
static constexpr Alias kAliases[] = {
    {"bfloat16", "bf16", ""},
    {ZERO "stage3_gather_fp16_weights_on_model_save", ZERO "stage3_gather_16bit_weights_on_model_save", ""},
    {ZERO "gather_16bit_weights_on_model_save", ZERO "stage3_gather_16bit_weights_on_model_save", ""},
    {ZERO "prefetch_bucket_size", ZERO "stage3_prefetch_bucket_size", ""},
    {ZERO "param_persistence_threshold", ZERO "stage3_param_persistence_threshold", ""},
    {ZERO "model_persistence_threshold", ZERO "stage3_model_persistence_threshold", ""},
    {ZERO "max_live_parameters", ZERO "stage3_max_live_parameters", ""},
    {ZERO "max_reuse_distance", ZERO "stage3_max_reuse_distance", ""},
    {ZERO "module_granularity_threshold", ZERO "stage3_module_granularity_threshold", ""},
    {ZERO "use_all_reduce_for_fetch_params", ZERO "stage3_use_all_reduce_for_fetch_params", ""},
    {ZERO "allgather_sequential", ZERO "stage3_allgather_sequential", ""},
    {ZERO "partition_stream_chunk_size", ZERO "stage3_partition_stream_chunk_size", ""},
    {ZERO "cpu_offload_use_pin_memory", "", "pin_memory belongs to offload_param and offload_optimizer"},
    {"pipeline.micro_batches", "gradient_accumulation_steps",
     "a pipeline's micro-batches are the accumulation steps"},
    {"tensor_parallel.tp_size", "tensor_parallel.autotp_size", ""},
    {"tensor_parallel.kernel_inject", "tensor_parallel.replace_with_kernel_inject", ""},
    {"aio.thread_count", "aio.intra_op_parallelism", ""},
    {"elasticity.prefer_large_batch", "elasticity.prefer_larger_batch", ""},
};

/// The object that holds the last part of a dotted path, or null.
static Value *parentOf(Value &root, std::string_view path) {
  std::vector<std::string_view> parts = splitAt(path, '.');
  Value *object = &root;
  for (size_t i = 0; object && i + 1 < parts.size(); ++i)
    object = object->member(parts[i]);
  return object;
}

static std::string_view lastPart(std::string_view path) { return path.substr(path.rfind('.') + 1); }

/// Puts a translated value where the new spelling is; a complaint when that is taken.
static void place(Value &root, std::string_view from, std::string_view to, Value value, std::string_view why,
                  Report &report) {
  Value *parent =
      parentOf(root, to); // there: old and new spelling share their section, or the new one is at the top
  assert(parent && "an alias leads into a section that may be absent");
  const Value *old = parent->member(lastPart(to));
  if (old && !old->is(Value::Kind::Null))
    return report.complain(value.place, quote(from) + " and " + quote(to) + " are both given",
                           "keep " + quote(to) + "; the other is an older name for it");
  (void)parent->take(lastPart(to));
  report.note(value.place,
              quote(from) + " is read as " + quote(to) + (why.empty() ? "" : ": " + std::string(why)));
  value.key = lastPart(to);
  parent->items.push_back(std::move(value));
}

/// zero_optimization: true | false, DeepSpeed's first form.
static void translateZeroSwitch(Value &root, Report &report) {
  Value *zero = root.member("zero_optimization");
  if (!zero || !zero->is(Value::Kind::Bool))
    return;
  bool on = zero->boolean;
  Value stage = makeInt(on ? 1 : 0);
  stage.key = "stage";
  stage.place = zero->place;
  zero->kind = Value::Kind::Object;
  zero->items.push_back(std::move(stage));
  report.note(zero->place, "\"zero_optimization\": " + std::string(on ? "true" : "false") +
                               " is read as \"zero_optimization.stage\": " + (on ? "1" : "0"));
  std::optional<Value> size = root.take("allgather_size");
  if (size && on)
    place(root, "allgather_size", ZERO "allgather_bucket_size", std::move(*size), "", report);
}

/// cpu_offload: true and cpu_offload_param: true.
static void translateCpuOffload(Value &root, std::string_view from, std::string_view to, Report &report) {
  Value *parent = parentOf(root, from);
  Value *old = parent ? parent->member(lastPart(from)) : nullptr;
  if (!old || !old->is(Value::Kind::Bool))
    return; // of another type it stays and is refused as unknown, with its nearest key
  Value taken = *parent->take(lastPart(from));
  if (!taken.boolean)
    return report.note(taken.place, quote(from) + ": false is the default and has no effect");
  Value block = makeObject();
  block.place = taken.place;
  block.items.push_back(makeString("cpu"));
  block.items.back().key = "device";
  block.items.back().place = taken.place;
  place(root, from, to, std::move(block), "device \"cpu\"", report);
}

/// A sequence_parallel block, which DeepSpeed never had.
static void translateSequenceParallel(Value &root, Report &report) {
  Value *block = root.member("sequence_parallel");
  if (!block || !block->is(Value::Kind::Object))
    return;
  std::optional<Value> enabled = block->take("enabled"), size;
  for (std::string_view name : {"sequence_parallel_size", "size", "sp_size", "degree"})
    if (std::optional<Value> found = block->take(name)) {
      if (size)
        report.complain(found->place, "\"sequence_parallel\" gives its size twice",
                        "keep \"sequence_parallel_size\"");
      size = std::move(found);
    }
  for (const Value &rest : block->items)
    report.complain(rest.place, "unknown key " + quote("sequence_parallel." + rest.key),
                    "did you mean \"sequence_parallel_size\"?");
  TextLocation where = block->place;
  (void)root.take("sequence_parallel");
  if (enabled && enabled->is(Value::Kind::Bool) && !enabled->boolean)
    return report.note(where, "\"sequence_parallel\" is not enabled and has no effect");
  if (!size)
    return report.note(where, "\"sequence_parallel\" names no size; \"sequence_parallel_size\" decides");
  place(root, "sequence_parallel", "sequence_parallel_size", std::move(*size), "", report);
}

/// A clipping norm among the optimizer's parameters, which DeepSpeed refuses as well.
static void refuseMaxGradNorm(Value &root, Report &report) {
  Value *params = parentOf(root, "optimizer.params.max_grad_norm");
  if (std::optional<Value> norm = params ? params->take("max_grad_norm") : std::nullopt)
    report.complain(norm->place, "\"optimizer.params.max_grad_norm\" is not an optimizer parameter",
                    "write \"gradient_clipping\": " + toJson(*norm) + " at the top level");
}

void translateAliases(Value &root, Report &report) {
  translateZeroSwitch(root, report);
  translateCpuOffload(root, ZERO "cpu_offload", ZERO "offload_optimizer", report);
  translateCpuOffload(root, ZERO "cpu_offload_param", ZERO "offload_param", report);
  translateSequenceParallel(root, report);
  refuseMaxGradNorm(root, report);
  for (const Alias &alias : kAliases) {
    Value *parent = parentOf(root, alias.from);
    std::optional<Value> value = parent ? parent->take(lastPart(alias.from)) : std::nullopt;
    if (!value)
      continue;
    if (alias.to.empty())
      report.note(value->place, quote(alias.from) + " has no effect: " + std::string(alias.why));
    else
      place(root, alias.from, alias.to, std::move(*value), alias.why, report);
  }
}
#undef ZERO

} // namespace ds::config
