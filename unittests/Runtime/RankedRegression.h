//===- RankedRegression.h - A program that cuts its parameter among the ranks --------===//
#ifndef DS_UNITTESTS_RUNTIME_RANKEDREGRESSION_H
#define DS_UNITTESTS_RUNTIME_RANKEDREGRESSION_H

#include "RunFixture.h"

namespace ds::rt::test {

inline constexpr uint8_t kGatherStream = 1, kReduceStream = 2;

/// A regression on several ranks: those along dp have a part of the 8 rows each, the sum over rows is a sum
/// over them too. Ranks along other axes do the same again, and find that they agree.
class RankedRegression {
public:
  explicit RankedRegression(uint32_t world) : RankedRegression(Mesh{{"dp", world}}) {}
  explicit RankedRegression(const Mesh &mesh)
      : others(mesh.all() - mesh.find("dp").value()), world(mesh.size(mesh.find("dp").value())),
        rows(kRows / world) {
    b.ranks(mesh);
    b.program.numEvents = 6;
    const int64_t part = (kOut * kIn + world - 1) / world;
    of.x = b.input("x", {rows, kIn});
    of.t = b.input("t", {rows, kOut});
    of.shard = b.keep({part});
    of.gradShard = b.keep({part});
    of.full = b.place({part * world});
    of.grad = b.place({part * world});
    of.y = b.place({rows, kOut});
    of.d = b.place({rows, kOut});
    of.w = b.view(of.full, 0, {kOut, kIn}, {kIn, 1});
    of.g = b.view(of.grad, 0, {kOut, kIn}, {kIn, 1});
    of.workspace = keepWorkspace(b, 1 << 16);
    b.sharded("w", {kOut, kIn}, of.shard, 0, {Init::Kind::Normal, 0.0, 0.5});
    b.program.states[0].aliases = {"tied.w"};
    addStep(b.output("loss"), part);
    addEvaluation(b.output("eval_loss"), part);
    b.program.microBatch = static_cast<uint32_t>(rows);
    b.program.image = readBytes(DS_TEST_KERNELS);
  }
  ProgramBuilder b;

private:
  /// Gathers w on its stream, computes d and the mean of its squares over all ranks.
  void forward(uint32_t loss, uint16_t event, int64_t part) {
    using enum CommandKind;
    b.communicate(CollectiveKind::AllGather, Reduction::None, static_cast<uint64_t>(part),
                  {of.shard, of.full}, kGatherStream);
    b.command(RecordEvent, event, {}, {}, kGatherStream);
    b.command(WaitEvent, event, {}, {});
    b.library(LibraryFn::Matmul, {of.x, of.w, of.y}, {0, 1, 0, 0}).workspace = of.workspace;
    b.launch("ds_subtract", rows * kOut, {of.y, of.t, of.d});
    b.launch("ds_mean_square", 1, {of.d, loss}, {rows * kOut});
    b.communicate(CollectiveKind::AllReduce, Reduction::Sum, 1, {loss, loss});
    b.launch("ds_divide", 1, {loss}, {1, world});
    if (!others.isEmpty())
      b.communicateAlong(others, CollectiveKind::AllReduce, Reduction::Max, 1, {loss, loss});
  }
  void addStep(uint32_t loss, int64_t part) {
    using enum CommandKind;
    forward(loss, 0, part);
    b.library(LibraryFn::Matmul, {of.d, of.x, of.g}, {1, 0, 0, 0}).workspace = of.workspace;
    b.command(RecordEvent, 1, {}, {});
    b.command(WaitEvent, 1, {}, {}, kReduceStream);
    b.communicate(CollectiveKind::ReduceScatter, Reduction::Sum, static_cast<uint64_t>(part),
                  {of.grad, of.gradShard}, kReduceStream);
    b.command(RecordEvent, 2, {}, {}, kReduceStream);
    b.command(WaitEvent, 2, {}, {});
    b.launch("ds_descend", 0, {of.shard, of.gradShard}, {part, 50});
    b.segment();
    const uint32_t more = others.isEmpty() ? 0 : 1; // commands of the forward
    for (uint32_t buffer : {of.full, of.y, of.d})
      b.live(buffer, 0, 0, 9 + more);
    b.live(of.grad, 0, 8 + more, 13 + more);
  }
  void addEvaluation(uint32_t loss, int64_t part) {
    forward(loss, 3, part);
    b.program.stages[0].evaluation = static_cast<int32_t>(b.segment({Work::Evaluation}, "evaluation"));
    for (uint32_t buffer : {of.full, of.y, of.d})
      b.live(buffer, 1, 0, others.isEmpty() ? 8 : 9);
  }

  const AxisSet others;
  const uint32_t world; ///< along dp
  const int64_t rows;
  /// Numbers of its buffers.
  struct {
    uint32_t x, t, shard, gradShard, full, grad, y, d, w, g, workspace;
  } of;
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_RANKEDREGRESSION_H
