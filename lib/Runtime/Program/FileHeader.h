//===- FileHeader.h - The first bytes of a .dsx file ---------------------------===//
#ifndef DS_LIB_RUNTIME_PROGRAM_FILEHEADER_H
#define DS_LIB_RUNTIME_PROGRAM_FILEHEADER_H

#include <cstdint>

namespace ds::rt {

inline constexpr char kMagic[8] = {'\x89', 'D', 'S', 'X', '\r', '\n', '\x1a', '\n'};
inline constexpr uint64_t kMaxPayload = (uint64_t(1) << 31) - 1; ///< FlatBuffers offsets are signed 32-bit

/// The first bytes of the file, little-endian. Sixteen-byte multiples keep the payload aligned.
struct Header {
  char magic[8];
  uint32_t version;
  uint32_t reserved; ///< 0
  uint64_t payloadBytes;
  uint64_t checksum; ///< XXH3-64 of the payload, seeded with the version
};
static_assert(sizeof(Header) == 32);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_FILEHEADER_H
