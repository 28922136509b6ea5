//===- StateWriter.h - Gives many states their values, as fast as the machine allows --===//
//
// A model's states are many times what one thread makes, and what is copied to a device from memory that is
// not page-locked is copied twice. So zeros and random numbers are made where they are to be; what only the
// host has, it makes on all its threads, in two pieces of page-locked memory that take turns: one is filled
// while the other one is copied.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_STATEWRITER_H
#define DS_LIB_RUNTIME_ENGINE_STATEWRITER_H

#include "ds/Runtime/Engine/Executor.h"

#include <array>
#include <functional>
#include <memory>

namespace ds::rt {

class HostTeam;

/// Writes to the arenas of one executor, on the thread that has loaded it. A value may still be on its way
/// when a call returns; `finish` waits for all.
class StateWriter {
public:
  /// Writes elements [first, first + count) of those asked for to `to`, which `first` says the place of.
  /// Called on several threads at once, for disjoint ranges.
  using Make = std::function<Status(uint64_t first, uint64_t count, std::byte *to)>;

  /// `executor` outlives the writer.
  explicit StateWriter(Executor &executor);
  ~StateWriter();

  /// Sets `bytes` bytes at `address` of an arena to zero.
  Status clear(std::byte *address, uint64_t bytes);

  /// Fills what lies at `address`, of `dtype`, with the random numbers of `call`, whose own data are not
  /// looked at, rounded once. False, and nothing is done, where the device has no kernel for it: the host's
  /// memory, another type than f32, bf16 and f16, or numbers that may be outside of f16.
  Result<bool> draw(std::byte *address, DType dtype, const RandomCall &call);

  /// Writes `elements` elements of `elementBytes` at `address` of an arena. Fails as `make` does, with the
  /// failure of the first range that has one.
  Status write(std::byte *address, uint64_t elements, uint64_t elementBytes, const Make &make);

  /// Returns when all is where it belongs, or with the device's error.
  Status finish();

private:
  /// Page-locked memory that values are made in on their way to a device.
  struct Piece {
    std::byte *memory = nullptr;
    uint64_t used = 0;      ///< bytes that are made
    bool isPending = false; ///< some may still be copied
  };

  Status make(uint64_t first, uint64_t count, uint64_t elementBytes, std::byte *to, const Make &make);
  Status writeBySteps(std::byte *address, uint64_t elements, uint64_t elementBytes, const Make &make);
  Status writeByPieces(std::byte *address, uint64_t elements, uint64_t elementBytes, const Make &make);
  Result<Piece *> pieceFor(uint64_t bytes);

  Executor &executor;
  Device *device;
  uint32_t threads;               ///< that `make` is called on
  std::unique_ptr<HostTeam> team; ///< beside a device; null: the team of the executor's own kernels
  std::array<Piece, 2> pieces;
  size_t current = 0; ///< which of them is being filled
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_STATEWRITER_H
