//===- Plugin.cpp - The side of the oneDNN border that links oneDNN ------------===//
//
// Measured on an AVX-512 machine with two cores (oneDNN 2.6.3, f32): plain strides reach 460-490 GFLOP/s in
// all three transpose forms of a training step (X W^T, dY W, dY^T X), so nothing is packed by hand. Only a
// result in column-major order falls back to a reference loop a thousand times slower: there the transposed
// product b^T a^T is asked for instead, which is the same memory. Where a program says that operands are
// copied first (OperandCopies), the copies lie in the workspace behind the scratch memory that all steps
// share.
//
//===---------------------------------------------------------------------------===//
#include "Engine.h"

#include "ds/Support/Align.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace ds::rt {

/// Copies, then the product: running them allocates nothing.
struct MatmulPrimitive {
  std::vector<onednn::Step> steps;
  std::string implementation;
  uint32_t threads;
};

namespace {

using namespace onednn;

dnnl::memory::data_type toOnednn(int32_t dtype) {
  switch (static_cast<DType>(dtype)) {
  case DType::F32:
    return dnnl::memory::data_type::f32;
  case DType::BF16:
    return dnnl::memory::data_type::bf16;
  default:
    throw std::runtime_error(std::string("matrix products in ") + spell(static_cast<DType>(dtype)) +
                             " are not supported");
  }
}

dnnl::memory::desc toOnednn(const MatmulOperand &operand, int32_t rank) {
  return {dnnl::memory::dims(operand.shape, operand.shape + rank), toOnednn(operand.dtype),
          dnnl::memory::dims(operand.strides, operand.strides + rank)};
}

/// The operand read by columns.
MatmulOperand transposed(MatmulOperand operand, int32_t rank) {
  std::swap(operand.shape[rank - 1], operand.shape[rank - 2]);
  std::swap(operand.strides[rank - 1], operand.strides[rank - 2]);
  return operand;
}

/// result^T = b^T a^T when only the result's columns are contiguous. A bias would then run along the rows.
bool shouldTranspose(const MatmulDesc &desc) {
  const int64_t *strides = desc.result.strides + desc.rank - 2;
  return strides[1] != 1 && strides[0] == 1 && desc.bias < 0;
}

MatmulDesc normalize(const MatmulDesc &desc) {
  if (!shouldTranspose(desc))
    return desc;
  MatmulDesc flipped = desc;
  flipped.a = transposed(desc.b, desc.rank);
  flipped.b = transposed(desc.a, desc.rank);
  flipped.result = transposed(desc.result, desc.rank);
  return flipped;
}

/// The operand in rows that are a cache line longer than a whole number of pages.
MatmulOperand padded(MatmulOperand operand, int32_t rank) {
  if (!hasRowsOfPages(operand, rank))
    return operand;
  const bool isByRows = operand.strides[rank - 1] == 1;
  const int64_t line = 64 / static_cast<int64_t>(byteSize(static_cast<DType>(operand.dtype)));
  operand.strides[isByRows ? rank - 2 : rank - 1] = operand.shape[isByRows ? rank - 1 : rank - 2] + line;
  return operand;
}

/// How the left operand is to lie when it is multiplied.
dnnl::memory::desc wantedLeft(const MatmulDesc &desc) {
  return toOnednn(desc.copies == OperandCopies::Padded ? padded(desc.a, desc.rank) : desc.a, desc.rank);
}

/// The same of the right one.
dnnl::memory::desc wantedRight(const MatmulDesc &desc) {
  if (desc.copies == OperandCopies::Packed)
    return {dnnl::memory::dims(desc.b.shape, desc.b.shape + desc.rank), toOnednn(desc.b.dtype),
            dnnl::memory::format_tag::any};
  return toOnednn(desc.copies == OperandCopies::Padded ? padded(desc.b, desc.rank) : desc.b, desc.rank);
}

dnnl::matmul::desc toOperation(const MatmulDesc &desc) {
  const auto a = wantedLeft(desc), b = wantedRight(desc), result = toOnednn(desc.result, desc.rank);
  if (desc.bias < 0)
    return {a, b, result};
  dnnl::memory::dims shape(desc.rank, 1), strides(desc.rank, desc.result.shape[desc.rank - 1]);
  shape.back() = desc.result.shape[desc.rank - 1];
  strides.back() = 1;
  return {a, b, dnnl::memory::desc(shape, toOnednn(desc.bias), strides), result};
}

dnnl::primitive_attr toAttributes(const MatmulDesc &desc) {
  dnnl::primitive_attr result = attributes();
  dnnl::post_ops postOps;
  if (desc.accumulate)
    postOps.append_sum(1.0f);
  result.set_post_ops(postOps);
  return result;
}

/// The implementations for one product, best first. oneDNN's iterator keeps a pointer to the operation: the
/// two live and die together, and in one place.
struct Choice {
  const MatmulDesc desc;
  const dnnl::matmul::desc operation;
  dnnl::matmul::primitive_desc current;

  explicit Choice(const MatmulDesc &desc)
      : desc(desc), operation(toOperation(desc)), current(operation, toAttributes(desc), engine()) {}
  Choice(const Choice &) = delete;

