//===- Calibrate.h - Measures this machine for the planner -----------------------===//
//
// `ds-run --calibrate` runs what programs are made of, library calls, loops of the shape of generated
// kernels, collectives, copies and storage, and writes what they take as a cluster description that
// `ds-opt --cluster` reads (docs/cluster.md).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CALIBRATE_CALIBRATE_H
#define DS_RUNTIME_CALIBRATE_CALIBRATE_H

#include "ds/Runtime/Comm/Communicator.h"

namespace ds::rt {

struct CalibrateOptions {
  bool quick = false;            ///< few sizes, few repetitions: for tests
  std::string output;            ///< empty: stdout
  std::string device = "cpu";    ///< or cuda
  std::vector<std::string> only; ///< parts of a GPU's calibration; empty: all
  std::string nvme;              ///< directory of the disk to offload to; empty: that of temporary files
  std::string logJsonl;          ///< of a GPU: one object a measurement, as it is made; empty: none
  RankIdentity place;
  std::chrono::milliseconds timeout = kDefaultTimeout;
};

/// Measures, on every rank of the job at the same time; the first one writes the file, which is known to be
/// writable before anything is measured.
Status calibrate(const CalibrateOptions &options);

/// The same of the first GPU, by events of the device. What is not measured is taken from a built-in
/// description ("base").
Status calibrateGpu(const CalibrateOptions &options);

} // namespace ds::rt

#endif // DS_RUNTIME_CALIBRATE_CALIBRATE_H
