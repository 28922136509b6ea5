//===- PipelineSchedule.h - In which order stages run the chunks of a pipeline -------===//
//
// The layers of a model are cut into chunks, one behind the other; each stage, a rank or a group of ranks,
// has one chunk or several. A step runs each chunk forward and backward for each micro-batch. Forward reads
// what the chunk before made of the micro-batch, backward the gradient that comes from the chunk behind, and
// what forward has kept. In which order a stage runs what is its own decides how long it stands still, and
// how many micro-batches it keeps. A table says so. Here tables are made, checked and simulated; what a table
// promises is what a program does, for a schedule is data in the program.
//
// Backward falls into two parts where that is asked for: the gradient of what the chunk reads, for which the
// stage before waits, and that of its weights, for which nobody waits before the update.
//
// Two stages, four micro-batches, forward takes one second and backward two (1F1B):
//
//   stage 0   F0 F1 .  .  B0    F2 B1    F3 B2    .  B3
//   stage 1   .  F0 B0    F1 B1    F2 B2    F3 B3
//
// Sources: GPipe, arXiv 1811.06965. 1F1B: arXiv 1806.03377, section 3.2. Interleaved chunks: arXiv
// 2104.04473, section 2.2. Backward in two parts, ZB-H1: arXiv 2401.10241, section 3.1. Chunks in the form of
// a V and what memory they need: arXiv 2405.15362.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_ANALYSIS_PIPELINES_PIPELINESCHEDULE_H
#define DS_ANALYSIS_PIPELINES_PIPELINESCHEDULE_H

#include "ds/Support/Error.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace ds::analysis {

/// What a stage does in one entry of its table.
enum class PipelineWork : uint8_t {
  Forward,
  Backward,       ///< both of the following
  InputGradient,  ///< the gradient that the chunk before waits for
  WeightGradient, ///< what only the update needs
};

/// Some layers in a row.
struct PipelineChunk {
  uint32_t stage = 0;
  /// Seconds for one micro-batch on the stage's ranks.
  double forward = 0, inputGradient = 0, weightGradient = 0;
  /// What a micro-batch keeps on each rank from the beginning of forward to the end of backward.
  int64_t bytes = 1;
};

struct PipelineProblem {
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

  uint32_t stages = 1;
  uint32_t microBatches = 1;
  std::vector<PipelineChunk> chunks; ///< in the model's order; each stage has at least one
  double transferSeconds = 0;        ///< until what one stage has made is on another
  std::vector<int64_t> budgetBytes;  ///< by stage, for what is kept; empty: there is no limit

  /// What a stage may keep.
  int64_t budgetOf(uint32_t stage) const { return budgetBytes.empty() ? kNoLimit : budgetBytes[stage]; }
  /// The chunks of `stage`, in the model's order.
  std::vector<uint32_t> chunksOf(uint32_t stage) const;
};

/// Chunks of `chunksPerStage` on each of `stages`, all of the same costs: chunk c on stage c modulo `stages`,
/// or, in the form of a V, from the first stage to the last and back, and so on.
PipelineProblem makeEqualChunks(uint32_t stages, uint32_t chunksPerStage, uint32_t microBatches,
                                const PipelineChunk &like, bool isV = false);

struct PipelineEntry {
  PipelineWork work = PipelineWork::Forward;
  uint32_t chunk = 0; ///< of the problem
  uint32_t microBatch = 0;
  bool operator==(const PipelineEntry &) const = default;
};

/// Of each stage its entries in order.
using PipelineTable = std::vector<std::vector<PipelineEntry>>;

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

// All work for any numbers of stages and micro-batches.

