//===- Collective.h - What ranks can do together -------------------------------===//
//
// One row for each kind of collective says what everybody asks of it: its operands, whether it reduces, which
// of them may share memory, and what a rank sends. Compiler, verifier, communicators and measurements read
// the row; only who carries a collective out, and what it costs, names kinds.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_COLLECTIVE_H
#define DS_RUNTIME_PROGRAM_COLLECTIVE_H

#include <cstdint>
#include <iterator>

namespace ds::rt {

enum class CollectiveKind : uint8_t { AllGather, ReduceScatter, AllReduce, Broadcast, AllToAll, Send, Recv };
inline constexpr CollectiveKind kLastCollective = CollectiveKind::Recv;

/// How many parts of n elements an operand has, n being what one rank gives or gets.
enum class Parts : uint8_t {
  None, ///< there is no such operand
  One,
  All, ///< one for each rank, in the order of positions
};

/// In which way input and output may share memory; in all others they are apart.
enum class Sharing : uint8_t {
  None,
  Same,        ///< they may be one buffer
  PartOfWhole, ///< the operand of one part may be this rank's part of the other
};

/// What a rank sends, by parts, of W ranks; and so, as nccl-tests count it, what each link has to carry.
enum class Traffic : uint8_t {
  Nothing,
  Once,   ///< its part
  Others, ///< W - 1 parts
  Twice,  ///< 2 (W - 1) / W parts: those of a reduce-scatter and a gather
};

struct CollectiveTraits {
  const char *name;
  Parts input, output;
  Sharing sharing;
  Traffic traffic;
  bool reduces = false;
  bool isOneOperand = false; ///< commands name input and output once
  unsigned params = 0;       ///< of its command; the first is the position of the rank that is named
  bool isMessage = false;    ///< between two ranks: one end of it (Messages.h)

  /// Parts of an operand where W ranks take part.
  static constexpr uint64_t count(Parts parts, uint64_t ranks) {
    return parts == Parts::None ? 0 : parts == Parts::One ? 1 : ranks;
  }
  /// Bytes that one of W ranks sends, the most that any does, where its input has `input` bytes in elements
  /// of `element` bytes; a group of one sends nothing.
  constexpr uint64_t sentBytes(uint64_t input, uint64_t element, uint64_t ranks) const {
    if (traffic == Traffic::Nothing || ranks <= 1)
      return 0;
    const uint64_t part = input / count(this->input, ranks);
    if (traffic == Traffic::Once)
      return part;
    if (traffic == Traffic::Others)
      return (ranks - 1) * part;
    return 2 * (ranks - 1) * ((part / element + ranks - 1) / ranks) * element;
  }
};

inline constexpr CollectiveTraits kCollectives[] = {
    {"all_gather", Parts::One, Parts::All, Sharing::PartOfWhole, Traffic::Others},
    {"reduce_scatter", Parts::All, Parts::One, Sharing::PartOfWhole, Traffic::Others, /*reduces=*/true},
    {"all_reduce", Parts::One, Parts::One, Sharing::Same, Traffic::Twice, /*reduces=*/true},
    {"broadcast", Parts::One, Parts::One, Sharing::Same, Traffic::Once, /*reduces=*/false,
     /*isOneOperand=*/true, /*params=*/1},
    {"all_to_all", Parts::All, Parts::All, Sharing::None, Traffic::Others},
    {"send", Parts::One, Parts::None, Sharing::None, Traffic::Once, /*reduces=*/false,
     /*isOneOperand=*/false, /*params=*/2, /*isMessage=*/true},
    {"recv", Parts::None, Parts::One, Sharing::None, Traffic::Nothing, /*reduces=*/false,
     /*isOneOperand=*/false, /*params=*/2, /*isMessage=*/true},
};
static_assert(std::size(kCollectives) == static_cast<unsigned>(kLastCollective) + 1, "each kind has a row");

/// Requires a kind that is known.
constexpr const CollectiveTraits &traitsOf(CollectiveKind kind) {
  return kCollectives[static_cast<unsigned>(kind)];
}
inline const char *spell(CollectiveKind kind) { return traitsOf(kind).name; }

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_COLLECTIVE_H
