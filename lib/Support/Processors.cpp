//===- Processors.cpp - How many processors are left for this process -------------===//
#include "ds/Support/Processors.h"

#include "ds/Support/ControlGroups.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sched.h>
#include <sstream>
#include <unistd.h>

namespace ds {

/// Processors that the process may use; 0 where it cannot be asked.
static uint32_t maskOf(pid_t process) {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(process, sizeof set, &set) == 0 ? static_cast<uint32_t>(CPU_COUNT(&set)) : 0;
}

uint32_t processorsLeft(const ProcessorShare &share) {
  const uint32_t all = std::max(share.mask, share.parentMask),
                 ranks = std::max<uint32_t>(share.localRanks, 1);
  uint32_t left = std::min(share.mask, all / ranks);
  if (share.quota > 0) // what is begun of a processor counts: a thread on it still brings something
    left = std::min(left, static_cast<uint32_t>(std::min(std::ceil(share.quota / ranks), 1e6)));
  return std::max<uint32_t>(left, 1);
}

double processorQuota(const std::string &root) {
  double least = 0;
  const auto take = [&](long long quota, long long period) {
    const double processors = static_cast<double>(quota) / static_cast<double>(period);
    if (quota > 0 && period > 0 && (least == 0 || processors < least))
      least = processors;
  };
  for (const GroupFile &file : readGroupLimit({"cpu", "cpu.max", ""}, root)) {
    std::istringstream words(file.line); // version 2: "200000 100000", or "max 100000"
    std::string quota, period;
    words >> quota >> period;
    if (!period.empty())
      take(groupNumber(quota), groupNumber(period));
  }
  // Version 1 has the two in files of their own, side by side; -1 stands for none.
  const std::vector<GroupFile> quotas = readGroupLimit({"cpu", "", "cpu.cfs_quota_us"}, root),
                               periods = readGroupLimit({"cpu", "", "cpu.cfs_period_us"}, root);
  if (quotas.size() == periods.size())
    for (size_t i = 0; i < quotas.size(); ++i)
      take(groupNumber(quotas[i].line), groupNumber(periods[i].line));
  return least;
}

uint32_t localRanks() {
  const auto number = [](const char *name) {
    const char *value = std::getenv(name);
    std::string text = value ? value : "";
    text.erase(std::min(text.find("(x"), text.size())); // Slurm's "4(x2)": four on each of two machines
    const long long ranks = groupNumber(text);
    return ranks >= 1 && ranks <= 1 << 20 ? static_cast<uint32_t>(ranks) : 0;
  };
  if (const char *oneHost = std::getenv("DS_ONE_HOST"); oneHost && *oneHost == '1')
    return std::max<uint32_t>(number("DS_WORLD"), 1);
  for (const char *name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_TASKS_PER_NODE"})
    if (const uint32_t ranks = number(name))
      return ranks;
  return 1;
}

ProcessorShare processorShare() {
  ProcessorShare share;
  share.mask = std::max<uint32_t>(maskOf(0), 1);
  share.parentMask = std::max(share.mask, maskOf(::getppid()));
  share.localRanks = localRanks();
  share.quota = processorQuota();
  return share;
}

} // namespace ds
