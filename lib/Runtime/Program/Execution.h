//===- Execution.h - The executions that a schedule stands for -----------------===//
#ifndef DS_LIB_RUNTIME_PROGRAM_EXECUTION_H
#define DS_LIB_RUNTIME_PROGRAM_EXECUTION_H

#include "ds/Runtime/Program/Messages.h"

#include <map>
#include <span>

namespace ds::rt {

/// One execution of a segment.
struct Execution {
  uint32_t segment = 0;
  uint32_t microBatch = 0;
  bool fills = false; ///< the host fills the inputs of the micro-batch before it
  Lane lane = Lane::Compute;
  LaneCounts after = {}; ///< executions of other lanes that are over before it begins
};

/// The executions of one training step of the first stage (which is the only one of a loaded program), in
/// order. The inputs of a micro-batch are filled before the first one that computes with it. Requires a
/// program that verifyProgram accepts.
std::vector<Execution> executionsOf(const Program &program);
/// The same of any stage of a program of which the segments and schedules are valid.
std::vector<Execution> executionsOf(const Program &program, uint32_t stage);

/// Whether some of them are on another lane than the computing one.
bool hasLanes(std::span<const Execution> step);

/// Numbers the executions of a step that another lane waits for, each once, in the order in which they are
/// waited for.
class LaneEvents {
public:
  explicit LaneEvents(std::span<const Execution> step);

  uint32_t size() const { return static_cast<uint32_t>(numbers.size()); }
  /// Of execution `index` of a lane, from 0; nothing where nobody waits for it.
  std::optional<uint32_t> of(Lane lane, uint32_t index) const;

private:
  std::map<std::pair<Lane, uint32_t>, uint32_t> numbers;
};

/// The segments that update and that no schedule runs: they make updates which a step has left to be made.
struct LateSegments {
  std::vector<uint32_t> rotated; ///< and then what the first of the schedule does, in whose place one runs
  std::vector<uint32_t> flushes; ///< and nothing else
};
LateSegments lateSegmentsOf(const Program &program);

/// As executionsOf, of a step that begins with late updates; nothing where a step leaves none.
std::vector<Execution> lateExecutionsOf(const Program &program);

/// `segment` on its own, with the inputs of `microBatch` where it works on one.
Execution executeAlone(const Program &program, uint32_t segment, uint32_t microBatch);

/// After how many micro-batches the operands and the workspace of `command` are all in the slots they were
/// in. Stops counting where that is known to be more than any program may ask for.
uint64_t slotPeriod(const Program &program, const Command &command);
/// The same for all messages of an exchange.
uint64_t slotPeriod(const Program &program, Exchange exchange);

/// For how many micro-batches `command` is bound, each with other addresses: that for micro-batch m serves as
/// well m + this number. The first command of an exchange is bound for all of it, the others have nothing to
/// bind. Requires a program that verifyProgram accepts.
uint32_t numBindings(const Program &program, uint32_t command);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_EXECUTION_H
