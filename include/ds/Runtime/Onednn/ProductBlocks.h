//===- ProductBlocks.h - 16-bit products where no instruction makes them -------===//
//
// oneDNN has no f16 product on the CPU, and its bf16 product without AVX512-BF16 takes four times as long as
// f32 and scratch memory for the whole result in f32. Such a product is cut into blocks: two of the operands
// are widened into workspace, an f32 product adds to a third, and what is finished is rounded into the
// result. The numbers are those of the instructions, which add in f32 too, but for the order of additions.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_ONEDNN_PRODUCTBLOCKS_H
#define DS_RUNTIME_ONEDNN_PRODUCTBLOCKS_H

#include "ds/Runtime/Onednn/OnednnPlugin.h"
#include "ds/Runtime/Program/ProductForm.h"

#include <vector>

namespace ds::rt {

/// How one product is cut. Sizes are elements, offsets bytes of the workspace.
struct ProductBlocks {
  MatmulDesc desc; ///< the product, its sides changed where only the result's columns are contiguous
  bool flipped;    ///< desc.a is the command's b, desc.b its a, and a bias runs along the rows
  int64_t rows, columns, depth;                ///< of the whole product
  int64_t blockRows, blockColumns, blockDepth; ///< of all blocks but the last in each direction
  bool leftByRows, rightByRows;                ///< which stride of the operand is 1
  uint64_t right, sums, scratch;               ///< offsets; the left block is at 0
  uint64_t scratchBytes;                       ///< of the f32 products
  uint64_t bytes;                              ///< of the whole workspace, a multiple of 64

  /// The f32 product of one block of these sizes.
  MatmulDesc block(int64_t m, int64_t n, int64_t k, bool accumulate) const;
};

/// True where `desc` is a 16-bit product that this machine's oneDNN has no instruction for.
Result<bool> needsBlocks(const MatmulDesc &desc);
/// The same of a product that is made in a given form, which may have decided it.
Result<bool> needsBlocks(const MatmulDesc &desc, const ProductForm &form);

/// Cuts `desc`, a product of 16-bit operands; into blocks of the sizes of a form that widens.
Result<ProductBlocks> cutProduct(const MatmulDesc &desc, uint32_t threads, const ProductForm &form = {});

/// Workspace of any product, for the compiler. A 16-bit product gets what its blocks need even where this
/// machine needs none, unless its form has decided that: the program then runs on others too.
Result<uint64_t> productWorkspaceBytes(const MatmulDesc &desc, uint32_t threads,
                                       const ProductForm &form = {});

} // namespace ds::rt

#endif // DS_RUNTIME_ONEDNN_PRODUCTBLOCKS_H
