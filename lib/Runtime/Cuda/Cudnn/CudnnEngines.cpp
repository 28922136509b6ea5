//===- CudnnEngines.cpp - The engines of cuDNN that commands run on ------------------===//
#include "CudnnEngines.h"

#include "CudnnAttention.h"
#include "CudnnConvolution.h"
#include "CudnnSession.h"

#include "../../../../kernels/CudaCommands.h"

#include "ds/Kernels/Kernels.h"
#include "ds/Runtime/Program/AttentionPieces.h"
#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <optional>
#include <vector>

namespace ds::rt::cuda {
namespace {

/// A command's operands, and how they are cut.
struct Operands {
  AttentionCall call; ///< with the addresses of the first piece
  AttentionPieces pieces;
  DType dtype;
  bool gradient;
  std::byte *workspace;    ///< null if none is planned
  uint64_t workspaceBytes; ///< that engines may use, behind the row sums
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
  const std::optional<AttentionPieces> pieces = attentionPieces(function, buffers, form, bytes);
  if (!pieces)
    return Error{ExitCode::Device, fmt::format("not for {} of this form", spell(views[0].dtype)), ""};
  if (bytes < pieces->workspaceBytes || reinterpret_cast<uintptr_t>(workspace) % kAttentionAlignment != 0)
    return Error{ExitCode::Device, "no workspace is planned for it", ""};
  return Operands{attentionCall(function, {views.data(), params, command.numOperands, command.numParams, 1}),
                  *pieces,
                  views[0].dtype,
                  function == LibraryFn::AttentionBackward,
                  workspace,
                  bytes - pieces->rowSumBytes};
}

/// Everything that an engine depends on besides the device and the library.
std::string keyOf(const Operands &o) {
  const AttentionCall &c = o.call;
  std::string key = fmt::format("attention {} {} causal {} {}x{}x{}x{} of {} heads, {}",
                                o.gradient ? "gradient" : "forward", spell(o.dtype), c.causal, o.pieces.batch,
                                o.pieces.groups, c.queries, c.keys, c.heads / c.groups, c.size);
  for (const Heads *heads : {&c.q, &c.k, &c.v, &c.out, &c.dout, &c.dq, &c.dk, &c.dv})
    key += fmt::format(" {}/{}/{}", heads->batchStride, heads->headStride, heads->rowStride);
  if (c.mask)
    key += fmt::format(" mask {}", fmt::join(c.maskStrides, "/"));
  return key + fmt::format(" workspace {}", o.workspaceBytes);
}

std::string keyOf(const ConvForm &f, DType dtype, bool tf32, uint64_t workspaceBytes) {
  std::string key = fmt::format("convolution {} {}{}{} batch {} channels {} to {} in {} groups",
                                static_cast<int>(f.kind), spell(dtype), tf32 ? " tf32" : "",
                                f.bias ? " bias" : "", f.batch, f.inputChannels, f.outputChannels, f.groups);
  for (int32_t d = 0; d < f.dims; ++d)
    key += fmt::format(" {}/{} stride {} padding {} dilation {}", f.input[d], f.window[d], f.stride[d],
                       f.padding[d], f.dilation[d]);
  return key + fmt::format(" workspace {}", workspaceBytes);
}

/// Numbers that the library reads when a piece is started.
struct Scalars {
  float scale;
  int32_t shift; ///< of the diagonal
  float one = 1, minusInfinity = -std::numeric_limits<float>::infinity();
};

/// Where tensors of the piece that starts at this sample and key head lie.
class Addresses {
public:
  Addresses(const Operands &o, int64_t batch, int64_t group) : o(o), batch(batch), group(group) {}

  void *of(AttentionTensor tensor, void *rowSums, Scalars &scalars) const {
    const AttentionCall &c = o.call;
    const int64_t head = group * (c.heads / c.groups);
    switch (tensor) {
    case AttentionTensor::Q:
      return at(c.q, head);
    case AttentionTensor::K:
      return at(c.k, group);
    case AttentionTensor::V:
      return at(c.v, group);
    case AttentionTensor::Out:
      return at(c.out, head);
    case AttentionTensor::Lse:
      return c.lse + batch * c.lseStrides[0] + head * c.lseStrides[1];
    case AttentionTensor::Dout:
      return at(c.dout, head);
    case AttentionTensor::Dq:
      return at(c.dq, head);
    case AttentionTensor::Dk:
      return at(c.dk, group);
    case AttentionTensor::Dv:
      return at(c.dv, group);
    case AttentionTensor::Mask:
      return const_cast<float *>(c.mask + batch * c.maskStrides[0] + head * c.maskStrides[1]);
    case AttentionTensor::RowSums:
      return rowSums;
    case AttentionTensor::Scale:
      return &scalars.scale;
    case AttentionTensor::One:
      return &scalars.one;
    case AttentionTensor::MinusInfinity:
      return &scalars.minusInfinity;
    case AttentionTensor::Shift:
      return &scalars.shift;
    }
    return nullptr;
  }

private:
  void *at(const Heads &heads, int64_t head) const {
    return static_cast<std::byte *>(heads.data) +
           (batch * heads.batchStride + head * heads.headStride) * byteSize(o.dtype);
  }

