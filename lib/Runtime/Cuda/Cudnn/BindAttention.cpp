//===- BindAttention.cpp - An attention command as runs of cuDNN's engines ----------===//
#include "BindAttention.h"

#include "AttentionOperands.h"
#include "AttentionRuns.h"

#include <algorithm>

namespace ds::rt::cuda {
namespace {

/// A block's run: the key head that it is of, its own memory, and which query head of all is its first.
struct BlockRun {
  const AttentionCall &piece, &call;
  const AttentionBlock &block;
  int64_t batch, head;
};

/// The work of one command, as it grows by runs.
class Work {
public:
  Work(CudnnSession &session, const Binding &binding, const AttentionOperands &operands,
       const LaunchBinder &launch)
      : session(session), binding(binding), operands(operands), launch(launch) {}

  /// Appends runs over all of `call`, whose addresses are the first piece's.
  Status addPieces();
  /// The same of pieces before which something is to be done: what dropout leaves is drawn, and sums that a
  /// fast gradient adds to are cleared.
  Status addPreparedPieces();
  Status prepare(int64_t batch, int64_t group) const;
  /// Appends the blocks of one key head.
  Status addBlocks(int64_t batch, int64_t group);
  EngineWork finish() { return {std::move(runs), std::move(choices)}; }

private:
  Result<std::unique_ptr<CudnnTask>> begin(const AttentionCall &call);
  Status addRun(CudnnTask &task, const AttentionCall &call, AttentionScalars &scalars) const;
  void append(std::unique_ptr<CudnnTask> task);
  Status addLaunch(CudaLaunch what) const;
  Status prepareBlock(const BlockRun &run) const;
  Status finishBlock(const BlockRun &run) const;
  AttentionPartsCall partsOf(const BlockRun &run) const;

