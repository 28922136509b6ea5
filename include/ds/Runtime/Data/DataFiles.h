//===- DataFiles.h - Which files `--data` names --------------------------------===//
//
// One file; a pattern ('train-*.bin') of several, which are one sequence of samples in the order of their
// names; or a blend of such, each with a weight: '0.7:wiki-*.bin,0.3:code.idx', or the same as JSON:
//   {"sources": [{"path": "wiki-*.bin", "weight": 0.7}, {"path": "code.idx", "weight": 0.3}]}
// A file of just that name comes first, whatever signs are in it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_DATA_DATAFILES_H
#define DS_RUNTIME_DATA_DATAFILES_H

#include "ds/Support/Error.h"

#include <string>
#include <vector>

namespace ds::rt {

/// One source: files whose samples follow one another.
struct DataPart {
  std::string name;               ///< as it was given
  std::string weight;             ///< as it was given; "1" where there is no blend
  std::string tokenDtype;         ///< of its .bin without header, if the blend says so
  std::vector<std::string> files; ///< at least one, by name (bytewise)
};

struct DataFiles {
  std::vector<DataPart> parts; ///< at least one
  bool isBlend = false;        ///< also of one part
};

/// Usage: a blend is misspelt. Io: no file matches a pattern, or a blend's file cannot be read. Corrupt: that
/// is not the JSON above. Of the files themselves nothing is read.
Result<DataFiles> findDataFiles(const std::string &text);

/// Every file that would be read, for whoever must not write to it; what it can find of a `text` that is
/// wrong.
std::vector<std::string> listDataFiles(const std::string &text);

/// "a" where a.idx and a.bin are one pair of which `path` names a part, or both by "a"; empty otherwise.
std::string pairPrefix(const std::string &path);

} // namespace ds::rt

#endif // DS_RUNTIME_DATA_DATAFILES_H
