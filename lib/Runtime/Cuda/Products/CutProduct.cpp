//===- CutProduct.cpp - A product of an odd size, in two calls -------------------------===//
#include "CutProduct.h"

#include "Cuda/Binding/AlgorithmChoice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace ds::rt::cuda {
namespace {

constexpr int64_t kVector = 16;    ///< bytes that fast kernels load and store at a time
constexpr int64_t kElements = 8;   ///< of 16 bits in that
constexpr int64_t kLeastMain = 16; ///< how many times the rest the main part is at least

enum class Side { Rows, Columns, Summands };

/// One side of a product in two.
struct Cut {
  Side side;
  int64_t main, rest; ///< elements
};

int64_t bytesOf(const MatmulOperand &operand) { return byteSize(static_cast<DType>(operand.dtype)); }

/// Whether a matrix and all its rows, or all its columns where those lie together, begin on 16 bytes.
bool isAligned(const MatmulOperand &operand, int rank, const void *memory) {
  const int64_t row = std::max(operand.strides[rank - 2], operand.strides[rank - 1]);
  return row * bytesOf(operand) % kVector == 0 && reinterpret_cast<uintptr_t>(memory) % kVector == 0;
}

bool isBatch(const MatmulDesc &desc) {
  return std::any_of(desc.result.shape, desc.result.shape + desc.rank - 2,
                     [](int64_t size) { return size != 1; });
}

std::optional<Cut> findCut(const MatmulDesc &desc, const MatmulMemory &memory, int64_t unit) {
  if (isBatch(desc) || bytesOf(desc.a) != 2 || !isAligned(desc.a, desc.rank, memory.a) ||
      !isAligned(desc.b, desc.rank, memory.b) || !isAligned(desc.result, desc.rank, memory.result))
    return std::nullopt;
  std::optional<Cut> cut;
  for (const auto &[side, size] : {std::pair(Side::Rows, desc.result.shape[desc.rank - 2]),
                                   {Side::Columns, desc.result.shape[desc.rank - 1]},
                                   {Side::Summands, desc.a.shape[desc.rank - 1]}}) {
    if (size % kElements == 0)
      continue;
    if (cut)
      return std::nullopt;
    cut = {side, size / unit * unit, size % unit};
  }
  return cut && cut->main >= kLeastMain * cut->rest ? cut : std::nullopt;
}

/// Elements [begin, begin + size) of dimension `dim` of an operand in `memory`; where they begin.
std::byte *narrow(MatmulOperand &operand, const void *memory, int dim, int64_t begin, int64_t size) {
  operand.shape[dim] = size;
  return static_cast<std::byte *>(const_cast<void *>(memory)) +
         begin * operand.strides[dim] * bytesOf(operand);
}

/// Elements [begin, begin + size) of one side.
std::pair<MatmulDesc, MatmulMemory> part(MatmulDesc desc, MatmulMemory memory, Side side, int64_t begin,
                                         int64_t size) {
  const int row = desc.rank - 2, column = desc.rank - 1;
  if (side != Side::Columns)
    memory.a = narrow(desc.a, memory.a, side == Side::Rows ? row : column, begin, size);
  if (side != Side::Rows)
    memory.b = narrow(desc.b, memory.b, side == Side::Columns ? column : row, begin, size);
  if (side != Side::Summands)
    memory.result = narrow(desc.result, memory.result, side == Side::Rows ? row : column, begin, size);
  if (side == Side::Columns && memory.bias)
    memory.bias =
        static_cast<const std::byte *>(memory.bias) + begin * byteSize(static_cast<DType>(desc.bias));
  return {desc, memory};
}

} // namespace

std::unique_ptr<CutProduct> CutProduct::make(BlasLt &blas, bool tf32, const MatmulDesc &desc,
                                             const MatmulMemory &memory, int64_t unit) {
  const std::optional<Cut> cut = findCut(desc, memory, unit);
  if (!cut)
    return nullptr;
  auto [main, mainMemory] = part(desc, memory, cut->side, 0, cut->main);
  auto [rest, restMemory] = part(desc, memory, cut->side, cut->main, cut->rest);
  std::unique_ptr<CutProduct> made(new CutProduct(blas, tf32));
  made->isRestFirst = cut->side == Side::Summands;
  if (made->isRestFirst) { // what comes once for each element of the result comes with the main part
    main.accumulate = 1;
    rest.bias = -1;
    rest.activation = 0;
    restMemory.bias = nullptr;
  }
  if (!made->main.describe(main, mainMemory) || !made->rest.describe(rest, restMemory))
    return nullptr;
  return made;
}

Status CutProduct::chooseRest(const Driver &driver, CUstream stream, uint64_t workspaceBytes, bool byTime) {
  const Result<std::vector<Product::Algorithm>> found = rest.candidates(workspaceBytes);
  if (!found)
    return found.error();
  rest.take(found->front());
  if (!byTime)
    return {};
  const auto run = [&](size_t index) {
    rest.take((*found)[index]);
    return rest.issue(stream);
  };
  const auto name = [](size_t index) { return fmt::format("the rest's algorithm {}", index); };
  const Result<size_t> best = fastest(driver, stream, {found->size(), run, name});
  if (!best)
    return best.error();
  rest.take((*found)[*best]);
  return {};
}

bool CutProduct::recall(std::span<const uint64_t> kept, uint64_t workspaceBytes) {
  const size_t words = kept.size() / 2;
  return main.recall(kept.first(words), workspaceBytes) && rest.recall(kept.subspan(words), workspaceBytes);
}

Status CutProduct::issue(CUstream stream) {
  Status status = (isRestFirst ? rest : main).issue(stream);
  return status ? (isRestFirst ? main : rest).issue(stream) : status;
}

} // namespace ds::rt::cuda
