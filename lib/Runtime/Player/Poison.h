//===- Poison.h - Fills memory outside planned lifetimes with NaNs -----------------===//
//
// A command that reads what is not alive any more, or not yet, reads NaNs: a wrong plan changes numbers.
// Commands must then run in issue order, one after another, for that is the order that lifetimes speak of.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_PLAYER_POISON_H
#define DS_LIB_RUNTIME_PLAYER_POISON_H

#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include <functional>
#include <vector>

namespace ds::rt {

/// Whether this build and environment ask for poisoning: the environment variable DS_POISON, or the build
/// option of that name.
bool poisoningRequested();

class Poison {
public:
  /// Sets every byte of [lifetime.offset, lifetime.offset + lifetime.bytes) of an arena, at once.
  using Fill = std::function<Status(const Lifetime &lifetime, uint8_t byte)>;

  /// `program` outlives this.
  Poison(const Program &program, Fill fill);

  /// Poisons the arenas, but for the values of the whole step, which become 0.
  Status start() const;
  /// Poisons what begins to live with command `t` of a segment, before it runs, or what ends with it, after.
  Status before(uint32_t segment, uint32_t t) const;
  Status after(uint32_t segment, uint32_t t) const;

private:
  const Program &program;
  Fill fill;
  std::vector<std::vector<uint32_t>> lifetimes; ///< by segment
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PLAYER_POISON_H
