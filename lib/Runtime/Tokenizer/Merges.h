//===- Merges.h - Byte-pair merges ------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TOKENIZER_MERGES_H
#define DS_LIB_RUNTIME_TOKENIZER_MERGES_H

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace ds::rt {

/// Which neighbours become one token, and in which order (Sennrich et al. 2016).
class Merges {
public:
  /// The next merge of the list, which comes after those added before; of a pair that is there already, the
  /// later one counts, as in `tokenizers`.
  void add(uint32_t left, uint32_t right, uint32_t merged);

  /// Merges neighbours of `tokens` until none can be: always those of the least rank, of these the leftmost.
  /// Takes n log n steps for n tokens.
  std::vector<uint32_t> apply(const std::vector<uint32_t> &tokens) const;

private:
  struct Merge {
    uint32_t rank, token;
  };
  static uint64_t keyOf(uint32_t left, uint32_t right) { return uint64_t(left) << 32 | right; }

  std::unordered_map<uint64_t, Merge> merges; ///< by pair
  uint32_t count = 0;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TOKENIZER_MERGES_H
