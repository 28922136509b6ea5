//===- Sample.cpp - Text from a trained model ---------------------------------===//
#include "ds/Runtime/Sampling/Sample.h"

#include "ChooseToken.h"
#include "Files/Text.h"
#include "LogitsRun.h"
#include "Process/Clock.h"
#include "Process/Messages.h"
#include "Prompt.h"
#include "TextStream.h"
#include "Training/CheckRun.h"
#include "Training/Interrupt.h"
#include "Training/OpenDevice.h"
#include "Training/RunParts.h"
#include "Training/StartUp.h"

#include "ds/Runtime/Files/AppendedFile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace ds::rt {
namespace {

constexpr const char *kChoice = "choice of a token";

/// One text, from the program's file to the last token.
class Sampling {
public:
  Sampling(RunParts &parts, const SampleOptions &options)
      : parts(parts), team(parts.team), options(options) {}

  Status run();

private:
  Status prepare();
  Status checkPrompt() const;
  Status restore();
  Status agree(const std::string &programSign);
  Status write(LogitsRun &logits);
  Result<int64_t> next(LogitsRun &logits, uint64_t index);
  Status print(int64_t token);
  Status log(double seconds) const;

  RunParts &parts;
  Team &team;
  const SampleOptions &options;
  std::optional<LogitsShape> shape;
  std::optional<Language> language;
  std::vector<int64_t> tokens; ///< the prompt's, and those that were written
  size_t numGiven = 0;         ///< of them, the prompt's
  TextStream out;
  bool isFirst = true;
};

Status Sampling::checkPrompt() const {
  if (static_cast<int64_t>(tokens.size()) <= shape->length())
    return {};
  return Error{ExitCode::Invalid,
               fmt::format("{}: the text begins with {} tokens, but samples of {} have {}",
                           options.text ? "--sample" : "--sample-tokens", tokens.size(),
                           quote(parts.options.program), shape->length()),
               fmt::format("shorten it, or compile with ds-opt --length {}", tokens.size())};
}

/// A damaged checkpoint may give way to an older one.
Status Sampling::restore() {
  for (;;) {
    if (Status status = parts.start.initialize(*parts.executor); !status)
      return status;
    const Result<bool> restored = parts.start.restore(*parts.executor);
    if (!restored || *restored)
      return restored ? Status() : Status(restored.error());
    if (Status status = parts.start.choose(parts.executor->whole()); !status)
      return status;
  }
}

Status Sampling::agree(const std::string &programSign) {
  if (team.world() == 1)
    return {};
  const Checkpoint *from = parts.start.checkpoint();
  return team.agree({{"the build of ds-run", executableSign()},
                     {"the program", programSign},
                     {"the checkpoint", from ? fmt::format("step {}", parts.start.step()) : "none"},
                     {"the weights", parts.start.weightsSign()},
                     {"the text", fmt::format("{}", fmt::join(tokens, ","))},
                     {"--length", std::to_string(options.length)}});
}

/// What can be refused comes before what takes time.
Status Sampling::prepare() {
  Result<std::unique_ptr<Device>> opened = openDevice(parts.options, team.ranks());
  if (!opened)
    return opened.error();
  parts.device = std::move(*opened);
  Result<Program> program = readProgram(parts.options.program);
  if (!program)
    return program.error();
  for (const Status &check :
       {checkProgram(*program, parts.options, team.world()), checkTarget(*program, parts.options)})
    if (!check)
      return check;
  Result<LogitsShape> found = LogitsShape::find(*program, parts.options.program);
  if (!found)
    return found.error();
  shape = std::move(*found);
  if (Status status = parts.start.choose(*program); !status)
    return status;
  Result<Language> spoken =
      Language::find(options, parts.options.program, parts.start.weightsPath(), shape->vocabulary());
  if (!spoken)
    return spoken.error();
  language.emplace(std::move(*spoken));
  Result<std::vector<int64_t>> begun = language->begin(options, shape->vocabulary());
  if (!begun)
    return begun.error();
  tokens = std::move(*begun);
  numGiven = tokens.size();
  if (Status status = checkPrompt(); !status)
    return status;
  if (Status status = team.connectFor(*program); !status)
    return status;
  const std::string sign = team.world() > 1 ? hashPlan(*program) : "";
  Result<std::unique_ptr<Executor>> loaded =
      loadExecutor(std::move(*program), parts.options, team, parts.device.get());
  if (!loaded)
    return Error{loaded.error().code, parts.options.program + ": " + loaded.error().message,
                 loaded.error().hint};
  parts.executor = std::move(*loaded);
  if (Status status = restore(); !status)
    return status;
  return agree(sign);
}

/// Rank 0's choice; -1: it was asked to end.
Result<int64_t> Sampling::next(LogitsRun &logits, uint64_t index) {
  const size_t window = std::min(tokens.size(), static_cast<size_t>(shape->length()));
  const Result<std::vector<float>> behind =
      logits.after(std::span<const int64_t>(tokens).subspan(tokens.size() - window));
  if (!behind)
    return behind.error();
  Result<int64_t> mine = interrupted() ? Result<int64_t>(-1) : chooseToken(*behind, options, index);
  const Result<std::string> text =
      team.fromLeader(mine ? Result<std::string>(std::to_string(*mine)) : mine.error(), kChoice);
  if (!text)
    return text.error();
  int64_t token = -1;
  std::from_chars(text->data(), text->data() + text->size(), token);
  return token;
}

/// Numbers stand apart, words do not.
Status Sampling::print(int64_t token) {
  if (!team.leads())
    return {};
  const bool isNumber = !options.text && options.tokenizer.empty();
  const std::string text = (isNumber && !isFirst ? "," : "") + language->spell(token);
  isFirst = false;
  return out.write(text);
}

Status Sampling::write(LogitsRun &logits) {
  for (const int64_t token : tokens)
    if (Status status = print(token); !status)
      return status;
  for (uint64_t index = 0; index < options.length; ++index) {
    const Result<int64_t> token = next(logits, index);
    if (!token)
      return token.error();
    if (*token < 0)
      return Error{ExitCode::Interrupted, fmt::format("interrupted after {} tokens", index), ""};
    tokens.push_back(*token);
    if (Status status = print(*token); !status)
      return status;
  }
  return {};
}

/// One line for --log-jsonl, on the rank that leads.
Status Sampling::log(double seconds) const {
  if (!team.leads() || parts.options.logJsonl.empty())
    return {};
  Result<AppendedFile> file =
      AppendedFile::open(parts.options.logJsonl, {"log", "--log-jsonl", true}, logLine);
  if (!file)
    return file.error();
  std::string prompt, text;
  for (size_t i = 0; i < tokens.size(); ++i)
    (i < numGiven ? prompt : text) +=
        (options.text || !options.tokenizer.empty() ? language->spell(tokens[i]) : "");
  std::string line = "{\"step\":" + std::to_string(parts.start.step()) + ",\"sample\":{\"prompt\":";
  appendJsonString(line, prompt);
  line += ",\"text\":";
  appendJsonString(line, text);
  line += fmt::format(",\"prompt_tokens\":[{}],\"tokens\":[{}],\"temperature\":",
                      fmt::join(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(numGiven), ","),
                      fmt::join(tokens.begin() + static_cast<std::ptrdiff_t>(numGiven), tokens.end(), ","));
  appendJsonNumber(line, options.temperature);
  line += fmt::format(",\"top_k\":{},\"seed\":{},\"seconds\":", options.topK, options.seed);
  appendJsonNumber(line, seconds);
  file->write(line + "}}\n");
  return {};
}

Status Sampling::run() {
  if (Status status = prepare(); !status)
    return status;
  LogitsRun logits(*parts.executor, *shape);
  if (static_cast<int64_t>(tokens.size()) < shape->length() && shape->vocabulary() > 1)
    if (Status status = logits.checkCausal(tokens); !status)
      return status;
  const int64_t begin = nowNs();
  const Status written = write(logits);
  if (team.leads() && !isFirst)
    if (Status ended = out.end(); !ended && written)
      return ended;
  const double seconds = static_cast<double>(nowNs() - begin) * 1e-9;
  if (!written)
    return written;
  if (team.leads())
    logLine(fmt::format("{} tokens from {} in {:.3g} s", options.length, parts.start.weights(), seconds));
  return log(seconds);
}

} // namespace

Status sample(const TrainOptions &run, const SampleOptions &options) {
  watchInterrupts(/*parentPassesOn=*/run.place.kind == RankIdentity::Kind::Pmix);
  if (Status status = checkDeviceName(run.device); !status)
    return status;
  Result<std::unique_ptr<Team>> team = Team::join(run);
  if (!team)
    return team.error();
  RunParts parts(run, **team);
  return (*team)->leave(Sampling(parts, options).run());
}

} // namespace ds::rt