  CudnnSession &session;
  const Binding &binding;
  const AttentionOperands &operands;
  const LaunchBinder &launch;
  std::unique_ptr<Runs> runs = std::make_unique<Runs>();
  std::vector<Choice> choices;
  std::vector<const CudnnEngine *> known; ///< engines that have a choice
};

Result<std::unique_ptr<CudnnTask>> Work::begin(const AttentionCall &call) {
  const auto describe = [&] {
    const cudnnDataType_t type = operands.dtype == DType::BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
    return describeAttention(session.library(), {call, operands.pieces.batch, operands.pieces.groups, type,
                                                 operands.gradient, operands.fast, call.mask != nullptr});
  };
  Result<std::shared_ptr<CudnnEngine>> engine =
      session.find({engineKey(operands, call), operands.workspaceBytes, kVaries, describe});
  if (!engine)
    return engine.error();
  return std::make_unique<CudnnTask>(session, *engine, "computing attention");
}

Status Work::addRun(CudnnTask &task, const AttentionCall &call, AttentionScalars &scalars) const {
  const auto place = [&](int name) {
    return addressOf(static_cast<AttentionTensor>(name), call, operands, scalars);
  };
  return task.add(place, operands.workspace + operands.pieces.scratch.bytes());
}

/// The first task of an engine is the one that chooses it.
void Work::append(std::unique_ptr<CudnnTask> task) {
  const CudnnEngine *engine = &task->shared();
  if (std::find(known.begin(), known.end(), engine) == known.end()) {
    known.push_back(engine);
    choices.push_back(session.choiceFor(binding.driver, binding.stream, *task));
  }
  runs->add(std::move(task));
}

Status Work::addPieces() {
  const AttentionCall &c = operands.call;
  Result<std::unique_ptr<CudnnTask>> task = begin(c);
  if (!task)
    return task.error();
  const auto scalars = std::make_shared<AttentionScalars>(c, c.keys - c.queries);
  (*task)->keep(scalars);
  for (int64_t batch = 0; batch < c.batch; batch += operands.pieces.batch)
    for (int64_t group = 0; group < c.groups; group += operands.pieces.groups)
      if (Status status = addRun(**task, pieceOf(c, batch, group, operands.dtype), *scalars); !status)
        return status;
  append(std::move(*task));
  return {};
}

Status Work::prepare(int64_t batch, int64_t group) const {
  const AttentionCall &c = operands.call;
  const AttentionPieces &pieces = operands.pieces;
  const int64_t shared = c.heads / c.groups;
  if (c.generator)
    if (Status status = addLaunch(attentionMaskLaunch(
            c, {batch, pieces.batch, group * shared, pieces.groups * shared, 0, c.queries, 0, c.keys},
            operands.workspace, operands.dtype));
        !status)
      return status;
  if (operands.fast)
    runs->add(std::make_unique<ClearTask>(
        binding.driver, operands.workspace + pieces.scratch.dropMask + pieces.scratch.rowSums,
        pieces.scratch.querySums));
  return {};
}

Status Work::addPreparedPieces() {
  const AttentionCall &c = operands.call;
  const auto scalars = std::make_shared<AttentionScalars>(c, c.keys - c.queries);
  for (int64_t batch = 0; batch < c.batch; batch += operands.pieces.batch)
    for (int64_t group = 0; group < c.groups; group += operands.pieces.groups) {
      Result<std::unique_ptr<CudnnTask>> task = begin(c);
      if (!task)
        return task.error();
      (*task)->keep(scalars);
      if (Status status = addRun(**task, pieceOf(c, batch, group, operands.dtype), *scalars); !status)
        return status;
      if (Status status = prepare(batch, group); !status)
        return status;
      append(std::move(*task));
    }
  return {};
}

/// Memory of a block: of its part of the gradients packed rows, heads and elements.
AttentionCall blockOf(AttentionCall c, const AttentionBlock &block, const AttentionOperands &o) {
  for (Heads *each : {&c.q, &c.out, &c.dout, &c.dq})
    move(*each, block.firstQuery * each->rowStride, o.dtype);
  for (Heads *each : {&c.k, &c.v})
    move(*each, block.firstKey * each->rowStride, o.dtype);
  c.lse += block.firstQuery * c.lseStrides[2];
  if (c.mask)
    c.mask += block.firstQuery * c.maskStrides[2] + block.firstKey;
  c.queries = static_cast<int32_t>(block.queries);
  c.keys = static_cast<int32_t>(block.keys);
  c.causal = block.isCausal;
  if (!o.gradient)
    return c;
  const AttentionScratch &s = o.pieces.scratch;
  std::byte *part = o.workspace + s.dropMask + s.rowSums + s.querySums + s.keySums + s.valueSums;
  const int64_t size = c.size, heads = c.heads / c.groups;
  if (!o.pieces.isByQueries)
    c.dq = {part, block.queries * heads * size, heads * size, size};
  c.dk = {part + s.queryPart, block.keys * size, size, size};
  c.dv = {part + s.queryPart + s.keyPart, block.keys * size, size, size};
  if (s.blockLse > 0) {
    c.lse = reinterpret_cast<float *>(part + s.queryPart + s.keyPart + s.valuePart);
    c.lseStrides[0] = heads * block.queries;
    c.lseStrides[1] = block.queries;
    c.lseStrides[2] = 1;
  }
  return c;
}

Status Work::addLaunch(CudaLaunch what) const {
  Result<std::unique_ptr<CudaTask>> task = launch(std::move(what));
  if (task)
    runs->add(std::move(*task));
  return task ? Status() : task.error();
}

/// What dropout leaves of a block is drawn, and where slopes count from the block's first rows and columns,
/// the logarithms of the rows' sums do too.
Status Work::prepareBlock(const BlockRun &run) const {
  const auto &[piece, call, block, batch, head] = run;
  const int64_t shared = piece.heads / piece.groups;
  if (piece.generator)
    if (Status status = addLaunch(attentionMaskLaunch(
            piece, {batch, 1, head, shared, block.firstQuery, block.queries, block.firstKey, block.keys},
            operands.workspace, operands.dtype));
        !status)
      return status;
  if (!operands.gradient || !piece.slopes)
    return {};
  const float *lse = piece.lse + block.firstQuery * piece.lseStrides[2];
  return addLaunch(attentionShiftLaunch({lse,
                                         call.lse,
                                         piece.slopes,
                                         {piece.lseStrides[1], piece.lseStrides[2]},
                                         {call.lseStrides[1], call.lseStrides[2]},
                                         static_cast<int32_t>(shared),
                                         call.queries,
                                         static_cast<float>(block.own)}));
}

/// After a block's run the gradient's parts are added up; forward, logarithms count from the first rows
/// again.
Status Work::finishBlock(const BlockRun &run) const {
  const auto &[piece, call, block, batch, head] = run;
  if (operands.gradient)
    return addLaunch(attentionPartsLaunch(partsOf(run), operands.dtype));
  if (!piece.slopes)
    return {};
  const int64_t strides[] = {call.lseStrides[1], call.lseStrides[2]};
  return addLaunch(attentionShiftLaunch({call.lse,
                                         call.lse,
                                         piece.slopes,
                                         {strides[0], strides[1]},
                                         {strides[0], strides[1]},
                                         piece.heads / piece.groups,
                                         call.queries,
                                         -static_cast<float>(block.own)}));
}

/// What a run gave, and where it is added up.
AttentionPartsCall Work::partsOf(const BlockRun &run) const {
  const auto &[piece, part, block, batch, head] = run;
  const AttentionScratch &s = operands.pieces.scratch;
  std::byte *sums = operands.workspace + s.dropMask + s.rowSums;
  const auto partOf = [&](const Heads &from, Heads to, std::byte *sum, int64_t first, int64_t rows, int heads,
                          int64_t summed, int64_t ended) {
    move(to, first * to.rowStride, operands.dtype);
    return AttentionPart{
        from.data, reinterpret_cast<float *>(sum), to.data, rows, to.rowStride, to.headStride, summed, ended,
        heads};
  };
  const uint64_t keyOffset = sizeof(float) * static_cast<uint64_t>(block.firstKey * piece.size);
  const auto keyPart = [&](const Heads &from, const Heads &to, std::byte *sum) {
    return partOf(from, to, sum + keyOffset, block.firstKey, block.keys, 1, block.summedKeys,
                  block.endedKeys);
  };
  AttentionPartsCall call{{{},
                           keyPart(part.dk, piece.dk, sums + s.querySums),
                           keyPart(part.dv, piece.dv, sums + s.querySums + s.keySums)},
                          piece.size};
  if (!operands.pieces.isByQueries)
    call.parts[0] =
        partOf(part.dq, piece.dq, sums, block.firstQuery, block.queries, piece.heads / piece.groups,
               block.beginsQueries ? 0 : block.queries, block.endsQueries ? block.queries : 0);
  else
    call.parts[0].heads = 1; // of no rows
  return call;
}

Status Work::addBlocks(int64_t batch, int64_t group) {
  const AttentionCall piece = pieceOf(operands.call, batch, group, operands.dtype);
  const int64_t head = group * (piece.heads / piece.groups), size = *operands.pieces.block;
  for (const AttentionBlock &block :
       operands.pieces.isByQueries ? attentionBands(operands.sizes, operands.form, size)
                                   : attentionBlocks(piece.queries, piece.keys, piece.causal != 0, size)) {
    const AttentionCall call = blockOf(piece, block, operands);
    const BlockRun run{piece, call, block, batch, head};
    Result<std::unique_ptr<CudnnTask>> task = begin(call);
    if (!task)
      return task.error();
    const auto scalars = std::make_shared<AttentionScalars>(call, block.own);
    (*task)->keep(scalars);
    if (Status status = addRun(**task, call, *scalars); !status)
      return status;
    if (Status status = prepareBlock(run); !status)
      return status;
    append(std::move(*task));
    if (Status status = finishBlock(run); !status)
      return status;
  }
  return {};
}

} // namespace

Result<EngineWork> bindAttention(CudnnSession &session, const Binding &binding, const Command &command,
                                 const LaunchBinder &launch) {
  Result<AttentionOperands> operands = readAttention(binding, command);
  if (!operands)
    return operands.error();
  Work work(session, binding, *operands, launch);
  const AttentionCall &c = operands->call;
  if (!operands->pieces.block) {
    if (Status status = operands->fast || c.generator ? work.addPreparedPieces() : work.addPieces(); !status)
      return status.error();
    return work.finish();
  }
  for (int64_t batch = 0; batch < c.batch; ++batch)
    for (int64_t group = 0; group < c.groups; ++group)
      if (Status status = work.addBlocks(batch, group); !status)
        return status.error();
  return work.finish();
}

} // namespace ds::rt::cuda
