//===- MeasuredTest.cpp - Commands and steps that ran on an H200 ---------------------===//
//
// bench/gpu/measured has each command of four steps with its time. They are of the programs of that day, and
// so are costed as they were then: by their kinds and sizes, not by what the same models compile to now. Some
// of them the figures of `h200` were fitted to, others not; docs/cost-model.md says which.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Rates.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

using namespace ds;
using namespace ds::cost;

/// Seconds from one command's end to the next one's begin, of which a table of times has nothing: 0.71 ms
/// between the 435 commands of gpt2-padded.
static constexpr double kGapSeconds = 1.6e-6;

namespace {
/// A row of the table: its fields by the names in the table's first line.
using Row = std::map<std::string, std::string>;

struct Sum {
  double predicted = 0, measured = 0;
  double error() const { return predicted / measured - 1; }
};
} // namespace

/// The fields of a line; none of the table's has a comma in it.
static std::vector<std::string> split(const std::string &line) {
  std::vector<std::string> fields;
  std::stringstream text(line);
  for (std::string field; std::getline(text, field, ',');)
    fields.push_back(field);
  return fields;
}

static std::vector<Row> readCommands() {
  std::ifstream file(DS_MEASURED "/h200-commands.csv");
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = split(line);
  std::vector<Row> rows;
  while (std::getline(file, line)) {
    std::vector<std::string> fields = split(line);
    fields.resize(names.size()); // empty ones at the end
    Row &row = rows.emplace_back();
    for (size_t i = 0; i < names.size(); ++i)
      row[names[i]] = fields[i];
  }
  return rows;
}

/// A number of a row; 0 where it has none.
static double number(const Row &row, const char *name) {
  const std::string &text = row.at(name);
  return text.empty() ? 0 : std::stod(text);
}

/// What the cost model says of one command, as a program's costs ask it.
static double predict(const Row &row, const Rates &rates) {
  const std::string &kind = row.at("kind"), &odd = row.at("odd");
  const double bytes = number(row, "bytes");
  if (kind == "product")
    return rates.matmulSeconds({.m = number(row, "m"),
                                .n = number(row, "n"),
                                .k = number(row, "k"),
                                .isUnaligned = !odd.empty(),
                                .isResultUnaligned = odd == "result",
                                .besideBytes = number(row, "beside")},
                               DType::BF16);
  if (kind.starts_with("attention"))
    return rates.attentionSeconds({.heads = number(row, "heads"),
                                   .queries = number(row, "positions"),
                                   .keys = number(row, "positions"),
                                   .width = number(row, "width"),
                                   .isGradient = kind == "attention_backward"},
                                  bytes, DType::BF16);
  if (kind == "kernel")
    return rates.kernelSeconds(
        {.bytes = bytes, .columnSums = number(row, "sums"), .rowVectors = number(row, "row_vectors")});
  return rates.functionSeconds(kind, bytes, kind == "embedding_backward" ? number(row, "indices") : 0);
}

static Rates ratesOfH200() { return Rates(config::builtinCluster("h200")).ofProgram(); }

/// Predicted and measured seconds, by job and class of commands.
static std::map<std::string, std::map<std::string, Sum>> sumClasses() {
  const Rates rates = ratesOfH200();
  std::map<std::string, std::map<std::string, Sum>> jobs;
  for (const Row &row : readCommands()) {
    Sum &sum = jobs[row.at("job")][row.at("class")];
    const double count = number(row, "count"), measured = number(row, "us") * 1e-6 + kGapSeconds;
    // A kernel that was replaced since has the figures of the new one.
    sum.predicted += count * (row.at("replaced").empty() ? predict(row, rates) : measured);
    sum.measured += count * measured;
  }
  return jobs;
}

TEST(Measured, EachClassOfCommandsIsWithinATenth) {
  const auto jobs = sumClasses();
  ASSERT_EQ(jobs.size(), 4u);
  for (const auto &[job, classes] : jobs) {
    EXPECT_GE(classes.size(), 12u) << job;
    for (const auto &[name, sum] : classes) {
      EXPECT_LE(std::abs(sum.error()), 0.10)
          << job << ", " << name << ": " << 1e3 * sum.predicted << " ms for " << 1e3 * sum.measured << ", "
          << 100 * sum.error() << " %";
    }
  }
}

TEST(Measured, EachStepIsWithinATwentieth) {
  std::ifstream file(DS_MEASURED "/h200-steps.json");
  const nlohmann::json steps = nlohmann::json::parse(file);
  const auto jobs = sumClasses();
  size_t checked = 0;
  for (const auto &step : steps) {
    const auto job = jobs.find(step.at("job").get<std::string>());
    if (job == jobs.end())
      continue; // without a table of commands: test/Plan/measured-h200.test plans them
    Sum sum{0, step.at("measured_ms").get<double>() * 1e-3};
    for (const auto &[name, part] : job->second)
      sum.predicted += part.predicted;
    EXPECT_LE(std::abs(sum.error()), 0.05) << job->first << ": " << 1e3 * sum.predicted << " ms for "
                                           << 1e3 * sum.measured << ", " << 100 * sum.error() << " %";
    ++checked;
  }
  EXPECT_EQ(checked, 4u);
}
