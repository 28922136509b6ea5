//===- Build.h - From resolved entries to the typed structs ---------------------------===//
//
// The steps after checking: the mesh and the batch triple are solved, dynamic defaults derived, the structs
// filled, and what contradicts itself refused. Each reports to the same Report.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CONFIG_BUILD_H
#define DS_LIB_CONFIG_BUILD_H

#include "Resolve.h"

namespace ds::config {

/// ranks = dp * tp * pp * sp, from the parallel sizes.
Mesh solveMesh(const Resolved &resolved, int64_t ranks, Report &report);

/// What is known of T = M * G * dp besides the keys.
struct BatchHints {
  bool noFile = false;               ///< M defaults to 1
  std::optional<int64_t> modelBatch; ///< what an open M is
};

/// T = M * G * dp, by DeepSpeed's rules for absent ones; derives the keys. An "auto" M that nothing gives is
/// 1 and open.
Batch solveBatch(Resolved &resolved, const Mesh &mesh, const BatchHints &hints, Report &report);

/// Refuses parts of the data-parallel ranks that do not divide them; finds how a MiCS group lies on nodes.
void checkPartitions(Config &config, const Resolved &resolved, Report &report);

/// Dynamic defaults that depend on other keys (overlap_comm, contiguous_gradients, an idle offload_param).
void deriveDefaults(Resolved &resolved, Report &report);

/// The structs; also resolves the optimizer's kind and the schedule.
void fillConfig(Config &config, Resolved &resolved, Report &report);
Optimizer fillOptimizer(Resolved &resolved, Report &report);
Schedule fillSchedule(const Resolved &resolved, const Optimizer &optimizer, Report &report);
Zero fillZero(const Resolved &resolved);

/// What layer_specs and a preset say of parameters by their names, in the order in which they count.
std::vector<LayerSpec> readLayerSpecs(const Resolved &resolved, Report &report);

/// Why a key says nothing in this configuration: its block is off. "" where it is itself the switch that is
/// off; nullopt where it speaks.
std::optional<std::string_view> whyOff(const Config &config, const Setting &setting);

/// The rules between keys.
void checkRules(const Config &config, Report &report);

/// Settings for printing, and the notices of noted and "auto" keys.
void listSettings(Config &config, const Resolved &resolved, Report &report);

} // namespace ds::config

#endif // DS_LIB_CONFIG_BUILD_H
