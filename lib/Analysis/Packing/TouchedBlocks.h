//===- TouchedBlocks.h - When blocks of memory were touched last -----------------===//
//
// Neighbouring blocks that were touched together are one entry, so that a touch takes time for the pieces
// that it meets and not for its blocks: the states of a large model are millions of them.
//
// Example: [0, 8) is touched at 1 and [2, 4) at 3, which leaves the runs [0, 2), [2, 4) and [4, 8). A touch
// of [0, 4) at 5 finds blocks that were touched 4, 4, 2 and 2 ago: 3 in the mean, and joins them to one run.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_ANALYSIS_PACKING_TOUCHEDBLOCKS_H
#define DS_LIB_ANALYSIS_PACKING_TOUCHEDBLOCKS_H

#include <cstdint>
#include <map>

namespace ds::analysis::detail {

class TouchedBlocks {
public:
  /// The mean over blocks [begin, end) of `now` less the time at which each was touched, infinite where one
  /// never was; touches them at `now`. Requires begin < end and that `now` does not fall.
  double touch(int64_t begin, int64_t end, double now);

private:
  struct Run {
    int64_t end;
    double time;
  };
  void splitAt(int64_t block);

  std::map<int64_t, Run> runs; ///< by first block; they do not overlap
};

} // namespace ds::analysis::detail

#endif // DS_LIB_ANALYSIS_PACKING_TOUCHEDBLOCKS_H
