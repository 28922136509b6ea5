//===- Target.cpp - What a program is compiled for --------------------------------===//
#include "Target.h"

#include "ds/Codegen/CompileCuda.h"

using namespace ds;
using namespace ds::opt;

/// The target with generated code that comes nearest to `architecture`: not newer, or else the oldest.
static std::string nearestTarget(llvm::StringRef architecture) {
  const std::optional<llvm::StringRef> nearest = mlir::ds::nearestProcessor(architecture);
  return ("cuda:" + nearest.value_or(mlir::ds::cudaProcessors().front())).str();
}

/// What `--target` names, with code of its own or that of an older device. Requires that it is one.
static Target ownTarget(llvm::StringRef name) {
  llvm::StringRef architecture = name;
  if (!architecture.consume_front("cuda:"))
    return Target{name.str(), ""};
  const std::string nearest = nearestTarget(architecture);
  return Target{nearest, nearest == name ? "" : ("which " + architecture + " runs").str()};
}

/// Whether a device of `architecture` runs a program for `target`: PTX runs on later devices as well.
static bool runs(llvm::StringRef architecture, llvm::StringRef target) {
  if (architecture == "cpu" || target == "cpu")
    return architecture == target;
  return mlir::ds::cudaCapability(target) <= mlir::ds::cudaCapability(architecture);
}

/// Holds the target that is asked for to the cluster.
static Result<Target> checkTarget(const Options &options, const config::Cluster &cluster) {
  const std::string &architecture = cluster.device.architecture;
  const std::string target = ownTarget(options.target).name;
  if (architecture.empty()) // it does not say
    return Target{target, "--target"};
  if (!runs(architecture, options.target))
    return Error{ExitCode::Invalid,
                 "--target " + options.target + " contradicts --cluster " + cluster.name +
                     ", whose device.architecture is " + architecture,
                 "leave --target out: the plan is then for the cluster's device"};
  bool isOwn = options.target == architecture || options.target == "cuda:" + architecture;
  return Target{target, isOwn ? "--target, as device.architecture of " + cluster.name
                              : "--target, which " + architecture + " of " + cluster.name + " runs"};
}

bool ds::opt::isPlanningOnly(const config::Cluster &cluster) {
  const std::string &architecture = cluster.device.architecture;
  return mlir::ds::cudaCapability(architecture) > 0 && !runs(architecture, nearestTarget(architecture));
}

/// The target for a device without code of its own: that of the nearest older one, which it runs as well. An
/// older device than all of them is planned as the oldest, and has no program.
static Result<Target> approximate(const Options &options, const config::Cluster &cluster) {
  const std::string &architecture = cluster.device.architecture;
  std::string nearest = nearestTarget(architecture);
  if (!isPlanningOnly(cluster))
    return Target{nearest, "which " + architecture + " of " + cluster.name + " runs"};
  if (options.emit == Emit::Program)
    return Error{ExitCode::Invalid,
                 "--emit=program: no code is generated for " + architecture +
                     ", the device.architecture of " + cluster.name,
                 "leave --emit out for a plan, or name a cluster of later devices"};
  return Target{nearest,
                "no code is generated for " + architecture + " of " + cluster.name +
                    ": planned as the oldest device that has it",
                /*isPlanningOnly=*/true};
}

Result<Target> ds::opt::chooseTarget(const Options &options, const config::Cluster &cluster) {
  if (options.cluster.empty())
    return ownTarget(options.target);
  if (options.targetGiven)
    return checkTarget(options, cluster);
  const std::string &architecture = cluster.device.architecture;
  if (architecture.empty())
    return Target{"cpu", cluster.name + " gives no device.architecture"};
  if (architecture == "cpu")
    return Target{"cpu", "device.architecture of " + cluster.name};
  if (!llvm::is_contained(mlir::ds::cudaProcessors(), llvm::StringRef(architecture)))
    return approximate(options, cluster);
  return Target{"cuda:" + architecture, "device.architecture of " + cluster.name};
}
