//===- SetOverlay.h - What --set changes of a model that says how it is trained ----===//
#ifndef DS_TOOLS_DS_OPT_SETOVERLAY_H
#define DS_TOOLS_DS_OPT_SETOVERLAY_H

#include "ds/Config/Config.h"
#include "ds/Dialect/Training.h"

#include <set>
#include <string>

namespace ds::opt {

/// What `--set` is laid over.
struct SetOverlay {
  mlir::ds::TrainingOptions own;   ///< the module's `ds.training`
  mlir::ds::TrainingOptions plain; ///< that of a configuration with nothing in it
  mlir::ds::TrainingOptions asked; ///< that of `config`
};

/// `own` with what the keys that `--set` gave in `config` make of it, defaults among them. Refuses keys that
/// ask for a default where `own` has another value in a section that keys share.
Result<mlir::ds::TrainingOptions> overlaySets(const SetOverlay &what, const config::Config &config);

/// The keys of `ds.training` by which `a` and `b` differ, each a section or a field of no section, by name.
std::set<std::string> differingKeys(const mlir::ds::TrainingOptions &a, const mlir::ds::TrainingOptions &b);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_SETOVERLAY_H