  const Operands &o;
  int64_t batch, group;
};

/// The task with what it waits for.
EngineWork withChoice(const CudnnSession &session, const Binding &binding, std::unique_ptr<CudnnTask> task) {
  Choice choice = session.choiceFor(binding.driver, binding.stream, *task);
  return {std::move(task), std::move(choice)};
}

Result<EngineWork> bindAttention(CudnnSession &session, const Binding &binding, const Command &command) {
  Result<Operands> operands = readAttention(binding, command);
  if (!operands)
    return operands.error();
  const auto describe = [&] {
    const cudnnDataType_t type = operands->dtype == DType::BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
    return describeAttention(session.library(),
                             {operands->call, operands->pieces.batch, operands->pieces.groups, type,
                              operands->gradient, operands->call.mask != nullptr});
  };
  const AttentionCall &c = operands->call;
  const auto scalars = std::make_shared<Scalars>(Scalars{c.scale, c.keys - c.queries});
  void *workspace = operands->workspace + operands->pieces.rowSumBytes;
  const auto placesOf = [&](int64_t batch, int64_t group) {
    return [&, addresses = Addresses(*operands, batch, group)](int name) {
      return addresses.of(static_cast<AttentionTensor>(name), operands->workspace, *scalars);
    };
  };
  Result<std::shared_ptr<CudnnEngine>> engine =
      session.find({keyOf(*operands), operands->workspaceBytes, kVaries, describe});
  if (!engine)
    return engine.error();
  auto task = std::make_unique<CudnnTask>(session, *engine, "computing attention");
  task->keep(scalars);
  for (int64_t batch = 0; batch < c.batch; batch += operands->pieces.batch)
    for (int64_t group = 0; group < c.groups; group += operands->pieces.groups)
      if (Status status = task->add(placesOf(batch, group), workspace); !status)
        return status.error();
  return withChoice(session, binding, std::move(task));
}

/// A convolution needs no cutting: its workspace is about as large as its operands.
Result<EngineWork> bindConvolution(CudnnSession &session, const Binding &binding, const Command &command) {
  const Program &p = binding.program;
  std::vector<const Buffer *> buffers;
  std::vector<std::byte *> places;
  for (uint32_t i = 0; i < command.numOperands; ++i) {
    const uint32_t id = p.operands[command.firstOperand + i];
    buffers.push_back(&p.buffers[id]);
    places.push_back(binding.address(id));
    if (!isCudnnAligned(places.back()))
      return Error{ExitCode::Device, "an operand does not lie on 16 bytes", ""};
  }
  const DType dtype = buffers[0]->dtype;
  const ConvForm form =
      describeConv(static_cast<LibraryFn>(command.callee), buffers, p.params.data() + command.firstParam);
  if (command.workspace == UINT32_MAX)
    return Error{ExitCode::Device, "no workspace is planned for it", ""};
  const bool tf32 = allowsTf32(p);
  const uint64_t bytes = extentBytes(p.buffers[command.workspace]);
  const auto place = [&](int operand) { return places[static_cast<size_t>(operand)]; };
  void *workspace = binding.address(command.workspace);
  Result<std::shared_ptr<CudnnEngine>> engine =
      session.find({keyOf(form, dtype, tf32, bytes), bytes, unwantedForConvolutions(dtype, tf32),
                    [&] { return describeConvolution(session.library(), form, dtype); }});
  if (!engine)
    return engine.error();
  auto task = std::make_unique<CudnnTask>(session, *engine, "computing a convolution");
  if (Status status = task->add(place, workspace); !status)
    return status.error();
  return withChoice(session, binding, std::move(task));
}

} // namespace

struct CudnnEngines::State {
  std::optional<Error> failure; ///< why there is no library
  std::unique_ptr<CudnnSession> session;
};

CudnnEngines::CudnnEngines(const Hardware &hardware) : state(std::make_unique<State>()) {
  Result<std::unique_ptr<CudnnSession>> opened = CudnnSession::open(hardware);
  if (opened)
    state->session = std::move(*opened);
  else
    state->failure = opened.error();
}
CudnnEngines::~CudnnEngines() = default;

std::string CudnnEngines::version() const { return state->session->library().version(); }

Result<EngineWork> CudnnEngines::bind(const Binding &binding, const Command &command) {
  if (state->failure)
    return *state->failure;
  return isConvolution(static_cast<LibraryFn>(command.callee))
             ? bindConvolution(*state->session, binding, command)
             : bindAttention(*state->session, binding, command);
}

} // namespace ds::rt::cuda
