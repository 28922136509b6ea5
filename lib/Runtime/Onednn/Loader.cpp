//===- Loader.cpp - The side of the oneDNN border that needs no oneDNN ---------===//
//
// Finds the plugin and translates commands into products. Linked by ds-opt as well, so nothing here may need
// more than the program struct.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Library.h"
#include "ds/Runtime/OnednnPlugin.h"

#include "../PluginFile.h"
#include "ds/Support/Align.h"
#include "ds/Support/RunTool.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <utility>

namespace ds::rt {
namespace {

/// A dimension of size 1 may have any stride in a program; oneDNN derives leading dimensions from strides.
void normalizeStrides(MatmulOperand &operand, int rank) {
  int64_t &rows = operand.strides[rank - 2], &columns = operand.strides[rank - 1];
  const int64_t numRows = operand.shape[rank - 2], numColumns = operand.shape[rank - 1];
  if (numColumns == 1)
    columns = numRows == 1 || rows != 1 ? 1 : numRows;
  if (numRows == 1)
    rows = columns == 1 ? numColumns : 1;
  for (int d = rank - 3; d >= 0; --d)
    if (operand.shape[d] == 1)
      operand.strides[d] = operand.shape[d + 1] * operand.strides[d + 1];
}

MatmulOperand toOperand(const Buffer &buffer, bool transpose, size_t rank) {
  MatmulOperand operand{};
  operand.dtype = static_cast<int32_t>(buffer.dtype);
  const size_t missing = rank - buffer.shape.size();
  for (size_t d = 0; d < rank; ++d) {
    operand.shape[d] = d < missing ? 1 : buffer.shape[d - missing];
    operand.strides[d] = d < missing ? 0 : buffer.strides[d - missing];
  }
  if (transpose) {
    std::swap(operand.shape[rank - 1], operand.shape[rank - 2]);
    std::swap(operand.strides[rank - 1], operand.strides[rank - 2]);
  }
  return operand;
}

/// Merges the leading dimensions of `buffer` into its rows, if memory has them one after another.
bool foldRows(Buffer &buffer) {
  while (buffer.shape.size() > 2) {
    const size_t rows = buffer.shape.size() - 2;
    const bool adjacent = buffer.shape[rows] == 1 || buffer.shape[rows - 1] == 1 ||
                          buffer.strides[rows - 1] == buffer.shape[rows] * buffer.strides[rows];
    if (!adjacent)
      return false;
    const int64_t stride = buffer.shape[rows] == 1 ? buffer.strides[rows - 1] : buffer.strides[rows];
    buffer.shape[rows - 1] *= buffer.shape[rows];
    buffer.strides[rows - 1] = stride;
    buffer.shape.erase(buffer.shape.begin() + static_cast<ptrdiff_t>(rows));
    buffer.strides.erase(buffer.strides.begin() + static_cast<ptrdiff_t>(rows));
  }
  return true;
}

/// Whether there are addresses left for what oneDNN generates and keeps: where it gets none it ends the
/// process
/// (`ulimit -v`).
bool hasRoom() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return true;
  constexpr size_t kRoom = size_t(8) << 20;
  void *const probe = ::mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return probe != MAP_FAILED && ::munmap(probe, kRoom) == 0;
}

} // namespace

Result<const OnednnApi *> openOnednn() {
  static const Result<const OnednnApi *> api =
      openApi<OnednnApi>({"libds-onednn.so", "dsOnednn", "matrix products and convolutions need",
                          "install oneDNN (libdnnl2) and keep the plugin in ../lib of the tool"},
                         kOnednnAbi);
  if (api && !hasRoom())
    return outOfMemory();
  return api;
}

MatmulDesc describeMatmul(const Buffer &a, const Buffer &b, const Buffer &result, const Buffer *bias,
                          const int64_t *params) {
  Buffer left = a, out = result;
  if (b.shape.size() == 2 && !params[0] && a.shape.size() > 2) {
    Buffer foldedLeft = a, foldedOut = result;
    if (foldRows(foldedLeft) && foldRows(foldedOut)) {
      left = std::move(foldedLeft);
      out = std::move(foldedOut);
    }
  }
  MatmulDesc desc{};
  desc.rank = static_cast<int32_t>(left.shape.size());
  desc.a = toOperand(left, params[0] != 0, left.shape.size());
  desc.b = toOperand(b, params[1] != 0, left.shape.size());
  desc.result = toOperand(out, false, left.shape.size());
  for (MatmulOperand *operand : {&desc.a, &desc.b, &desc.result})
    normalizeStrides(*operand, desc.rank);
  desc.bias = bias ? static_cast<int32_t>(bias->dtype) : -1;
  desc.accumulate = params[2] != 0;
  desc.activation = params[3] == static_cast<int64_t>(Activation::Relu);
  return desc;
}

Result<uint64_t> matmulScratchpadBytes(const MatmulDesc &desc, uint32_t threads) {
  Result<const OnednnApi *> api = openOnednn();
  if (!api)
    return api.error();
  char message[256] = "";
  const uint64_t bytes = (*api)->scratchpadBytes(&desc, threads, message, sizeof message);
  if (bytes == UINT64_MAX)
    return Error{ExitCode::Device, std::string("oneDNN: ") + message, ""};
  return alignTo(bytes, 64);
}

} // namespace ds::rt
