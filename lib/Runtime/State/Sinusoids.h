//===- Sinusoids.h - A table of positions that nothing learns ----------------------===//
//
// Row p of 2n columns has sin(p * w) for n frequencies w from 1 down to 1 / slowest, evenly spaced by their
// logarithms, and behind these the cosines of the same angles (arXiv 1706.03762). Frequencies and angles are
// rounded to single precision, as PyTorch's are, so that tables agree to the accuracy of an exponential: at
// angle p that is p * 2^-23.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_STATE_SINUSOIDS_H
#define DS_LIB_RUNTIME_STATE_SINUSOIDS_H

#include <cstdint>
#include <vector>

namespace ds::rt {

class Sinusoids {
public:
  /// A table of `columns`, an even number of at least 4; `slowest` is finite and above 0.
  Sinusoids(int64_t columns, double slowest);

  /// Writes the elements [first, first + count) of the table, row by row, to `to`.
  void make(uint64_t first, uint64_t count, float *to) const;

private:
  std::vector<float> frequencies; ///< radians a row
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_STATE_SINUSOIDS_H
