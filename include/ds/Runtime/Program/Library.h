//===- Library.h - What the library commands of a program mean -----------------===//
//
// Operands are buffers in the order given; params are int64, doubles by bit pattern. Layouts are whatever the
// buffers' strides say, but the innermost dimension has stride 1 unless the text says otherwise. All shapes
// are those of this rank. The CPU implementations live in kernels/ and in the oneDNN plugin.
//
//   Matmul                operands: a, b, result[, bias][, h][, sums]
//                         params: transposeA, transposeB, accumulate, activation[, kind, rows, columns,
//                         depth] [, summed]
//     a and b are f32, bf16 or f16, both alike, and so is bias; result is of that type or f32, rounded once.
//     result[..., M, N] = act(a * b + bias (+ result if accumulate)); a is [..., M, K], or [..., K, M] when
//     transposeA; b is [..., K, N], or [..., N, K] when transposeB. Leading (batch) dimensions are equal, or
//     b has none and a's are folded into M. bias is [N]. activation: 0 none, 1 relu, 2 GELU, 3 its gradient.
//     Any two innermost strides where one is 1.
//     GELU is the tanh form, of products of 16 bits that accumulate nothing. h, of result's type and shape,
//     is what GELU is taken of: with 2 written, where it is there; with 3, where there is no bias, read, and
//     result = a * b * GELU'(h). Both packed. The CPU rounds a * b + bias to 16 bits before GELU or its
//     gradient, as two commands would. Four params more: the CPU's form (ProductForm.h).
//     One param more: summed, and the last operand is sums, of a's type or f32. 1: [M], what each row of a
//     adds up to as it is multiplied; 2: [N], each column of b. Kernels before the product have made it, and
//     nothing reads it before the product is done. 3: [N], each column of the result; kernels after it make
//     it, and nothing reads it before them. A GPU may leave them out and let the product make it; the CPU
//     leaves it as it is. Such a product has no bias, and b two dimensions; with 3 it is one with GELU's
//     gradient, else without activation and all matrices have two.
//   AttentionForward      operands: q, k, v, out, lse[, mask][, slopes][, generator][, first]
//                         params: causal, scale[, window, cap[, dropout, id, heads[, block]]]; the reals are
//                         doubles
//     q, out: [B, T, H, D]; k, v: [B, S, G, D] with H a multiple of G (query head h reads key head h /
//     (H/G)); lse: [B, H, T] f32, log of the sum of exponentials of each score row. mask: additive,
//     broadcastable [B|1, H|1, T|1, S] f32. causal: position t sees s <= t + (S - T). A row that sees nothing
//     gives 0. q, k, v and out are f32, bf16 or f16, all alike; what is computed with them is f32.
//     window > 0: position t sees s only where |t + (S - T) - s| < window; tiles outside are not computed.
//     cap > 0: cap * tanh(x / cap) takes the place of a scaled score x, before mask and slopes. 0 is none of
//     either. slopes: [H] f32; head h gains slopes[h] * (s - (t + (S - T))). Ranks and types tell mask,
//     slopes, generator and first apart.
//     dropout p, with generator = i64 [2] (seed, counter): after the softmax the probability of b, h, t, s
//     becomes 0 where u < p, else it is divided by 1 - p. u is number ((b H + h) T + t) S + s of the draw
//     `id`: that one modulo 4 of the words of Philox-4x32-10 with key = seed and counter (low and high half
//     of that number / 4, id, counter), without its 8 low bits and times 2^-24. lse is of all scores. With
//     first = i64 [], H is `heads` there and h is first + h: these are some of the heads of one attention.
//   AttentionBackward     operands: q, k, v, out, lse, dout, dq, dk, dv[, mask][, slopes][, generator]
//                         [, first]
//                         params: as forward[, block]
//     Writes dq, dk, dv (never accumulates), of q's type. The score matrix is recomputed tile by tile.
//     Workspace for 16-bit types: f32 sums of dk and dv for one head and each thread.
//     block > 0, a multiple of 8: on a GPU cuDNN computes blocks of so many queries and keys; with a window,
//     and forward, of so many queries and the keys that they see (AttentionPieces.h). Elsewhere: nothing.
//     block = 0: there cuDNN may add up the gradient of the queries in any order, so that two runs may differ
//     in bits.
//   EmbeddingForward      operands: table[V, C], ids[...], out[..., C]      f32, bf16 or f16, both alike
//                         params: [isPart]
//     isPart: an id outside of [0, V), which is one of another part of the table, gives zeros.
//   EmbeddingBackward     operands: ids[...], dout[..., C], dtable[V, C]   params: accumulate
//     dtable (= 0 first unless accumulate) gains the rows of dout, each row's terms in index order:
//     deterministic. dtable has dout's type or f32; a 16-bit row is summed in f32 and rounded once, for which
//     the workspace sorts the ids: two i32 for each. On CUDA ids are sorted for all types (IdSort.h).
//   CrossEntropyForward   operands: logits[N, C], targets[N] i64, loss[], lse[N], count[][, denominator[]]
//                         params: ignoreIndex[, cap (double)]
//     logits (and dlogits) are f32, bf16 or f16, the rest f32.
//     lse[i] = log sum_j exp(logits[i, j]); count = number of targets != ignoreIndex (f32);
//     loss = sum_i (lse[i] - logits[i, targets[i]]) / count, summed in fixed blocks of 64 rows in order. A
//     denominator takes the place of count there: losses of a batch's parts then add up to that of the whole.
//     With a cap > 0, cap * tanh(x / cap) takes the place of each logit x.
//   CrossEntropyBackward  operands: logits[N, C], targets[N], lse[N], count[], dloss[], dlogits[N, C]
//                         params: ignoreIndex[, cap (double)]
//     dlogits[i, j] = (exp(logits[i, j] - lse[i]) - (j == targets[i])) * dloss / count; rows that are ignored
//     give 0. With a cap, y = cap * tanh(x / cap) takes the place of a logit, and the gradient is multiplied
//     by 1 - (y / cap)^2. dlogits may be the same buffer as logits.
//   CrossEntropyWithGradient  operands: logits[N, C], targets[N], dloss[], loss[], count[], dlogits[N, C]
//                         [, denominator[]]    params: ignoreIndex[, cap (double)]
//     Both at once, of one reading of the logits: loss and count as forward's, dlogits as backward's for
//     dloss and for what forward divides by. The term of each row is rounded to f32 before the rows are
//     summed. dlogits may be the same buffer as logits. Workspace: an f32 for each row.
//   ConvForward           operands: x, w, result[, bias]
//                         params: groups, then for each sliding dimension stride, padding, dilation
//     x is [N, I, L...], w [O, I / groups, K...], result [N, O, M...], bias [O], with one to three dimensions
//     L, K and M: M = (L + 2 * padding - dilation * (K - 1) - 1) / stride + 1. All are f32, bf16 or f16, all
//     alike; sums are f32, rounded once. No size is 0. What lies outside x is 0.
//   ConvBackwardInput     operands: w, dresult, dx          params: as forward
//   ConvBackwardWeight    operands: x, dresult, dw          params: as forward
//     Write dx and dw (never accumulate). On the CPU all three are oneDNN's, in f32: its scratch memory,
//     operands in the order that it wants and f32 copies of 16-bit ones are the workspace (OnednnConv.h).
//   SumOfSquares          operands: inputs..., result[]           params: [areBlocks]
//     result (f64): the squares of all elements of the inputs (f32, bf16, f16), in f32 over blocks of 16384
//     of each and in f64 over all blocks, in orders by sizes alone. Workspace: an f32 for each block. An f32
//     result, [blocks], has the sums of one input's blocks. areBlocks: inputs are such sums, on the host.
//   Fill                  operands: out                     params: value (double)
//   Copy                  operands: in, out (same shape, any strides)
//
// Packed in row-major order, whatever the strides of the rest: ids, targets, the rows of an embedding, all of
// a convolution, what is squared, and lse of the cross-entropy. Attention takes head sizes up to 256. No
// operand that is written may share a byte with another operand, but for dlogits.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_LIBRARY_H
#define DS_RUNTIME_PROGRAM_LIBRARY_H

