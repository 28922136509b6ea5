//===- Work.h - Which part of a step an op is, and of which layer ----------------===//
//
// Every op of a segment says what work it is part of (`ds.work`), and, where it belongs to a layer, of which
// (`ds.layer`). Differentiation says it first; whoever adds an op later says it of the new one, or lets a
// WorkListener say it. Nothing is read off names, positions or dependences.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_DIALECT_WORK_H
#define DS_DIALECT_WORK_H

#include "ds/Dialect/Ds.h"

#include <optional>

namespace mlir::ds {

/// What `op` says of its work; none where it says nothing.
std::optional<Work> getWork(Operation *op);
void setWork(Operation *op, Work work);
/// Whether `op` says that it is forward.
inline bool isForward(Operation *op) { return getWork(op) == Work::Forward; }

/// Whether an op of a segment has to say its work: all but constants, views and orders, which are no work,
/// and terminators.
bool needsWork(Operation *op);

/// The name of the layer of an op or a location ("h.3.attn"), or empty. What the op says comes before what
/// its location does. Passes compare layers by LayerAttr.
std::string layerOf(Operation *op);
std::string layerOf(Location loc);

/// Says of the ops of `block` that need it and say nothing yet that they are part of `work`, and of the layer
/// that their location names.
void markWork(Block &block, Work work);

/// Lets `to` say what `from` says of work and layer; what it said itself stays.
void copyWork(Operation *from, Operation *to);

/// Takes from `op` what it says of work and layer: inside of a region, which says it for all.
void clearWork(Operation *op);

/// Whether a micro-batch's `a` is done before its `b`: forward, recomputing, backward, update.
bool isBefore(Work a, Work b);

/// Lets ops that are inserted say what the op that they are made for does: the one that is set, or whose
/// pattern runs.
class WorkListener : public RewriterBase::Listener {
public:
  WorkListener() = default;
  explicit WorkListener(Operation *op) { follow(op); }
  /// From now on inserted ops say what `op` says; null for nothing.
  void follow(Operation *op);
  /// The same, but of `work`.
  void follow(Operation *op, Work work);

  void notifyOperationInserted(Operation *op, OpBuilder::InsertPoint previous) override;
  void notifyPatternBegin(const Pattern &pattern, Operation *op) override { follow(op); }
  void notifyPatternEnd(const Pattern &pattern, LogicalResult status) override { follow(nullptr); }

private:
  Attribute work, layer;
};

} // namespace mlir::ds

#endif // DS_DIALECT_WORK_H
