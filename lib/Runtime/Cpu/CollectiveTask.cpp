//===- CollectiveTask.cpp - Binds collectives to addresses and a communicator --===//
//
// A stream's collectives go through communicators of the stream's own, one for each set of axes, in issue
// order: every rank runs the same program, so they meet.
//
//===---------------------------------------------------------------------------===//
#include "Task.h"

#include "Program/Verify.h"

#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Program/Messages.h"

namespace ds::rt {
namespace {

class CollectiveTask final : public Task {
public:
  CollectiveTask(const Binding &binding, const Command &command, Communicator &communicator)
      : communicator(communicator), collective(binding.program.collectives[command.callee]) {
    const uint32_t *operands = binding.program.operands.data() + command.firstOperand;
    in = binding.address(operands[0]);
    out = binding.address(operands[command.numOperands - 1]);
    staging = command.workspace == UINT32_MAX ? nullptr : binding.address(command.workspace);
    partBytes = collective.elements * byteSize(collective.dtype);
    if (collective.kind == CollectiveKind::Broadcast)
      root = static_cast<uint32_t>(binding.program.params[command.firstParam]);
  }

  Status run() override {
    const char *what = collective.name.c_str();
    switch (collective.kind) {
    case CollectiveKind::AllGather:
      return communicator.allGather(in, out, partBytes, what);
    case CollectiveKind::ReduceScatter:
      return communicator.reduceScatter(in, out, staging, collective.elements, collective.dtype,
                                        collective.reduction, what);
    case CollectiveKind::AllReduce:
      return communicator.allReduce(in, out, staging, collective.elements, collective.dtype,
                                    collective.reduction, what);
    case CollectiveKind::Broadcast:
      return communicator.broadcast(out, partBytes, root, what);
    case CollectiveKind::AllToAll:
      return communicator.allToAll(in, out, partBytes, what);
    case CollectiveKind::Send:
    case CollectiveKind::Recv:
      break; // ExchangeTask
    }
    return Error{ExitCode::Internal, "a collective of unknown kind", ""};
  }

private:
  Communicator &communicator;
  const Collective &collective; ///< of the executor's program, which outlives the task
  void *in, *out, *staging;
  uint64_t partBytes;
  uint32_t root = 0;
};

/// All messages of an exchange.
class ExchangeTask final : public Task {
public:
  ExchangeTask(const Binding &binding, Exchange exchange, Communicator &communicator)
      : communicator(communicator) {
    const Program &p = binding.program;
    for (uint32_t i = exchange.first; i < exchange.end(); ++i) {
      const Command &command = p.commands[i];
      const Collective &collective = p.collectives[command.callee];
      messages.push_back(
          {collective.kind == CollectiveKind::Send, binding.address(p.operands[command.firstOperand]),
           collective.elements * byteSize(collective.dtype), partnerOf(p, command), collective.name.c_str()});
    }
  }
  Status run() override { return communicator.exchange(messages); }

private:
  Communicator &communicator;
  std::vector<Message> messages;
};

} // namespace

Result<std::unique_ptr<Task>> bindCollective(const Binding &binding, uint32_t index) {
  const Command &command = binding.program.commands[index];
  const Mesh &mesh = binding.program.mesh;
  const AxisSet axes = binding.program.collectives[command.callee].axes;
  Communicator *communicator = binding.communicator ? binding.communicator(command.stream, axes) : nullptr;
  if (!communicator || communicator->size() != mesh.size(axes))
    return Error{ExitCode::Internal,
                 fmt::format("{} has {} ranks to talk to on stream {}, but the mesh has {} along {}",
                             describeCommand(binding.program, index), communicator ? communicator->size() : 0,
                             command.stream, mesh.size(axes), mesh.spell(axes)),
                 ""};
  if (!isMessage(binding.program, command))
    return std::unique_ptr<Task>(std::make_unique<CollectiveTask>(binding, command, *communicator));
  const Exchange exchange = exchangeOf(binding.program, index);
  if (exchange.first != index)
    return std::unique_ptr<Task>();
  return std::unique_ptr<Task>(std::make_unique<ExchangeTask>(binding, exchange, *communicator));
}

} // namespace ds::rt
