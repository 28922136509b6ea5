//===- Resume.cpp - Goes on from a checkpoint ------------------------------------------===//

#include "Resume.h"

#include "Process/Clock.h"
#include "Process/Messages.h"
#include "SameOptimizer.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {

static constexpr const char *kWhat = "choice of a checkpoint";

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

/// What there is to choose from, on rank 0.
Status Resume::list() {
  listed = true;
  if (!team.leads())
    return {};
  if (!isAuto() && !manifestsIn(options.resume).empty()) {
    candidates.push_back(options.resume);
    return {};
  }
  const std::string &root = directory();
  const Result<StoreListing> listing = listCheckpoints(root);
  if (!listing)
    return listing.error();
  for (const StoredCheckpoint &each : listing->checkpoints)
    if (each.problem.empty())
      candidates.push_back(root + "/" + each.name);
    else
      logLine(fmt::format("passed over: {}", each.problem));
  if (!listing->leftovers.empty())
    logLine(fmt::format(
        "left in '{}' by unfinished saves or removals: {} (the next save, or ds-ckpt gc, removes them)", root,
        fmt::join(listing->leftovers, ", ")));
  return {};
}

/// The path of the next candidate on every rank; empty: there is none.
Result<std::string> Resume::nextName() {
  Result<std::string> mine = std::string();
  if (!listed)
    if (Status status = list(); !status)
      mine = status.error();
  if (mine && !candidates.empty()) {
    mine = candidates.front();
    candidates.pop_front();
  }
  return team.fromLeader(mine, kWhat);
}

/// What all ranks together say of a checkpoint. A rank brings "!" and what keeps it from going on, "?" where
/// it has none of this name, or "=" and the letters of the save.
Result<Resume::Verdict> Resume::vote(const std::string &path, const Status &mine) {
  std::string text = "!" + (mine ? "" : mine.error().message);
  if (mine)
    text = "=" + (chosen ? chosen->manifest().save : "");
  else if (!team.leads() && manifestsIn(path).empty())
    text = "?";
  Result<std::vector<std::string>> texts = std::vector<std::string>{text};
  if (team.world() > 1)
    texts = team.ranks().exchange(text, kWhat);
  if (!texts)
    return texts.error();
  const auto first = [&](auto &&is) { return std::ranges::find_if(*texts, is) - texts->begin(); };
  const size_t bad =
      static_cast<size_t>(first([](const std::string &each) { return each.starts_with('!'); }));
  if (bad < texts->size())
    return Verdict{Verdict::Kind::Refused,
                   (team.world() > 1 ? fmt::format("rank {}: ", bad) : "") + (*texts)[bad].substr(1)};
  const size_t other =
      static_cast<size_t>(first([&](const std::string &each) { return each != texts->front(); }));
  if (other == texts->size())
    return Verdict{};
  return Verdict{Verdict::Kind::NotEverywhere,
                 fmt::format("{} has {}", team.name(static_cast<uint32_t>(other)),
                             (*texts)[other] == "?" ? "none of this name" : "one of another save there")};
}

Status Resume::look(const Program &program, const std::string &path) {
  Result<Checkpoint> opened = Checkpoint::open(path);
  if (!opened)
    return opened.error();
  if (!options.evalOnly) // without a step no optimizer is asked
    if (Status status = checkSameOptimizer(program, opened->manifest(), path); !status)
      return status;
  Result<RestorePlan> planned = planRestore(program, team.rank(), *opened);
  if (!planned)
    return planned.error();
  chosen.emplace(std::move(*opened));
  plan = std::move(*planned);
  return {};
}

/// Ends the run, or tells why the next candidate is taken.
Status Resume::giveUp(const std::string &path, const Verdict &verdict) {
  chosen.reset();
  const bool unfinished = verdict.kind == Verdict::Kind::NotEverywhere && path != options.resume;
  if (isAuto() || unfinished) {
    if (team.leads())
      logLine(fmt::format("passed over '{}': {}", path, verdict.why));
    return {};
  }
  const std::string place = verdict.kind == Verdict::Kind::NotEverywhere ? "'" + path + "': " : "";
  return Error{ExitCode::Corrupt, fmt::format("--resume: {}{}", place, verdict.why),
               candidates.empty() ? "" : fmt::format("the next older one is '{}'", candidates.front())};
}

/// The newest checkpoint of which this rank's directory has a part; empty without.
static std::string newestPart(const std::string &directory) {
  const Result<Manifest> own = readManifestAlone(directory);
  if (own && !own->isWhole())
    return directory;
  const Result<StoreListing> listing = listCheckpoints(directory);
  if (listing)
    for (const StoredCheckpoint &each : listing->checkpoints)
      if (!each.save.empty())
        return each.name;
  return {};
}

