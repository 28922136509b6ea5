//===- StorageDigests.h - Whether what was written is what is read ------------------===//
#ifndef DS_LIB_RUNTIME_STORAGE_STORAGEDIGESTS_H
#define DS_LIB_RUNTIME_STORAGE_STORAGEDIGESTS_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace ds::rt {

/// Digests of each MiB that was written.
class StorageDigests {
public:
  /// Bytes that are compared as one.
  struct Piece {
    uint64_t offset, bytes;
  };

  /// Of bytes that are written now. What was known of them before is known no longer, in whole pieces as they
  /// were written.
  void note(uint64_t offset, const std::byte *data, uint64_t bytes);
  /// The first piece within what was read that is not as it was written.
  std::optional<Piece> findDamaged(uint64_t offset, const std::byte *data, uint64_t bytes) const;

private:
  struct Digest {
    uint64_t bytes, value;
  };
  std::map<uint64_t, Digest> digests; ///< by offset; of what was written last
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_STORAGE_STORAGEDIGESTS_H
