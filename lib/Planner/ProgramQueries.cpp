//===- ProgramQueries.cpp - What other plans of a program would take and cost -----===//
#include "ds/Planner/ProgramQueries.h"

#include "ds/Import/HfShape.h"
#include "ds/Planner/QueryText.h"

#include <numeric>

using namespace ds;
using namespace ds::planner;
using report::PlanChoice;
using report::PlanReport;

/// Rows of a ZeRO stage: each is a compilation, and few steps have more than 128 samples of a rank.
static constexpr size_t kMostMicroBatches = 8;
/// More samples or longer sequences are not looked for.
static constexpr int64_t kMostUnits = int64_t{1} << 24;

//===----------------------------------------------------------------------===//
// --what-if
//===----------------------------------------------------------------------===//

/// Powers of two that divide the samples of a rank's step; the present one alone where inputs cannot change.
static std::vector<int64_t> microBatches(const PlanSettings &settings, const config::Config &config) {
  if (settings.inputKind() == InputKind::Mlir)
    return {config.batch.micro};
  int64_t samples = config.batch.micro * config.batch.accumulation;
  std::vector<int64_t> sizes;
  for (int64_t size = 1; size <= samples && sizes.size() < kMostMicroBatches; size *= 2)
    if (samples % size == 0)
      sizes.push_back(size);
  return sizes;
}

/// Plans a proposal, unless it is the present setting, whose plan the report already is.
static Status planUnlessPresent(Proposal &proposal, bool isPresent, const PlanFunction &planner,
                                const PlanReport &report) {
  if (!isPresent)
    return proposal.plan(planner);
  proposal.take(report);
  return {};
}

static Status addTable(const PlanSettings &settings, const config::Config &config,
                       const PlanFunction &planner, PlanReport &report) {
  std::optional<Error> first;
  bool shards = config.mesh.dp > 1;
  for (int64_t stage = shards ? 0 : config.zero.stage; stage <= (shards ? 3 : config.zero.stage); ++stage)
    for (int64_t micro : microBatches(settings, config)) {
      Proposal proposal(settings, config);
      if (stage != config.zero.stage)
        proposal.setStage(stage);
      if (micro != config.batch.micro)
        proposal.setMicroBatch(micro);
      bool isPresent = proposal.choice.change.empty();
      if (Status planned = planUnlessPresent(proposal, isPresent, planner, report); !planned) {
        if (!first)
          first = planned.error();
        report.notes.push_back("left out of the table: " + proposal.choice.change + ": " +
                               planned.error().message);
        continue;
      }
      proposal.choice.change.clear();
      report.whatIf.push_back(proposal.choice);
    }
  if (report.whatIf.empty())
    return *first;
  markBest(report.whatIf);
  return {};
}

//===----------------------------------------------------------------------===//
// --max-batch and --max-seq
//===----------------------------------------------------------------------===//

namespace {
/// Looks for the largest size that fits. Peaks grow about linearly with it, so that the next size to try
/// follows from the peaks of the two around it; every third is the middle, lest a curve that bends makes
/// it slow.
class LargestSize {
public:
  using Plan = std::function<Status(int64_t size, PlanChoice &choice)>;

  LargestSize(Plan plan, int64_t limit) : plan(std::move(plan)), limit(limit) {}

  /// In whole units, 0 where one unit does not fit. Fails where already one cannot be planned.
  Result<int64_t> find(int64_t start);
  /// Why the model takes no more than was found; empty: memory is the reason.
  const std::string &refusal() const { return refused; }

private:
  struct Point {
    int64_t size = 0;
    double peak = 0;
  };
  /// Whether `size` fits, and moves the bound on its side there.
  bool probe(int64_t size);
  int64_t next(unsigned round) const;

  Plan plan;
  int64_t limit;
  Point low;                 ///< fits; size 0: none known
  std::optional<Point> high; ///< does not
  std::optional<Error> error;
  std::string refused;
};
} // namespace

bool LargestSize::probe(int64_t size) {
  PlanChoice choice;
  choice.fits = false;
  Status planned = plan(size, choice);
  if (planned && choice.fits) {
    low = {size, static_cast<double>(choice.deviceBytes)};
    return true;
  }
  high = {size, static_cast<double>(choice.deviceBytes)};
  refused = planned ? "" : planned.error().message;
  if (!planned)
    error = planned.error();
  return false;
}

