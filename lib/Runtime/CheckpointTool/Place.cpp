//===- Place.cpp - What a path of the command line names ----------------------------===//

#include "ds/Runtime/CheckpointTool/Place.h"

#include "Files/Text.h"

#include "ds/Runtime/Checkpoint/Store.h"

#include <cctype>
#include <cerrno>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace ds::rt {

/// Whether the last name of `path` is that of a checkpoint, or of what a save has left.
static bool hasNameOfCheckpoint(const std::string &path) {
  const std::string name = std::filesystem::path(path).filename();
  return name.starts_with("step-") && name.size() > 5 && std::isdigit(static_cast<unsigned char>(name[5]));
}

Result<Place> placeOf(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return ioError("open", path, errno);
  if (!S_ISDIR(info.st_mode))
    return ioError("open", path, ENOTDIR, "name a checkpoint (DIR/step-N) or the directory that it is in");
  if (::access(path.c_str(), R_OK | X_OK) != 0)
    return ioError("look through", path, errno);
  Place place{path, false};
  while (place.path.size() > 1 && place.path.ends_with('/'))
    place.path.pop_back();
  place.isCheckpoint = hasNameOfCheckpoint(place.path) || !manifestsIn(place.path).empty();
  return place;
}

Result<std::string> chooseCheckpoint(const std::string &path, const Notice &notice) {
  const Result<Place> place = placeOf(path);
  if (!place)
    return place.error();
  if (place->isCheckpoint)
    return place->path;
  const Result<StoreListing> listing = listCheckpoints(place->path);
  if (!listing)
    return listing.error();
  for (const StoredCheckpoint &each : listing->checkpoints) {
    if (each.problem.empty())
      return place->path + "/" + each.name;
    notice("passed over: " + each.problem);
  }
  return Error{ExitCode::Io, "there is no checkpoint in " + quote(path),
               "name the directory that ds-run --save was given, or one step-N in it"};
}

} // namespace ds::rt