/// All forwards, then all backwards. Keeps every micro-batch.
PipelineTable makeGPipe(const PipelineProblem &problem);
/// Each stage runs as many micro-batches ahead as stages are behind it, and then one backward for each
/// forward: it keeps min(m, p - s). Requires one chunk on each stage, in the order of stages.
PipelineTable makeOneForwardOneBackward(const PipelineProblem &problem);
/// The same with several chunks on each stage, in turns of as many micro-batches as there are stages.
/// Requires chunk c on stage c modulo the stages.
PipelineTable makeInterleaved(const PipelineProblem &problem);
/// ZB-H1: as makeOneForwardOneBackward, and stage s makes gradients of weights s micro-batches later, so that
/// those of inputs come sooner to the stages before. Each stage keeps min(m, p).
PipelineTable makeZeroBubble(const PipelineProblem &problem);
/// By events: a stage that is free takes the most urgent work whose operands are there, backward before
/// forward and gradients of weights last, unless it would keep more than its budget. `splits`: backward is in
/// two parts. For any chunks and budgets; empty where a stage cannot keep one micro-batch.
PipelineTable makeByEvents(const PipelineProblem &problem, bool splits);
/// The fastest of those above that the problem allows within its budgets; empty where none does.
PipelineTable makeFastest(const PipelineProblem &problem);

//===----------------------------------------------------------------------===//
// What a table comes to
//===----------------------------------------------------------------------===//

/// Why `table` is no schedule of `problem`, naming the first entry that is wrong: a stage's work that is
/// missing, twice or another stage's, micro-batches of a chunk out of order, backward before forward, more
/// kept than the budget, or entries of which each waits for another. Empty for one that runs to its end, in
/// whatever times.
std::string findMistake(const PipelineProblem &problem, const PipelineTable &table);

struct PipelineSpan {
  double begin = 0, end = 0;
};

/// A table as it runs.
struct PipelineRun {
  std::vector<std::vector<PipelineSpan>> spans; ///< of the table's entries
  std::vector<PipelineEntry> order;             ///< all of them, each behind what it waits for
  double seconds = 0;                           ///< until the last entry ends
  std::vector<double> idleSeconds;              ///< of each stage until then
  std::vector<int64_t> peakBytes;               ///< that each stage keeps
  std::vector<uint32_t> slots;                  ///< most micro-batches that each chunk keeps
};

/// Requires a table without mistakes, but for entries that wait for each other: it is simulated until there.
PipelineRun simulate(const PipelineProblem &problem, const PipelineTable &table);

/// What stands still, as a share of what the busiest stage computes: 0 for one that never waits.
double bubbleOf(const PipelineRun &run);

//===----------------------------------------------------------------------===//
// Transfers
//===----------------------------------------------------------------------===//

/// What one stage sends to another: of a micro-batch what `from` made, to the chunk before or behind it.
struct PipelineTransfer {
  uint32_t from = 0, to = 0; ///< chunks, on two stages
  uint32_t microBatch = 0;
  bool operator==(const PipelineTransfer &) const = default;
};

/// Of each stage what it sends and receives, in the order in which it does: one after the other, each as soon
/// as both stages have come to it and the sender has made it. All stages meet in one order, that of the
/// simulation, so that no stage waits for one that waits for it. Requires a table without mistakes.
std::vector<std::vector<PipelineTransfer>> orderTransfers(const PipelineProblem &problem,
                                                          const PipelineTable &table);

/// Why `transfers` do not serve `table`, as above; empty for those that do, however long each takes.
std::string findMistake(const PipelineProblem &problem, const PipelineTable &table,
                        const std::vector<std::vector<PipelineTransfer>> &transfers);

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// "F3", "B0", "I2.1", "W2.1": the work, the micro-batch and, on stages of several chunks, which of them.
std::string spell(const PipelineProblem &problem, const PipelineEntry &entry);

/// A line for each stage, "0: F0 F1 B0 B1".
std::string spell(const PipelineProblem &problem, const PipelineTable &table);

/// Reads what `spell` writes; lines that begin with # and empty ones are passed over. ExitCode::Invalid with
/// line, column and the word for what is no entry, a stage that is missing, twice or not there, and a chunk
/// or micro-batch that the problem has not. What it says can still be wrong: see findMistake.
Result<PipelineTable> parsePipelineTable(const PipelineProblem &problem, std::string_view text);

} // namespace ds::analysis

#endif // DS_ANALYSIS_PIPELINES_PIPELINESCHEDULE_H
