//===- Exchanges.h - In which order stages meet ----------------------------------===//
//
// Stages of a pipeline run different texts and meet in messages, and in collectives along their axes. A stage
// comes to these in the order of its text; what one pass turned round would be two stages that wait for each
// other. No value says so: between sending an activation and receiving its gradient there is none.
//
// Sends and receives that stand side by side are one exchange: on one stream, along the same axes, and none
// touching what another of them receives. It is over when all of its messages have passed (Messages.h of the
// runtime). Whoever orders, places or plays commands has to see the same exchanges: they are found here.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SUPPORT_EXCHANGES_H
#define DS_LIB_PASSES_SUPPORT_EXCHANGES_H

#include "ds/Dialect/Ds.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {

/// Whether other stages take part in `op`, a collective on tensors or on buffers: no pass changes the order
/// of such ops.
bool meetsStages(Operation *op);

/// Whether `op` is one end of a message.
bool isMessage(Operation *op);

/// What both ends call a message: the layer that they say, which is that of what is sent.
std::string nameOfMessage(CommunicateOp message);

/// The exchanges of one block.
class Exchanges {
public:
  explicit Exchanges(Block &block);

  /// The exchange of `op`, in order; empty where it is no message.
  ArrayRef<CommunicateOp> of(Operation *op) const;
  /// Messages of its exchange that stand behind `op`, a message.
  uint32_t behind(CommunicateOp op) const;

private:
  SmallVector<SmallVector<CommunicateOp, 2>, 0> list;
  DenseMap<Operation *, std::pair<unsigned, unsigned>> places; ///< exchange, and which of it
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SUPPORT_EXCHANGES_H
