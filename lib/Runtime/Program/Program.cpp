//===- Program.cpp - Names and sizes of the program's enumerations -------------===//
//
// One table per enumeration, so that a diagnostic, a log and the file agree on the spelling.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Program/Program.h"

#include <algorithm>
#include <iterator>

namespace ds::rt {

unsigned byteSize(DType dtype) {
  static constexpr unsigned kBytes[] = {4, 8, 2, 2, 8, 4, 1, 1, 1};
  return kBytes[static_cast<uint8_t>(dtype)];
}

const char *spell(DType dtype) {
  static constexpr const char *kNames[] = {"f32", "f64", "f16", "bf16", "i64", "i32", "i8", "u8", "i1"};
  return kNames[static_cast<uint8_t>(dtype)];
}

const char *spell(Space space) {
  static constexpr const char *kNames[] = {"device", "host", "nvme"};
  return kNames[static_cast<uint8_t>(space)];
}

const char *spell(Role role) {
  static constexpr const char *kNames[] = {"parameter", "buffer", "gradient", "moment", "master", "scalar"};
  return kNames[static_cast<uint8_t>(role)];
}

const char *spell(Work work) {
  static constexpr const char *kNames[] = {"forward", "backward",   "input gradient", "weight gradient",
                                           "update",  "evaluation", "transfer",       "move"};
  static_assert(std::size(kNames) == static_cast<size_t>(kLastWork) + 1);
  return kNames[static_cast<uint8_t>(work)];
}

std::string spell(WorkSet works) {
  std::string text;
  for (unsigned bit = 0; bit <= static_cast<unsigned>(kLastWork); ++bit)
    if (works.has(static_cast<Work>(bit)))
      text += (text.empty() ? "" : ", ") + std::string(spell(static_cast<Work>(bit)));
  return text.empty() ? "nothing" : text;
}

const char *spell(Lane lane) {
  static constexpr const char *kNames[] = {"compute", "transfer", "move"};
  static_assert(std::size(kNames) == kNumLanes);
  return kNames[static_cast<uint8_t>(lane)];
}

const char *spell(Gradients gradients) {
  static constexpr const char *kNames[] = {"none", "set", "add"};
  return kNames[static_cast<uint8_t>(gradients)];
}

const char *spell(StreamKind kind) {
  static constexpr const char *kNames[] = {"compute", "gather", "reduce",   "to_host", "to_device",
                                           "storage", "host",   "exchange", "transfer"};
  static_assert(std::size(kNames) == static_cast<size_t>(kLastStreamKind) + 1);
  return kNames[static_cast<uint8_t>(kind)];
}

const char *spell(Reduction reduction) {
  static constexpr const char *kNames[] = {"none", "sum", "max", "min"};
  return kNames[static_cast<uint8_t>(reduction)];
}

uint64_t reduceBlockElements(const Collective &collective, uint32_t ranks) {
  const uint64_t part = collective.kind == CollectiveKind::AllReduce
                            ? (collective.elements + ranks - 1) / ranks
                            : collective.elements;
  return std::min(part, kReduceBlockBytes / byteSize(collective.dtype));
}

uint64_t collectiveStagingBytes(const Collective &collective, uint32_t ranks) {
  if (ranks == 1 || collective.reduction == Reduction::None)
    return 0;
  return reduceBlockElements(collective, ranks) * ranks * byteSize(collective.dtype);
}

} // namespace ds::rt
