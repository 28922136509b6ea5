//===- BindAttention.cpp - An attention command as runs of cuDNN's engines ----------===//
#include "BindAttention.h"

#include "AttentionRuns.h"
#include "CudnnAttention.h"

#include "ds/Runtime/Program/AttentionPieces.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

namespace ds::rt::cuda {
namespace {

/// A command's operands, and how they are cut.
struct Operands {
  AttentionCall call; ///< of the whole command
  AttentionPieces pieces;
  DType dtype;
  bool gradient;
  bool fast;               ///< a gradient in any order
  std::byte *workspace;    ///< null if none is planned
  uint64_t workspaceBytes; ///< that engines may use, behind the scratch of the pieces
};

Result<Operands> readAttention(const Binding &binding, const Command &command) {
  const Program &p = binding.program;
  const auto function = static_cast<LibraryFn>(command.callee);
  std::vector<const Buffer *> buffers;
  std::vector<View> views;
  for (uint32_t i = 0; i < command.numOperands; ++i) {
    const uint32_t id = p.operands[command.firstOperand + i];
    const Buffer &b = p.buffers[id];
    buffers.push_back(&b);
    views.push_back({binding.address(id), b.shape.data(), b.strides.data(),
                     static_cast<uint32_t>(b.shape.size()), b.dtype});
    if (!isCudnnAligned(views.back().data))
      return Error{ExitCode::Device, "an operand does not lie on 16 bytes", ""};
  }
  const int64_t *params = p.params.data() + command.firstParam;
  const bool planned = command.workspace != UINT32_MAX;
  const uint64_t bytes = planned ? extentBytes(p.buffers[command.workspace]) : 0;
  std::byte *workspace = planned ? binding.address(command.workspace) : nullptr;
  const AttentionParams form = attentionParams({params, command.numParams});
  if (const std::optional<AttentionRefusal> refusal = attentionRefusal(function, buffers, form))
    return Error{ExitCode::Device, fmt::format("cuDNN is not asked for {}", spell(*refusal)), ""};
  const std::optional<AttentionPieces> pieces = attentionPieces(function, buffers, form, bytes);
  if (bytes < pieces->workspaceBytes || reinterpret_cast<uintptr_t>(workspace) % kAttentionAlignment != 0)
    return Error{ExitCode::Device, "no workspace is planned for it", ""};
  return Operands{attentionCall(function, {views.data(), params, command.numOperands, command.numParams, 1}),
                  *pieces,
                  views[0].dtype,
                  function == LibraryFn::AttentionBackward,
                  form.isFast,
                  workspace,
                  bytes - pieces->scratch.bytes()};
}

/// Whether a window hides keys that there are.
bool isWindow(const AttentionCall &c) { return c.before < c.queries + c.keys - 1; }

/// Everything that an engine for `c` depends on besides the device and the library.
std::string keyOf(const Operands &o, const AttentionCall &c) {
  std::string key = fmt::format("attention {} {} causal {} {}x{}x{}x{} of {} heads, {}",
                                o.fast       ? "fast gradient"
                                : o.gradient ? "gradient"
                                             : "forward",
                                spell(o.dtype), c.causal, o.pieces.batch, o.pieces.groups, c.queries, c.keys,
                                c.heads / c.groups, c.size);
  for (const Heads *heads : {&c.q, &c.k, &c.v, &c.out, &c.dout, &c.dq, &c.dk, &c.dv})
    key += fmt::format(" {}/{}/{}", heads->batchStride, heads->headStride, heads->rowStride);
  if (c.lseStrides[1] != c.queries)
    key += fmt::format(" lse {}", c.lseStrides[1]);
  if (c.mask)
    key += fmt::format(" mask {}", fmt::join(c.maskStrides, "/"));
  if (isWindow(c))
    key += " window";
  if (c.cap != 0)
    key += " cap";
  if (c.slopes)
    key += " slopes";
  if (c.generator)
    key += " dropout";
  return key + fmt::format(" workspace {}", o.workspaceBytes);
}

/// Numbers that the library reads when a run is started.
struct Scalars {
  explicit Scalars(const AttentionCall &c)
      : scale(c.scale), cap(c.cap), shift(c.keys - c.queries + c.after),
        reach(c.before + 1 - (c.keys - c.queries)), keptFactor(c.keptFactor), keptShare(1 / c.keptFactor) {}

