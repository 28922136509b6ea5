//===- CheckPipeline.cpp - Whether a table is a schedule --------------------------------===//
#include "PipelineProgress.h"

#include <fmt/format.h>

namespace ds::analysis {

namespace {

const char *wordOf(PipelineWork work) {
  switch (work) {
  case PipelineWork::Forward:
    return "forward";
  case PipelineWork::Backward:
    return "backward";
  case PipelineWork::InputGradient:
    return "gradient of inputs";
  case PipelineWork::WeightGradient:
    return "gradient of weights";
  }
  return "";
}

/// Looks at the entries of one stage by themselves.
class StageCheck {
public:
  StageCheck(const PipelineProblem &problem, uint32_t stage)
      : problem(problem), stage(stage), next(problem.chunks.size()) {}

  std::string visit(const PipelineEntry &entry);
  /// What is missing when all entries were visited.
  std::string finish() const;

private:
  /// The micro-batch whose work is next, of each chunk: for sums to keep their order none is passed over.
  struct Next {
    uint32_t forward = 0, inputs = 0, weights = 0;
  };
  std::string takeTurn(const PipelineEntry &entry, uint32_t &turn) const;

  const PipelineProblem &problem;
  const uint32_t stage;
  std::vector<Next> next;
  int64_t kept = 0; ///< bytes
};

} // namespace

/// Passes to the next micro-batch, or says that another's turn it is.
std::string StageCheck::takeTurn(const PipelineEntry &entry, uint32_t &turn) const {
  if (turn == problem.microBatches)
    return fmt::format("comes after all {} micro-batches", problem.microBatches);
  if (entry.microBatch != turn)
    return fmt::format("is not micro-batch {}, whose {} is next", turn, wordOf(entry.work));
  ++turn;
  return "";
}

std::string StageCheck::visit(const PipelineEntry &entry) {
  if (entry.chunk >= problem.chunks.size() || problem.chunks[entry.chunk].stage != stage)
    return fmt::format("is of chunk {}, which is not the stage's", entry.chunk);
  Next &own = next[entry.chunk];
  const int64_t bytes = problem.chunks[entry.chunk].bytes;
  if (entry.work == PipelineWork::Forward) {
    kept += bytes;
    if (kept > problem.budgetOf(stage))
      return fmt::format("keeps {} bytes, but the stage has {}", kept, problem.budgetOf(stage));
    return takeTurn(entry, own.forward);
  }
  if (makesInputs(entry.work)) {
    if (std::string mistake = takeTurn(entry, own.inputs); !mistake.empty())
      return mistake;
    if (own.inputs > own.forward)
      return "comes before the forward of its micro-batch";
  }
  if (makesWeights(entry.work)) {
    if (std::string mistake = takeTurn(entry, own.weights); !mistake.empty())
      return mistake;
    if (own.weights > own.inputs)
      return "comes before the gradient of inputs of its micro-batch";
    kept -= bytes;
  }
  return "";
}

std::string StageCheck::finish() const {
  for (uint32_t chunk : problem.chunksOf(stage))
    for (const auto &[work, done] : {std::pair(PipelineWork::Forward, next[chunk].forward),
                                     std::pair(PipelineWork::InputGradient, next[chunk].inputs),
                                     std::pair(PipelineWork::WeightGradient, next[chunk].weights)})
      if (done < problem.microBatches)
        return fmt::format("stage {} has no {} of micro-batch {} of chunk {}", stage, wordOf(work), done,
                           chunk);
  return "";
}

static std::string nameEntry(const PipelineProblem &problem, const PipelineTable &table, uint32_t stage,
                             size_t index) {
  return fmt::format("entry {} of stage {}, {},", index, stage, spell(problem, table[stage][index]));
}

/// Entries of which each waits for another, if there are any: the first stage's of these.
static std::string findCycle(const PipelineProblem &problem, const PipelineTable &table) {
  const PipelineRun run = simulate(problem, table); // as far as it comes
  PipelineProgress progress(problem);
  for (const PipelineEntry &entry : run.order)
    progress.finish(entry, 0);
  for (uint32_t stage = 0; stage < table.size(); ++stage)
    if (const size_t done = run.spans[stage].size(); done < table[stage].size()) {
      const PipelineEntry missing = *progress.missingFor(table[stage][done]);
      return fmt::format("{} waits for {} on stage {}, which comes after what waits for it",
                         nameEntry(problem, table, stage, done), spell(problem, missing),
                         problem.chunks[missing.chunk].stage);
    }
  return "";
}

std::string findMistake(const PipelineProblem &problem, const PipelineTable &table) {
  if (table.size() != problem.stages)
    return fmt::format("has {} stages, but the pipeline has {}", table.size(), problem.stages);
  for (uint32_t stage = 0; stage < problem.stages; ++stage) {
    StageCheck check(problem, stage);
    for (size_t index = 0; index < table[stage].size(); ++index)
      if (std::string mistake = check.visit(table[stage][index]); !mistake.empty())
        return nameEntry(problem, table, stage, index) + " " + mistake;
    if (std::string mistake = check.finish(); !mistake.empty())
      return mistake;
  }
  return findCycle(problem, table);
}

} // namespace ds::analysis
