//===- Arena.h - All memory of one space, taken once ---------------------------===//
//
// One anonymous mapping, populated before step 1: overcommit would hide a plan that does not fit until the
// step that first touches the last page. Transparent huge pages are asked for, which the step time notices.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CPU_ARENA_H
#define DS_RUNTIME_CPU_ARENA_H

#include "ds/Support/Error.h"
#include "ds/Support/Mapping.h"

#include <cstddef>
#include <cstdint>

namespace ds::rt {

class Arena {
public:
  /// Maps and populates `bytes`, zeroed and aligned to 64 bytes at least. Fails with ExitCode::DoesNotFit
  /// when the machine (or its control group) has less to give; `what` names the space in the message.
  static Result<Arena> create(uint64_t bytes, const char *what);

  std::byte *data() const { return base; }
  uint64_t size() const { return bytes; }

private:
  std::byte *base = nullptr;
  uint64_t bytes = 0;
  Mapping mapping; ///< from before the base, which is aligned to a huge page
};

} // namespace ds::rt

#endif // DS_RUNTIME_CPU_ARENA_H
