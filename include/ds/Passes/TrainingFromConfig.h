//===- TrainingFromConfig.h - From ds_config.json to ds.training and ds.mesh -----===//
#ifndef DS_PASSES_TRAININGFROMCONFIG_H
#define DS_PASSES_TRAININGFROMCONFIG_H

#include "ds/Config/Config.h"
#include "ds/Dialect/MeshShape.h"
#include "ds/Dialect/Training.h"

namespace mlir::ds {

/// How to train as `config` asks. `noDecay` are regular expressions: parameters whose name matches one have
/// no weight decay. Requires a configuration that config::checkForProgram accepts.
TrainingOptions trainingFromConfig(const ::ds::config::Config &config, ArrayRef<std::string> noDecay);

/// The mesh of the ranks that `config` asks for: axes of more than one rank, in the order pp, dp, sp, tp, for
/// what communicates most lies closest. Samples differ along dp; ZeRO divides along dp and sp, or along
/// dp.local and sp where mics_shard_size says that fewer of the data-parallel ranks do.
/// zero_hpz_partition_size cuts dp into dp.node and dp.local, too, of which ZeRO has both.
MeshShape meshFromConfig(const ::ds::config::Config &config);

} // namespace mlir::ds

#endif // DS_PASSES_TRAININGFROMCONFIG_H
