//===- Limits.cpp - How much memory and time an import may take -----------------===//

#include "Limits.h"

#include "ds/Support/HostMemory.h"

#include <algorithm>
#include <cctype>

namespace ds {

static constexpr uint64_t mebibyte = uint64_t(1) << 20, gibibyte = uint64_t(1) << 30;

/// What small models compute.
static constexpr uint64_t baseBytes = gibibyte;
/// Tensors are in memory once as they are, once as a copy, and twice while they are looked at.
static constexpr uint64_t bytesPerArchiveByte = 4;
/// Masks and distances of positions are computed by the import: eight of 8 bytes at once.
static constexpr uint64_t bytesPerPair = 64;
static constexpr uint64_t baseSeconds = 60;
static constexpr uint64_t archiveBytesPerSecond = 16 * mebibyte;
static constexpr uint64_t pairBytesPerSecond = 256 * mebibyte;
/// A machine that does other work gives a process a tenth of a processor at the least, and disks are waited
/// for.
static constexpr uint64_t clockPerProcessorSecond = 10, clockBase = 120;

/// The longest dimension of all inputs: what masks are squares of. Numbers are followed by an `x`.
static uint64_t longestDimension(const std::vector<std::string> &inputs) {
  constexpr uint64_t longest = uint64_t(1) << 24; // The square of more would overflow.
  uint64_t result = 1;
  for (const std::string &input : inputs) {
    size_t at = input.find('=');
    while (at != std::string::npos && ++at < input.size()) {
      uint64_t size = 0;
      size_t end = at;
      for (; end < input.size() && std::isdigit(static_cast<unsigned char>(input[end])); ++end)
        size = std::min(longest, size * 10 + static_cast<uint64_t>(input[end] - '0'));
      if (end < input.size() && input[end] == 'x')
        result = std::max(result, size);
      at = input.find('x', at);
    }
  }
  return result;
}

static std::string inMebibytes(uint64_t bytes) { return std::to_string(bytes / mebibyte) + " MiB"; }

/// The machine's memory less what others on it need; all of it where it cannot be told.
static uint64_t machineBytes(std::string &source) {
  Result<HostMemory> host = hostMemory();
  if (!host)
    return UINT64_MAX;
  auto bytes = static_cast<uint64_t>(host->bytes);
  source = "seven eighths of the " + host->source + " of " + inMebibytes(bytes);
  return bytes - bytes / 8;
}

ImportLimits deriveLimits(const LimitsRequest &request) {
  uint64_t archive = std::min(request.archiveBytes, uint64_t(1) << 50);
  uint64_t longest = longestDimension(request.inputs), pairBytes = bytesPerPair * longest * longest;
  ImportLimits limits;
  limits.memoryBytes = baseBytes + bytesPerArchiveByte * archive + pairBytes;
  limits.memorySource = inMebibytes(baseBytes) + ", " + std::to_string(bytesPerArchiveByte) +
                        " times the archive's " + inMebibytes(archive) + " and " + inMebibytes(pairBytes) +
                        " for masks over " + std::to_string(longest) + " positions";
  std::string machine;
  if (uint64_t bytes = machineBytes(machine); bytes < limits.memoryBytes) {
    limits.memoryBytes = bytes;
    limits.memorySource = machine;
  }
  if (request.memoryBytes > 0) {
    limits.memoryBytes = request.memoryBytes;
    limits.memorySource = "given by --import-memory";
  }
  limits.processorSeconds = baseSeconds + archive / archiveBytesPerSecond + pairBytes / pairBytesPerSecond;
  limits.timeSource =
      std::to_string(baseSeconds) + " s and what follows from the sizes of archive and inputs";
  if (request.seconds > 0) {
    limits.processorSeconds = request.seconds;
    limits.timeSource = "given by --import-seconds";
  }
  limits.waitSeconds =
      clockBase + clockPerProcessorSecond * std::min(limits.processorSeconds, uint64_t(1) << 40);
  limits.fileBytes = gibibyte + 2 * archive + pairBytes;
  return limits;
}

Error memoryError(const ImportLimits &limits) {
  return {ExitCode::Invalid,
          "the import needs more memory than its limit of " + inMebibytes(limits.memoryBytes) + " (" +
              limits.memorySource + ")",
          "check the archive and the shapes of --input; --import-memory raises the limit for an archive that "
          "you trust"};
}

static Error tookTooLong(std::string what) {
  return {ExitCode::Invalid, std::move(what),
          "a forward that ends imports within seconds; --import-seconds raises the limit for an archive that "
          "you trust"};
}

Error timeError(const ImportLimits &limits) {
  return tookTooLong("the import takes longer than its limit of " + std::to_string(limits.processorSeconds) +
                     " seconds of processor time (" + limits.timeSource + ")");
}

Error waitError(const ImportLimits &limits) {
  return tookTooLong("the import was stopped after " + std::to_string(limits.waitSeconds) +
                     " seconds by the clock; its limit of processor time is " +
                     std::to_string(limits.processorSeconds) + " seconds (" + limits.timeSource + ")");
}

Error fileSizeError(const ImportLimits &limits) {
  return {ExitCode::Invalid,
          "the imported model is larger than the limit of " + inMebibytes(limits.fileBytes) +
              " for one file, which follows from the archive's size",
          "a parameter or buffer may be a small tensor that is expanded: store what it repeats once"};
}

} // namespace ds