  float scale, cap;
  int32_t shift, reach; ///< of the last key that a query sees behind its number, of the first before it
  float keptFactor, keptShare;
  float one = 1, minusInfinity = -std::numeric_limits<float>::infinity();
};

/// Where the tensors of one run lie.
void *addressOf(AttentionTensor tensor, const AttentionCall &c, const Operands &o, Scalars &scalars) {
  switch (tensor) {
  case AttentionTensor::Q:
    return c.q.data;
  case AttentionTensor::K:
    return c.k.data;
  case AttentionTensor::V:
    return c.v.data;
  case AttentionTensor::Out:
    return c.out.data;
  case AttentionTensor::Lse:
    return c.lse;
  case AttentionTensor::Dout:
    return c.dout.data;
  case AttentionTensor::Dq:
    return c.dq.data;
  case AttentionTensor::Dk:
    return c.dk.data;
  case AttentionTensor::Dv:
    return c.dv.data;
  case AttentionTensor::Mask:
    return const_cast<float *>(c.mask);
  case AttentionTensor::Kept:
    return o.workspace;
  case AttentionTensor::KeptFactor:
    return &scalars.keptFactor;
  case AttentionTensor::KeptShare:
    return &scalars.keptShare;
  case AttentionTensor::RowSums:
    return o.workspace + o.pieces.scratch.dropMask;
  case AttentionTensor::QuerySums:
    return o.workspace + o.pieces.scratch.dropMask + o.pieces.scratch.rowSums;
  case AttentionTensor::Scale:
    return &scalars.scale;
  case AttentionTensor::One:
    return &scalars.one;
  case AttentionTensor::MinusInfinity:
    return &scalars.minusInfinity;
  case AttentionTensor::Cap:
    return &scalars.cap;
  case AttentionTensor::Slopes:
    return const_cast<float *>(c.slopes);
  case AttentionTensor::Shift:
    return &scalars.shift;
  case AttentionTensor::Reach:
    return &scalars.reach;
  }
  return nullptr;
}

void move(Heads &heads, int64_t elements, DType dtype) {
  if (heads.data)
    heads.data = static_cast<std::byte *>(heads.data) + elements * static_cast<int64_t>(byteSize(dtype));
}

/// The command from a sample and a key head on: the addresses are those of their first rows.
AttentionCall pieceOf(AttentionCall c, int64_t batch, int64_t group, DType dtype) {
  const int64_t head = group * (c.heads / c.groups);
  for (Heads *each : {&c.q, &c.out, &c.dout, &c.dq})
    move(*each, batch * each->batchStride + head * each->headStride, dtype);
  for (Heads *each : {&c.k, &c.v, &c.dk, &c.dv})
    move(*each, batch * each->batchStride + group * each->headStride, dtype);
  c.lse += batch * c.lseStrides[0] + head * c.lseStrides[1];
  if (c.mask)
    c.mask += batch * c.maskStrides[0] + head * c.maskStrides[1];
  if (c.slopes)
    c.slopes += head;
  return c;
}

/// The work of one command, as it grows by runs.
class Work {
public:
  Work(CudnnSession &session, const Binding &binding, const Operands &operands, const LaunchBinder &launch)
      : session(session), binding(binding), operands(operands), launch(launch) {}

  /// Appends runs over all of `call`, whose addresses are the first piece's.
  Status addPieces();
  /// The same of pieces before which something is to be done: what dropout leaves is drawn, and sums that a
  /// fast gradient adds to are cleared.
  Status addPreparedPieces();
  Status prepare(int64_t batch, int64_t group) const;
  /// Appends the blocks of one key head.
  Status addBlocks(const AttentionCall &piece);
  EngineWork finish() { return {std::move(runs), std::move(choices)}; }

private:
  Result<std::unique_ptr<CudnnTask>> begin(const AttentionCall &call);
  Status addRun(CudnnTask &task, const AttentionCall &call, Scalars &scalars) const;
  void append(std::unique_ptr<CudnnTask> task);
  Result<std::unique_ptr<CudaTask>> addParts(const AttentionCall &piece, const AttentionCall &part,
                                             const AttentionBlock &block) const;

