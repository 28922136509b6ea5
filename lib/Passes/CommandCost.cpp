//===- CommandCost.cpp - How long commands take, as far as schedules must know ---===//
#include "CommandCost.h"

using namespace mlir;
using namespace mlir::ds;
namespace cost = ::ds::cost;

/// The element type whose arithmetic `command` does: that of its first buffer of floats.
static cost::DType arithmeticType(Operation *command) {
  for (Value operand : command->getOperands()) {
    Type element = cast<BufferType>(operand.getType()).getTensor().getElementType();
    if (element.isBF16())
      return cost::DType::BF16;
    if (element.isF16())
      return cost::DType::F16;
    if (isa<FloatType>(element))
      break;
  }
  return cost::DType::F32;
}

double mlir::ds::computeSeconds(Operation *command, const cost::Rates &rates) {
  double bytes = 0, flops = 0;
  for (Value operand : command->getOperands())
    bytes += cast<BufferType>(operand.getType()).getSizeInBytes();
  if (auto call = dyn_cast<CallOp>(command))
    flops = call.getFlops().value_or(0);
  return rates.computeSeconds(flops, bytes, arithmeticType(command));
}

/// The cost model's name for what the ranks do.
static cost::Collective costKind(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllGather:
    return cost::Collective::AllGather;
  case CollectiveKind::ReduceScatter:
    return cost::Collective::ReduceScatter;
  case CollectiveKind::AllReduce:
    return cost::Collective::AllReduce;
  case CollectiveKind::Broadcast:
    return cost::Collective::Broadcast;
  case CollectiveKind::AllToAll:
    return cost::Collective::AllToAll;
  case CollectiveKind::Send:
  case CollectiveKind::Recv:
    return cost::Collective::SendReceive;
  }
  llvm_unreachable("all kinds are handled");
}

double mlir::ds::collectiveSeconds(CommunicateOp op, const cost::Rates &rates) {
  MeshOp mesh = MeshOp::lookup(op);
  Value part = op.getInputs().empty() || op.getKind() == CollectiveKind::ReduceScatter ? op.getOutputs()[0]
                                                                                       : op.getInputs()[0];
  return rates.collectiveSeconds(costKind(op.getKind()),
                                 static_cast<double>(cast<BufferType>(part.getType()).getSizeInBytes()),
                                 mesh ? mesh.getSize(op.getAxis()) : 1);
}
