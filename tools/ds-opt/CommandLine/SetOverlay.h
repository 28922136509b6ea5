//===- SetOverlay.h - What --set changes of a model that says how it is trained ----===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_SETOVERLAY_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_SETOVERLAY_H

#include "ds/Config/Config.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace ds::opt {

/// What `--set` is laid over.
struct SetOverlay {
  mlir::DictionaryAttr own;   ///< the module's `ds.training`
  mlir::DictionaryAttr plain; ///< that of a configuration with nothing in it
  mlir::DictionaryAttr asked; ///< that of `config`
};

/// `own` with what the keys that `--set` gave in `config` make of it, defaults among them. Refuses keys that
/// ask for a default where `own` has another value in a section that keys share.
Result<mlir::DictionaryAttr> overlaySets(const SetOverlay &what, const config::Config &config);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_SETOVERLAY_H
