//===- Batches.cpp - Goes through tensors a few MiB at a time ------------------------===//

#include "Batches.h"

#include "Files/Text.h"
#include "Words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ds::rt {

std::vector<Piece> Batches::next() {
  std::vector<Piece> pieces;
  uint64_t bytes = 0;
  while (tensor < tensors.size()) {
    const uint64_t size = bitSize(tensors[tensor]->dtype) / 8, elements = elementsOf(*tensors[tensor]);
    const uint64_t count = std::min(elements - first, (kBytes - bytes) / size);
    if (count > 0)
      pieces.push_back({tensor, first, count, bytes});
    first += count;
    bytes += count * size;
    if (first < elements)
      return pieces;             // the batch is full
    bytes = (bytes + 7) / 8 * 8; // elements of any type begin aligned
    ++tensor;
    first = 0;
  }
  return pieces;
}

Status readBatch(const Checkpoint &checkpoint, std::span<const CheckpointTensor *const> tensors,
                 std::span<const Piece> pieces, std::vector<std::byte> &buffer) {
  std::vector<WantedBytes> wanted;
  uint64_t bytes = 0;
  for (const Piece &piece : pieces) {
    const CheckpointTensor &tensor = *tensors[piece.tensor];
    const uint64_t size = bitSize(tensor.dtype) / 8;
    bytes = piece.at + piece.count * size;
    const uint64_t missing =
        checkpoint.want(tensor, piece.first, piece.count, [&](WantedBytes each, uint64_t element) {
          each.tag = piece.at + (element - piece.first) * size;
          wanted.push_back(each);
        });
    if (missing > 0)
      return checkpoint.elsewhere(fmt::format("{} bytes of {} are", missing * size, quote(tensor.name)));
  }
  buffer.resize(std::max<size_t>(buffer.size(), bytes));
  return checkpoint.read(std::move(wanted),
                         [&](const WantedBytes &each, uint64_t from, std::span<const std::byte> part) {
                           std::memcpy(buffer.data() + each.tag + from, part.data(), part.size());
                           return Status();
                         });
}

} // namespace ds::rt
