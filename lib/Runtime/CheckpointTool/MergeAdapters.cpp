//===- MergeAdapters.cpp - Adds low-rank adapters to the weights beside them --------------===//
#include "MergeAdapters.h"

#include "Files/Text.h"
#include "Formats/Convert.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {

/// [rows, columns] as [columns, rows].
static std::vector<float> transposed(const std::vector<float> &from, size_t rows, size_t columns) {
  std::vector<float> to(from.size());
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      to[j * rows + i] = from[i * columns + j];
  return to;
}

/// The layer of a weight that has an adapter, by one of the weight's names; empty: it has none.
static std::string adaptedLayer(const CheckpointTensor &tensor, const Checkpoint &checkpoint) {
  std::vector<std::string> names = tensor.aliases;
  names.insert(names.begin(), tensor.name);
  for (const std::string &name : names) {
    constexpr std::string_view kWeight = ".weight";
    if (!name.ends_with(kWeight))
      continue;
    std::string layer = name.substr(0, name.size() - kWeight.size());
    if (checkpoint.find(adapterNameA(layer)))
      return layer;
  }
  return "";
}

Result<std::vector<float>> AdapterMerger::read(const std::string &name, int64_t rows, int64_t columns) const {
  const CheckpointTensor *tensor = checkpoint.find(name);
  if (!tensor || tensor->shape != std::vector<int64_t>{rows, columns} ||
      !isConvertible(tensor->dtype, DType::F32))
    return Error{ExitCode::Corrupt,
                 fmt::format("{}: expects a tensor of floats of shape [{}, {}]", quote(name), rows, columns),
                 "the checkpoint's description of its adapters is of others"};
  const auto count = static_cast<uint64_t>(rows * columns);
  std::vector<std::byte> bytes(count * (bitSize(tensor->dtype) / 8));
  if (Status status = checkpoint.read(*tensor, 0, count, bytes.data()); !status)
    return status.error();
  std::vector<float> values(count);
  BadElement bad;
  convertElements(tensor->dtype, bytes.data(), DType::F32, values.data(), count, {}, bad);
  return values;
}

Status AdapterMerger::readLayer(const CheckpointTensor &tensor, const std::string &layer) {
  const std::optional<AdapterSize> size = request.find(layer);
  if (!size || tensor.shape.size() != 2 || !isConvertible(tensor.dtype, DType::F32))
    return Error{ExitCode::Corrupt,
                 fmt::format("{}: its adapter is not described, or is of no matrix", quote(tensor.name)), ""};
  const int64_t rows = tensor.shape[0], inputs = tensor.shape[request.isTransposed ? 0 : 1],
                outputs = tensor.shape[request.isTransposed ? 1 : 0];
  Result<std::vector<float>> a = read(adapterNameA(layer), size->rank, inputs);
  if (!a)
    return a.error();
  Result<std::vector<float>> b = read(adapterNameB(layer), outputs, size->rank);
  if (!b)
    return b.error();
  rank = static_cast<size_t>(size->rank);
  columns = static_cast<size_t>(tensor.shape[1]);
  // W is B A, or its transpose.
  left = request.isTransposed ? transposed(*a, rank, static_cast<size_t>(rows)) : std::move(*b);
  right = request.isTransposed ? transposed(*b, columns, rank) : std::move(*a);
  scale = request.scaleOf(*size);
  return {};
}

Result<bool> AdapterMerger::choose(const CheckpointTensor &tensor) {
  if (chosen == &tensor)
    return hasAdapter;
  const std::string layer = adaptedLayer(tensor, checkpoint);
  if (!layer.empty())
    if (Status status = readLayer(tensor, layer); !status)
      return status.error();
  chosen = &tensor;
  hasAdapter = !layer.empty();
  return hasAdapter;
}

void AdapterMerger::add(uint64_t first, std::span<float> values) {
  while (!values.empty()) {
    const size_t row = first / columns, column = first % columns;
    const size_t count = std::min(columns - column, values.size()); // to the end of the row
    sums.assign(count, 0);
    for (size_t k = 0; k < rank; ++k) {
      const double factor = left[row * rank + k];
      const float *from = &right[k * columns + column];
      for (size_t j = 0; j < count; ++j)
        sums[j] += factor * from[j];
    }
    for (size_t j = 0; j < count; ++j)
      values[j] = static_cast<float>(values[j] + scale * sums[j]);
    first += count;
    values = values.subspan(count);
  }
}

} // namespace ds::rt
