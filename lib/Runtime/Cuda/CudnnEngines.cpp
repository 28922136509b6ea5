//===- CudnnEngines.cpp - The engines of cuDNN that attention runs on -----------------===//
#include "CudnnEngines.h"

#include "AlgorithmCache.h"
#include "CudnnAttention.h"
#include "CudnnPlan.h"

#include "ds/Runtime/AttentionPieces.h"
#include "ds/Runtime/Kernels.h"
#include "ds/Runtime/ProgramFile.h"
#include "ds/Support/Environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ds::rt::cuda {
namespace {

/// A graph and its engine.
struct Engine {
  AttentionGraph graph;
  CudnnPlan plan;
};

/// A command's operands, and how they are cut.
struct Operands {
  AttentionCall call; ///< with the addresses of the first piece
  AttentionPieces pieces;
  DType dtype;
  bool gradient;
  std::byte *workspace;    ///< null if none is planned
  uint64_t workspaceBytes; ///< that engines may use, behind the row sums
};

/// What engines want of addresses.
bool isAligned(const void *address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

Result<Operands> readOperands(const Binding &binding, const Command &command) {
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
    if (!isAligned(views.back().data))
      return Error{ExitCode::Device, "an operand does not lie on 16 bytes", ""};
  }
  const int64_t *params = p.params.data() + command.firstParam;
  const bool planned = command.workspace != UINT32_MAX;
  const uint64_t bytes = planned ? extentBytes(p.buffers[command.workspace]) : 0;
  std::byte *workspace = planned ? binding.address(command.workspace) : nullptr;
  const std::optional<AttentionPieces> pieces = attentionPieces(function, buffers, params[0] != 0, bytes);
  if (!pieces)
    return Error{ExitCode::Device, fmt::format("not for {} of this form", spell(views[0].dtype)), ""};
  if (bytes < pieces->workspaceBytes || reinterpret_cast<uintptr_t>(workspace) % kAttentionAlignment != 0)
    return Error{ExitCode::Device, "no workspace is planned for it", ""};
  return Operands{attentionCall(function, {views.data(), params, command.numOperands, 1}),
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

/// The pieces of one command, one after another.
class EngineTask final : public CudaTask {
public:
  EngineTask(const Cudnn &cudnn, cudnnHandle_t handle, std::shared_ptr<Engine> engine,
             const AttentionCall &call)
      : cudnn(cudnn), handle(handle),
        engine(std::move(engine)), scalars{call.scale, call.keys - call.queries} {}

  Status describe(const Operands &operands) {
    const AttentionCall &c = operands.call;
    for (int64_t batch = 0; batch < c.batch; batch += operands.pieces.batch)
      for (int64_t group = 0; group < c.groups; group += operands.pieces.groups)
        if (Status status = addPiece(Addresses(operands, batch, group), operands); !status)
          return status;
    return {};
  }

  Status issue(CUstream stream) override {
    if (Status status = cudnn.check(cudnn.setStream(handle, stream), "using a stream"); !status)
      return status;
    for (const Descriptor &piece : pieces)
      if (Status status =
              cudnn.check(cudnn.execute(handle, engine->plan.get(), piece.get()), "computing attention");
          !status)
        return status;
    return {};
  }

private:
  Status addPiece(const Addresses &addresses, const Operands &operands) {
    std::vector<int64_t> ids;
    std::vector<void *> pointers;
    for (const auto &[tensor, id] : engine->graph.tensors) {
      ids.push_back(id);
      pointers.push_back(addresses.of(tensor, operands.workspace, scalars));
    }
    void *scratch = operands.workspace + operands.pieces.rowSumBytes;
    Descriptor piece(cudnn, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    piece
        .set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, static_cast<int64_t>(ids.size()),
             ids.data())
        .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
             static_cast<int64_t>(pointers.size()), pointers.data())
        .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &scratch);
    Status status = piece.finalize("placing operands");
    pieces.push_back(std::move(piece));
    return status;
  }

  const Cudnn &cudnn;
  cudnnHandle_t handle;
  std::shared_ptr<Engine> engine;
  Scalars scalars;
  std::vector<Descriptor> pieces;
};

} // namespace

