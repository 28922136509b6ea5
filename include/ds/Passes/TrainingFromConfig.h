//===- TrainingFromConfig.h - From ds_config.json to ds.training -----------------===//
#ifndef DS_PASSES_TRAININGFROMCONFIG_H
#define DS_PASSES_TRAININGFROMCONFIG_H

#include "ds/Config/Config.h"
#include "ds/Dialect/Training.h"

namespace mlir::ds {

/// How to train as `config` asks. `noDecay` are regular expressions: parameters whose name matches one have
/// no weight decay. Requires a configuration that config::checkForProgram accepts.
TrainingOptions trainingFromConfig(const ::ds::config::Config &config, ArrayRef<std::string> noDecay);

} // namespace mlir::ds

#endif // DS_PASSES_TRAININGFROMCONFIG_H
