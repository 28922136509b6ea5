//===- Team.cpp - This rank among those of its run ------------------------------===//
//
// A failure that all ranks see in the same place (a loss that is not a number, an interruption, a refusal to
// start) ends with all ranks meeting once more: whoever left early would look like the cause.
//
//===---------------------------------------------------------------------------===//
#include "Team.h"

#include "ds/Runtime/Program/Groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

namespace ds::rt {
namespace {

constexpr const char *kAgreement = "agreement to continue";
constexpr const char *kSaving = "saving of weights";

/// Kinds of streams that need a channel of their own, and one for all that run on the computing thread.
constexpr uint32_t countChannels() {
  uint32_t count = 0;
  for (unsigned kind = 0; kind <= static_cast<unsigned>(kLastStreamKind); ++kind)
    count += communicates(static_cast<StreamKind>(kind));
  return count;
}
static_assert(countChannels() == kMostChannels, "what launchers reserve is enough");

/// "key\nvalue\n" for each fact; values have no line breaks.
std::string spellFacts(const Facts &facts) {
  std::string text;
  for (const auto &[key, value] : facts)
    text += key + '\n' + value + '\n';
  return text;
}

Facts parseFacts(const std::string &text) {
  Facts facts;
  for (size_t at = 0; at < text.size();) {
    const size_t middle = text.find('\n', at);
    const size_t end = middle == std::string::npos ? middle : text.find('\n', middle + 1);
    if (end == std::string::npos)
      break; // another build's, which the first fact will show
    facts.emplace_back(text.substr(at, middle - at), text.substr(middle + 1, end - middle - 1));
    at = end + 1;
  }
  return facts;
}

} // namespace

std::string findDisagreement(const std::vector<Facts> &facts,
                             const std::function<std::string(uint32_t)> &name) {
  for (size_t i = 0; i < facts[0].size(); ++i) {
    std::map<std::string, std::vector<uint32_t>> ranksByValue;
    for (uint32_t rank = 0; rank < facts.size(); ++rank) {
      const bool known = i < facts[rank].size() && facts[rank][i].first == facts[0][i].first;
      ranksByValue[known ? facts[rank][i].second : "nothing"].push_back(rank);
    }
    if (ranksByValue.size() == 1)
      continue;
    const auto most = std::max_element(ranksByValue.begin(), ranksByValue.end(),
                                       [](auto &a, auto &b) { return a.second.size() < b.second.size(); });
    std::string text = fmt::format("the ranks differ in {}: ", facts[0][i].first);
    for (const auto &[value, ranks] : ranksByValue)
      for (uint32_t rank : ranks)
        if (value != most->first)
          text += fmt::format("{} has {}, ", name(rank), value);
    return text + fmt::format("{} {}",
                              most->second.size() == 1 ? name(most->second[0]) + " has" : "the others have",
                              most->first);
  }
  return {};
}

Team::Team(std::unique_ptr<RankGroup> group)
    : group(std::move(group)), staging(this->group->world() * kFlags * sizeof(int32_t)) {}

std::string Team::name(uint32_t rank) const { return group->name(rank); }

/// By rank of a program of several stages: its coordinates along the axes on which ranks can differ.
static std::vector<std::string> placesOn(const Program &program) {
  const Mesh &mesh = program.mesh;
  std::vector<std::string> places;
  for (uint32_t rank = 0; mesh.size(program.stageAxes) > 1 && rank < program.world; ++rank) {
    std::string &place = places.emplace_back();
    for (unsigned axis = 0; axis < mesh.numAxes(); ++axis)
      if (mesh.axes()[axis].size > 1)
        place += fmt::format("{}{} {}", place.empty() ? "" : ", ", mesh.axes()[axis].name,
                             mesh.coordinate(rank, axis));
  }
  return places;
}

Result<std::unique_ptr<Team>> Team::join(const TrainOptions &options) {
  ConnectOptions connection;
  connection.channels = 1; // how many more, the program says
  connection.more = true;
  connection.timeout = std::chrono::milliseconds(std::llround(options.timeoutSeconds * 1000));
  Result<std::unique_ptr<RankGroup>> group = connect(options.place, connection);
  if (!group)
    return group.error();
  return std::unique_ptr<Team>(new Team(std::move(*group)));
}

Status Team::connectFor(const Program &program) {
  channels = numChannels(program);
  group->setPlaces(placesOn(program));
  return world() > 1 ? group->addChannels(channels) : Status();
}

Result<CommunicatorOf> Team::communicatorsFor(const Program &program) {
  for (size_t stream = 0; stream < program.streams.size(); ++stream)
    if (const StreamKind kind = program.streams[stream];
        communicates(kind) && std::ranges::count(program.streams, kind) > 1)
      return Error{ExitCode::Corrupt, "the program has two streams of kind " + std::string(spell(kind)),
                   "compile the model again with ds-opt"};
  return CommunicatorOf(
      [this, of = channelsOf(program), mesh = program.mesh](uint32_t stream, AxisSet axes) -> Communicator * {
        const std::vector<uint32_t> members = mesh.group(rank(), axes);
        if (members.size() == 1)
          return &group->subset(0, members); // moves nothing: any channel will do
        return stream < of.size() && of[stream] ? &group->subset(*of[stream], members) : nullptr;
      });
}

Status Team::agree(const Facts &facts) {
  if (world() == 1)
    return {};
  Result<std::vector<std::string>> texts = group->exchange(spellFacts(facts), "what is to be trained");
  if (!texts)
    return texts.error();
  std::vector<Facts> all;
  for (const std::string &text : *texts)
    all.push_back(parseFacts(text));
  const std::string found = findDisagreement(all, [&](uint32_t rank) { return name(rank); });
  if (found.empty())
    return {};
  agreed = false;
  return Error{ExitCode::Peer, found, "start every rank with the same ds-run, program, data and options"};
}

Result<bool> Team::anyOf(bool flag) {
  const Result<Flags> any = anyOf(Flags{flag});
  return any ? Result<bool>((*any)[0]) : any.error();
}

Result<Team::Flags> Team::anyOf(const Flags &flags) {
  if (world() == 1)
    return flags;
  std::array<int32_t, kFlags> any;
  std::copy(flags.begin(), flags.end(), any.begin());
  if (Status status = own()->allReduce(any.data(), any.data(), staging.data(), kFlags, DType::I32,
                                       Reduction::Max, kAgreement);
      !status)
    return status.error();
  Flags result;
  std::transform(any.begin(), any.end(), result.begin(), [](int32_t flag) { return flag != 0; });
  return result;
}

/// A digit for success, the code of an error, and a blank before the text or the message.
static std::string spellOutcome(const Result<std::string> &outcome) {
  return outcome ? "0 " + *outcome
                 : fmt::format("{} {}", static_cast<int>(outcome.error().code), outcome.error().message);
}

/// What spellOutcome has made, of `rank`.
static Result<std::string> parseOutcome(const std::string &text, uint32_t rank, const char *what) {
  const size_t blank = text.find(' ');
  if (blank == std::string::npos)
    return Error{ExitCode::Peer, fmt::format("{}: rank {} has sent nothing that can be read", what, rank),
                 ""};
  const int code = std::atoi(text.c_str());
  const std::string rest = text.substr(blank + 1);
  return code == 0 ? Result<std::string>(rest) : Error{static_cast<ExitCode>(code), rest, ""};
}

Result<std::string> Team::fromLeader(const Result<std::string> &mine, const char *what) {
  if (world() == 1)
    return mine;
  Result<std::vector<std::string>> texts =
      group->exchange(leads() ? spellOutcome(mine) : std::string(), what);
  if (!texts)
    return texts.error();
  Result<std::string> theirs = parseOutcome(texts->front(), 0, what);
  if (!theirs && leads() && !mine)
    return mine;
  return theirs;
}

Result<std::vector<std::string>> Team::fromAll(const Result<std::string> &mine, const char *what) {
  if (world() == 1)
    return mine ? Result<std::vector<std::string>>(std::vector{*mine}) : mine.error();
  Result<std::vector<std::string>> texts = group->exchange(spellOutcome(mine), what);
  if (!texts)
    return texts.error();
  for (uint32_t rank = 0; rank < texts->size(); ++rank) {
    Result<std::string> theirs = parseOutcome((*texts)[rank], rank, what);
    if (!theirs)
      return Error{theirs.error().code, fmt::format("rank {}: {}", rank, theirs.error().message),
                   mine ? "" : mine.error().hint};
    (*texts)[rank] = std::move(*theirs);
  }
  return texts;
}

/// Leaves out what is the run's own.
std::vector<CommStat> Team::stats() const {
  static constexpr std::string_view kOwn[] = {kAgreement, kSaving, kComparison, kTargetCount, kStageValues};
  std::vector<CommStat> all;
  for (uint32_t channel = 0; world() > 1 && channel < channels; ++channel)
    for (CommStat &stat : group->channel(channel).stats())
      if (std::ranges::find(kOwn, stat.name) == std::end(kOwn))
        all.push_back(std::move(stat));
  return all;
}

CommTotals Team::totals() const {
  CommTotals totals;
  for (const CommStat &stat : stats()) {
    totals.bytes += stat.bytes;
    totals.seconds += stat.seconds;
  }
  return totals;
}

std::string Team::summary(size_t rows) const { return describe(stats(), rows); }

void Team::abort(const Error &error) {
  if (error.code != ExitCode::Peer)
    group->abort(error.message);
}

Status Team::leave(Status status) {
  const bool together = status || !agreed || status.error().code == ExitCode::Diverged ||
                        status.error().code == ExitCode::Interrupted;
  if (!together) {
    abort(status.error());
    return status;
  }
  Status finished = group->finish();
  return status ? finished : status;
}

} // namespace ds::rt
