//===- OpenData.h - The data that a run reads -----------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_OPENDATA_H
#define DS_LIB_RUNTIME_TRAINING_OPENDATA_H

#include "ds/Runtime/Checkpoint/Manifest.h"
#include "ds/Runtime/Data/DataSource.h"
#include "ds/Runtime/Job/TrainOptions.h"

#include <functional>

namespace ds::rt {

/// Opens `--data` for a run that goes on from `resumed`, or begins where that is null. `seed` is of the
/// order. Refuses other data than the checkpoint's, unless new ones are asked for. `notice` may be empty.
Result<DataSource> openTrainingData(const TrainOptions &options, const Program &program, uint64_t seed,
                                    const Manifest *resumed, std::function<void(std::string)> notice);

/// Opens held-out data, of `--eval-data` or for `--eval-only`.
Result<DataSource> openHeldOutData(const std::string &path, const TrainOptions &options,
                                   const Program &program);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_OPENDATA_H
