//===- HostTeam.cpp - The threads that work for the host stream -------------------===//
#include "HostTeam.h"

#include "ds/Support/Processors.h"
#include "ds/Support/RunTool.h"

#include <algorithm>
#include <pthread.h>
#include <sched.h>
#include <system_error>

namespace ds::rt {

/// The processors of this process but the first, one for each rank that shares them; none where it cannot
/// tell.
static cpu_set_t othersThanFirst() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0)
    return set;
  const ProcessorShare share = processorShare();
  const uint32_t sharing = share.mask < share.parentMask ? 1 : share.localRanks; // else each has its own
  uint32_t left = std::min<uint32_t>(sharing, CPU_COUNT(&set) / 2);
  for (int processor = 0; processor < CPU_SETSIZE && left > 0; ++processor)
    if (CPU_ISSET(processor, &set)) {
      CPU_CLR(processor, &set);
      --left;
    }
  return set;
}

Result<std::unique_ptr<HostTeam>> HostTeam::start(uint32_t threads, bool spares) try {
  std::unique_ptr<HostTeam> team(new HostTeam);
  const cpu_set_t others = spares ? othersThanFirst() : cpu_set_t{};
  for (uint32_t index = 1; index < threads; ++index) {
    team->workers.emplace_back([self = team.get(), index] { self->workerLoop(index); });
    if (spares) // a wish; an empty set is refused
      ::pthread_setaffinity_np(team->workers.back().native_handle(), sizeof others, &others);
  }
  return team;
} catch (const std::system_error &error) {
  return noThread(error.code().value());
}

HostTeam::~HostTeam() {
  stopping = true;
  ++epoch;
  epoch.notify_all();
  for (std::thread &worker : workers)
    worker.join();
}

void HostTeam::run(uint32_t wanted, void *with, Body what) {
  count = std::min<uint32_t>(wanted, workers.size() + 1);
  context = with;
  body = what;
  working = static_cast<uint32_t>(workers.size());
  ++epoch;
  epoch.notify_all();
  body(context, 0, count);
  for (uint32_t left; (left = working.load()) != 0;)
    working.wait(left);
}

void HostTeam::workerLoop(uint32_t index) {
  for (uint32_t seen = 0;;) {
    epoch.wait(seen);
    seen = epoch.load();
    if (stopping)
      return;
    if (index < count)
      body(context, index, count);
    if (--working == 0)
      working.notify_all();
  }
}

} // namespace ds::rt
