//===- NodeEmitter.h - Values of a body at the current loop position -----------===//
//
// Turns nodes into arith, math and LLVM ops: a scalar where a node does not depend on the vector dimension,
// else one vector for each *copy* (copies are consecutive vectors of one iteration). Each value is written
// once, in the outermost scope that knows all dimensions it depends on.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_NODEEMITTER_H
#define DS_LIB_CODEGEN_NODEEMITTER_H

#include "MemoryEmitter.h"

namespace mlir::ds::codegen {

/// A row of values kept on the stack between the stages of a row reduction.
struct RowCache {
  mlir::Value memory;
  unsigned firstStage;
};

/// A method for each kind of node.
class NodeEmitter {
public:
  NodeEmitter(ScopedBuilder &scoped, mlir::ModuleOp module, mlir::Value buffers, int64_t numLanes)
      : position(scoped), lanes(scoped, numLanes), memory(scoped, position, lanes, module, buffers),
        s(scoped), b(scoped.b), indices(scoped, position, lanes) {}
  NodeEmitter(const NodeEmitter &) = delete;

  NestPosition position;
  Lanes lanes;
  MemoryEmitter memory;
  /// Lets bf16 be rounded by the processor's own instruction.
  bool hasNativeBf16 = false;

  /// Value of `node`: a vector when `isVector(node)`, of copy `copy`, else a scalar.
  mlir::Value emit(const Node *node, unsigned copy);
  /// The same, repeated over a vector where it is a scalar and the nest has a vector dimension.
  mlir::Value emitVector(const Node *node, unsigned copy);
  bool isVector(const Node *node) const { return position.varies(node->dims); }
  /// Writes an output at the current position.
  void store(const NestOutput &output, unsigned copy);
  /// Writes the full outputs of `piece` at the current position: all values before all stores, for an output
  /// may lie where an input of the same element lies.
  void storeFull(const LoopNest &piece, unsigned copy);
  /// Gives a reduction its value: a scalar, or a vector of copy `copy`.
  void define(const Node *reduction, unsigned copy, mlir::Value value);

  /// Values that `cacheRow` names are kept from stage to stage.
  llvm::DenseMap<const Node *, RowCache> rowCaches;
  unsigned stage = 0;
  mlir::Value rowBase; ///< element of the row where the vector dimension starts; null: 0

  /// Type that arithmetic on elements of `type` uses (f32 for 16-bit floats, signless integers).
  static mlir::Type computeType(mlir::Type type);
  /// A value of an element of `type` in its compute type, and one back: 16-bit floats are held as their bits.
  mlir::Value toCompute(mlir::Value value, mlir::Type type);
  mlir::Value fromCompute(mlir::Value value, mlir::Type type);

private:
  mlir::Value compute(const Node *node, unsigned copy);
  mlir::Value elementwise(const Node *node, unsigned copy);
  mlir::Value convertToNarrow(mlir::Value value, mlir::Type from);
  mlir::Value constantOf(const Node *node, bool asVector);
  mlir::Value positionOf(const Node *node, unsigned copy);
  mlir::Value random(const Node *node, unsigned copy);
  mlir::Value drawNumber(const Node *node, unsigned copy);
  mlir::Value guard(const Node *node, unsigned copy);
  mlir::Value throughCache(const Node *node, unsigned copy, const RowCache &cache);

  ScopedBuilder &s;
  mlir::OpBuilder &b;
  IndexEmitter indices;
};

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_NODEEMITTER_H
