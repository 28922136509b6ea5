//===- OpenDevice.h - The device that a run asks for ------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_OPENDEVICE_H
#define DS_LIB_RUNTIME_TRAINING_OPENDEVICE_H

#include "ds/Runtime/Engine/Device.h"
#include "ds/Runtime/Job/TrainOptions.h"

namespace ds::rt {

/// Refuses a name of `--device` that is not known.
Status checkDeviceName(const std::string &device);

/// Opens what `--device` asks for; null for the CPU. `ranks` outlives the device.
Result<std::unique_ptr<Device>> openDevice(const TrainOptions &options, RankGroup &ranks);

/// Refuses a program that was compiled for another kind of device.
Status checkTarget(const Program &program, const TrainOptions &options);

/// What a device's memory is used for against what the plan says, as one line of the log.
std::string describeMemory(const DeviceMemory &memory, const Program &program);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_OPENDEVICE_H
