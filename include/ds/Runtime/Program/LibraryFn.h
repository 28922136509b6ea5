//===- LibraryFn.h - Which library functions a program can call ----------------===//
//
// Library.h says what each of them computes. Compiler, program file and kernels share this one list.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_LIBRARYFN_H
#define DS_RUNTIME_PROGRAM_LIBRARYFN_H

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace ds::rt {

/// Library functions: what is neither generated nor a collective.
enum class LibraryFn : uint16_t {
  Matmul,
  AttentionForward,
  AttentionBackward,
  EmbeddingForward,
  EmbeddingBackward,
  CrossEntropyForward,
  CrossEntropyBackward,
  Fill,
  Copy,
  ConvForward,
  ConvBackwardInput,
  ConvBackwardWeight,
  SumOfSquares,
  CrossEntropyWithGradient,
};
inline constexpr LibraryFn kLastLibraryFn = LibraryFn::CrossEntropyWithGradient;

/// One row of a table that has something for each function.
template <class Value>
struct LibraryRow {
  LibraryFn fn;
  Value value;
};

/// Whether each function has the row of its number.
template <class Value, size_t count>
constexpr bool haveOwnRows(const LibraryRow<Value> (&rows)[count]) {
  for (size_t row = 0; row < count; ++row)
    if (rows[row].fn != static_cast<LibraryFn>(row))
      return false;
  return count == static_cast<size_t>(kLastLibraryFn) + 1;
}

/// What the IR, programs, cluster files and diagnostics call them.
inline constexpr LibraryRow<const char *> kLibraryNames[] = {
    {LibraryFn::Matmul, "matmul"},
    {LibraryFn::AttentionForward, "attention_forward"},
    {LibraryFn::AttentionBackward, "attention_backward"},
    {LibraryFn::EmbeddingForward, "embedding_forward"},
    {LibraryFn::EmbeddingBackward, "embedding_backward"},
    {LibraryFn::CrossEntropyForward, "cross_entropy_forward"},
    {LibraryFn::CrossEntropyBackward, "cross_entropy_backward"},
    {LibraryFn::Fill, "fill"},
    {LibraryFn::Copy, "copy"},
    {LibraryFn::ConvForward, "conv_forward"},
    {LibraryFn::ConvBackwardInput, "conv_backward_input"},
    {LibraryFn::ConvBackwardWeight, "conv_backward_weight"},
    {LibraryFn::SumOfSquares, "sum_of_squares"},
    {LibraryFn::CrossEntropyWithGradient, "cross_entropy_with_gradient"},
};
static_assert(haveOwnRows(kLibraryNames), "each function has a name, in the order of the enumerators");

/// Requires a function that is known.
constexpr const char *spell(LibraryFn fn) { return kLibraryNames[static_cast<size_t>(fn)].value; }

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_LIBRARYFN_H
