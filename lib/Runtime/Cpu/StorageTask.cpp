//===- StorageTask.cpp - Storage commands on the stream of storage -----------------===//
#include "Task.h"

#include "Program/Verify.h"
#include "ds/Runtime/Storage/Storage.h"

#include <optional>

namespace ds::rt {
namespace {

/// A storage command with its places, whichever device the host memory is for.
class StorageTask final : public Task {
public:
  StorageTask(const Binding &binding, const Command &command) : storage(*binding.storage) {
    const uint32_t *operands = binding.program.operands.data() + command.firstOperand;
    const Buffer &from = binding.program.buffers[operands[0]];
    const auto at = [&](uint32_t k) { return static_cast<std::byte *>(binding.address(operands[k])); };
    writes = from.space != Space::Nvme;
    offset = storage.addresses().offsetOf(at(writes ? 1 : 0));
    host = at(writes ? 0 : 1);
    const uint64_t extent = extentBytes(from);
    bytes = extent + paddingBytes(command, extent);
  }
  Status run() override {
    if (bytes == 0)
      return {};
    return writes ? storage.write(offset, host, bytes) : storage.read(offset, host, bytes);
  }
  Status begin() override {
    if (bytes == 0)
      return {};
    const Result<uint64_t> id = storage.begin(writes, offset, host, bytes);
    if (!id)
      return id.error();
    begun = *id;
    return {};
  }
  bool advance() override { return !begun || storage.advance(*begun); }
  Status complete() override {
    const std::optional<uint64_t> id = std::exchange(begun, std::nullopt);
    return id ? storage.finish(*id) : Status();
  }

private:
  Storage &storage;
  bool writes = false;
  uint64_t offset = 0; ///< in the arena of storage
  std::byte *host = nullptr;
  uint64_t bytes = 0; ///< in whole units
  std::optional<uint64_t> begun;
};

} // namespace

Result<std::unique_ptr<Task>> bindStorage(const Binding &binding, uint32_t index) {
  const Program &p = binding.program;
  if (!binding.storage)
    return Error{ExitCode::Internal, describeCommand(p, index) + " has no storage", ""};
  return std::unique_ptr<Task>(std::make_unique<StorageTask>(binding, p.commands[index]));
}

} // namespace ds::rt
