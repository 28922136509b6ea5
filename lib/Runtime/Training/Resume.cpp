//===- Resume.cpp - Goes on from a checkpoint ------------------------------------------===//

#include "Resume.h"

#include "Clock.h"
#include "Report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

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
  std::error_code unused;
  if (!isAuto() && std::filesystem::exists(options.resume + "/" + kManifestName, unused)) {
    candidates.push_back(options.resume);
    return {};
  }
  const std::string &root = isAuto() ? options.save : options.resume;
  const Result<StoreListing> listing = listCheckpoints(root);
  if (!listing)
    return listing.error();
  for (const StoredCheckpoint &each : listing->checkpoints)
    if (each.problem.empty())
      candidates.push_back(root + "/" + each.name);
    else
      logLine(fmt::format("passed over: {}", each.problem));
  if (!listing->leftovers.empty())
    logLine(fmt::format("unfinished saves lie in '{}': {} (ds-ckpt gc removes them)", root,
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

/// The first thing that keeps any rank from going on, with its name; empty when nothing does.
Result<std::string> Resume::vote(const Status &mine) {
  if (team.world() == 1)
    return mine ? std::string() : mine.error().message;
  Result<std::vector<std::string>> texts =
      team.ranks().exchange(mine ? std::string() : mine.error().message, kWhat);
  if (!texts)
    return texts.error();
  for (size_t rank = 0; rank < texts->size(); ++rank)
    if (!(*texts)[rank].empty())
      return fmt::format("rank {}: {}", rank, (*texts)[rank]);
  return std::string();
}

Status Resume::look(const Program &program, const std::string &path) {
  Result<Checkpoint> opened = Checkpoint::open(path);
  if (!opened)
    return opened.error();
  Result<RestorePlan> planned = planRestore(program, team.rank(), *opened);
  if (!planned)
    return planned.error();
  chosen.emplace(std::move(*opened));
  plan = std::move(*planned);
  return {};
}

/// Ends the run, or tells why the next candidate is taken.
Status Resume::giveUp(const std::string &path, const std::string &why) {
  chosen.reset();
  if (isAuto()) {
    if (team.leads())
      logLine(fmt::format("passed over '{}': {}", path, why));
    return {};
  }
  return Error{ExitCode::Corrupt, fmt::format("--resume: {}", why),
               candidates.empty() ? "" : fmt::format("the next older one is '{}'", candidates.front())};
}

Status Resume::choose(const Program &program) {
  for (;;) {
    const Result<std::string> path = nextName();
    if (!path)
      return path.error();
    if (path->empty()) {
      if (!isAuto())
        return Error{ExitCode::Invalid,
                     fmt::format("--resume: there is no checkpoint in '{}'", options.resume),
                     "name the directory that --save was given, or one step-N in it"};
      if (team.leads())
        logLine(fmt::format("there is no checkpoint in '{}': starts from the beginning", options.save));
      return {};
    }
    const Status looked = look(program, *path);
    // What does not fit the program fits no better in an older checkpoint.
    const Result<bool> foreign = team.anyOf(!looked && looked.error().code == ExitCode::Invalid);
    if (!foreign)
      return foreign.error();
    if (*foreign)
      return looked ? Status(Error{ExitCode::Invalid, "--resume: another rank refuses the checkpoint", ""})
                    : looked;
    const Result<std::string> why = vote(looked);
    if (!why)
      return why.error();
    if (why->empty())
      return {};
    if (Status status = giveUp(*path, *why); !status)
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
  const Result<std::string> why = vote(mine);
  if (!why)
    return why.error();
  if (why->empty()) {
    if (!team.leads())
      return true;
    logLine(fmt::format("goes on from '{}' behind step {}: {} read by this rank in {:.3g} s",
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
  Status status = giveUp(chosen->directory(), *why);
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
      fmt::format("dry run: would go on from '{}' behind step {}, with {} samples consumed\n"
                  "  {} tensors, {} in {} files, written on a mesh {} of {} rank{}\n"
                  "  would be read on a mesh {} of {} rank{}: {} in all, {} by one rank at most\n",
                  chosen->directory(), from.step, from.data.samples, from.tensors.size(),
                  bytesText(double(chosen->bytes())), from.files.size(), from.mesh.spell(), from.mesh.size(),
                  from.mesh.size() == 1 ? "" : "s", program.mesh.spell(), program.world,
                  program.world == 1 ? "" : "s", bytesText(double(all)), bytesText(double(most)));
  const bool same = from.planHash == program.planHash;
  text += same
              ? "  the program is the one that was saved: the run would go on bit by bit\n"
              : "  the program is another one: exact values go on, roundings and orders of sums may differ\n";
  for (const std::string &note : plan.notes)
    text += fmt::format("  {}\n", note);
  return text;
}

} // namespace ds::rt
