//===- LibraryTable.cpp - What the compiler knows of library functions -----------===//
#include "ds/Passes/LibraryTable.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::ds;
using ::ds::rt::LibraryFn;

static const LibraryEntry kFunctions[] = {
    {LibraryFn::Matmul, 3, 5, {}},
    {LibraryFn::AttentionForward, 5, 6, {}},
    {LibraryFn::AttentionBackward, 9, 10, {}},
    {LibraryFn::EmbeddingForward, 3, 3, IndexUse{1, 0, 0, false}},
    {LibraryFn::EmbeddingBackward, 3, 3, IndexUse{0, 2, 0, false}},
    {LibraryFn::CrossEntropyForward, 5, 6, IndexUse{1, 0, 1, true}},
    {LibraryFn::CrossEntropyBackward, 6, 6, IndexUse{1, 0, 1, true}},
    {LibraryFn::Fill, 1, 1, {}},
    {LibraryFn::Copy, 2, 2, {}},
    {LibraryFn::ConvForward, 3, 4, {}},
    {LibraryFn::ConvBackwardInput, 3, 3, {}},
    {LibraryFn::ConvBackwardWeight, 3, 3, {}},
    {LibraryFn::SumOfSquares, 2, UINT_MAX, {}},
};

const LibraryEntry *mlir::ds::findLibraryFunction(llvm::StringRef callee) {
  auto entry = llvm::find_if(kFunctions,
                             [&](const LibraryEntry &known) { return callee == ::ds::rt::spell(known.fn); });
  return entry == std::end(kFunctions) ? nullptr : entry;
}

bool mlir::ds::isCallOf(CallOp call, LibraryFn fn) { return call.getCallee() == ::ds::rt::spell(fn); }
