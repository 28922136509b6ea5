//===- SaveNode.cpp - Which ranks keep their checkpoints in one place -----------------===//

#include "SaveNode.h"

#include "Files/Text.h"

#include "ds/Runtime/Checkpoint/Store.h"
#include "ds/Runtime/Files/FileLayer.h"
#include "ds/Support/Descriptor.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <map>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::rt {

static constexpr const char *kWhat = "look at the directory of checkpoints";

namespace {

/// A rank's file in its directory, while the others look for it.
class Mark {
public:
  Mark(const std::string &directory, const std::string &job) : prefix(directory + "/.seen-" + job + "-") {}
  ~Mark() {
    if (!path.empty())
      ::unlink(path.c_str());
  }
  Status leave(uint32_t rank) {
    const std::string own = prefix + std::to_string(rank);
    if (!Descriptor(::open(own.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666)))
      return ioError("write to", own, errno);
    path = own;
    return {};
  }
  /// The first rank, `rank` at most, whose file is there.
  uint32_t firstSeen(uint32_t rank) const {
    struct stat info;
    uint32_t first = 0;
    while (first < rank && ::stat((prefix + std::to_string(first)).c_str(), &info) != 0)
      ++first;
    return first;
  }

private:
  const std::string prefix;
  std::string path;
};

/// Every rank's first, which must be its own first.
Result<std::vector<uint32_t>> parseFirsts(const std::vector<std::string> &texts, const Team &team) {
  std::vector<uint32_t> firsts;
  for (const std::string &text : texts)
    firsts.push_back(static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 10)));
  for (uint32_t rank = 0; rank < firsts.size(); ++rank)
    if (firsts[rank] > rank || firsts[firsts[rank]] != firsts[rank])
      return Error{ExitCode::Io,
                   fmt::format("{} sees files that {} does not see in the same directory", team.name(rank),
                               team.name(std::min(firsts[rank], rank))),
                   "mount it so that what one rank writes is there for the others at once"};
  return firsts;
}

/// Ranks that were started together on a host see the same, for all that a run needs.
bool onOneHost(Team &team) {
  for (uint32_t rank = 1; rank < team.world(); ++rank)
    if (team.ranks().host(rank) != team.ranks().host(0))
      return false;
  return true;
}

} // namespace

Result<SaveNode> findSaveNode(const std::string &directory, bool mustShare, Team &team) {
  SaveNode found;
  found.leads = team.leads();
  if (team.world() == 1 || (mustShare && onOneHost(team)))
    return found;
  const Result<std::string> job = team.fromLeader(team.leads() ? uniqueLetters() : std::string(), kWhat);
  if (!job)
    return job.error();
  Mark mark(directory, *job);
  Status left = makeDirectories(systemFiles(), directory);
  if (left)
    left = mark.leave(team.rank());
  if (const Result<std::vector<std::string>> all =
          team.fromAll(left ? Result<std::string>("") : left.error(), kWhat);
      !all)
    return all.error();
  const Result<std::vector<std::string>> texts =
      team.fromAll(std::to_string(mark.firstSeen(team.rank())), kWhat);
  if (!texts)
    return texts.error();
  const Result<std::vector<uint32_t>> firsts = parseFirsts(*texts, team);
  if (!firsts)
    return firsts.error();
  std::map<uint32_t, CheckpointNode> nodes; // by first rank
  for (uint32_t rank = 0; rank < firsts->size(); ++rank) {
    CheckpointNode &node = nodes[(*firsts)[rank]];
    node.host = team.ranks().host((*firsts)[rank]);
    node.ranks.push_back(rank);
  }
  if (nodes.size() == 1)
    return found;
  if (mustShare)
    return Error{ExitCode::Io,
                 fmt::format("{} does not see what {} writes to '{}'",
                             team.name(std::next(nodes.begin())->first), team.name(0), directory),
                 "name a directory that all nodes see, or compile with checkpoint.use_node_local_storage, by "
                 "which each node keeps what its ranks hold"};
  const uint32_t first = (*firsts)[team.rank()];
  for (auto &[leader, node] : nodes) {
    if (leader == first)
      found.number = static_cast<uint32_t>(found.nodes.size());
    found.nodes.push_back(std::move(node));
  }
  found.leads = team.rank() == first;
  return found;
}

Result<std::string> spellSaves(const std::string &directory) {
  const Result<StoreListing> listing = listCheckpoints(directory);
  if (!listing)
    return listing.error();
  std::string saves;
  for (const StoredCheckpoint &each : listing->checkpoints)
    saves += each.save + " ";
  return saves;
}

std::set<std::string> savesOfAll(const SaveNode &node, const std::vector<std::string> &lists) {
  std::map<std::string, size_t> counts;
  for (const CheckpointNode &each : node.nodes) {
    std::istringstream words(lists[each.ranks.front()]);
    for (std::string save; words >> save;)
      ++counts[save];
  }
  std::set<std::string> saves;
  for (const auto &[save, count] : counts)
    if (count == node.nodes.size())
      saves.insert(save);
  return saves;
}

} // namespace ds::rt
