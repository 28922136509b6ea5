//===- ProductForm.h - The ways in which the CPU can make one product -----------===//
//
// One product can be made in several ways that differ in time and in the order of additions. Which one is
// fastest depends on the processor and on the library, and is measured where the program is to run
// (`ds-run --tune`); which one is taken stands in the program, as four params behind a Matmul command's own.
// Without them a product is made as the runtime has always made it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_PRODUCTFORM_H
#define DS_RUNTIME_PROGRAM_PRODUCTFORM_H

#include "ds/Runtime/Program/MatmulDesc.h"

#include <array>
#include <span>
#include <string>
#include <vector>

namespace ds::rt {

enum class ProductKind : int64_t {
  Plain,   ///< as the processor's instructions suggest: 16 bits without any are widened
  Native,  ///< 16 bits by the library, whatever it makes of them
  Widened, ///< 16 bits as f32, block by block, also where there are instructions
  Packed,  ///< the second operand is first copied into the library's own order
  Padded,  ///< operands whose rows are whole pages are first copied into rows that are not
};
inline constexpr ProductKind kLastProductKind = ProductKind::Padded;

/// How a product is made. Sizes are those of the parts in which it is made one after another, 0: all at once
/// (widened: as ProductBlocks.h has it). Parts lie where they are; blocks are copies, and what is packed or
/// padded is copied part by part.
struct ProductForm {
  ProductKind kind = ProductKind::Plain;
  int64_t rows = 0, columns = 0, depth = 0;
  bool operator==(const ProductForm &) const = default;
};

/// Params of a Matmul command: its own, and a form's behind them.
inline constexpr unsigned kMatmulParams = 4, kFormParams = 4;

/// The form that a Matmul command with these params has.
ProductForm formOf(std::span<const int64_t> params);
/// The params of a form.
std::array<int64_t, kFormParams> paramsOf(const ProductForm &form);

/// Why `desc` cannot be made so; empty where it can. Parts are of products without batch dimensions; parts of
/// the depth add to the result, which is f32 then; only 16 bits are made natively or widened; only one matrix
/// is packed or padded, and padded only where its rows ask for it.
std::string whyNot(const MatmulDesc &desc, const ProductForm &form);

/// What is worth trying, the form that a product has without a choice first. `isWidened`: what that does to
/// 16 bits on this machine.
std::vector<ProductForm> candidateForms(const MatmulDesc &desc, bool isWidened);

/// One part of a product: offsets are elements from the operands' first ones.
struct ProductPart {
  MatmulDesc desc;
  int64_t a, b, result, bias;
};
/// The parts in the order in which they are made; one, the product itself, where it is made at once.
std::vector<ProductPart> partsOf(const MatmulDesc &desc, const ProductForm &form);

/// What a choice is found by: types, sizes, and which operands lie by columns. Nothing that a product that is
/// recomputed could have otherwise than the first time, for both must give the same bits.
std::string productKey(const MatmulDesc &desc);

/// "parts of depth 3072", as a person reads it.
std::string spell(const ProductForm &form);

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_PRODUCTFORM_H
