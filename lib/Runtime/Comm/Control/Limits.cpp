//===- Limits.cpp - What the operating system lets a job have ---------------------===//
#include "Limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/resource.h>

namespace ds::rt {
namespace {

/// What a rank has open besides its connections: program, data, held-out data, outputs, plugins, and what is
/// open for a moment only.
constexpr uint64_t kRankFiles = 12;
/// The socket that listens, and the event that ends the listening thread.
constexpr uint64_t kControlFiles = 2;
/// Of one channel of Gloo besides its connections: what its loop waits with. Of all: what a pair is made
/// with, and, for each peer, a connection that has come before it is wanted.
constexpr uint64_t kGlooFiles = 1, kPairFiles = 3;

std::string spellLimit(rlim_t limit) { return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit); }

} // namespace

uint64_t descriptorsOfRank(uint32_t world, uint32_t channels, bool gloo) {
  const uint64_t peers = world - 1;
  const uint64_t common = kRankFiles + kControlFiles + peers;
  return common + (gloo ? channels * (kGlooFiles + peers) + kPairFiles + peers : channels);
}

uint64_t openDescriptors() {
  uint64_t count = 0;
  if (const std::unique_ptr<DIR, int (*)(DIR *)> list(::opendir("/proc/self/fd"), ::closedir); list) {
    while (const dirent *entry = ::readdir(list.get()))
      count += entry->d_name[0] != '.';
    return count - 1; // that of the list itself
  }
  constexpr int kMostLookedAt = 65536; // without /proc, or with none left for it
  for (int fd = 0; fd < kMostLookedAt; ++fd)
    count += ::fcntl(fd, F_GETFD) >= 0;
  return count;
}

Status reserveDescriptors(uint64_t more, const std::string &what) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return {};
  const uint64_t open = openDescriptors(), need = open + more;
  if (limit.rlim_cur >= need)
    return {};
  const rlim_t soft = limit.rlim_cur;
  limit.rlim_cur = need;
  if (limit.rlim_max >= need && ::setrlimit(RLIMIT_NOFILE, &limit) == 0)
    return {};
  return Error{ExitCode::Io,
               fmt::format("{} needs {} file descriptors ({} are open already), but the limit is {}", what,
                           need, open, spellLimit(std::max(soft, limit.rlim_max))),
               fmt::format("raise the limit with `ulimit -n {}`, or start fewer ranks", need)};
}

bool raiseProcessLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
    return false;
  limit.rlim_cur = limit.rlim_max;
  return ::setrlimit(RLIMIT_NPROC, &limit) == 0;
}

std::string processHint() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) != 0)
    limit.rlim_cur = RLIM_INFINITY;
  return fmt::format("this user may have {} processes and threads (`ulimit -u`), and a container may have a "
                     "limit of its own (pids.max): raise it, or start fewer ranks",
                     spellLimit(limit.rlim_cur));
}

} // namespace ds::rt
