//===- Tune.h - Finds the fastest form of each product of a program --------------===//
//
// `ds-run --tune PROGRAM -o FILE` makes every product of a program in every form that it can have, on this
// machine, and writes what was fastest for `ds-opt --tuning` (docs/kernels.md). Nothing is trained.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CALIBRATE_TUNE_H
#define DS_RUNTIME_CALIBRATE_TUNE_H

#include "ds/Support/Error.h"

#include <string>

namespace ds::rt {

struct TuneOptions {
  std::string program;
  std::string output;        ///< empty: stdout
  double productSeconds = 2; ///< for all forms of one product, after each has run three times
};

/// Usage for a program that is not for the CPU; other failures as loading has them.
Status tuneProducts(const TuneOptions &options);

} // namespace ds::rt

#endif // DS_RUNTIME_CALIBRATE_TUNE_H
