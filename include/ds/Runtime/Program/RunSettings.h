//===- RunSettings.h - What a configuration asks of a run --------------------===//
#ifndef DS_RUNTIME_PROGRAM_RUNSETTINGS_H
#define DS_RUNTIME_PROGRAM_RUNSETTINGS_H

#include <cstdint>
#include <optional>
#include <string>

namespace ds::rt {

/// What bytes of storage, and of the memory they move through, are counted in: offsets, sizes and addresses
/// of a Storage command are multiples of it.
inline constexpr uint64_t kStorageUnit = 4096;

/// How a run drives its storage: `aio` of the configuration.
struct StorageSettings {
  std::string path;                         ///< directory that the configuration names, or empty
  uint64_t blockBytes = uint64_t(1) << 20;  ///< of one request
  uint32_t queueDepth = 8, parallelism = 1; ///< their product is how many requests are under way
  bool singleSubmit = false;                ///< requests are started one by one
  bool overlapEvents = true;                ///< new ones are started while others are waited for
  std::string parameterPath = {};           ///< directory of the parameters; empty: `path`

  bool operator==(const StorageSettings &) const = default;
};

/// Where one kind of monitor writes: the directory `job` in `path`.
struct MonitorSettings {
  std::string path, job;

  bool operator==(const MonitorSettings &) const = default;
};

/// The table of modules that is printed behind one step.
struct ProfileSettings {
  uint64_t step = 1;    ///< of the run
  int32_t depth = -1;   ///< of the modules, from 0, for the summary by depth; -1: the innermost
  uint32_t top = 1;     ///< modules that the summary names at each depth
  bool detailed = true; ///< the tree of all modules too
  std::string output;   ///< file; empty: standard output

  bool operator==(const ProfileSettings &) const = default;
};

/// What the configuration asks to be told of a run. It changes nothing of what is computed.
struct WatchSettings {
  uint64_t stepsPerPrint = 0; ///< 0: every step is printed
  std::optional<MonitorSettings> tensorboard, csv;
  bool comms = false; ///< the table of collectives, whole, at the end
  std::optional<ProfileSettings> profile;

  bool operator==(const WatchSettings &) const = default;
};

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_RUNSETTINGS_H
