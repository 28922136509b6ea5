//===- Stages.h - Which part of a program a rank runs --------------------------===//
#ifndef DS_LIB_RUNTIME_PROGRAM_STAGES_H
#define DS_LIB_RUNTIME_PROGRAM_STAGES_H

#include "ds/Runtime/Program/Messages.h"

namespace ds::rt {

/// How many stages the mesh is for: its size along the stages' axes, 1 without any.
uint32_t numStages(const Program &program);

/// The stage of `rank`: its position along the stages' axes.
uint32_t stageOf(const Program &program, uint32_t rank);

/// The same in the numbers of `program`, which may be what takeStage has left: it then has stage 0 alone.
uint32_t stageWithin(const Program &program, uint32_t rank);

/// The program with nothing left in it that belongs to other stages: it has one stage, and all that says so
/// says 0. What is shared (buffers, kernels, collectives, events) keeps its numbers; segments, commands and
/// lifetimes are numbered anew where there were several stages. Requires a program that verifyProgram
/// accepts.
Program takeStage(Program program, uint32_t stage);

/// Stages by their coordinates along their axes: whom a stage meets along some of them.
class StageGrid {
public:
  explicit StageGrid(const Program &program);

  uint32_t size() const { return grid.size(); }
  /// Stages that meet along `axes` of the whole mesh, of which only the stages' count.
  uint32_t numMeeting(AxisSet axes) const { return grid.size(along(axes)); }
  /// The stage at `position` of those that `stage` meets along `axes`. Requires a position below their
  /// number.
  uint32_t meeting(uint32_t stage, AxisSet axes, uint32_t position) const;
  /// The lowest rank of a stage.
  uint32_t firstRank(uint32_t stage) const;

private:
  AxisSet along(AxisSet axes) const;

  const Mesh mesh;
  std::vector<unsigned> axes; ///< the stages', by their numbers in the mesh
  Mesh grid;                  ///< of these alone: its ranks are the stages
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_STAGES_H
