//===- Collective.cpp - Binds collectives to NCCL --------------------------------------------===//
#include "Commands.h"
#include "Nccl.h"

#include "ds/Runtime/Program/Messages.h"

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
  CollectiveTask(NcclRanks &ranks, ncclComm_t communicator, const Collective &collective, Call call)
      : ranks(ranks), communicator(communicator), collective(collective), call(call) {}
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
    case CollectiveKind::Send:
    case CollectiveKind::Recv:
      break; // ExchangeTask
    }
    return ncclInvalidUsage;
  }

  NcclRanks &ranks;
  ncclComm_t communicator;
  const Collective &collective; ///< of the program, which outlives the task
  Call call;
};

/// Messages that are started together: those of an exchange, or of an all-to-all.
class ExchangeTask final : public CudaTask {
public:
  ExchangeTask(NcclRanks &ranks, ncclComm_t communicator, const char *what, std::vector<NcclMessage> messages)
      : ranks(ranks), communicator(communicator), what(what), messages(std::move(messages)) {}
  Status issue(CUstream stream) override {
    const ncclResult_t result =
        startExchange(ranks.api, messages, communicator, reinterpret_cast<cudaStream_t>(stream));
    return ranks.settle(communicator, result, what);
  }

private:
  NcclRanks &ranks;
  ncclComm_t communicator;
  const char *what; ///< the first message, or the all-to-all; of the program, which outlives the task
  const std::vector<NcclMessage> messages;
};

/// What each of `ranks` ranks sends to all, and receives from them.
std::vector<NcclMessage> messagesOfAllToAll(const Call &call, uint32_t ranks) {
  std::vector<NcclMessage> messages;
  for (uint32_t peer = 0; peer < ranks; ++peer) {
    const uint64_t at = peer * call.partBytes;
    messages.push_back({/*isSend=*/true, const_cast<std::byte *>(call.in) + at, call.elements, call.type,
                        static_cast<int>(peer)});
    messages.push_back({/*isSend=*/false, call.out + at, call.elements, call.type, static_cast<int>(peer)});
  }
  return messages;
}

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

/// The exchange of which command `index` is the first.
std::unique_ptr<CudaTask> makeExchange(const Binding &binding, Exchange exchange, NcclRanks &ranks,
                                       ncclComm_t communicator) {
  const Program &p = binding.program;
  std::vector<NcclMessage> messages;
  for (uint32_t i = exchange.first; i < exchange.end(); ++i) {
    const Command &command = p.commands[i];
    const Collective &collective = p.collectives[command.callee];
    messages.push_back({collective.kind == CollectiveKind::Send,
                        binding.address(p.operands[command.firstOperand]), collective.elements,
                        dataType(collective.dtype).value_or(ncclUint8),
                        static_cast<int>(partnerOf(p, command))});
  }
  const char *what = p.collectives[p.commands[exchange.first].callee].name.c_str();
  return std::make_unique<ExchangeTask>(ranks, communicator, what, std::move(messages));
}

} // namespace

/// Between the first call and the last one nothing is started, so that no message waits for another.
ncclResult_t startExchange(const Nccl &api, const std::vector<NcclMessage> &messages, ncclComm_t communicator,
                           cudaStream_t stream) {
  const auto goesOn = [](ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; };
  ncclResult_t first = api.groupStart();
  for (const NcclMessage &m : messages)
    if (goesOn(first))
      first = m.isSend ? api.send(m.data, m.elements, m.type, m.partner, communicator, stream)
                       : api.recv(m.data, m.elements, m.type, m.partner, communicator, stream);
  const ncclResult_t ended = api.groupEnd();
  return goesOn(first) ? ended : first;
}

Result<std::unique_ptr<CudaTask>> bindCollective(const Binding &binding, uint32_t index) {
  const Program &p = binding.program;
  const Command &command = p.commands[index];
  const Collective &collective = p.collectives[command.callee];
  if (isMessage(p, command) && exchangeOf(p, index).first != index)
    return std::unique_ptr<CudaTask>(std::make_unique<NoTask>()); // another command carries it
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
  if (isMessage(p, command))
    return makeExchange(binding, exchangeOf(p, index), **ranks, *communicator);
  if (collective.kind == CollectiveKind::AllToAll)
    return std::unique_ptr<CudaTask>(std::make_unique<ExchangeTask>(
        **ranks, *communicator, collective.name.c_str(), messagesOfAllToAll(call, size)));
  return std::unique_ptr<CudaTask>(
      std::make_unique<CollectiveTask>(**ranks, *communicator, collective, call));
}

} // namespace ds::rt::cuda
