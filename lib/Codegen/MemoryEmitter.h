//===- MemoryEmitter.h - Loads and stores at the current loop position -----------===//
//
// Consecutive lanes load and store as one vector (masked at a row's end), a constant distance between lanes
// becomes a gather from one base, and only what is left computes an address per lane.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_MEMORYEMITTER_H
#define DS_LIB_CODEGEN_MEMORYEMITTER_H

#include "IndexEmitter.h"

namespace mlir::ds::codegen {

class MemoryEmitter {
public:
  /// Addresses of buffers are read from `buffers`, those of tables are in `module`.
  MemoryEmitter(ScopedBuilder &scoped, const NestPosition &position, Lanes &lanes, mlir::ModuleOp module,
                mlir::Value buffers)
      : s(scoped), b(scoped.b), position(position), lanes(lanes), indices(scoped, position, lanes),
        module(module), buffers(buffers) {}

  /// Gives a buffer's address in the innermost scope, and the bytes of which it is a multiple.
  void setBuffer(unsigned number, mlir::Value pointer, unsigned alignment);

  /// The value of a load or of an element of a table.
  mlir::Value load(const Node *node, unsigned copy);
  /// Writes the value of an output: a vector where its address varies.
  void store(const NestOutput &output, mlir::Value value, unsigned copy);

  /// An element's address behind `base`: a vector of them where `offset` is one.
  mlir::Value elementPointer(mlir::Value base, mlir::Type type, mlir::Value offset);
  /// A vector of elements of `type`, and its writing; without an alignment that of an element.
  mlir::Value loadAt(mlir::Value pointer, mlir::Type type, unsigned copy, unsigned alignment = 0);
  void storeAt(mlir::Value pointer, mlir::Type type, mlir::Value value, unsigned copy,
               unsigned alignment = 0);

private:
  mlir::Value bufferPointer(unsigned number);
  mlir::Value tablePointer(const Node *node);
  mlir::Value rowPointer(unsigned number, mlir::Value base, mlir::Type type, Index rest);
  /// Pointer to the first element when the lanes of `index` are consecutive, else a vector of pointers.
  mlir::Value pointerTo(unsigned number, mlir::Value base, mlir::Type type, Index index, unsigned copy);
  unsigned alignmentOf(unsigned number, mlir::Type type, Index index) const;

  ScopedBuilder &s;
  mlir::OpBuilder &b;
  const NestPosition &position;
  Lanes &lanes;
  IndexEmitter indices;
  mlir::ModuleOp module;
  mlir::Value buffers;
  llvm::DenseMap<unsigned, unsigned> alignments; ///< of buffers that are known to have more than their type's
  llvm::DenseMap<mlir::Operation *, unsigned> tables; ///< constants in memory, numbered
};

/// Type of an element in memory: i8 for truth values, i16 for 16-bit floats, signless integers.
mlir::Type memoryType(mlir::Type type);

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_MEMORYEMITTER_H
