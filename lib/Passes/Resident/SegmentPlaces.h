//===- SegmentPlaces.h - Which of a segment's values lie in others' memory ----------------===//
//
// The parts of a join lie in the join; a result takes the place of an operand that ends there, or of a state;
// what ranks add up lies where they add it. Bufferisation has the same rules (Buffers/Destinations.h,
// Buffers/DyingOperands.h), which is counted in each plan (Buffers/LiveCount.h). Example, of 64 bytes each:
//
//   moment 0   %a = matmul %x, %w            lies in %j, whose 128 bytes are taken from here on
//   moment 1   %b = exp %y                   as well, behind %a
//   moment 2   %j = concat %a, %b
//   moment 3   %n = neg %j                   takes the place of %j, which nothing else reads
//
// So 128 bytes are live at all four moments, where 64, 128, 256 and 256 would be if each had its own.
//
//===---------------------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_RESIDENT_SEGMENTPLACES_H
#define DS_LIB_PASSES_RESIDENT_SEGMENTPLACES_H

#include "SegmentMemory.h"

namespace mlir::ds {

class SegmentPlaces {
public:
  /// Of the values of `func` that `of` describes, whose readers are known.
  SegmentPlaces(func::FuncOp func, const OpenRegions &regions, const SymbolTable &symbols, SegmentMemory &of)
      : func(func), regions(regions), of(of) {
    findEnding(symbols);
  }
  /// Notes in each memory which other it lies in.
  void find();

private:
  void join(Operation &op);
  void joinPart(Value value, uint32_t whole);
  bool endsAt(Operation &op, const ValueMemory &memory) const;
  bool isWhole(Value operand) const;
  void shareCollective(Operation &op);
  void findEnding(const SymbolTable &symbols);
  bool isVacated(Value state, Operation &reader) const;
  void takeOver(uint32_t made, Value operand, Operation &reader);
  void takeVacated(StoreOp store);
  void markInPlace(ArrayRef<Operation *> command);
  void markRegion(ArrayRef<Operation *> command);

  func::FuncOp func;
  const OpenRegions &regions;
  SegmentMemory &of;
  DenseMap<Value, uint32_t> ending; ///< arguments: states that end with the function; when they are read last
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_SEGMENTPLACES_H
