//===- Sources.h - Where a position of the data lies ---------------------------===//
//
// From a position of the run to a source of the blend (Blend.h), from there to a sample of its files, which
// follow one another, and with a shuffle to another one of the same epoch. Nothing is remembered between two
// positions.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_DATA_SOURCES_H
#define DS_LIB_RUNTIME_DATA_SOURCES_H

#include "Blend.h"
#include "DataColumns.h"
#include "ds/Runtime/Data/DataFiles.h"

namespace ds::rt {

/// A sample of a file.
struct SamplePlace {
  const Columns *file = nullptr;
  uint64_t sample = 0;
};

/// Files whose samples follow one another, and start over at the end of the last one.
struct Source {
  std::string name; ///< as it was given
  std::vector<Columns> files;
  std::vector<uint64_t> ends; ///< for each file, the samples up to its end
  uint64_t numSamples = 0;    ///< at least 1, unless the source is all there is and one file

  /// Where sample `index` of the run lies; epoch `index` / numSamples is drawn by `seed`, if there is one.
  SamplePlace operator()(Position index, std::optional<uint64_t> seed) const;

  /// "3 files, 1000 tokens, 60 samples of 16".
  std::string describe() const;
};

/// All that `--data` names.
struct Sources {
  std::vector<Source> list;
  Blend blend;
  bool isBlend = false;

  SamplePlace operator()(Position position, std::optional<uint64_t> seed) const;
  uint64_t numSamples() const;
};

/// Opens every file. Usage, Io, Corrupt: as findDataFiles and the readers say. Invalid: a file does not fit
/// the inputs, or has no sample although there are others.
Result<Sources> openSources(const DataOptions &options, std::span<const InputSpec> inputs);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_DATA_SOURCES_H
