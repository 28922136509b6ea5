//===- ProductBlocks.cpp - Cuts 16-bit products into f32 blocks ----------------===//
#include "ds/Runtime/Onednn/ProductBlocks.h"

#include "ds/Support/Align.h"

#include <algorithm>
#include <utility>

namespace ds::rt {
namespace {

// Two operand blocks and their sums stay in the caches of a few cores (8 MiB), and each widened element takes
// part in 512 multiplications or more, so that widening costs a few per cent.
constexpr int64_t kRows = 1024, kColumns = 512, kDepth = 1024;

uint64_t aligned(int64_t elements) { return alignTo(static_cast<uint64_t>(elements) * sizeof(float), 64); }

/// Swaps the last two dimensions.
MatmulOperand transposed(MatmulOperand operand, int32_t rank) {
  std::swap(operand.shape[rank - 1], operand.shape[rank - 2]);
  std::swap(operand.strides[rank - 1], operand.strides[rank - 2]);
  return operand;
}

bool isByRows(const MatmulOperand &operand, int32_t rank) { return operand.strides[rank - 1] == 1; }

/// A packed f32 matrix.
MatmulOperand packedOperand(int64_t rows, int64_t columns, bool byRows) {
  MatmulOperand operand{};
  operand.shape[0] = rows;
  operand.shape[1] = columns;
  operand.strides[0] = byRows ? columns : 1;
  operand.strides[1] = byRows ? 1 : rows;
  operand.dtype = static_cast<int32_t>(DType::F32);
  return operand;
}

/// The largest scratch memory among the blocks' products: full and last blocks, first and later in depth.
Result<uint64_t> largestScratch(const ProductBlocks &blocks, uint32_t threads) {
  uint64_t most = 0;
  for (int64_t m : {blocks.blockRows, blocks.rows % blocks.blockRows})
    for (int64_t n : {blocks.blockColumns, blocks.columns % blocks.blockColumns})
      for (int64_t k : {blocks.blockDepth, blocks.depth % blocks.blockDepth}) {
        if (m == 0 || n == 0 || k == 0)
          continue;
        for (bool accumulate : {false, true}) {
          Result<uint64_t> bytes = matmulScratchpadBytes(blocks.block(m, n, k, accumulate), threads);
          if (!bytes)
            return bytes;
          most = std::max(most, *bytes);
        }
      }
  return most;
}

} // namespace

MatmulDesc ProductBlocks::block(int64_t m, int64_t n, int64_t k, bool accumulate) const {
  MatmulDesc result{};
  result.rank = 2;
  result.a = packedOperand(m, k, leftByRows);
  result.b = packedOperand(k, n, rightByRows);
  result.result = packedOperand(m, n, true);
  result.bias = -1;
  result.accumulate = accumulate;
  return result;
}

Result<bool> needsBlocks(const MatmulDesc &desc) {
  if (desc.a.dtype == static_cast<int32_t>(DType::F16))
    return true;
  if (desc.a.dtype != static_cast<int32_t>(DType::BF16))
    return false;
  Result<const OnednnApi *> api = openOnednn();
  if (!api)
    return api.error();
  return !(*api)->multipliesBFloat16();
}

Result<bool> needsBlocks(const MatmulDesc &desc, const ProductForm &form) {
  return form.kind == ProductKind::Plain ? needsBlocks(desc) : form.kind == ProductKind::Widened;
}

Result<ProductBlocks> cutProduct(const MatmulDesc &desc, uint32_t threads, const ProductForm &form) {
  ProductBlocks blocks{};
  blocks.desc = desc;
  const int32_t rank = desc.rank;
  const int64_t *strides = desc.result.strides + rank - 2;
  blocks.flipped = strides[1] != 1 && strides[0] == 1;
  if (blocks.flipped) {
    blocks.desc.a = transposed(desc.b, rank);
    blocks.desc.b = transposed(desc.a, rank);
    blocks.desc.result = transposed(desc.result, rank);
  }
  const MatmulOperand &a = blocks.desc.a, &b = blocks.desc.b;
  blocks.rows = a.shape[rank - 2];
  blocks.depth = a.shape[rank - 1];
  blocks.columns = b.shape[rank - 1];
  const auto most = [&](int64_t asked, int64_t usual) {
    return form.kind == ProductKind::Widened && asked > 0 ? asked : usual;
  };
  // Rows asked of a product that is widened for want of instructions are those of products that it could be.
  const int64_t part = form.rows > 0 ? std::min(form.rows, kRows) : kRows;
  blocks.blockRows = std::clamp<int64_t>(blocks.rows, 1, most(form.rows, part));
  blocks.blockColumns = std::clamp<int64_t>(blocks.columns, 1, most(form.columns, kColumns));
  blocks.blockDepth = std::clamp<int64_t>(blocks.depth, 1, most(form.depth, kDepth));
  blocks.leftByRows = isByRows(a, rank);
  blocks.rightByRows = isByRows(b, rank);
  Result<uint64_t> scratch = largestScratch(blocks, threads);
  if (!scratch)
    return scratch.error();
  blocks.scratchBytes = *scratch;
  blocks.right = aligned(blocks.blockRows * blocks.blockDepth);
  blocks.sums = blocks.right + aligned(blocks.blockDepth * blocks.blockColumns);
  blocks.scratch = blocks.sums + aligned(blocks.blockRows * blocks.blockColumns);
  blocks.bytes = blocks.scratch + alignTo(*scratch, 64);
  return blocks;
}

/// The largest scratch memory among the parts.
static Result<uint64_t> partScratchBytes(const MatmulDesc &desc, uint32_t threads, const ProductForm &form) {
  uint64_t most = 0;
  for (const ProductPart &part : partsOf(desc, form)) {
    Result<uint64_t> bytes = matmulScratchpadBytes(part.desc, threads);
    if (!bytes)
      return bytes;
    most = std::max(most, *bytes);
  }
  return most;
}

Result<uint64_t> productWorkspaceBytes(const MatmulDesc &desc, uint32_t threads, const ProductForm &form) {
  const int64_t *shape = desc.result.shape;
  if (std::find(shape, shape + desc.rank, 0) != shape + desc.rank)
    return uint64_t(0); // nothing is run, and oneDNN does not survive the question
  if (desc.a.dtype != static_cast<int32_t>(DType::F16) && desc.a.dtype != static_cast<int32_t>(DType::BF16))
    return partScratchBytes(desc, threads, form);
  if (form.kind != ProductKind::Plain && form.kind != ProductKind::Widened)
    return partScratchBytes(desc, threads, form);
  Result<ProductBlocks> blocks = cutProduct(desc, threads, form);
  if (!blocks)
    return blocks.error();
  Result<bool> needed = needsBlocks(desc, form);
  if (!needed || *needed)
    return needed ? Result<uint64_t>(blocks->bytes) : needed.error();
  Result<uint64_t> scratch = partScratchBytes(desc, threads, form);
  if (!scratch)
    return scratch;
  return std::max(*scratch, blocks->bytes);
}

} // namespace ds::rt
