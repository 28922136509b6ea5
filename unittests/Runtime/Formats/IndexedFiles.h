//===- IndexedFiles.h - Indices of token files, as Megatron writes them --------===//
#ifndef DS_UNITTESTS_RUNTIME_FORMATS_INDEXEDFILES_H
#define DS_UNITTESTS_RUNTIME_FORMATS_INDEXEDFILES_H

#include "TestFiles.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::rt {

/// An .idx in parts, each of which a test may damage.
struct IndexText {
  std::string magic = std::string("MMIDIDX\0\0", 9);
  uint64_t version = 1;
  uint8_t code = 8;
  uint64_t sequences = 0, borderCount = 0;
  std::vector<int32_t> lengths;
  std::vector<int64_t> positions;
  std::vector<uint64_t> borders;
  std::string tail;

  /// Sequences of these lengths side by side, each a document.
  static IndexText of(std::vector<int32_t> lengths, uint64_t width = 2, uint8_t code = 8) {
    IndexText index;
    index.code = code;
    index.borders = {0};
    int64_t position = 0;
    for (int32_t length : lengths) {
      index.positions.push_back(position);
      position += int64_t(length) * int64_t(width);
      index.borders.push_back(index.borders.size());
    }
    index.lengths = std::move(lengths);
    index.sequences = index.lengths.size();
    index.borderCount = index.borders.size();
    return index;
  }

  std::string bytes() const {
    return magic + bytesOf<uint64_t>({version}) + char(code) + bytesOf<uint64_t>({sequences, borderCount}) +
           bytesOf(lengths) + bytesOf(positions) + bytesOf(borders) + tail;
  }
};

} // namespace ds::rt

#endif // DS_UNITTESTS_RUNTIME_FORMATS_INDEXEDFILES_H
