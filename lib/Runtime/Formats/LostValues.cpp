//===- LostValues.cpp - Numbers of a tensor that are none -----------------------------===//
//
// Without its sign a float of IEEE's is infinite where its bits are those of the exponent, all ones, and no
// number where they are more. Whether a block has such bits at all is asked first, in a loop that the
// compiler makes vectors of: nearly no block has.
//
//===---------------------------------------------------------------------------===//

#include "LostValues.h"

#include "Files/Text.h"
#include "Indices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ds::rt {
namespace {

constexpr size_t kBlock = 4096;   // elements
constexpr size_t kMostLines = 20; // of tensors

template <class Word>
Word magnitudeAt(const std::byte *data, size_t element) {
  Word bits;
  std::memcpy(&bits, data + element * sizeof(Word), sizeof(Word));
  return bits & static_cast<Word>(~Word(0)) >> 1;
}

template <class Word>
bool isAllFinite(const std::byte *data, size_t count, Word infinity) {
  bool isFinite = true;
  for (size_t i = 0; i < count; ++i)
    isFinite &= magnitudeAt<Word>(data, i) < infinity;
  return isFinite;
}

template <class Word>
void lookAt(LostValues &lost, std::span<const std::byte> bytes, uint64_t begin, Word infinity) {
  const size_t count = bytes.size() / sizeof(Word);
  for (size_t block = 0; block < count; block += kBlock) {
    const size_t end = std::min(block + kBlock, count);
    if (isAllFinite(bytes.data() + block * sizeof(Word), end - block, infinity))
      continue;
    for (size_t i = block; i < end; ++i) {
      const Word magnitude = magnitudeAt<Word>(bytes.data(), i);
      if (magnitude < infinity || (magnitude == infinity && lost.mayBeInfinite))
        continue;
      ++(magnitude == infinity ? lost.infinite : lost.nan);
      lost.first = std::min(lost.first, begin + i);
    }
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

void LostValues::add(const LostValues &other) {
  nan += other.nan;
  infinite += other.infinite;
  first = std::min(first, other.first);
}

std::string LostValues::spell(std::string_view name, std::span<const int64_t> shape) const {
  int64_t elements = 0;
  checkedProduct(shape, elements); // of a tensor that was read
  const std::string of = fmt::format("of {} element{} ", elements, elements == 1 ? "" : "s");
  std::string text;
  if (nan > 0)
    text = fmt::format("{} {}{}", nan, of, are(nan, "NaN"));
  if (infinite > 0)
    text +=
        fmt::format("{}{} {}{}", nan > 0 ? ", " : "", infinite, nan > 0 ? "" : of, are(infinite, "infinite"));
  return fmt::format("{}: {}, the first at {}", quote(name), text, spellShape(indicesOf(first, shape)));
}

void LostLines::add(const LostValues &values, std::string_view name, std::span<const int64_t> shape) {
  if (!values.any())
    return;
  if (lines.size() < kMostLines)
    lines.push_back(values.spell(name, shape));
  else
    ++untold;
}

std::vector<std::string> LostLines::all() const {
  std::vector<std::string> all = lines;
  if (untold > 0)
    all.push_back(fmt::format("and {} more tensor{} with NaN or infinity", untold, untold == 1 ? "" : "s"));
  return all;
}

} // namespace ds::rt
