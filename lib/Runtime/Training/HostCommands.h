//===- HostMoves.h - Storage commands beside an accelerator --------------------------===//
//
// A disk is the host's: a storage command of an accelerator's program is a call of the host that its stream
// waits for. The device cannot tell what became of it, so the first failure is kept here, and what comes
// behind it moves nothing.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_HOSTMOVES_H
#define DS_LIB_RUNTIME_TRAINING_HOSTMOVES_H

#include "Cpu/Task.h"

#include "ds/Runtime/Device.h"
#include "ds/Runtime/Storage.h"

#include <map>
#include <mutex>
#include <optional>

namespace ds::rt {

class HostMoves {
public:
  explicit HostMoves(Storage &storage) : storage(storage) {}

  Storage &storage;

  /// Takes the host's arena, through which all goes. Fails with ExitCode::Device where it begins at no unit.
  Status useHost(const Program &program, uint32_t rank, std::byte *host);
  /// Makes a storage command ready, with its operands where they are for each micro-batch.
  void bind(const Program &program, uint32_t command, const Device::Address &address);
  /// Puts it on its stream.
  Status issue(Device &device, const Program &program, uint32_t command, uint32_t microBatch);
  /// The first failure of what has run since the last call. Once the device's work is done.
  Status takeFailure();

private:
  /// One for each place of the operands; its address is what the device is given.
  struct Move {
    HostMoves *all;
    StorageMove move;
    std::string what; ///< for messages
  };
  static void run(void *argument);

  std::map<uint32_t, std::vector<Move>> moves; ///< by command; not changed once the first is issued
  std::mutex mutex;
  std::optional<Error> failure; ///< guarded
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_HOSTMOVES_H
