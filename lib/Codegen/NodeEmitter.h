//===- NodeEmitter.h - Values of a body at the current loop position -----------===//
//
// Turns nodes into arith, math and LLVM ops: a scalar where a node does not depend on the vector dimension,
// else one vector for each *copy* (copies are consecutive vectors of one iteration). Each value is written
// once, in the outermost scope that knows all dimensions it depends on.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_NODEEMITTER_H
#define DS_LIB_CODEGEN_NODEEMITTER_H

#include "LoopNest.h"
#include "ScopedBuilder.h"

namespace mlir::ds::codegen {

/// A row of values kept on the stack between the stages of a row reduction.
struct RowCache {
  mlir::Value memory;
  unsigned firstStage;
};

/// A method for each kind of node and of address.
/// Size: values, indices and memory of a nest are written to the same scopes and remembered in one
/// memo; they are still to be parted.
class NodeEmitter {
public:
  NodeEmitter(ScopedBuilder &scoped, mlir::ModuleOp module, mlir::Value buffers, int64_t lanes)
      : s(scoped), b(scoped.b), module(module), buffers(buffers), lanes(lanes) {}

  /// Selects the nest whose nodes are asked for; `ops` writes go to the scopes as they are.
  void setNest(const LoopNest *newNest) { nest = newNest; }

  /// Says that loop dimension `dim` has this value in the innermost scope and those inside it. For the vector
  /// dimension it is the first element of copy 0.
  void setDim(unsigned dim, mlir::Value value);
  /// Lanes of `copy` that exist; null: all.
  void setMask(unsigned copy, mlir::Value mask);
  /// Says where `copy` starts in the vector dimension, where that is not behind the copy before it.
  void setCopyStart(unsigned copy, mlir::Value start) { copyStarts[copy] = start; }
  /// Gives a buffer's address in the innermost scope, and the bytes of which it is a multiple; else it is
  /// read from `buffers`.
  void setBuffer(unsigned number, mlir::Value pointer, unsigned alignment);
  /// Lets bf16 be rounded by the processor's own instruction.
  bool hasNativeBf16 = false;
  mlir::Value maskOf(unsigned copy) const;
  /// Scope in which the values of reductions are known.
  void setReductionScope(unsigned scope) { reductionScope = scope; }

  /// Value of `node`: a vector when `isVector(node)`, of copy `copy`, else a scalar.
  mlir::Value emit(const Node *node, unsigned copy);
  /// The same, repeated over a vector where it is a scalar and the nest has a vector dimension.
  mlir::Value emitVector(const Node *node, unsigned copy);
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

  bool isVector(const Node *node) const { return nest->vectorDim && ((node->dims >> *nest->vectorDim) & 1); }
  /// Type of `lanes` elements.
  mlir::Type vectorOf(mlir::Type element) const;
  /// `number` as an i64 vector constant per lane: start, start + step, ...
  mlir::Value laneNumbers(mlir::Type element, int64_t step);
  mlir::Value splat(mlir::Value scalar);
  mlir::Value allLanes();
  /// Mask of the lanes of `copy` whose position base + copy * lanes + lane is below `end`.
  mlir::Value lanesBelow(mlir::Value base, unsigned copy, mlir::Value end);

  /// Type that arithmetic on elements of `type` uses (f32 for 16-bit floats, signless integers).
  static mlir::Type computeType(mlir::Type type);
  /// A value of an element of `type` in its compute type, and one back: 16-bit floats are held as their bits.
  mlir::Value toCompute(mlir::Value value, mlir::Type type);
  mlir::Value fromCompute(mlir::Value value, mlir::Type type);

private:
  /// Variants of a key in the memo beside its scalar and a node's copies: a vector of all lanes or a pointer
  /// that nothing else tells apart, an index with i32 lanes, a pointer into a row. Copies and numbers of
  /// buffers are added.
  static constexpr unsigned kSplat = 1u << 16, kNarrowLanes = 2 * kSplat, kRowPointer = 4 * kSplat;

  unsigned scopeOf(uint32_t dims, unsigned level) const;
  mlir::Value compute(const Node *node, unsigned copy);
  mlir::Value elementwise(const Node *node, unsigned copy);
  mlir::Value convertToNarrow(mlir::Value value, mlir::Type from);
  mlir::Value constantOf(const Node *node, bool asVector);
  mlir::Value position(const Node *node, unsigned copy);
  mlir::Value random(const Node *node, unsigned copy);
  mlir::Value guard(const Node *node, unsigned copy);
  mlir::Value throughCache(const Node *node, unsigned copy, const RowCache &cache);

  // Indices (NodeIndex.cpp).
  mlir::Value scalarIndex(Index index);
  mlir::Value scalarAtom(const IndexAtom &atom);
  mlir::Value vectorIndex(Index index, unsigned copy, mlir::Type element);
  mlir::Value vectorAtom(const IndexAtom &atom, unsigned copy, mlir::Type element);
  mlir::Value startOf(unsigned copy);

  // Memory (NodeMemory.cpp).
  mlir::Value bufferPointer(unsigned number);
  mlir::Value tablePointer(const Node *node);
  mlir::Value elementPointer(mlir::Value base, mlir::Type type, mlir::Value offset);
  mlir::Value rowPointer(unsigned number, mlir::Value base, mlir::Type type, Index rest);
  /// Pointer to the first element when the lanes of `index` are consecutive, else a vector of pointers.
  mlir::Value pointerTo(unsigned number, mlir::Value base, mlir::Type type, Index index, unsigned copy);
  unsigned alignmentOf(unsigned number, mlir::Type type, Index index) const;
  mlir::Value load(const Node *node, unsigned copy);
  mlir::Value loadAt(mlir::Value pointer, mlir::Type type, unsigned copy, unsigned alignment);
  void storeAt(mlir::Value pointer, mlir::Type type, mlir::Value value, unsigned copy, unsigned alignment);

  ScopedBuilder &s;
  mlir::OpBuilder &b;
  mlir::ModuleOp module;
  mlir::Value buffers;
  int64_t lanes;
  const LoopNest *nest = nullptr;
  struct DimValue {
    mlir::Value value;
    unsigned scope;
  };
  llvm::DenseMap<unsigned, DimValue> dims;
  llvm::DenseMap<unsigned, mlir::Value> masks, copyStarts;
  llvm::DenseMap<unsigned, unsigned> alignments; ///< of buffers that are known to have more than their type's
  llvm::DenseMap<mlir::Operation *, unsigned> tables; ///< constants in memory, numbered
  unsigned reductionScope = 0;
};

/// Type of an element in memory: i8 for truth values, i16 for 16-bit floats, signless integers.
mlir::Type memoryType(mlir::Type type);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_NODEEMITTER_H
