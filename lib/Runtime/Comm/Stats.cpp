//===- Stats.cpp - What collectives have cost ------------------------------------===//
#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Program/Program.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace ds::rt {

double CommStat::algorithmBandwidth() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }

double CommStat::busBandwidth() const {
  const double n = ranks;
  switch (traitsOf(kind).traffic) {
  case Traffic::Twice:
    return algorithmBandwidth() * 2 * (n - 1) / n;
  case Traffic::Others:
    return algorithmBandwidth() * (n - 1) / n;
  case Traffic::Once:
  case Traffic::Nothing:
    return algorithmBandwidth();
  }
  return 0;
}

std::string describe(const std::vector<CommStat> &stats, size_t rows) {
  if (stats.empty())
    return {};
  std::vector<CommStat> sorted = stats;
  std::sort(sorted.begin(), sorted.end(), [](const CommStat &a, const CommStat &b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.name < b.name;
  });
  const size_t shown = std::min(sorted.size(), rows);
  size_t width = 24;
  for (const CommStat &stat : std::span(sorted).first(shown))
    width = std::max(width, stat.name.size());
  std::string text = fmt::format("{:<16} {:<{}} {:>5} {:>8} {:>11} {:>9} {:>10} {:>10}\n", "collective",
                                 "name", width, "ranks", "count", "MiB", "seconds", "alg GB/s", "bus GB/s");
  for (const CommStat &stat : std::span(sorted).first(shown))
    text +=
        fmt::format("{:<16} {:<{}} {:>5} {:>8} {:>11.2f} {:>9.3f} {:>10.3f} {:>10.3f}\n", spell(stat.kind),
                    stat.name, width, stat.ranks, stat.count, static_cast<double>(stat.bytes) / (1 << 20),
                    stat.seconds, stat.algorithmBandwidth() * 1e-9, stat.busBandwidth() * 1e-9);
  if (shown == sorted.size())
    return text;
  CommStat rest{};
  for (const CommStat &stat : std::span(sorted).subspan(shown)) {
    rest.count += stat.count;
    rest.bytes += stat.bytes;
    rest.seconds += stat.seconds;
  }
  return text + fmt::format("{:<16} {:<{}} {:>5} {:>8} {:>11.2f} {:>9.3f}\n", "others",
                            fmt::format("{} (--summary all)", sorted.size() - shown), width, "", rest.count,
                            static_cast<double>(rest.bytes) / (1 << 20), rest.seconds);
}

} // namespace ds::rt