  CudnnSession &session;
  const Binding &binding;
  const Operands &operands;
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
      session.find({keyOf(operands, call), operands.workspaceBytes, kVaries, describe});
  if (!engine)
    return engine.error();
  return std::make_unique<CudnnTask>(session, *engine, "computing attention");
}

Status Work::addRun(CudnnTask &task, const AttentionCall &call, Scalars &scalars) const {
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
  const auto scalars = std::make_shared<Scalars>(c);
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
  if (c.generator) {
    Result<std::unique_ptr<CudaTask>> mask = launch(attentionMaskLaunch(
        c, batch, pieces.batch, group * shared, pieces.groups * shared, operands.workspace, operands.dtype));
    if (!mask)
      return mask.error();
    runs->add(std::move(*mask));
  }
  if (operands.fast)
    runs->add(std::make_unique<ClearTask>(
        binding.driver, operands.workspace + pieces.scratch.dropMask + pieces.scratch.rowSums,
        pieces.scratch.querySums));
  return {};
}

Status Work::addPreparedPieces() {
  const AttentionCall &c = operands.call;
  const auto scalars = std::make_shared<Scalars>(c);
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

/// Where the block's part of the gradients goes: packed rows, heads and elements.
AttentionCall blockOf(AttentionCall c, const AttentionBlock &block, const Operands &o) {
  for (Heads *each : {&c.q, &c.out, &c.dout})
    move(*each, block.firstQuery * each->rowStride, o.dtype);
  for (Heads *each : {&c.k, &c.v})
    move(*each, block.firstKey * each->rowStride, o.dtype);
  c.lse += block.firstQuery * c.lseStrides[2];
  if (c.mask)
    c.mask += block.firstQuery * c.maskStrides[2] + block.firstKey;
  c.queries = static_cast<int32_t>(block.queries);
  c.keys = static_cast<int32_t>(block.keys);
  c.causal = block.isDiagonal;
  const AttentionScratch &s = o.pieces.scratch;
  std::byte *part = o.workspace + s.rowSums + s.querySums + s.keySums + s.valueSums;
  const int64_t size = c.size, heads = c.heads / c.groups;
  c.dq = {part, block.queries * heads * size, heads * size, size};
  c.dk = {part + s.queryPart, block.keys * size, size, size};
  c.dv = {part + s.queryPart + s.keyPart, block.keys * size, size, size};
  return c;
}

/// The launch after a block's run: `part` has what the run gave, `piece` the gradients themselves.
Result<std::unique_ptr<CudaTask>> Work::addParts(const AttentionCall &piece, const AttentionCall &part,
                                                 const AttentionBlock &block) const {
  const AttentionScratch &s = operands.pieces.scratch;
  std::byte *sums = operands.workspace + s.rowSums;
  const auto partOf = [&](const Heads &from, Heads to, std::byte *sum, int64_t first, int64_t rows, int heads,
                          bool begins, bool ends) {
    move(to, first * to.rowStride, operands.dtype);
    return AttentionPart{
        from.data, reinterpret_cast<float *>(sum), to.data, rows, to.rowStride, to.headStride, heads, begins,
        ends};
  };
  const uint64_t keyOffset = sizeof(float) * static_cast<uint64_t>(block.firstKey * piece.size);
  const auto keyPart = [&](const Heads &from, const Heads &to, std::byte *sum) {
    return partOf(from, to, sum + keyOffset, block.firstKey, block.keys, 1, block.beginsKeys, block.endsKeys);
  };
  const AttentionPartsCall call{{partOf(part.dq, piece.dq, sums, block.firstQuery, block.queries,
                                        piece.heads / piece.groups, block.beginsQueries, block.endsQueries),
                                 keyPart(part.dk, piece.dk, sums + s.querySums),
                                 keyPart(part.dv, piece.dv, sums + s.querySums + s.keySums)},
                                piece.size};
  return launch(attentionPartsLaunch(call, operands.dtype));
}

Status Work::addBlocks(const AttentionCall &piece) {
  for (const AttentionBlock &block :
       attentionBlocks(piece.queries, piece.keys, piece.causal != 0, *operands.pieces.block)) {
    const AttentionCall call = blockOf(piece, block, operands);
    Result<std::unique_ptr<CudnnTask>> task = begin(call);
    if (!task)
      return task.error();
    const auto scalars = std::make_shared<Scalars>(call);
    (*task)->keep(scalars);
    if (Status status = addRun(**task, call, *scalars); !status)
      return status;
    append(std::move(*task));
    Result<std::unique_ptr<CudaTask>> parts = addParts(piece, call, block);
    if (!parts)
      return parts.error();
    runs->add(std::move(*parts));
  }
  return {};
}

} // namespace

Result<EngineWork> bindAttention(CudnnSession &session, const Binding &binding, const Command &command,
                                 const LaunchBinder &launch) {
  Result<Operands> operands = readAttention(binding, command);
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
      if (Status status = work.addBlocks(pieceOf(c, batch, group, operands->dtype)); !status)
        return status.error();
  return work.finish();
}

} // namespace ds::rt::cuda
