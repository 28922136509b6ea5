//===- Store.h - The directory that a run's checkpoints are in -----------------------===//
//
//   DIR/step-100/                     a checkpoint: manifest.json and the files that it names
//   DIR/step-120.tmp-<hex>/           one that is being written, or was when its run was killed
//   DIR/step-100.old-<hex>/           one that a newer one of its name has replaced
//   DIR/step-140.aside-<hex>/         one that the run has gone back before; no checkpoint any more
//   DIR/.lock                         held by the run that saves here
//
// No file says which checkpoint is the newest: the directory is looked through. So nothing can disagree with
// what is there, and no order of writing can go wrong. A checkpoint appears by one rename, after all that it
// consists of has been synced, and loses its manifest first when it goes. So one of before a newer one that
// has shards and no manifest is half removed, and whoever removes what is left over removes the rest of it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINT_STORE_H
#define DS_RUNTIME_CHECKPOINT_STORE_H

#include "ds/Runtime/Checkpoint/Keep.h"
#include "ds/Runtime/Checkpoint/Manifest.h"
#include "ds/Runtime/Files/FileLayer.h"
#include "ds/Support/Descriptor.h"

#include <functional>
#include <optional>
#include <set>
#include <utility>

namespace ds::rt {

/// A directory of the name of a checkpoint.
struct StoredCheckpoint {
  std::string name; ///< "step-100"
  uint64_t step = 0;
  std::string problem; ///< why it is none: "has no manifest.json"; empty where all its files are there
  std::string save;    ///< of what other nodes have parts of too: letters of the save; else empty
  std::string run;     ///< Manifest::run; empty also where that cannot be read
  std::vector<EvalLoss> evaluations; ///< Manifest::evaluations
  bool hasManifest = false;
  bool isLink = false; ///< it lies elsewhere: read as any other, never removed, and not counted by --keep

  /// Whether it is whole and lies here, so that it counts among those that stay or go.
  bool isWholeHere() const { return problem.empty() && !isLink; }
};

struct StoreListing {
  std::vector<StoredCheckpoint> checkpoints; ///< newest first
  std::vector<std::string> leftovers; ///< names of what is neither: parts of unfinished saves and removals
  std::vector<std::string> aside;     ///< names that setAside has given
};

/// What is in `root`; sizes of files are compared with manifests, contents are not read. Nothing where there
/// is no such directory. Io: it cannot be read.
Result<StoreListing> listCheckpoints(const std::string &root);

/// "left by an unfinished save" or "left by an unfinished removal", of one of StoreListing::leftovers.
const char *spellOrigin(std::string_view leftover);

/// The manifest of the checkpoint `directory`, all of whose files are there in full size. Corrupt or Io with
/// what is wrong.
Result<Manifest> readManifest(const std::string &directory);

/// The same, but of the manifest alone: its files may be missing.
Result<Manifest> readManifestAlone(const std::string &directory);
/// Names of the manifests in `directory`: one, or one for each part that is there.
std::vector<std::string> manifestsIn(const std::string &directory);
/// Whether a file of a manifest is there in full size, and no link. Corrupt with what is wrong.
Status checkFile(const std::string &directory, const CheckpointFile &file);

/// Letters that nobody else has drawn.
std::string uniqueLetters();

/// Makes the directory and those above it that are missing, durably.
Status makeDirectories(FileLayer &layer, const std::string &path);

/// Makes the directory of a new save and returns its path. `root` is made if it is not there. Io: also where
/// a symbolic link has the name that the checkpoint would get.
Result<std::string> beginSave(FileLayer &layer, const std::string &root, uint64_t step);

/// Turns `unfinished`, in which all files of the manifest lie synced, into a checkpoint and returns its path.
/// One of the same step is replaced; what no save has made in it stays, under a name of a leftover.
Result<std::string> commitSave(FileLayer &layer, const std::string &root, const std::string &unfinished,
                               const Manifest &manifest);

/// The two halves of it: the manifest in `unfinished`, synced, and then the name.
Status writeManifest(FileLayer &layer, const std::string &unfinished, const Manifest &manifest);
Result<std::string> publishSave(FileLayer &layer, const std::string &root, const std::string &unfinished,
                                uint64_t step);

/// Removes a directory that a save has made; its manifest goes first. It is open all the while and never
/// looked up again, so that nothing behind a link is touched, whenever that link appears. Invalid: it is a
/// link or a mount point, or has something that no save makes; then nothing is removed.
Status removeCheckpoint(FileLayer &layer, const std::string &directory);

/// What removeCheckpoint would refuse, without removing anything.
Status checkRemovable(const std::string &directory);

/// Hears of each that stays though it was to go, and why.
using StaysNotice = std::function<void(const Error &)>;

/// Removes the whole checkpoints that `rule` does not keep, and what unfinished saves have left. Damaged ones
/// and links stay; so does what removeCheckpoint refuses, of which `stays` hears. Requires the lock, and that
/// no save is under way. Parts of saves count where all nodes have theirs: those of
/// `everywhere`, if that is given; others go as soon as so many newer ones are there.
Status pruneCheckpoints(FileLayer &layer, const std::string &root, const KeepRule &rule,
                        const std::set<std::string> *everywhere = nullptr, const StaysNotice &stays = {});

/// Takes checkpoints out of the way of a run that has gone back before them: they get another name, under
/// which nothing resumes from them, counts or removes them. Returns the old names, each with the new one.
/// Requires the lock.
Result<std::vector<std::pair<std::string, std::string>>>
setAside(FileLayer &layer, const std::string &root,
         const std::function<bool(const StoredCheckpoint &)> &isAbandoned);

/// The right to write to a directory of checkpoints, until it is destroyed or the process ends.
class StoreLock {
public:
  /// Makes `root` if it is not there. Io: another process has it, it cannot be made, or `.lock` is a link or
  /// no file.
  static Result<StoreLock> take(const std::string &root);

private:
  explicit StoreLock(Descriptor file) : file(std::move(file)) {}
  Descriptor file;
};

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINT_STORE_H
