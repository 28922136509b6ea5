//===- IndexEmitter.h - Indices at the current loop position ---------------------===//
//
// An index is a scalar where it does not depend on the vector dimension, else one number per lane, of 32 bits
// where that holds it. Each is written once, in the outermost scope that knows all dimensions it depends on.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_INDEXEMITTER_H
#define DS_LIB_CODEGEN_INDEXEMITTER_H

#include "NestPosition.h"

namespace mlir::ds::codegen {

class IndexEmitter {
public:
  IndexEmitter(ScopedBuilder &scoped, const NestPosition &position, Lanes &lanes)
      : s(scoped), b(scoped.b), position(position), lanes(lanes) {}

  mlir::Value scalar(Index index);
  /// Of copy `copy`, with lanes of type `element`: i64 or i32.
  mlir::Value vector(Index index, unsigned copy, mlir::Type element);

private:
  mlir::Value scalarAtom(const IndexAtom &atom);
  mlir::Value vectorAtom(const IndexAtom &atom, unsigned copy, mlir::Type element);
  mlir::Value startOf(unsigned copy);

  ScopedBuilder &s;
  mlir::OpBuilder &b;
  const NestPosition &position;
  Lanes &lanes;
};

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_INDEXEMITTER_H
