//===- Diagnostics.h - What a run leaves behind when its numbers end it ------------===//
//
// A run that ends with ExitCode::Diverged writes one JSON file for each rank, so that the cause can be looked
// for when the process is gone: why it ended, the last steps with the batches that they read, where the first
// number was lost as far as it is known, and of each state that the rank holds how its numbers look now. No
// rank needs another one for that.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_LOSS_DIAGNOSTICS_H
#define DS_LIB_RUNTIME_LOSS_DIAGNOSTICS_H

#include "ds/Runtime/Engine/Executor.h"
#include "ds/Runtime/Formats/JsonLog.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace ds::rt {

class Diagnostics {
public:
  /// Steps that are remembered.
  static constexpr size_t kMostSteps = 64;

  /// Remembers a finished step that read batch `batch` of the data, from 0.
  void keep(const StepRecord &record, uint64_t batch);

  /// Makes `directory`, if it has a name and is not there. Io where that fails.
  static Status makeDirectory(const std::string &directory);

  /// Writes `directory`/diagnostics-step-N-rank-R.json, N being the last step; returns the file's path. Io
  /// where it cannot be written.
  Result<std::string> write(const std::string &directory, const Executor &executor, const Error &why) const;

  std::string lostNumber; ///< where the first one was lost; empty: none was, or it is not known

private:
  struct Step {
    StepRecord record;
    uint64_t batch;
  };
  std::deque<Step> steps;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_LOSS_DIAGNOSTICS_H
