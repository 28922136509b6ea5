//===- RankIdentity.cpp - Which rank this process is ------------------------------------===//
#include "Plugins.h"

#include "ds/Runtime/Comm/Communicator.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <optional>

namespace ds::rt {
namespace {

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

std::optional<uint32_t> toNumber(const std::string &text) {
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return number;
}

Error usage(std::string message) {
  return Error{ExitCode::Usage, std::move(message),
               "DS_RANK, DS_WORLD, DS_RENDEZVOUS and DS_NONCE belong together; docs/ranks.md describes them"};
}

Result<RankIdentity> placeInDirectory() {
  RankIdentity place;
  place.kind = RankIdentity::Kind::Directory;
  const std::optional<uint32_t> rank = toNumber(variable("DS_RANK")), world = toNumber(variable("DS_WORLD"));
  if (!rank || !world || *rank >= *world)
    return usage(fmt::format("DS_RANK '{}' and DS_WORLD '{}': expects 0 <= rank < world", variable("DS_RANK"),
                             variable("DS_WORLD")));
  place.rank = *rank;
  place.world = *world;
  place.directory = variable("DS_RENDEZVOUS");
  place.nonce = variable("DS_NONCE");
  place.oneHost = variable("DS_ONE_HOST") == "1";
  if (place.directory.empty())
    return usage("DS_RENDEZVOUS: expects a directory that all ranks share");
  if (place.nonce.empty() || place.nonce.find_first_of("/. \n") != std::string::npos)
    return usage(fmt::format("DS_NONCE '{}': expects a word that no other job uses", place.nonce));
  return place;
}

Result<RankIdentity> placeUnderPmix() {
  const Result<const PmixApi *> api = openPmix();
  if (!api)
    return api.error();
  PmixJob job{};
  std::string error;
  if (!(*api)->join(job, error))
    return Error{ExitCode::Peer, "PMIx: " + error, "start the ranks with mpirun, or with srun --mpi=pmix"};
  RankIdentity place;
  place.kind = RankIdentity::Kind::Pmix;
  place.rank = job.rank;
  place.world = job.world;
  place.oneHost = job.oneHost;
  return place;
}

} // namespace

static bool isInDirectory() { return !variable("DS_RANK").empty() || !variable("DS_WORLD").empty(); }
static bool isUnderPmix() { return !variable("PMIX_RANK").empty() && !variable("PMIX_NAMESPACE").empty(); }

bool isStartedAsRank() { return isInDirectory() || isUnderPmix(); }

Result<RankIdentity> findRankIdentity() {
  if (isInDirectory())
    return placeInDirectory();
  if (isUnderPmix())
    return placeUnderPmix();
  if (const std::string tasks = variable("SLURM_STEP_NUM_TASKS"); toNumber(tasks).value_or(1) > 1)
    return Error{ExitCode::Usage,
                 fmt::format("srun started {} tasks without PMIx: each would be alone", tasks),
                 "start them with srun --mpi=pmix"};
  return RankIdentity();
}

} // namespace ds::rt
