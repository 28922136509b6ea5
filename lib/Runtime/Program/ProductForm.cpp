//===- ProductForm.cpp - The ways in which the CPU can make one product ---------===//
//
// Measured with oneDNN 2.6.3 on two cores of a Zen 4 server (232 GFLOP/s at best): the gradient of a language
// model's last activations, 1024 x 384 with a depth of 50304, reaches 170 to 186 GFLOP/s at once and 215 in
// parts of the depth of 3072. Copying an operand into rows of another length, or into the library's own
// order, costs there what it brings. On a Sapphire Rapids server products whose rows are whole pages run at
// half the rate of their neighbours, where a copy costs a tenth of what it brings. Exchanged operands reach
// the library's reference loop unless the result is stored by columns. So parts and copies are what is tried,
// and widening for 16 bits.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Program/ProductForm.h"

#include "ds/Support/Align.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {
namespace {

bool isNarrow(const MatmulDesc &desc) {
  return desc.a.dtype == static_cast<int32_t>(DType::BF16) ||
         desc.a.dtype == static_cast<int32_t>(DType::F16);
}

/// Parts of nearly one length, at most `most` rounded up to a multiple of 64.
int64_t evenPart(int64_t whole, int64_t most) {
  if (most <= 0 || most >= whole)
    return std::max<int64_t>(whole, 1);
  const int64_t count = (whole + most - 1) / most;
  return static_cast<int64_t>(alignTo(static_cast<uint64_t>((whole + count - 1) / count), 64));
}

struct Sizes {
  int64_t rows, columns, depth;
};
Sizes sizesOf(const MatmulDesc &desc) {
  const int32_t last = desc.rank - 1;
  return {desc.a.shape[last - 1], desc.b.shape[last], desc.a.shape[last]};
}

/// What a form does with operands before they are multiplied.
OperandCopies copiesOf(const ProductForm &form) {
  return form.kind == ProductKind::Packed   ? OperandCopies::Packed
         : form.kind == ProductKind::Padded ? OperandCopies::Padded
                                            : OperandCopies::None;
}

/// Offset of an element, in elements.
int64_t at(const MatmulOperand &operand, int64_t row, int64_t column) {
  return row * operand.strides[0] + column * operand.strides[1];
}

} // namespace

ProductForm formOf(std::span<const int64_t> params) {
  if (params.size() < kMatmulParams + kFormParams)
    return {};
  const int64_t *form = params.data() + kMatmulParams;
  return {static_cast<ProductKind>(form[0]), form[1], form[2], form[3]};
}

std::array<int64_t, kFormParams> paramsOf(const ProductForm &form) {
  return {static_cast<int64_t>(form.kind), form.rows, form.columns, form.depth};
}

std::string whyNot(const MatmulDesc &desc, const ProductForm &form) {
  const bool inParts = form.rows != 0 || form.columns != 0 || form.depth != 0;
  const OperandCopies copies = copiesOf(form);
  const bool isByBits = form.kind == ProductKind::Native || form.kind == ProductKind::Widened;
  if (isByBits && !isNarrow(desc))
    return "a product of f32 is neither native nor widened";
  if ((form.kind == ProductKind::Native || copies != OperandCopies::None) &&
      desc.a.dtype == static_cast<int32_t>(DType::F16))
    return "the library has no product of f16";
  if (copies != OperandCopies::None && desc.rank != 2)
    return "a product with batch dimensions is neither packed nor padded";
  if (copies == OperandCopies::Padded && !hasRowsOfPages(desc.a, 2) && !hasRowsOfPages(desc.b, 2))
    return "no operand has rows of whole pages";
  if (form.kind == ProductKind::Widened || !inParts)
    return "";
  if (desc.rank != 2)
    return "a product with batch dimensions has no parts";
  if (form.depth != 0 && desc.result.dtype != static_cast<int32_t>(DType::F32))
    return "parts of the depth would round a 16-bit result between them";
  return "";
}

