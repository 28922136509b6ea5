//===- ImportClient.h - Imports a TorchScript model through ds-import ----------===//
//
// Loading TorchScript executes it, so that it happens in a process of its own: ds-import, which stands beside
// the running binary. It gets the model as an open file and hands back MLIR text and a safetensors file
// through descriptors that are opened here. Its death, whatever the cause, is an error message, never a
// crash.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_IMPORT_IMPORTCLIENT_H
#define DS_IMPORT_IMPORTCLIENT_H

#include "ds/Support/Error.h"
#include "ds/Support/TemporaryFile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds {

struct ImportRequest {
  std::string path;                ///< the archive
  std::vector<std::string> inputs; ///< as --input spells them: "x=4x256xi64"
  std::string loss;                ///< empty, "cross_entropy" or "mse"
  bool wantWeights = true;         ///< also write the weights file
  std::string weightsDirectory;    ///< where it will be kept; empty: TMPDIR or /tmp
  std::string importerPath;        ///< empty: ds-import beside the running binary
  uint64_t memoryBytes = 0;        ///< the import may take; 0: by the sizes of archive and inputs
  uint64_t seconds = 0;            ///< processor time; 0: likewise
  uint64_t waitSeconds = 0;        ///< by the clock; 0: what follows from `seconds`
  bool allowUnsandboxed = false;   ///< import also where the machine cannot confine the archive's code
};

struct ImportedModel {
  std::string mlirText;             ///< a module in the phase `model`; not verified
  TemporaryFile weights;            ///< for the caller to keep under a name; not open when not wanted
  std::vector<std::string> notices; ///< what the user should know, one line each
};

/// Imports the archive. Errors: `Invalid` where the model or the inputs are wrong or not supported, `Corrupt`
/// where the archive is damaged, `Io` where it cannot be read or the weights cannot be written, `Device`
/// where the machine cannot confine its code. Leaves no file behind when it fails. Never throws; may be
/// called from several threads.
Result<ImportedModel> importTorchScript(const ImportRequest &request);

} // namespace ds

#endif // DS_IMPORT_IMPORTCLIENT_H