#include "ds/Runtime/Program/ProductForm.h"
#include "ds/Runtime/Program/Program.h"

#include <span>

namespace ds::rt {

/// Elements that SumOfSquares adds up in f32.
inline constexpr int64_t kSquaresBlock = 16384;

/// Bytes of workspace that a function of kernels/ needs for these operands with `threads` threads; 0 for
/// most. Requires operands that verifyProgram accepts, but for the workspace. A product's is the plugin's to
/// say (OnednnPlugin.h).
uint64_t libraryWorkspaceBytes(LibraryFn fn, std::span<const Buffer *const> operands, uint32_t threads);

/// The same of a function of kernels/ on CUDA, where it is one that needs workspace there; what NVIDIA's
/// libraries may use besides is a budget (ds/Passes/Workspaces.h).
uint64_t cudaWorkspaceBytes(LibraryFn fn, std::span<const Buffer *const> operands);

/// The operands of a Matmul command that not all have; null where it does not. Their ranks tell them apart.
struct MatmulExtras {
  const Buffer *bias = nullptr;
  const Buffer *input = nullptr;          ///< of GELU: h
  const Buffer *sums = nullptr;           ///< of rows of a, columns of b or of the result
  uint32_t biasIndex = 0, inputIndex = 0; ///< among the operands, where they are there
  uint32_t sumsIndex = 0;                 ///< likewise
  unsigned count() const { return (bias ? 1 : 0) + (input ? 1 : 0) + (sums ? 1 : 0); }
};
/// `params` are the command's.
MatmulExtras matmulExtras(std::span<const Buffer *const> operands, std::span<const int64_t> params);
MatmulExtras matmulExtras(const Program &program, const Command &command);

/// The factor of which a Matmul command has sums, or its result: the operand of that number, less one.
enum class Summed : int64_t { None, First, Second, Result };
inline constexpr Summed kLastSummed = Summed::Result;
/// What the params of a Matmul command say of that.
inline Summed summedOf(std::span<const int64_t> params) {
  return params.size() == kMatmulParams + 1 ? static_cast<Summed>(params[kMatmulParams]) : Summed::None;
}

/// What Matmul does with the sums.
enum class Activation : int64_t { None, Relu, Gelu, GeluGradient };
inline constexpr Activation kLastActivation = Activation::GeluGradient;

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_LIBRARY_H
