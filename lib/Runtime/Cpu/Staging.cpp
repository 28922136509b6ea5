//===- Staging.cpp - The host memory that storage commands go through ---------------===//
#include "Staging.h"

#include "Program/Verify.h"

#include <algorithm>
#include <map>
#include <span>

namespace ds::rt {

void useStaging(const Program &program, uint32_t rank, std::byte *host, Storage &storage) {
  std::map<uint64_t, uint64_t> ranges; // begin -> end, in the host's arena
  for (const Command &command : program.commands) {
    if (command.kind != CommandKind::Storage)
      continue;
    for (uint32_t k = 0; k < command.numOperands; ++k) {
      const Buffer &buffer = program.buffers[program.operands[command.firstOperand + k]];
      if (buffer.space != Space::Host)
        continue;
      const uint64_t begin = windowOffset(buffer, program.mesh, rank, 0), extent = extentBytes(buffer);
      uint64_t &end = ranges[begin];
      end = std::max(end, begin + extent + paddingBytes(command, extent));
    }
  }
  std::vector<std::span<std::byte>> memory;
  for (const auto &[begin, end] : ranges) {
    const auto last =
        memory.empty() ? 0 : static_cast<uint64_t>(memory.back().data() + memory.back().size() - host);
    if (!memory.empty() && begin <= last)
      memory.back() = {memory.back().data(),
                       std::max(last, end) - static_cast<uint64_t>(memory.back().data() - host)};
    else
      memory.push_back({host + begin, end - begin});
  }
  storage.useMemory(memory);
}

} // namespace ds::rt
