//===- PipelineText.cpp - Tables of pipelines as text -----------------------------------===//
#include "ds/Analysis/Pipelines/PipelineSchedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace ds::analysis {

static constexpr std::string_view kWords = "FBIW"; ///< in the order of PipelineWork

std::string spell(const PipelineProblem &problem, const PipelineEntry &entry) {
  const char word = kWords[static_cast<size_t>(entry.work)];
  if (entry.chunk >= problem.chunks.size())
    return fmt::format("{}{} of chunk {}", word, entry.microBatch, entry.chunk);
  const std::vector<uint32_t> own = problem.chunksOf(problem.chunks[entry.chunk].stage);
  const auto place = std::find(own.begin(), own.end(), entry.chunk) - own.begin();
  return own.size() == 1 ? fmt::format("{}{}", word, entry.microBatch)
                         : fmt::format("{}{}.{}", word, entry.microBatch, place);
}

std::string spell(const PipelineProblem &problem, const PipelineTable &table) {
  std::string text;
  for (size_t stage = 0; stage < table.size(); ++stage) {
    text += fmt::format("{}:", stage);
    for (const PipelineEntry &entry : table[stage])
      text += " " + spell(problem, entry);
    text += "\n";
  }
  return text;
}

namespace {
class TableReader {
public:
  explicit TableReader(const PipelineProblem &problem) : problem(problem), table(problem.stages) {}

  Status readLine(std::string_view line, size_t number);
  Result<PipelineTable> finish();

private:
  std::optional<PipelineEntry> readEntry(std::string_view word, uint32_t stage) const;

  const PipelineProblem &problem;
  PipelineTable table;
  std::vector<bool> seen = std::vector<bool>(problem.stages, false);
};
} // namespace

/// All of `text` as a number below `end`.
static std::optional<uint32_t> readNumber(std::string_view text, size_t end) {
  uint32_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool isRead = error == std::errc() && rest == text.data() + text.size() && number < end;
  return isRead ? std::optional(number) : std::nullopt;
}

std::optional<PipelineEntry> TableReader::readEntry(std::string_view word, uint32_t stage) const {
  const size_t work = kWords.find(word.front());
  const size_t dot = std::min(word.find('.'), word.size());
  const std::optional<uint32_t> microBatch = readNumber(word.substr(1, dot - 1), problem.microBatches);
  const std::vector<uint32_t> own = problem.chunksOf(stage);
  const std::optional<uint32_t> chunk =
      dot < word.size() ? readNumber(word.substr(dot + 1), own.size()) : std::optional<uint32_t>(0);
  const bool isComplete = dot < word.size() || own.size() == 1;
  if (work == std::string_view::npos || !microBatch || !chunk || !isComplete)
    return std::nullopt;
  return PipelineEntry{static_cast<PipelineWork>(work), own[*chunk], *microBatch};
}

Status TableReader::readLine(std::string_view line, size_t number) {
  const auto fail = [&](size_t column, const std::string &message) {
    return Error{ExitCode::Invalid, fmt::format("line {}, column {}: {}", number, column + 1, message),
                 "a line is the number of a stage, a colon, and entries such as F0 B0, or F0.1 where stages "
                 "have several chunks"};
  };
  const size_t colon = std::min(line.find(':'), line.size());
  const std::optional<uint32_t> stage = readNumber(line.substr(0, colon), problem.stages);
  if (!stage || colon == line.size())
    return fail(0, fmt::format("expects one of {} stages and a colon", problem.stages));
  if (seen[*stage])
    return fail(0, fmt::format("has stage {} twice", *stage));
  seen[*stage] = true;
  for (size_t at = colon + 1; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    const std::string_view word = line.substr(at, end - at);
    const std::optional<PipelineEntry> entry = readEntry(word, *stage);
    if (!entry)
      return fail(at, fmt::format("expects an entry of stage {} with one of {} micro-batches, but got \"{}\"",
                                  *stage, problem.microBatches, word));
    table[*stage].push_back(*entry);
    at = end;
  }
  return {};
}

Result<PipelineTable> TableReader::finish() {
  const auto missing = std::find(seen.begin(), seen.end(), false);
  if (missing != seen.end())
    return Error{ExitCode::Invalid,
                 fmt::format("has no line of stage {} of {}", missing - seen.begin(), problem.stages), ""};
  return std::move(table);
}

Result<PipelineTable> parsePipelineTable(const PipelineProblem &problem, std::string_view text) {
  TableReader reader(problem);
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#')
      if (Status status = reader.readLine(line, number); !status)
        return status.error();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

} // namespace ds::analysis
