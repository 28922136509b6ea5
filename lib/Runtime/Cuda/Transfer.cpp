//===- Transfer.cpp - Fills and copies that need no kernel --------------------------===//
//
// Adjacent dimensions are merged; what is left must be rows of contiguous elements, which the driver copies
// one box at a time. Only a copy that transposes needs a kernel.
//
//===---------------------------------------------------------------------------===//
#include "Commands.h"

#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>

#include <bit>
#include <optional>
#include <vector>

namespace ds::rt::cuda {
namespace {

constexpr size_t kMaxBoxes = 256; // copies that one command may become

/// A dimension that two buffers share: strides in bytes.
struct Dimension {
  uint64_t size, from, to;
};

/// The dimensions of a copy, outermost first, sizes of 1 dropped and adjacent ones merged.
std::vector<Dimension> mergeDimensions(const Buffer &from, const Buffer &to) {
  const uint64_t bytes = byteSize(from.dtype);
  std::vector<Dimension> merged;
  for (size_t d = 0; d < from.shape.size(); ++d) {
    const auto size = static_cast<uint64_t>(from.shape[d]);
    const Dimension next{size, static_cast<uint64_t>(from.strides[d]) * bytes,
                         static_cast<uint64_t>(to.strides[d]) * bytes};
    if (size == 1)
      continue;
    if (!merged.empty() && merged.back().from == size * next.from && merged.back().to == size * next.to)
      merged.back() = {merged.back().size * size, next.from, next.to};
    else
      merged.push_back(next);
  }
  return merged;
}

/// Rows of `width` bytes, `height` of them.
struct Box {
  uint64_t from, to, width, height, fromPitch, toPitch;
};

class CopyTask final : public CudaTask {
public:
  CopyTask(const Driver &driver, std::vector<Box> boxes) : driver(driver), boxes(std::move(boxes)) {}
  Status issue(CUstream stream) override {
    for (const Box &box : boxes)
      if (const CUresult result = copy(box, stream); result != CUDA_SUCCESS)
        return asError(driver, result, "copying");
    return {};
  }

private:
  CUresult copy(const Box &box, CUstream stream) const {
    if (box.height == 1)
      return driver.memcpyAsync(box.to, box.from, box.width, stream);
    CUDA_MEMCPY2D spec{};
    spec.srcMemoryType = spec.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    spec.srcDevice = box.from;
    spec.dstDevice = box.to;
    spec.srcPitch = box.fromPitch;
    spec.dstPitch = box.toPitch;
    spec.WidthInBytes = box.width;
    spec.Height = box.height;
    return driver.memcpy2DAsync(&spec, stream);
  }

  const Driver &driver;
  std::vector<Box> boxes;
};

/// Sets `count` packed elements of `width` bytes to the low bytes of `pattern`.
class FillTask final : public CudaTask {
public:
  FillTask(const Driver &driver, CUdeviceptr at, uint64_t count, unsigned width, uint64_t pattern)
      : driver(driver), at(at), count(count), width(width), pattern(pattern) {}
  Status issue(CUstream stream) override {
    const CUresult result = count == 0 ? CUDA_SUCCESS : fill(stream);
    return result == CUDA_SUCCESS ? Status() : asError(driver, result, "filling");
  }

private:
  CUresult fill(CUstream stream) const {
    const auto low = static_cast<unsigned>(pattern), high = static_cast<unsigned>(pattern >> 32);
    if (pattern == 0)
      return driver.memsetD8Async(at, 0, count * width, stream);
    if (width == 1)
      return driver.memsetD8Async(at, static_cast<unsigned char>(low), count, stream);
    if (width == 2)
      return driver.memsetD16Async(at, static_cast<unsigned short>(low), count, stream);
    if (width == 4)
      return driver.memsetD32Async(at, low, count, stream);
    const CUresult result = driver.memsetD2D32Async(at, 8, low, 1, count, stream);
    return result == CUDA_SUCCESS ? driver.memsetD2D32Async(at + 4, 8, high, 1, count, stream) : result;
  }

  const Driver &driver;
  CUdeviceptr at;
  uint64_t count;
  unsigned width;
  uint64_t pattern;
};

/// The nearest bfloat16 or half to a double that is one of the small numbers programs fill with; by way of
/// float, ties to even.
uint16_t toHalf(double value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }
uint16_t toBFloat(double value) {
  const auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

uint64_t patternOf(double value, DType dtype) {
  switch (dtype) {
  case DType::F32:
    return std::bit_cast<uint32_t>(static_cast<float>(value));
  case DType::F64:
    return std::bit_cast<uint64_t>(value);
  case DType::F16:
    return toHalf(value);
  case DType::BF16:
    return toBFloat(value);
  case DType::I64:
    return static_cast<uint64_t>(static_cast<int64_t>(value));
  case DType::I32:
    return static_cast<uint32_t>(static_cast<int32_t>(value));
  case DType::I8:
    return static_cast<uint8_t>(static_cast<int8_t>(value));
  case DType::U8:
    return static_cast<uint8_t>(value);
  case DType::Bool:
    return value != 0;
  }
  return 0;
}

/// The boxes of a copy; empty with no element, nothing if it transposes or falls into too many pieces.
std::optional<std::vector<Box>> cutBoxes(const Buffer &from, const Buffer &to, uint64_t fromAt,
                                         uint64_t toAt) {
  if (numElements(from) == 0)
    return std::vector<Box>{};
  const uint64_t bytes = byteSize(from.dtype);
  std::vector<Dimension> dims = mergeDimensions(from, to);
  Box box{fromAt, toAt, bytes, 1, bytes, bytes};
  if (!dims.empty() && dims.back().from == bytes && dims.back().to == bytes) {
    box.width = dims.back().size * bytes;
    dims.pop_back();
  }
  if (!dims.empty() && dims.back().from >= box.width && dims.back().to >= box.width) {
    box.height = dims.back().size;
    box.fromPitch = dims.back().from;
    box.toPitch = dims.back().to;
    dims.pop_back();
  }
  std::vector<Box> boxes = {box};
  for (const Dimension &d : dims) {
    if (d.size * boxes.size() > kMaxBoxes)
      return std::nullopt;
    std::vector<Box> all;
    for (uint64_t i = 0; i < d.size; ++i)
      for (Box each : boxes) {
        each.from += i * d.from;
        each.to += i * d.to;
        all.push_back(each);
      }
    boxes = std::move(all);
  }
  return boxes;
}

} // namespace

Result<std::unique_ptr<CudaTask>> bindTransfer(const Binding &binding, const Command &command) {
  const Program &p = binding.program;
  const uint32_t *operands = p.operands.data() + command.firstOperand;
  const Buffer &first = p.buffers[operands[0]];
  const auto at = [&](uint32_t k) { return reinterpret_cast<uint64_t>(binding.address(operands[k])); };
  if (command.numOperands == 1 && isContiguous(first))
    return std::unique_ptr<CudaTask>(std::make_unique<FillTask>(
        binding.driver, at(0), static_cast<uint64_t>(numElements(first)), byteSize(first.dtype),
        patternOf(std::bit_cast<double>(p.params[command.firstParam]), first.dtype)));
  if (command.numOperands == 2)
    if (auto boxes = cutBoxes(first, p.buffers[operands[1]], at(0), at(1)))
      return std::unique_ptr<CudaTask>(std::make_unique<CopyTask>(binding.driver, std::move(*boxes)));
  return std::unique_ptr<CudaTask>();
}

} // namespace ds::rt::cuda
