//===- LibraryTable.cpp - What the compiler knows of library functions -----------===//
#include "ds/Passes/LibraryTable.h"

using namespace mlir::ds;
using ::ds::rt::LibraryFn;

static constexpr ::ds::rt::LibraryRow<LibraryEntry> kFunctions[] = {
    {LibraryFn::Matmul, {3, 5, {}}},
    {LibraryFn::AttentionForward, {5, 9, {}}},
    {LibraryFn::AttentionBackward, {9, 13, {}}},
    {LibraryFn::EmbeddingForward, {3, 3, IndexUse{1, 0, 0, false, true}}},
    {LibraryFn::EmbeddingBackward, {3, 3, IndexUse{0, 2, 0, false, false}}},
    {LibraryFn::CrossEntropyForward, {5, 6, IndexUse{1, 0, 1, true, false}}},
    {LibraryFn::CrossEntropyBackward, {6, 6, IndexUse{1, 0, 1, true, false}}},
    {LibraryFn::Fill, {1, 1, {}}},
    {LibraryFn::Copy, {2, 2, {}}},
    {LibraryFn::ConvForward, {3, 4, {}}},
    {LibraryFn::ConvBackwardInput, {3, 3, {}}},
    {LibraryFn::ConvBackwardWeight, {3, 3, {}}},
    {LibraryFn::SumOfSquares, {2, UINT_MAX, {}}},
    {LibraryFn::CrossEntropyWithGradient, {6, 7, IndexUse{1, 0, 1, true, false}}},
};

static_assert(::ds::rt::haveOwnRows(kFunctions), "each function has a row, in the order of the enumerators");

const LibraryEntry &mlir::ds::entryOf(LibraryFn fn) { return kFunctions[static_cast<size_t>(fn)].value; }
