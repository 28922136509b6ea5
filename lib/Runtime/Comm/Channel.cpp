//===- Channel.cpp - One sequence of collectives on a transport ----------------------===//
#include "Channel.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {

Status Channel::begin(const char *kind, const char *what) {
  ++sequence;
  rename(kind, what);
  return control.failed() ? Status(noticed(control.failure())) : Status();
}

void Channel::rename(const char *kind, const char *what) {
  this->kind = kind;
  name = what;
}

void Channel::count(CollectiveKind kind, uint32_t ranks, uint64_t bytes, double seconds) {
  CommStat &stat = statFor(kind, ranks);
  ++stat.count;
  stat.bytes += bytes;
  stat.seconds += seconds;
}

/// Names are looked for by address first: a step calls the same few again and again.
CommStat &Channel::statFor(CollectiveKind kind, uint32_t ranks) {
  const auto same = [&](const CommStat &stat) {
    return stat.kind == kind && stat.ranks == ranks && stat.name == name;
  };
  for (const auto &[address, index] : known)
    if (address == name && same(statistics[index]))
      return statistics[index];
  auto found = std::find_if(statistics.begin(), statistics.end(), same);
  if (found == statistics.end())
    found = statistics.insert(found, CommStat{kind, name, ranks});
  known.emplace_back(name, found - statistics.begin());
  return *found;
}

std::string Channel::current() const { return spellCollective(sequence, index, kind, name); }

Error Channel::noticed(const std::string &reason) const {
  const bool said = reason.find(current()) != std::string::npos;
  return Error{ExitCode::Peer, said ? reason : reason + "; noticed in " + current(), ""};
}

} // namespace ds::rt
