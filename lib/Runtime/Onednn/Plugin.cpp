//===- Plugin.cpp - The side of the oneDNN border that links oneDNN ------------===//
//
// Measured on an AVX-512 machine with two cores (oneDNN 2.6.3, f32): plain strides reach 460-490 GFLOP/s in
// all three transpose forms of a training step (X W^T, dY W, dY^T X), so nothing is packed by hand. Only a
// result in column-major order falls back to a reference loop a thousand times slower: there the transposed
// product b^T a^T is asked for instead, which is the same memory.
//
//===---------------------------------------------------------------------------===//
#include "Engine.h"

#include <stdexcept>
#include <utility>

namespace ds::rt {

/// A primitive with its memory objects: running it allocates nothing.
struct MatmulPrimitive {
  dnnl::matmul primitive;
  std::unordered_map<int, dnnl::memory> arguments;
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

dnnl::matmul::desc toOperation(const MatmulDesc &desc) {
  const auto a = toOnednn(desc.a, desc.rank), b = toOnednn(desc.b, desc.rank),
             result = toOnednn(desc.result, desc.rank);
  if (desc.bias < 0)
    return {a, b, result};
  dnnl::memory::dims shape(desc.rank, 1), strides(desc.rank, desc.result.shape[desc.rank - 1]);
  shape.back() = desc.result.shape[desc.rank - 1];
  strides.back() = 1;
  return {a, b, dnnl::memory::desc(shape, toOnednn(desc.bias), strides), result};
}

dnnl::primitive_attr toAttributes(const MatmulDesc &desc) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops postOps;
  if (desc.accumulate)
    postOps.append_sum(1.0f);
  attributes.set_post_ops(postOps);
  return attributes;
}

/// The implementations for one product, best first. oneDNN's iterator keeps a pointer to the operation: the
/// two live and die together, and in one place.
struct Choice {
  const dnnl::matmul::desc operation;
  dnnl::matmul::primitive_desc current;

  explicit Choice(const MatmulDesc &desc)
      : operation(toOperation(desc)), current(operation, toAttributes(desc), engine()) {}
  Choice(const Choice &) = delete;

  /// Advances to an implementation whose scratch memory fits, or throws with the least that was asked.
  void limit(uint64_t workspaceBytes) {
    uint64_t least = UINT64_MAX;
    do {
      const uint64_t needed = current.scratchpad_desc().get_size();
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
    return Choice(normalize(*desc)).current.scratchpad_desc().get_size();
  });
}

MatmulPrimitive *create(const MatmulDesc *original, uint32_t threads, uint64_t workspaceBytes,
                        const MatmulMemory *memory, char *message, size_t messageBytes) {
  return guarded(static_cast<MatmulPrimitive *>(nullptr), message, messageBytes, [&] {
    useThreads(threads);
    const bool flipped = shouldTranspose(*original);
    Choice choice(normalize(*original));
    choice.limit(workspaceBytes);
    const dnnl::matmul::primitive_desc &chosen = choice.current;
    std::unordered_map<int, dnnl::memory> arguments = {
        {DNNL_ARG_SRC, wrap(chosen.src_desc(), flipped ? memory->b : memory->a)},
        {DNNL_ARG_WEIGHTS, wrap(chosen.weights_desc(), flipped ? memory->a : memory->b)},
        {DNNL_ARG_DST, wrap(chosen.dst_desc(), memory->result)},
        {DNNL_ARG_SCRATCHPAD, wrap(chosen.scratchpad_desc(), memory->workspace)}};
    if (original->bias >= 0)
      arguments.emplace(DNNL_ARG_BIAS, wrap(chosen.bias_desc(), memory->bias));
    const char *name = chosen.impl_info_str();
    return new MatmulPrimitive{dnnl::matmul(chosen), std::move(arguments), name ? name : "", threads};
  });
}

bool run(MatmulPrimitive *primitive, char *message, size_t messageBytes) {
  return guarded(false, message, messageBytes, [&] {
    useThreads(primitive->threads); // a property of the calling thread
    primitive->primitive.execute(stream(), primitive->arguments);
    return true;
  });
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
