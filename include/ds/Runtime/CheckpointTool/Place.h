//===- Place.h - What a path of the command line names ------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINTTOOL_PLACE_H
#define DS_RUNTIME_CHECKPOINTTOOL_PLACE_H

#include "ds/Support/Error.h"

#include <functional>
#include <string>

namespace ds::rt {

/// Tells the user something beside the result.
using Notice = std::function<void(const std::string &)>;

struct Place {
  std::string path;
  bool isCheckpoint = false; ///< "runs/gpt/step-100", rather than the directory that such ones are in
};

/// Io: there is no such directory, or it cannot be read.
Result<Place> placeOf(const std::string &path);

/// The directory of the checkpoint that `path` names, or of the newest whole one in it; `notice` is told
/// which were passed over. Corrupt: there is none in it.
Result<std::string> chooseCheckpoint(const std::string &path, const Notice &notice);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINTTOOL_PLACE_H
