//===- StorageTask.cpp - Storage commands on the stream of storage -----------------===//
#include "Task.h"

#include "Program/Verify.h"
#include "ds/Runtime/Storage.h"

#include <optional>

namespace ds::rt {
namespace {

class StorageTask final : public Task {
public:
  explicit StorageTask(const StorageMove &move) : move(move) {}
  Status run() override { return runMove(move); }
  Status begin() override {
    if (move.bytes == 0)
      return {};
    const Result<uint64_t> id = move.storage->begin(move.writes, move.offset, move.host, move.bytes);
    if (!id)
      return id.error();
    begun = *id;
    return {};
  }
  bool advance() override { return !begun || move.storage->advance(*begun); }
  Status complete() override {
    const std::optional<uint64_t> id = std::exchange(begun, std::nullopt);
    return id ? move.storage->finish(*id) : Status();
  }

private:
  StorageMove move;
  std::optional<uint64_t> begun;
};

} // namespace

StorageMove bindMove(const Program &program, const Command &command, Storage &storage,
                     const std::function<std::byte *(uint32_t buffer)> &address) {
  const uint32_t *operands = program.operands.data() + command.firstOperand;
  const Buffer &from = program.buffers[operands[0]];
  const bool writes = from.space != Space::Nvme;
  const uint64_t extent = extentBytes(from);
  return {&storage, writes, storage.offsetOf(address(operands[writes ? 1 : 0])),
          address(operands[writes ? 0 : 1]), extent + paddingBytes(command, extent)};
}

Status runMove(const StorageMove &move) {
  if (move.bytes == 0)
    return {};
  return move.writes ? move.storage->write(move.offset, move.host, move.bytes)
                     : move.storage->read(move.offset, move.host, move.bytes);
}

Result<std::unique_ptr<Task>> bindStorage(const Binding &binding, uint32_t index) {
  const Program &p = binding.program;
  if (!binding.storage)
    return Error{ExitCode::Internal, describeCommand(p, index) + " has no storage", ""};
  return std::unique_ptr<Task>(
      std::make_unique<StorageTask>(bindMove(p, p.commands[index], *binding.storage, [&](uint32_t buffer) {
        return static_cast<std::byte *>(binding.address(buffer));
      })));
}

} // namespace ds::rt
