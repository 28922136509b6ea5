//===- LostValues.cpp - Numbers of a tensor that are none -----------------------------===//
//
// Without its sign a float of IEEE's is infinite where its bits are those of the exponent, all ones, and no
// number where they are more.
//
//===---------------------------------------------------------------------------===//

#include "LostValues.h"

#include "Files/Text.h"
#include "Words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ds::rt {
namespace {

template <class Word>
void lookAt(LostValues &lost, std::span<const std::byte> bytes, uint64_t begin, Word infinity) {
  constexpr Word kMagnitude = static_cast<Word>(~Word(0)) >> 1;
  for (size_t i = 0; i < bytes.size() / sizeof(Word); ++i) {
    Word bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(Word), sizeof(Word));
    const Word magnitude = bits & kMagnitude;
    if (magnitude < infinity || (magnitude == infinity && lost.mayBeInfinite))
      continue;
    ++(magnitude == infinity ? lost.infinite : lost.nan);
    lost.first = std::min(lost.first, begin + i);
  }
}

std::string are(uint64_t count, const char *what) {
  return fmt::format("{} {}", count == 1 ? "is" : "are", what);
}

} // namespace

void LostValues::look(FileDType dtype, std::span<const std::byte> bytes, uint64_t begin) {
  switch (dtype) {
  case FileDType::F64:
    return lookAt<uint64_t>(*this, bytes, begin, uint64_t(0x7ff) << 52);
  case FileDType::F32:
    return lookAt<uint32_t>(*this, bytes, begin, 0x7f800000);
  case FileDType::BF16:
    return lookAt<uint16_t>(*this, bytes, begin, 0x7f80);
  case FileDType::F16:
    return lookAt<uint16_t>(*this, bytes, begin, 0x7c00);
  default:
    return;
  }
}

std::string LostValues::spell(const CheckpointTensor &tensor) const {
  const std::string of = fmt::format("of {} element{} ", elementsOf(tensor), plural(elementsOf(tensor)));
  std::string text;
  if (nan > 0)
    text = fmt::format("{} {}{}", nan, of, are(nan, "NaN"));
  if (infinite > 0)
    text +=
        fmt::format("{}{} {}{}", nan > 0 ? ", " : "", infinite, nan > 0 ? "" : of, are(infinite, "infinite"));
  return fmt::format("{}: {}, the first at {}", quote(tensor.name), text,
                     spellShape(indicesOf(first, tensor.shape)));
}

} // namespace ds::rt
