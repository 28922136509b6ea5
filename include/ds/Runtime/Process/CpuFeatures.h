//===- CpuFeatures.h - What this processor can execute -------------------------===//
//
// Feature names are LLVM's, because the compiler writes them into the program. A feature counts only if the
// operating system also saves the registers that it uses.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROCESS_CPUFEATURES_H
#define DS_RUNTIME_PROCESS_CPUFEATURES_H

#include "ds/Support/Error.h"

#include <string>
#include <vector>

namespace ds::rt {

/// Whether this machine has `feature`. Features that are not known here count as missing.
bool hasCpuFeature(const std::string &feature);

/// Fails with ExitCode::Device, naming every feature of `features` that the machine lacks; `targetCpu` is the
/// processor the program was made for.
Status checkCpuFeatures(const std::string &targetCpu, const std::vector<std::string> &features);

} // namespace ds::rt

#endif // DS_RUNTIME_PROCESS_CPUFEATURES_H