int64_t LargestSize::next(unsigned round) const {
  int64_t middle = low.size + (high->size - low.size) / 2;
  if (round % 3 == 2 || low.size == 0 || high->peak <= low.peak)
    return middle;
  double share = (static_cast<double>(limit) - low.peak) / (high->peak - low.peak);
  auto guess = low.size + static_cast<int64_t>(share * static_cast<double>(high->size - low.size));
  return std::clamp(guess, low.size + 1, high->size - 1);
}

Result<int64_t> LargestSize::find(int64_t start) {
  for (int64_t size = start; probe(size) && size < kMostUnits;)
    size = std::min(size * 4, kMostUnits);
  for (unsigned round = 0; high && high->size - low.size > 1; ++round)
    probe(next(round));
  if (low.size == 0 && !refused.empty())
    return *error;
  return low.size;
}

static Result<int64_t> findLargest(const LargestSize::Plan &plan, int64_t start, const std::string &what,
                                   PlanReport &report) {
  LargestSize search(plan, report.memoryLimit);
  Result<int64_t> size = search.find(start);
  if (size && !search.refusal().empty())
    report.notes.push_back(what + " is bounded by the model, not by memory: " + search.refusal());
  return size;
}

static Status addMaxBatch(const PlanSettings &settings, const config::Config &config,
                          const PlanFunction &planner, PlanReport &report) {
  auto plan = [&](int64_t size, PlanChoice &choice) {
    Proposal proposal(settings, config);
    bool isPresent = size == config.batch.micro;
    if (!isPresent)
      proposal.growMicroBatch(size);
    Status planned = planUnlessPresent(proposal, isPresent, planner, report);
    choice = proposal.choice;
    return planned;
  };
  Result<int64_t> size = findLargest(plan, config.batch.micro, "the largest micro-batch", report);
  if (!size)
    return size.error();
  report.maxBatch = *size;
  return {};
}

/// The sequence's length, dimension 1 of the first input that has one. `settings` then spells all inputs.
static Result<int64_t> findSequence(PlanSettings &settings, const config::Config &config) {
  if (settings.inputKind() == InputKind::HfConfig && settings.inputs.empty()) {
    Result<HfShape> shape = readHfShape(settings.input, {}, config.batch.micro);
    if (!shape)
      return shape.error();
    settings.inputs = {"input_ids=" + std::to_string(config.batch.micro) + "x" +
                       std::to_string(shape->shape.seq) + "xi64"};
  }
  for (const std::string &input : settings.inputs)
    if (std::vector<int64_t> sizes = sizesOfInput(input); sizes.size() >= 2)
      return sizes[1];
  return Error{ExitCode::Invalid, "--max-seq: no --input has a second dimension, which is the sequence",
               "give the model's inputs as --input NAME=BATCHxLENGTHxTYPE"};
}

static Status addMaxSeq(PlanSettings settings, const config::Config &config, const PlanFunction &planner,
                        PlanReport &report) {
  Result<int64_t> length = findSequence(settings, config);
  if (!length)
    return length.error();
  int64_t unit = std::gcd(*length, int64_t{64});
  auto plan = [&](int64_t units, PlanChoice &choice) {
    Proposal proposal(settings, config);
    proposal.resizeInputs(1, *length, units * unit);
    Status planned = planUnlessPresent(proposal, units * unit == *length, planner, report);
    choice = proposal.choice;
    return planned;
  };
  Result<int64_t> units = findLargest(plan, *length / unit, "the longest sequence", report);
  if (!units)
    return units.error();
  report.maxSeq = *units * unit;
  return {};
}

Status ds::planner::addQueries(const PlanSettings &settings, const config::Config &config,
                               const PlanFunction &planner, PlanReport &report) {
  if (settings.whatIf)
    if (Status status = addTable(settings, config, planner, report); !status)
      return status;
  if (settings.maxBatch)
    if (Status status = addMaxBatch(settings, config, planner, report); !status)
      return status;
  return settings.maxSeq ? addMaxSeq(settings, config, planner, report) : Status();
}

std::string ds::planner::printQueries(const PlanSettings &settings, const PlanReport &report,
                                      int64_t contextBytes) {
  std::string text = report.model + " on " + report.target + ": " + std::to_string(report.world) +
                     (report.world == 1 ? " rank" : " ranks") + ", every plan made\n";
  if (settings.whatIf)
    text += printWhatIf(contextBytes, report);
  text += printLargest(report);
  for (const std::string &note : report.notes)
    text += "note: " + note + "\n";
  return text;
}