  dnnl::memory::desc left() const { return toOnednn(desc.a, desc.rank); }
  dnnl::memory::desc right() const { return toOnednn(desc.b, desc.rank); }
  bool copiesLeft() const { return desc.copies != OperandCopies::None && current.src_desc() != left(); }
  bool copiesRight() const { return desc.copies != OperandCopies::None && current.weights_desc() != right(); }

  /// What all steps share.
  uint64_t scratchBytes() const {
    uint64_t most = current.scratchpad_desc().get_size();
    if (copiesLeft())
      most = std::max<uint64_t>(most, reorder(left(), current.src_desc()).scratchpad_desc().get_size());
    if (copiesRight())
      most = std::max<uint64_t>(most, reorder(right(), current.weights_desc()).scratchpad_desc().get_size());
    return most;
  }
  /// Where the copies begin in the workspace, and where they end.
  uint64_t leftOffset() const { return alignTo(scratchBytes(), 64); }
  uint64_t rightOffset() const {
    return leftOffset() + (copiesLeft() ? alignTo(uint64_t(current.src_desc().get_size()), 64) : 0);
  }
  uint64_t bytes() const {
    if (desc.copies == OperandCopies::None)
      return scratchBytes();
    return rightOffset() + (copiesRight() ? uint64_t(current.weights_desc().get_size()) : 0);
  }

  /// Advances to an implementation whose scratch memory fits, or throws with the least that was asked.
  void limit(uint64_t workspaceBytes) {
    uint64_t least = UINT64_MAX;
    do {
      const uint64_t needed = bytes();
      if (needed <= workspaceBytes)
        return;
      least = std::min(least, needed);
    } while (current.next_impl());
    throw std::runtime_error("oneDNN asks for " + std::to_string(least) + " bytes of workspace, but " +
                             std::to_string(workspaceBytes) + " are planned");
  }
};

uint64_t scratchpadBytes(const MatmulDesc *desc, uint32_t threads, char *message, size_t messageBytes) {
  return guarded(UINT64_MAX, message, messageBytes, [&] {
    useThreads(threads); // scratch memory depends on it
    return Choice(normalize(*desc)).bytes();
  });
}

/// The steps of a choice on `memory`, whose operands are those of the normalized product.
std::vector<Step> bindSteps(const Choice &choice, const MatmulMemory &memory) {
  const dnnl::matmul::primitive_desc &chosen = choice.current;
  auto *workspace = static_cast<std::byte *>(memory.workspace);
  std::vector<Step> steps;
  const auto place = [&](const dnnl::memory::desc &given, const dnnl::memory::desc &wanted, const void *data,
                         bool isCopied, uint64_t offset) {
    if (!isCopied)
      return wrap(wanted, data);
    const dnnl::memory copy = wrap(wanted, workspace + offset);
    steps.push_back(copyStep(wrap(given, data), copy, workspace));
    return copy;
  };
  std::unordered_map<int, dnnl::memory> arguments = {
      {DNNL_ARG_SRC,
       place(choice.left(), chosen.src_desc(), memory.a, choice.copiesLeft(), choice.leftOffset())},
      {DNNL_ARG_WEIGHTS,
       place(choice.right(), chosen.weights_desc(), memory.b, choice.copiesRight(), choice.rightOffset())},
      {DNNL_ARG_DST, wrap(chosen.dst_desc(), memory.result)},
      {DNNL_ARG_SCRATCHPAD, wrap(chosen.scratchpad_desc(), workspace)}};
  if (choice.desc.bias >= 0)
    arguments.emplace(DNNL_ARG_BIAS, wrap(chosen.bias_desc(), memory.bias));
  steps.push_back({dnnl::matmul(chosen), std::move(arguments)});
  return steps;
}

MatmulPrimitive *create(const MatmulDesc *original, uint32_t threads, uint64_t workspaceBytes,
                        const MatmulMemory *memory, char *message, size_t messageBytes) {
  return guarded(static_cast<MatmulPrimitive *>(nullptr), message, messageBytes, [&] {
    useThreads(threads);
    const bool flipped = shouldTranspose(*original);
    Choice choice(normalize(*original));
    choice.limit(workspaceBytes);
    MatmulMemory places = *memory;
    if (flipped)
      std::swap(places.a, places.b);
    const char *name = choice.current.impl_info_str();
    return new MatmulPrimitive{bindSteps(choice, places), name ? name : "", threads};
  });
}

bool run(MatmulPrimitive *primitive, char *message, size_t messageBytes) {
  return runSteps(*primitive, message, messageBytes);
}

void destroy(MatmulPrimitive *primitive) { delete primitive; }

const char *implementation(const MatmulPrimitive *primitive) { return primitive->implementation.c_str(); }

bool multipliesBFloat16() {
  const auto needed = static_cast<unsigned>(dnnl_cpu_isa_avx512_core_bf16); // ISAs are sets of bits
  return (static_cast<unsigned>(dnnl_get_effective_cpu_isa()) & needed) == needed;
}

constexpr OnednnApi kApi{kOnednnAbi,         scratchpadBytes, create,     run,     destroy,    implementation,
                         multipliesBFloat16, convBytes,       createConv, runConv, destroyConv};

} // namespace
} // namespace ds::rt

/// The plugin's one symbol.
extern "C" __attribute__((visibility("default"))) const ds::rt::OnednnApi *dsOnednn() {
  return &ds::rt::kApi;
}
