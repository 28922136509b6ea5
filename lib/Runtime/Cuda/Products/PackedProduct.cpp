//===- PackedProduct.cpp - A product on copies whose rows lie further apart ------------===//
#include "PackedProduct.h"

#include "Cuda/Commands.h"

namespace ds::rt::cuda {
namespace {

/// The launches that copy a matrix from `from` in memory to `to`, which lies otherwise.
Status addCopy(std::vector<std::unique_ptr<CudaTask>> &tasks, const Binding &binding,
               const MatmulOperand &from, const void *fromMemory, const MatmulOperand &to, void *toMemory) {
  const auto dtype = static_cast<DType>(from.dtype);
  const View views[] = {{const_cast<void *>(fromMemory), from.shape, from.strides, 2, dtype},
                        {toMemory, to.shape, to.strides, 2, dtype}};
  for (CudaLaunch &launch : cudaLaunches(LibraryFn::Copy, {views, nullptr, 2, 0, 1, nullptr})) {
    Result<std::unique_ptr<CudaTask>> task = bindLaunch(binding, std::move(launch));
    if (!task)
      return task.error();
    tasks.push_back(std::move(*task));
  }
  return {};
}

/// The product of copies, and what copies them.
Result<InTwo> cutPacked(ProductWays &all, const Binding &binding, const MatmulDesc &desc,
                        const MatmulMemory &memory, const PackedRows &rows, int64_t unit) {
  const MatmulOperand *operands[] = {&desc.a, &desc.b, &desc.result};
  const void *places[] = {memory.a, memory.b, memory.result};
  MatmulOperand copies[3];
  void *at[3];
  for (size_t i = 0; i < 3; ++i) {
    copies[i] = packed(*operands[i], rows.pitch[i]);
    at[i] = rows.pitch[i] ? static_cast<std::byte *>(memory.workspace) + rows.offset[i]
                          : const_cast<void *>(places[i]);
  }
  MatmulDesc there = desc;
  there.a = copies[0], there.b = copies[1], there.result = copies[2];
  InTwo way;
  way.product = all.cut(
      there, {at[0], at[1], memory.bias, at[2], static_cast<std::byte *>(memory.workspace) + rows.bytes},
      unit);
  way.copies = rows.bytes;
  for (size_t i = 0; i < 3; ++i)
    if (rows.pitch[i] && (i < 2 || desc.accumulate))
      if (Status status = addCopy(way.before, binding, *operands[i], places[i], copies[i], at[i]); !status)
        return status.error();
  if (rows.pitch[2])
    if (Status status = addCopy(way.after, binding, copies[2], at[2], desc.result, memory.result); !status)
      return status.error();
  return way;
}

} // namespace

Status addPackedWays(ProductWays &all, const Binding &binding, const MatmulDesc &desc,
                     const MatmulMemory &memory, const PackedRows &rows) {
  for (const int64_t unit : kCutUnits) {
    Result<InTwo> way = cutPacked(all, binding, desc, memory, rows, unit);
    if (!way)
      return way.error();
    if (way->product)
      all.addCut(std::move(*way));
  }
  return {};
}

} // namespace ds::rt::cuda