/// No candidate is left. Where some node has a part of a checkpoint another one's are lost: to begin anew
/// then would be no help.
Status Resume::endWithout() {
  const Result<std::vector<std::string>> parts = team.fromAll(newestPart(directory()), kWhat);
  if (!parts)
    return parts.error();
  const auto has = std::ranges::find_if(*parts, [](const std::string &each) { return !each.empty(); });
  const auto lacks = std::ranges::find(*parts, std::string());
  if (has != parts->end()) {
    const auto nameOf = [&](auto each) { return team.name(static_cast<uint32_t>(each - parts->begin())); };
    return Error{ExitCode::Corrupt,
                 fmt::format("--resume: no checkpoint in '{}' is there on all nodes: {} has a part of '{}'{}",
                             directory(), nameOf(has), *has,
                             lacks == parts->end() ? "" : ", " + nameOf(lacks) + " of none"),
                 "bring back the directory of the node that has lost it, or name another one"};
  }
  if (!isAuto())
    return Error{ExitCode::Invalid, fmt::format("--resume: there is no checkpoint in '{}'", options.resume),
                 "name the directory that --save was given, or one step-N in it"};
  if (team.leads())
    logLine(fmt::format("there is no checkpoint in '{}': starts from the beginning", options.save));
  return {};
}

Status Resume::choose(const Program &program) {
  for (;;) {
    const Result<std::string> path = nextName();
    if (!path)
      return path.error();
    if (path->empty())
      return endWithout();
    const Status looked = look(program, *path);
    // What does not fit the program fits no better in an older checkpoint.
    const Result<bool> foreign = team.anyOf(!looked && looked.error().code == ExitCode::Invalid);
    if (!foreign)
      return foreign.error();
    const Result<Verdict> verdict = vote(*path, looked);
    if (!verdict)
      return verdict.error();
    if (*foreign)
      return looked || looked.error().code != ExitCode::Invalid
                 ? Status(Error{ExitCode::Invalid, "--resume: " + verdict->why, ""})
                 : looked;
    if (verdict->kind == Verdict::Kind::Taken)
      return {};
    if (Status status = giveUp(*path, *verdict); !status)
      return status;
  }
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::vector<bool> Resume::restored(const Program &program) const {
  std::vector<bool> states(program.states.size());
  if (chosen)
    for (const Destination &destination : plan.destinations)
      states[destination.state] = true;
  return states;
}

Result<bool> Resume::restore(Executor &executor) {
  const int64_t begin = nowNs();
  const Status mine = restoreStates(executor, *chosen, plan);
  const Result<Verdict> verdict = vote(chosen->directory(), mine);
  if (!verdict)
    return verdict.error();
  if (verdict->kind == Verdict::Kind::Taken) {
    if (!team.leads())
      return true;
    logLine(fmt::format("resumes from '{}' after step {}: {} read by this rank in {:.3g} s",
                        chosen->directory(), chosen->manifest().step, bytesText(double(plan.bytes)),
                        static_cast<double>(nowNs() - begin) * 1e-9));
    for (const std::string &note : plan.notes)
      logLine(note);
    return true;
  }
  if (!isAuto() && !mine) // with the code of what this rank has found
    return Error{mine.error().code, "--resume: " + mine.error().message,
                 candidates.empty() ? mine.error().hint
                                    : fmt::format("the next older one is '{}'", candidates.front())};
  Status status = giveUp(chosen->directory(), *verdict);
  return status ? Result<bool>(false) : Result<bool>(status.error());
}

Result<std::string> Resume::describe(const Program &program) {
  if (!chosen)
    return std::string("dry run: there is no checkpoint; the run would start from the beginning\n");
  Result<std::vector<std::string>> texts = std::vector<std::string>{std::to_string(plan.bytes)};
  if (team.world() > 1)
    texts = team.ranks().exchange(std::to_string(plan.bytes), kWhat);
  if (!texts)
    return texts.error();
  uint64_t most = 0, all = 0;
  for (const std::string &text : *texts) {
    const uint64_t bytes = std::strtoull(text.c_str(), nullptr, 10);
    most = std::max(most, bytes);
    all += bytes;
  }
  const Manifest &from = chosen->manifest();
  std::string text =
      fmt::format("dry run: would resume from '{}' after step {}, with {} samples consumed\n"
                  "  {} tensors, {} in {} files, written on a mesh {} of {} rank{}\n"
                  "  would be read on a mesh {} of {} rank{}: {} in all, {} by one rank at most\n",
                  chosen->directory(), from.step, from.data.samples, from.tensors.size(),
                  bytesText(double(chosen->bytes())), from.files.size(), from.mesh.spell(), from.mesh.size(),
                  from.mesh.size() == 1 ? "" : "s", program.mesh.spell(), program.world,
                  program.world == 1 ? "" : "s", bytesText(double(all)), bytesText(double(most)));
  const bool same = from.planHash == program.planHash;
  text += same ? "  the program is the one that was saved: the run would resume to the bit\n"
               : "  the program is another one: exact values are taken over, roundings and orders of sums "
                 "may differ\n";
  for (const std::string &note : plan.notes)
    text += fmt::format("  {}\n", note);
  return text;
}

} // namespace ds::rt
