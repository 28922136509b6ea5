//===- HeldBytes.h - Bytes at moments, with sums over ranges and their maximum ----===//
//
// What is held is added to and looked at over ranges as long as a step, thousands of times: a tree whose
// nodes keep what was added to their whole range does either in the logarithm of its moments.
// Of 5, 7, 6 and 2 bytes, with 10 more at moments [2, 4), the most is 7 in [0, 2), 16 in [0, 4) and 12 in [3,
// 4).
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_RESIDENCY_HELDBYTES_H
#define DS_LIB_ANALYSIS_RESIDENCY_HELDBYTES_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ds::analysis::detail {

class HeldBytes {
public:
  explicit HeldBytes(const std::vector<int64_t> &bytes);

  /// Adds `bytes` to moments [begin, end).
  void add(uint32_t begin, uint32_t end, int64_t bytes);
  /// The most bytes at one of moments [begin, end); the least number there is where the range is empty.
  int64_t mostIn(uint32_t begin, uint32_t end) const;

private:
  struct Node {
    int64_t most = 0;  ///< of its moments, what was added to nodes above it left out
    int64_t added = 0; ///< to all of them
  };
  /// Moments [begin, end) that node `index` stands for.
  struct Range {
    std::size_t index;
    uint32_t begin, end;
  };
  void build(Range at, const std::vector<int64_t> &bytes);
  void add(Range at, uint32_t begin, uint32_t end, int64_t bytes);
  int64_t mostIn(Range at, uint32_t begin, uint32_t end) const;

  uint32_t count;
  std::vector<Node> nodes;
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_RESIDENCY_HELDBYTES_H
