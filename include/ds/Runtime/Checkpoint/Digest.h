//===- Digest.h - What bytes are recognised by ------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINT_DIGEST_H
#define DS_RUNTIME_CHECKPOINT_DIGEST_H

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace ds::rt {

/// 128 bits of XXH3 as 32 hex digits.
std::string digestOf(std::span<const std::byte> bytes);

/// The same of bytes that come piece by piece.
class Digester {
public:
  Digester();
  void add(std::span<const std::byte> bytes);
  /// The digest of all that was added; begins anew.
  std::string finish();

  Digester(Digester &&) noexcept;
  ~Digester();

private:
  struct State;
  std::unique_ptr<State> state; ///< never null but after a move
};

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINT_DIGEST_H
