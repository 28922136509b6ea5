//===- Poison.cpp - Fills memory outside planned lifetimes with NaNs ---------------===//
#include "Poison.h"

#include <cstdlib>
#include <cstring>

namespace ds::rt {

bool poisoningRequested() {
  const char *environment = std::getenv("DS_POISON");
#ifdef DS_POISON_BY_DEFAULT
  return !environment || std::strcmp(environment, "0") != 0;
#else
  return environment && std::strcmp(environment, "0") != 0;
#endif
}

/// All ones: a NaN in every floating-point type, and an id that no table has.
static constexpr uint8_t kPoison = 0xff;

Poison::Poison(const Program &program, Fill fill)
    : program(program), fill(std::move(fill)), lifetimes(program.segments.size()) {
  for (uint32_t i = 0; i < program.lifetimes.size(); ++i)
    if (const uint32_t segment = program.lifetimes[i].segment; segment != Lifetime::kWholeStep)
      lifetimes[segment].push_back(i);
}

Status Poison::start() const {
  for (const auto &[space, bytes] : {std::pair(Space::Device, program.stages.front().arenas.device),
                                     {Space::Host, program.stages.front().arenas.host}})
    if (bytes > 0)
      if (Status status = fill({space, 0, bytes}, kPoison); !status)
        return status;
  for (const Lifetime &lifetime : program.lifetimes)
    if (lifetime.segment == Lifetime::kWholeStep)
      if (Status status = fill(lifetime, 0); !status)
        return status;
  return {};
}

Status Poison::before(uint32_t segment, uint32_t t) const {
  for (uint32_t i : lifetimes[segment])
    if (program.lifetimes[i].begin == t)
      if (Status status = fill(program.lifetimes[i], kPoison); !status)
        return status;
  return {};
}

Status Poison::after(uint32_t segment, uint32_t t) const {
  for (uint32_t i : lifetimes[segment])
    if (program.lifetimes[i].end == t + 1)
      if (Status status = fill(program.lifetimes[i], kPoison); !status)
        return status;
  return {};
}

} // namespace ds::rt
