//===- Collective.cpp - Binds collectives to NCCL --------------------------------------------===//
#include "Commands.h"
#include "Nccl.h"

#include <fmt/format.h>

#include <optional>

namespace ds::rt::cuda {
namespace {

std::optional<ncclDataType_t> dataType(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return ncclFloat32;
  case DType::F64:
    return ncclFloat64;
  case DType::F16:
    return ncclFloat16;
  case DType::BF16:
    return ncclBfloat16;
  case DType::I64:
    return ncclInt64;
  case DType::I32:
    return ncclInt32;
  case DType::I8:
    return ncclInt8;
  case DType::U8:
  case DType::Bool:
    return ncclUint8;
  }
  return std::nullopt;
}

ncclRedOp_t operation(Reduction reduction) {
  return reduction == Reduction::Max ? ncclMax : reduction == Reduction::Min ? ncclMin : ncclSum;
}

/// A collective's addresses, as Program.h documents its operands.
struct Call {
  const std::byte *in;
  std::byte *out;
  uint64_t elements, partBytes;
  ncclDataType_t type;
  uint32_t root;
};

class CollectiveTask final : public CudaTask {
public:
  CollectiveTask(NcclRanks &ranks, ncclComm_t communicator, const Collective &collective, uint32_t size,
                 Call call)
      : ranks(ranks), communicator(communicator), collective(collective), size(size), call(call) {}
  Status issue(CUstream stream) override {
    const ncclResult_t result = start(reinterpret_cast<cudaStream_t>(stream));
    return ranks.settle(communicator, result, collective.name.c_str());
  }

private:
  ncclResult_t start(cudaStream_t stream) {
    const Nccl &api = ranks.api;
    const ncclRedOp_t op = operation(collective.reduction);
    switch (collective.kind) {
    case CollectiveKind::AllGather:
      return api.allGather(call.in, call.out, call.elements, call.type, communicator, stream);
    case CollectiveKind::ReduceScatter:
      return api.reduceScatter(call.in, call.out, call.elements, call.type, op, communicator, stream);
    case CollectiveKind::AllReduce:
      return api.allReduce(call.in, call.out, call.elements, call.type, op, communicator, stream);
    case CollectiveKind::Broadcast:
      return api.broadcast(call.in, call.out, call.elements, call.type, static_cast<int>(call.root),
                           communicator, stream);
    case CollectiveKind::AllToAll:
      return allToAll(stream);
    case CollectiveKind::Send:
    case CollectiveKind::Recv:
      break; // verifyProgram refuses them
    }
    return ncclInvalidUsage;
  }
  ncclResult_t allToAll(cudaStream_t stream) {
    const Nccl &api = ranks.api;
    const auto goesOn = [](ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; };
    ncclResult_t first = api.groupStart();
    for (uint32_t peer = 0; peer < size && goesOn(first); ++peer) {
      const uint64_t at = peer * call.partBytes;
      first = api.send(call.in + at, call.elements, call.type, static_cast<int>(peer), communicator, stream);
      if (goesOn(first))
        first =
            api.recv(call.out + at, call.elements, call.type, static_cast<int>(peer), communicator, stream);
    }
    const ncclResult_t ended = api.groupEnd();
    return goesOn(first) ? ended : first;
  }

  NcclRanks &ranks;
  ncclComm_t communicator;
  const Collective &collective; ///< of the program, which outlives the task
  uint32_t size;                ///< of the group
  Call call;
};

/// What a collective gives when nobody else takes part.
class SoloTask final : public CudaTask {
public:
  SoloTask(const Driver &driver, Call call) : driver(driver), call(call) {}
  Status issue(CUstream stream) override {
    if (call.in == call.out || call.partBytes == 0)
      return {};
    const CUresult result =
        driver.memcpyAsync(reinterpret_cast<CUdeviceptr>(call.out), reinterpret_cast<CUdeviceptr>(call.in),
                           call.partBytes, stream);
    return result == CUDA_SUCCESS ? Status() : asError(driver, result, "copying");
  }

private:
  const Driver &driver;
  Call call;
};

} // namespace

Result<std::unique_ptr<CudaTask>> bindCollective(const Binding &binding, const Command &command) {
  const Program &p = binding.program;
  const Collective &collective = p.collectives[command.callee];
  const uint32_t *operands = p.operands.data() + command.firstOperand;
  const std::optional<ncclDataType_t> type = dataType(collective.dtype);
  if (!type)
    return Error{ExitCode::Device, fmt::format("NCCL has no type for {}", spell(collective.dtype)), ""};
  const Call call{
      binding.address(operands[0]),
      binding.address(operands[command.numOperands - 1]),
      collective.elements,
      collective.elements * byteSize(collective.dtype),
      *type,
      collective.kind == CollectiveKind::Broadcast ? static_cast<uint32_t>(p.params[command.firstParam]) : 0};
  const uint32_t size = p.mesh.size(collective.axes);
  if (size == 1)
    return std::unique_ptr<CudaTask>(std::make_unique<SoloTask>(binding.driver, call));
  Result<NcclRanks *> ranks = binding.ranks();
  if (!ranks)
    return ranks.error();
  Result<ncclComm_t> communicator = (*ranks)->communicator({command.stream, collective.axes}, p.mesh);
  if (!communicator)
    return communicator.error();
  return std::unique_ptr<CudaTask>(
      std::make_unique<CollectiveTask>(**ranks, *communicator, collective, size, call));
}

} // namespace ds::rt::cuda