struct CudnnEngines::State {
  const Hardware &hardware;
  std::optional<Error> failure; ///< why there is no library
  std::unique_ptr<Cudnn> cudnn;
  cudnnHandle_t handle = nullptr;
  Descriptor device;
  AlgorithmCache cache;
  std::string prefix;                                           ///< of keys of the cache: device and version
  std::unordered_map<std::string, std::shared_ptr<Engine>> all; ///< by key
  std::unordered_map<std::string, Error> refused;               ///< by key

  explicit State(const Hardware &hardware) : hardware(hardware) {}
  ~State() {
    all.clear();
    device = {};
    if (handle)
      cudnn->destroyHandle(handle);
  }
  Status open();
  Result<std::shared_ptr<Engine>> find(const Operands &operands);
  Result<std::shared_ptr<Engine>> make(const Operands &operands, const std::string &key);
};

Status CudnnEngines::State::open() {
  if (!isSet("DS_CUDNN", true))
    return Error{ExitCode::Device, "DS_CUDNN is 0", ""};
  Result<std::unique_ptr<Cudnn>> opened = Cudnn::open();
  if (!opened)
    return opened.error();
  cudnn = std::move(*opened);
  if (Status status = cudnn->check(cudnn->createHandle(&handle), "making a handle"); !status) {
    handle = nullptr;
    return status;
  }
  Result<Descriptor> found = deviceProperties(*cudnn, handle);
  if (!found)
    return found.error();
  device = std::move(*found);
  prefix = keyPrefix(hardware, "cudnn", cudnn->getVersion()) + " ";
  cache = AlgorithmCache::open();
  return {};
}

Result<std::shared_ptr<Engine>> CudnnEngines::State::make(const Operands &operands, const std::string &key) {
  const cudnnDataType_t type = operands.dtype == DType::BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
  Result<AttentionGraph> graph =
      describeAttention(*cudnn, {operands.call, operands.pieces.batch, operands.pieces.groups, type,
                                 operands.gradient, operands.call.mask != nullptr});
  if (!graph)
    return graph.error();
  const auto keep = [&](CudnnPlan plan) {
    return std::make_shared<Engine>(Engine{std::move(*graph), std::move(plan)});
  };
  if (const auto kept = cache.find(prefix + key))
    if (Result<CudnnPlan> plan =
            CudnnPlan::recall(*cudnn, graph->graph, device, *kept, operands.workspaceBytes))
      return keep(std::move(*plan));
  Result<CudnnPlan> plan = CudnnPlan::choose(*cudnn, graph->graph, device, operands.workspaceBytes);
  if (!plan)
    return plan.error();
  if (cache.keeps())
    cache.add(prefix + key, plan->choice());
  return keep(std::move(*plan));
}

Result<std::shared_ptr<Engine>> CudnnEngines::State::find(const Operands &operands) {
  const std::string key = keyOf(operands);
  if (const auto found = all.find(key); found != all.end())
    return found->second;
  if (const auto found = refused.find(key); found != refused.end())
    return found->second;
  Result<std::shared_ptr<Engine>> engine = make(operands, key);
  if (engine)
    all.emplace(key, *engine);
  else
    refused.emplace(key, engine.error());
  return engine;
}

CudnnEngines::CudnnEngines(const Hardware &hardware) : state(std::make_unique<State>(hardware)) {
  if (Status status = state->open(); !status)
    state->failure = status.error();
}
CudnnEngines::~CudnnEngines() = default;

std::string CudnnEngines::version() const { return state->cudnn->version(); }

Result<std::unique_ptr<CudaTask>> CudnnEngines::bind(const Binding &binding, const Command &command) {
  if (state->failure)
    return *state->failure;
  Result<Operands> operands = readOperands(binding, command);
  if (!operands)
    return operands.error();
  Result<std::shared_ptr<Engine>> engine = state->find(*operands);
  if (!engine)
    return engine.error();
  auto task = std::make_unique<EngineTask>(*state->cudnn, state->handle, *engine, operands->call);
  if (Status status = task->describe(*operands); !status)
    return status.error();
  return std::unique_ptr<CudaTask>(std::move(task));
}

} // namespace ds::rt::cuda
