//===- Verify.h - Whether a checkpoint is what was written -----------------------------===//
//
// Every byte is read and compared with the manifest's digests, by several threads, a file each; what is
// damaged is told to the chunk, with the tensors that lie there, so that a user knows what is lost. Then come
// the rules that reading relies on: headers, and that the parts of each tensor are all there, once.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINTTOOL_VERIFY_H
#define DS_RUNTIME_CHECKPOINTTOOL_VERIFY_H

#include "ds/Runtime/CheckpointTool/Place.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace ds::rt {

/// A part of a file that is not what was written, or a rule that a checkpoint breaks.
struct Damage {
  std::string file;                 ///< with its directory
  uint64_t first = 0, bytes = 0;    ///< where; no bytes: the whole file, or no place in it
  std::string what;                 ///< "are not what was written"
  std::vector<std::string> tensors; ///< that lie there, as far as the file's header can be read
};

struct VerifyReport {
  std::string directory;
  uint64_t files = 0, bytes = 0; ///< that were read
  std::vector<Damage> damages;
  std::vector<std::string> extra; ///< names in the directory that the manifest does not have
};

/// Reads all of the checkpoint in `directory`. Io: something cannot be read, which says nothing about its
/// contents.
Result<VerifyReport> verifyCheckpoint(const std::string &directory, unsigned threads);

/// Verifies all checkpoints in `root`, newest first, whole or not; `told` hears of each. What unfinished
/// saves and removals have left is passed over with a notice, and so is what somebody removes meanwhile, as a
/// run does that saves there. Io: there is none, or something cannot be read.
Status verifyStore(const std::string &root, unsigned threads, const Notice &notice,
                   const std::function<void(VerifyReport)> &told);

/// A line a damage, else one that says what was read.
std::string spellReport(const VerifyReport &report);
/// All reports as one JSON document.
std::string spellReportsAsJson(const std::vector<VerifyReport> &reports);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINTTOOL_VERIFY_H