std::vector<ProductForm> candidateForms(const MatmulDesc &desc, bool isWidened) {
  std::vector<ProductForm> forms = {{}};
  const Sizes sizes = sizesOf(desc);
  const auto add = [&](const ProductForm &form) {
    if (whyNot(desc, form).empty())
      forms.push_back(form);
  };
  constexpr int64_t kParts[] = {1024, 3072, 8192};
  for (const int64_t part : kParts) {
    if (sizes.depth > part + part / 2)
      add({ProductKind::Plain, 0, 0, part});
    if (sizes.rows > part + part / 2)
      add({ProductKind::Plain, part, 0, 0});
    if (sizes.columns > part + part / 2)
      add({ProductKind::Plain, 0, part, 0});
  }
  if (!isNarrow(desc) || !isWidened) {
    add({ProductKind::Packed, 0, 0, 0});
    add({ProductKind::Padded, 0, 0, 0});
  }
  if (!isNarrow(desc))
    return forms;
  add({isWidened ? ProductKind::Native : ProductKind::Widened, 0, 0, 0});
  for (const ProductForm &blocks : {ProductForm{ProductKind::Widened, 1024, 1536, 384},
                                    {ProductKind::Widened, 2048, 1024, 1024},
                                    {ProductKind::Widened, 4096, 384, 512},
                                    {ProductKind::Widened, 512, 256, 2048}})
    add(blocks);
  return forms;
}

std::vector<ProductPart> partsOf(const MatmulDesc &desc, const ProductForm &form) {
  if (desc.rank != 2 || form.kind == ProductKind::Widened)
    return {{desc, 0, 0, 0, 0}};
  const OperandCopies copies = copiesOf(form);
  const Sizes whole = sizesOf(desc);
  const Sizes part = {evenPart(whole.rows, form.rows), evenPart(whole.columns, form.columns),
                      evenPart(whole.depth, form.depth)};
  std::vector<ProductPart> parts;
  for (int64_t m = 0; m < whole.rows; m += part.rows)
    for (int64_t n = 0; n < whole.columns; n += part.columns)
      for (int64_t k = 0; k < std::max<int64_t>(whole.depth, 1); k += part.depth) {
        ProductPart one{desc, at(desc.a, m, k), at(desc.b, k, n), at(desc.result, m, n), n};
        const int64_t rows = std::min(part.rows, whole.rows - m),
                      columns = std::min(part.columns, whole.columns - n),
                      depth = std::min(part.depth, whole.depth - k);
        one.desc.a.shape[0] = one.desc.result.shape[0] = rows;
        one.desc.b.shape[1] = one.desc.result.shape[1] = columns;
        one.desc.a.shape[1] = one.desc.b.shape[0] = depth;
        one.desc.copies = copies;
        if (k > 0) {
          one.desc.accumulate = 1;
          one.desc.bias = -1;
        }
        parts.push_back(one);
      }
  return parts;
}

std::string productKey(const MatmulDesc &desc) {
  const int32_t last = desc.rank - 1;
  const auto order = [&](const MatmulOperand &operand) {
    return operand.strides[last] == 1 ? "rows" : "columns";
  };
  int64_t batch = 1;
  for (int32_t d = 0; d + 2 < desc.rank; ++d)
    batch *= desc.result.shape[d];
  const Sizes sizes = sizesOf(desc);
  return fmt::format("{} to {}: {} x {} x {} x {}, by {}, {}", spell(static_cast<DType>(desc.a.dtype)),
                     spell(static_cast<DType>(desc.result.dtype)), batch, sizes.rows, sizes.columns,
                     sizes.depth, order(desc.a), order(desc.b));
}

std::string spell(const ProductForm &form) {
  static constexpr const char *kKinds[] = {"plain", "native", "widened", "packed", "padded"};
  std::string text = kKinds[static_cast<int64_t>(form.kind)];
  for (const auto &[name, size] :
       {std::pair("rows", form.rows), {"columns", form.columns}, {"depth", form.depth}})
    if (size != 0)
      text += fmt::format(", {} {}", name, size);
  return text;
}

} // namespace ds::rt
