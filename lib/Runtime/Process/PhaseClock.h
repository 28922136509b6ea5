//===- PhaseClock.h - What the time before the first step went to ------------------===//
#ifndef DS_LIB_RUNTIME_PROCESS_PHASECLOCK_H
#define DS_LIB_RUNTIME_PROCESS_PHASECLOCK_H

#include "Clock.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace ds::rt {

/// Phases that follow each other without a gap, from when the clock was made.
class PhaseClock {
public:
  using Phases = std::vector<std::pair<std::string, double>>; ///< name and seconds

  /// What has passed since the last phase ended was `name`. A phase that comes again gets longer.
  void end(const char *name) {
    const int64_t now = nowNs();
    const double seconds = static_cast<double>(now - std::exchange(last, now)) * 1e-9;
    const auto known = std::ranges::find(list, name, &Phases::value_type::first);
    if (known == list.end())
      list.emplace_back(name, seconds);
    else
      known->second += seconds;
  }
  /// In the order in which they first ended.
  const Phases &phases() const { return list; }

private:
  int64_t last = nowNs();
  Phases list;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROCESS_PHASECLOCK_H
