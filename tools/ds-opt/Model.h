//===- Model.h - A model as MLIR, wherever it came from --------------------------===//
#ifndef DS_TOOLS_DSOPT_MODEL_H
#define DS_TOOLS_DSOPT_MODEL_H

#include "CommandLine/Options.h"
#include "ds/Config/Config.h"
#include "ds/Dialect/Stages.h"
#include "ds/Import/HfRequest.h"
#include "ds/Support/Error.h"
#include "ds/Support/TemporaryFile.h"

#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/ErrorOr.h"
#include "llvm/Support/MemoryBuffer.h"

namespace ds::opt {

/// A module in phase model (or a later one, for MLIR input) and the weights that came with it.
struct Model {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  TemporaryFile weights;       ///< a safetensors file that is yet to be named; not open: none
  bool hasOwnTraining = false; ///< `ds.training` came with the module, and no configuration took its place

  /// The module that says what is true of the whole model: itself, or its first stage.
  mlir::ModuleOp facts() const { return mlir::ds::getStages(module.get()).front(); }
};

/// What plans call the model at `path`: its file's name, or its folder's where every model's file has that
/// name.
std::string modelName(llvm::StringRef path);

/// The text of a file, or of stdin; diagnostics call it by a name without control characters.
llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> readNamed(const std::string &path);

/// What is asked of the config.json that `options.input` is.
HfRequest hfRequest(const Options &options, const config::Config &config);

/// Reads or imports `options.input`, verifies it, checks its inputs against the configured micro-batch, and
/// attaches `ds.training` and `ds.machine`. MLIR without a configuration sets the micro-batch of `config`.
Result<Model> loadModel(const Options &options, config::Config &config, mlir::MLIRContext &context);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_MODEL_H
