//===- OpenStorage.cpp - The storage arena of a program ------------------------------===//
#include "OpenStorage.h"

#include "Process/Messages.h"
#include "Program/Verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace ds::rt {

/// Whose bytes are whose, for messages; states of a bucket share them.
static std::vector<StorageRegion> namesOf(const Program &program) {
  std::map<std::pair<uint64_t, uint64_t>, std::string> names;
  for (const State &state : program.states)
    if (const Buffer &buffer = program.buffers[state.buffer]; buffer.space == Space::Nvme) {
      std::string &name = names[{buffer.offset, extentBytes(buffer)}];
      constexpr size_t kLongest = 100;
      if (name.size() < kLongest)
        name += (name.empty() ? "" : ", ") + state.name;
    }
  std::vector<StorageRegion> regions;
  for (const auto &[place, name] : names)
    regions.push_back({place.first, place.second, name});
  return regions;
}

/// Where the parameters of `program` lie.
static std::vector<StorageRange> parametersOf(const Program &program) {
  std::vector<StorageRange> ranges;
  for (const State &state : program.states)
    if (const Buffer &buffer = program.buffers[state.buffer];
        state.role == Role::Parameter && buffer.space == Space::Nvme)
      ranges.push_back({buffer.offset, buffer.offset + extentBytes(buffer)});
  return ranges;
}

/// Gives parameters the directory that `place` or `program` has for them, and the rest its own. A directory
/// that would have nothing gets no file.
static Status choosePlaces(const Program &program, const StoragePlace &place, StorageOptions &options) {
  const bool asProgram = place.directory.empty() && place.parameterDirectory.empty();
  options.directory = place.directory.empty() ? program.storage.path : place.directory;
  options.parameterDirectory = asProgram ? program.storage.parameterPath : place.parameterDirectory;
  if (!options.parameterDirectory.empty() && options.parameterDirectory != options.directory)
    options.map = StorageMap(parametersOf(program));
  const uint64_t others = bytesOf(options.map.rangesOf(0, options.bytes));
  if (others == 0) {
    options.directory = options.parameterDirectory;
    options.map = {};
  } else if (options.directory.empty()) {
    return Error{
        ExitCode::Usage,
        fmt::format("the program keeps {} bytes of each rank on NVMe, and names no directory for them",
                    others),
        "name one on a local disk with --nvme DIR"};
  }
  return {};
}

Result<std::unique_ptr<Storage>> openStorage(const Program &program, uint32_t rank,
                                             const StoragePlace &place) {
  StorageOptions options;
  options.bytes = program.stages.front().arenas.nvme;
  if (options.bytes == 0)
    return std::unique_ptr<Storage>();
  if (Status chosen = choosePlaces(program, place, options); !chosen)
    return chosen.error();
  options.rank = rank;
  options.settings = program.storage;
  options.verify = place.verify;
  options.regions = namesOf(program);
  options.warn = place.warn;
  return Storage::open(options);
}

std::string describeTotals(const Storage &storage) {
  const StorageTotals totals = storage.totals();
  return fmt::format("storage of rank 0, {}: read {}, wrote {}, in {:.3g} s", storage.describe(),
                     bytesText(static_cast<double>(totals.bytesRead)),
                     bytesText(static_cast<double>(totals.bytesWritten)), totals.seconds);
}

} // namespace ds::rt
