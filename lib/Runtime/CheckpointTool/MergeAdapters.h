//===- MergeAdapters.h - Adds low-rank adapters to the weights beside them ----------------===//
//
// The factors of one layer are in memory at a time; weights pass by in pieces, in f32. A sum is formed in f64
// and rounded once, with the weight that it is added to.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_CHECKPOINTTOOL_MERGEADAPTERS_H
#define DS_LIB_RUNTIME_CHECKPOINTTOOL_MERGEADAPTERS_H

#include "ds/Runtime/Checkpoint/Checkpoint.h"
#include "ds/Support/Adapters.h"

#include <span>
#include <string>
#include <vector>

namespace ds::rt {

class AdapterMerger {
public:
  /// For the adapters that `request` describes, which `checkpoint` has. It must outlive the merger.
  AdapterMerger(const Checkpoint &checkpoint, AdapterRequest request)
      : checkpoint(checkpoint), request(std::move(request)) {}

  /// Reads the adapter of the layer whose weight is `tensor`, unless it has done so; false: there is none.
  /// Corrupt: the checkpoint is damaged, or has factors of another shape.
  Result<bool> choose(const CheckpointTensor &tensor);

  /// Adds what the chosen adapter has for the weight's elements from `first` on.
  void add(uint64_t first, std::span<float> values);

private:
  /// Reads the values of a factor of shape [rows, columns].
  Result<std::vector<float>> read(const std::string &name, int64_t rows, int64_t columns) const;
  Status readLayer(const CheckpointTensor &tensor, const std::string &layer);

  const Checkpoint &checkpoint;
  AdapterRequest request;
  const CheckpointTensor *chosen = nullptr;
  bool hasAdapter = false;
  size_t rank = 0, columns = 0; ///< of the chosen one; columns of its weight
  double scale = 1;
  std::vector<float> left, right; ///< [rows, rank] and [rank, columns]
  std::vector<double> sums;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_CHECKPOINTTOOL_MERGEADAPTERS_H
