//===- TrainOptions.h - What a training run was asked for -----------------------===//
#ifndef DS_RUNTIME_JOB_TRAINOPTIONS_H
#define DS_RUNTIME_JOB_TRAINOPTIONS_H

#include "ds/Runtime/Checkpoint/Keep.h"
#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Job/LossRules.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ds::rt {

/// When a checkpoint is written: while training goes on, from a copy, or before the next step.
enum class SaveMode : uint8_t { Async, Sync };

/// In place of a weights file: initial values from the seed.
inline constexpr const char *kFromSeed = "none";

/// Held-out data.
struct EvalData {
  std::string name; ///< of NAME=DATA; empty: the only ones, without a name
  std::string data; ///< as TrainOptions::data
};

/// The command line of ds-run. Empty strings mean that the option was not given.
struct TrainOptions {
  std::string program;
  std::string data;
  std::string tokenDtype;               ///< of a token stream without header: u16 or u32
  std::optional<int64_t> documentToken; ///< ends a document of a token stream; also of the held-out data
  bool resetPositions = false, resetAttention = false;
  std::vector<EvalData> evalData; ///< in the order given: the first ones' loss says which states are best
  bool evalOnly = false;          ///< the loss of `evalData`, or of `data`, and no step
  uint64_t evalEvery = 0;         ///< steps between evaluations; 0: only after the last step
  std::string weights;            ///< a file or directory, or kFromSeed
  std::string adapter;            ///< a folder of PEFT; empty: drawn, or in `weights`
  std::string saveWeights;
  std::string logJsonl;
  bool logAllRanks = false;         ///< each rank writes a log, named as its trace
  std::optional<uint64_t> logEvery; ///< steps between lines on stdout; default: the program's
  std::string trace;
  bool wholeSummary = false; ///< the table at the end has all collectives
  std::string device = "cpu";
  std::string save;       ///< directory of checkpoints
  uint64_t saveEvery = 0; ///< steps between checkpoints; 0: after the last step only
  double saveSeconds = 0; ///< or when so many seconds have passed; 0: never
  KeepRule keep;          ///< which checkpoints stay
  SaveMode saveMode = SaveMode::Async;
  bool verifySaves = false; ///< read a new checkpoint again before an old one goes
  std::string resume;       ///< a checkpoint, a directory of them, or "auto": the newest in `save`
  bool newData = false;     ///< with `resume`: the data are others and begin at their start
  bool dryRun = false;      ///< with `resume`: say what would happen
  uint32_t ranks = 1;       ///< as given; `place` is what counts
  RankIdentity place;       ///< of this process among the ranks
  double timeoutSeconds =
      std::chrono::duration<double>(kDefaultTimeout).count(); ///< of waits for other ranks
  std::optional<uint64_t> steps;                              ///< default: once over the data
  std::optional<uint64_t> seed;                               ///< default: the checkpoint's, else 0
  LossRules loss;
  std::string diagnostics; ///< directory for what is known of numbers that end a run; empty: `save`, if any
  uint64_t checkReplicas = 0; ///< steps between comparisons of what several ranks hold; 0: none
  bool shuffle = false;
  std::string nvme;           ///< directory for what the program keeps in storage; empty: the program's
  std::string nvmeParameters; ///< for its parameters; empty: as the rest
  bool verifyStorage = false; ///< compare what is read from there with what was written
};

} // namespace ds::rt

#endif // DS_RUNTIME_JOB_TRAINOPTIONS_H
