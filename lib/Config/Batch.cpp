//===- Batch.cpp - The mesh and the batch triple -----------------------------------===//
//
// With W data-parallel ranks, T = M * G * W must hold exactly, where T is train_batch_size, M the micro-batch
// and G the accumulation. DeepSpeed derives what is absent by floor division and then checks; so does this,
// with a message that shows the equation and the key to drop.
//
//===---------------------------------------------------------------------------===//
#include "Build.h"

namespace ds::config {

static constexpr std::string_view kT = "train_batch_size", kM = "train_micro_batch_size_per_gpu",
                                  kG = "gradient_accumulation_steps";

/// Names a complaint after the place of a key.
static void complainAt(const Resolved &resolved, std::string_view path, const std::string &message,
                       std::string hint, Report &report) {
  const Entry *entry = resolved.find(path);
  std::string from = entry && resolved.given(path) ? entry->from : report.name;
  report.complaints.push_back({from + ": " + message, std::move(hint)});
}

/// The larger of the two spellings of a tensor-parallel size; both above 1 must agree.
static int64_t tensorParallelSize(const Resolved &resolved, Report &report) {
  int64_t a = std::max<int64_t>(1, resolved.integer("tensor_parallel.autotp_size"));
  int64_t b = std::max<int64_t>(1, resolved.integer("tensor_parallel.tp.tp_size"));
  if (a > 1 && b > 1 && a != b)
    complainAt(resolved, "tensor_parallel.autotp_size",
               "\"tensor_parallel.autotp_size\" = " + std::to_string(a) +
                   ", but \"tensor_parallel.tp.tp_size\" = " + std::to_string(b),
               "drop \"tensor_parallel.tp.tp_size\"", report);
  return std::max(a, b);
}

/// ", as 4 or 8": the multiples of `unit` next to `number`; nothing where there is no unit.
static std::string nearestMultiples(int64_t number, int64_t unit) {
  if (unit < 1 || number > INT64_MAX - unit)
    return "";
  const int64_t below = number < 1 ? 0 : number / unit * unit;
  return ", as " + (below > 0 ? std::to_string(below) + " or " : "") + std::to_string(below + unit);
}

Mesh solveMesh(const Resolved &resolved, int64_t ranks, Report &report) {
  Mesh mesh;
  mesh.ranks = ranks;
  mesh.tp = tensorParallelSize(resolved, report);
  mesh.pp = resolved.maybeInteger("pipeline.stages").value_or(1);
  mesh.sp = resolved.maybeInteger("sequence_parallel_size").value_or(1);
  int64_t model = 0;
  bool overflow =
      __builtin_mul_overflow(mesh.tp, mesh.pp, &model) || __builtin_mul_overflow(model, mesh.sp, &model);
  if (ranks < 1 || overflow || ranks % model != 0) {
    report.complaints.push_back(
        {"the ranks do not divide: ranks = " + std::to_string(ranks) + ", but tp * pp * sp = " +
             std::to_string(mesh.tp) + " * " + std::to_string(mesh.pp) + " * " + std::to_string(mesh.sp),
         "choose --ranks as a multiple of tensor_parallel.autotp_size * pipeline.stages * "
         "sequence_parallel_size" +
             nearestMultiples(ranks, overflow ? 0 : model)});
    return mesh;
  }
  mesh.dp = ranks / model;
  std::optional<int64_t> asked = resolved.maybeInteger("data_parallel_size");
  if (asked && *asked != mesh.dp)
    complainAt(resolved, "data_parallel_size",
               "\"data_parallel_size\" = " + std::to_string(*asked) + ", but ranks / (tp * pp * sp) = " +
                   std::to_string(ranks) + " / " + std::to_string(model) + " = " + std::to_string(mesh.dp),
               "drop \"data_parallel_size\"", report);
  return mesh;
}

/// "2 or 4": the divisors of `number` next to `asked`, which is none.
static std::string nearestDivisors(int64_t number, int64_t asked) {
  int64_t below = std::min(asked, number), above = asked;
  while (number % below != 0)
    --below;
  while (above < number && number % above != 0)
    ++above;
  return std::to_string(below) + (above < number || asked < number ? " or " + std::to_string(above) : "");
}

/// Data-parallel ranks of a node, where a MiCS group spans several and is asked to gather between them first;
/// refuses nodes that do not divide it.
static std::optional<int64_t> findNodeRanks(const Config &config, const Resolved &resolved, Report &report) {
  const Mesh &mesh = config.mesh;
  const int64_t group = std::min(config.zero.micsShardSize, mesh.dp), model = mesh.tp * mesh.sp;
  const bool isAsked = config.zero.stage == 3 && group > 0 &&
                       resolved.flag("zero_optimization.mics_hierarchical_params_gather");
  if (!isAsked || !mesh.ranksPerNode || group * model <= *mesh.ranksPerNode)
    return std::nullopt;
  const int64_t local = *mesh.ranksPerNode / model;
  if (*mesh.ranksPerNode % model != 0 || group % local != 0) {
    complainAt(
        resolved, "zero_optimization.mics_hierarchical_params_gather",
        "\"zero_optimization.mics_hierarchical_params_gather\" gathers between whole nodes, but nodes of " +
            std::to_string(*mesh.ranksPerNode) +
            " ranks do not divide \"mics_shard_size\" = " + std::to_string(group) +
            (model > 1 ? " times " + std::to_string(model) + " ranks of a model" : ""),
        *mesh.ranksPerNode % model == 0 ? "choose a \"mics_shard_size\"" + nearestMultiples(group, local)
                                        : "turn it off",
        report);
    return std::nullopt;
  }
  return local > 1 ? std::optional(local) : std::nullopt;
}

void checkPartitions(Config &config, const Resolved &resolved, Report &report) {
  const int64_t ranks = config.mesh.dp;
  for (auto [path, size] : {std::pair("zero_optimization.mics_shard_size", config.zero.micsShardSize),
                            {"zero_optimization.zero_hpz_partition_size", config.zero.hpzPartitionSize}})
    if (size > 1 && ranks > 1 && ranks % size != 0)
      complainAt(resolved, path,
                 "\"" + std::string(path) + "\" = " + std::to_string(size) +
                     " does not divide the data-parallel ranks, which are " + std::to_string(ranks),
                 "choose " + nearestDivisors(ranks, size), report);
  config.zero.micsNodeRanks = findNodeRanks(config, resolved, report);
  const std::optional<int64_t> node = config.mesh.ranksPerNode;
  if (config.mesh.tp > 1 && node && config.mesh.ranks > *node && *node % config.mesh.tp != 0) {
    const std::string_view path = resolved.integer("tensor_parallel.autotp_size") > 1
                                      ? "tensor_parallel.autotp_size"
                                      : "tensor_parallel.tp.tp_size";
    report.notices.push_back({resolved.find(path)->from + ": \"" + std::string(path) +
                                  "\" = " + std::to_string(config.mesh.tp) + " does not divide the " +
                                  std::to_string(*node) +
                                  " ranks of a node: what ranks of a layer exchange goes between nodes",
                              /*isCostly=*/true});
  }
}

namespace {
/// The triple with what was given.
struct Triple {
  std::optional<int64_t> t, m, g;
  int64_t w;
};
} // namespace

/// Which key of a triple that does not add up is best dropped, and what it then becomes.
static std::string hintToDrop(const Triple &given, const Batch &batch, int64_t w) {
  int64_t product = 0;
  int64_t micro = std::max<int64_t>(1, batch.micro), accumulation = std::max<int64_t>(1, batch.accumulation);
  bool fits = !__builtin_mul_overflow(micro, accumulation, &product) &&
              !__builtin_mul_overflow(product, w, &product) && product > 0;
  auto drop = [](std::string_view key, int64_t becomes) {
    return "drop \"" + std::string(key) + "\": it becomes " + std::to_string(becomes);
  };
  if (given.t && given.m && given.g) {
    int64_t t = *given.t;
    if (fits && t % (*given.m * w) == 0)
      return drop(kG, t / (*given.m * w));
    if (fits && t % (*given.g * w) == 0)
      return drop(kM, t / (*given.g * w));
  }
  if (given.t && (given.m || given.g) && fits)
    return drop(kT, product);
  return "make \"" + std::string(kT) + "\" a multiple of " + std::to_string(w) + ", or give \"" +
         std::string(kM) + "\" instead";
}

/// DeepSpeed's derivation; floor divisions are checked afterwards by the equation.
static Batch deriveTriple(const Triple &given, bool &overflow) {
  Batch batch;
  int64_t w = given.w;
  batch.global = given.t.value_or(0);
  batch.micro = given.m.value_or(0);
  batch.accumulation = given.g.value_or(1);
  if (given.t && given.m && !given.g)
    batch.accumulation = *given.t / *given.m / w;
  else if (given.t && !given.m)
    batch.micro = *given.t / w / batch.accumulation;
  else if (!given.t)
    overflow = __builtin_mul_overflow(batch.micro, batch.accumulation, &batch.global) ||
               __builtin_mul_overflow(batch.global, w, &batch.global);
  return batch;
}

static std::string equation(const Batch &batch, int64_t w) {
  return std::to_string(batch.micro) + " * " + std::to_string(batch.accumulation) + " * " + std::to_string(w);
}

/// Whether T == M * G * W, all positive.
static bool addsUp(const Batch &batch, int64_t w) {
  int64_t product = 0;
  auto fits = [](int64_t size) { return size > 0 && size <= INT32_MAX; }; // as the keys' own limits say
  return batch.global > 0 && fits(batch.micro) && fits(batch.accumulation) &&
         !__builtin_mul_overflow(batch.micro, batch.accumulation, &product) &&
         !__builtin_mul_overflow(product, w, &product) && product == batch.global;
}

/// Gives the keys of what was not given their values.
static void deriveKeys(Resolved &resolved, const Triple &given, const Batch &batch,
                       const std::string &settled) {
  if (!given.t)
    resolved.derive(kT, makeInt(batch.global),
                    "micro-batch * accumulation * ranks = " + equation(batch, given.w));
  if (!given.m || !settled.empty())
    resolved.derive(kM, makeInt(batch.micro),
                    settled.empty() ? "train_batch_size / ranks / accumulation" : settled);
  if (!given.g)
    resolved.derive(kG, makeInt(batch.accumulation),
                    given.t && given.m ? "train_batch_size / micro-batch / ranks" : "1 when absent");
}

/// M where the keys leave it open: the model's own batch, else 1. Gives the reason, or "" where it is not
/// open. Both of T and G given determine M, and T alone does unless M is written "auto".
static std::string settleMicro(const Resolved &resolved, const BatchHints &hints, Triple &given,
                               bool &isOpen) {
  auto isAuto = [&](std::string_view path) {
    const Entry *entry = resolved.find(path);
    return entry && entry->isAuto;
  };
  if (given.m || (given.t && (given.g || !isAuto(kM))))
    return "";
  if (hints.modelBatch) {
    given.m = hints.modelBatch;
    return "the batch of the model's inputs";
  }
  if (given.t || (!hints.noFile && !isAuto(kM) && !isAuto(kT)))
    return "";
  given.m = 1;
  isOpen = true;
  return hints.noFile ? "no configuration file" : "nothing gives it; --input does, or the key";
}

Batch solveBatch(Resolved &resolved, const Mesh &mesh, const BatchHints &hints, Report &report) {
  Triple given{resolved.maybeInteger(kT), resolved.maybeInteger(kM), resolved.maybeInteger(kG), mesh.dp};
  bool isOpen = false;
  const std::string settled = settleMicro(resolved, hints, given, isOpen);
  if (!given.t && !given.m) {
    complainAt(resolved, kG, "neither \"" + std::string(kT) + "\" nor \"" + std::string(kM) + "\" is given",
               resolved.flag("elasticity.enabled")
                   ? "elastic batch sizes are not solved here: give \"" + std::string(kM) +
                         "\" and \"elasticity.ignore_non_elastic_batch_info\": true"
                   : "give \"" + std::string(kM) + "\"; the others follow from it",
               report);
    return {};
  }
  bool overflow = false;
  Batch batch = deriveTriple(given, overflow);
  batch.microIsOpen = isOpen;
  if (overflow || !addsUp(batch, mesh.dp)) {
    std::string left = overflow ? std::string(kT) : std::string(kT) + " = " + std::to_string(batch.global);
    complainAt(resolved, resolved.given(kT) ? kT : kM,
               left + (overflow ? " exceeds 64 bits: " : " is not ") + std::string(kM) + " * " +
                   std::string(kG) + " * data-parallel ranks = " + equation(batch, mesh.dp),
               overflow ? "choose smaller sizes" : hintToDrop(given, batch, mesh.dp), report);
    return {};
  }
  deriveKeys(resolved, given, batch, settled);
  return batch;
}

void setMicroBatch(Config &config, int64_t micro) {
  config.batch.micro = micro;
  config.batch.global = micro * config.batch.accumulation * config.mesh.dp;
  for (Setting &setting : config.settings) {
    if (setting.key != kM && setting.key != kT)
      continue;
    setting.value = std::to_string(setting.key == kM ? micro : config.batch.global);
    setting.origin = Origin::Derived;
    setting.from = "derived: the batch of the model's inputs";
    setting.changed = true;
  }
}

} // namespace ds::config
