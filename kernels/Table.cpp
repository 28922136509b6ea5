//===- Table.cpp - Chooses the kernels for this machine ------------------------===//
//
// The only file that knows all the instruction-set namespaces. It is built for plain x86-64.
//
//===---------------------------------------------------------------------------===//
#include "ds/Kernels/Kernels.h"

namespace ds::rt {

#define DS_DECLARE(ISA)                                                                                      \
  namespace ISA {                                                                                            \
  void attentionForward(const LibraryCall &);                                                                \
  void attentionBackward(const LibraryCall &);                                                               \
  void embeddingForward(const LibraryCall &);                                                                \
  void embeddingBackward(const LibraryCall &);                                                               \
  void crossEntropyForward(const LibraryCall &);                                                             \
  void crossEntropyBackward(const LibraryCall &);                                                            \
  void crossEntropyWithGradient(const LibraryCall &);                                                        \
  void fill(const LibraryCall &);                                                                            \
  void copy(const LibraryCall &);                                                                            \
  void activateProduct(const LibraryCall &);                                                                 \
  void sumOfSquares(const LibraryCall &);                                                                    \
  void widenBlock(const WidenCall &);                                                                        \
  void finishBlock(const FinishCall &);                                                                      \
  void fillRandom(const RandomCall &);                                                                       \
  void probe(const ProbeCall &);                                                                             \
  bool reduceParts(const ReduceCall &);                                                                      \
  constexpr LibraryRow<LibraryFunction> kTable[] = {                                                         \
      {LibraryFn::Matmul, activateProduct},                                                                  \
      {LibraryFn::AttentionForward, attentionForward},                                                       \
      {LibraryFn::AttentionBackward, attentionBackward},                                                     \
      {LibraryFn::EmbeddingForward, embeddingForward},                                                       \
      {LibraryFn::EmbeddingBackward, embeddingBackward},                                                     \
      {LibraryFn::CrossEntropyForward, crossEntropyForward},                                                 \
      {LibraryFn::CrossEntropyBackward, crossEntropyBackward},                                               \
      {LibraryFn::Fill, fill},                                                                               \
      {LibraryFn::Copy, copy},                                                                               \
      {LibraryFn::ConvForward, nullptr},                                                                     \
      {LibraryFn::ConvBackwardInput, nullptr},                                                               \
      {LibraryFn::ConvBackwardWeight, nullptr},                                                              \
      {LibraryFn::SumOfSquares, sumOfSquares},                                                               \
      {LibraryFn::CrossEntropyWithGradient, crossEntropyWithGradient}};                                      \
  static_assert(haveOwnRows(kTable), "each function has its kernel, in the order of the enumerators");       \
  }
DS_DECLARE(v1)
DS_DECLARE(v3)
DS_DECLARE(v4)
#undef DS_DECLARE

const char *spell(Isa isa) {
  static constexpr const char *kNames[] = {"x86-64", "x86-64-v3", "x86-64-v4"};
  return kNames[static_cast<uint8_t>(isa)];
}

Isa bestIsa() {
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("f16c") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? Isa::X86_64_V4 : v3 ? Isa::X86_64_V3 : Isa::X86_64;
}

LibraryFunction libraryFunction(LibraryFn fn, Isa isa) {
  const uint16_t index = static_cast<uint16_t>(fn);
  switch (isa) {
  case Isa::X86_64_V4:
    return v4::kTable[index].value;
  case Isa::X86_64_V3:
    return v3::kTable[index].value;
  case Isa::X86_64:
    return v1::kTable[index].value;
  }
  return nullptr;
}

#define DS_DISPATCH(FUNCTION, CALL)                                                                          \
  void FUNCTION(const CALL &call, Isa isa) {                                                                 \
    switch (isa) {                                                                                           \
    case Isa::X86_64_V4:                                                                                     \
      return v4::FUNCTION(call);                                                                             \
    case Isa::X86_64_V3:                                                                                     \
      return v3::FUNCTION(call);                                                                             \
    case Isa::X86_64:                                                                                        \
      return v1::FUNCTION(call);                                                                             \
    }                                                                                                        \
  }
DS_DISPATCH(widenBlock, WidenCall)
DS_DISPATCH(finishBlock, FinishCall)
DS_DISPATCH(fillRandom, RandomCall)
DS_DISPATCH(probe, ProbeCall)
#undef DS_DISPATCH

bool reduceParts(const ReduceCall &call, Isa isa) {
  switch (isa) {
  case Isa::X86_64_V4:
    return v4::reduceParts(call);
  case Isa::X86_64_V3:
    return v3::reduceParts(call);
  case Isa::X86_64:
    return v1::reduceParts(call);
  }
  return false;
}

} // namespace ds::rt
