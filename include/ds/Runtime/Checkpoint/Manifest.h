//===- Manifest.h - What a checkpoint says of itself -----------------------------===//
//
// A checkpoint is a directory `step-N` of safetensors files and `manifest.json`. The files hold boxes of
// tensors, in the form in which PyTorch's distributed checkpoints keep them, so that others read them. The
// manifest is written last: it names every file, its size and digests, says what the tensors are, how ranks
// held them, and what a run needs beside tensors to go on as if it had never stopped. A directory without a
// manifest, or whose files are not those that it names, is no checkpoint.
//
// The first line of the file is a digest of all that follows it.
//
// Where each node has a directory of its own, each has the part that its ranks hold, with a manifest of that,
// `manifest-00001-of-00004.json`. Parts have letters of their save in common. Copied into one directory they
// are a checkpoint as any other, except that what ranks of several nodes hold alike is there several times.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CHECKPOINT_MANIFEST_H
#define DS_RUNTIME_CHECKPOINT_MANIFEST_H

#include "ds/Runtime/Checkpoint/Digest.h"
#include "ds/Runtime/Formats/EvalLoss.h"
#include "ds/Runtime/Formats/FileDType.h"
#include "ds/Runtime/Program/Layout.h"
#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

/// The newest version of the form that this build reads. It writes the oldest that says all: in version 2
/// layouts can have views, in version 3 pieces.
inline constexpr uint64_t kCheckpointFormat = 3;
inline constexpr const char *kManifestName = "manifest.json";
/// A larger one is refused: reading takes some ten times as much memory. A million tensors need less.
inline constexpr uint64_t kMaxManifestBytes = 300'000'000;

/// One tensor of a checkpoint.
struct CheckpointTensor {
  std::string name;                 ///< in the files; for a master that of its parameter
  Role role = Role::Parameter;      ///< Parameter, Buffer, Moment or Scalar
  std::string owner;                ///< of a moment: the parameter
  FileDType dtype = FileDType::F32; ///< the exact one: a 16-bit parameter with a master is kept as the master
  std::vector<int64_t> shape;       ///< without padding
  std::vector<std::string> aliases; ///< other names of the same tensor
  bool trainable = false;
  Layout layout;                   ///< how the ranks that wrote it held it, on the manifest's mesh
  FileDType held = FileDType::F32; ///< type in which the model used it: 16 bits where there was a master
};

/// One file of a checkpoint.
struct CheckpointFile {
  std::string name; ///< plain: no directory
  uint64_t bytes = 0;
  std::vector<std::string> digests; ///< of each chunk of Manifest::chunkBytes, the last one shorter
  uint32_t node = 0;                ///< that has written it, of Manifest::nodes; from the manifest it is in
};

/// One of the nodes that have each written a part of a checkpoint.
struct CheckpointNode {
  std::string host;
  std::vector<uint32_t> ranks; ///< ascending

  bool operator==(const CheckpointNode &) const = default;
};

/// Where the data stand.
struct DataCursor {
  std::string sign;     ///< what the data are: see DataSource::sign; empty: no data have been read
  uint64_t samples = 0; ///< consumed by all ranks together, since the first step
  uint64_t tokens = 0;  ///< likewise; 0 where the model has none
  bool shuffle = false;
  uint64_t seed = 0; ///< of the order
};

/// A manifest has no more digests than this, by way of larger chunks.
inline constexpr uint64_t kMostChunks = uint64_t(1) << 16;

struct Manifest {
  uint64_t step = 0;  ///< finished
  std::string writer; ///< who has written it: "ds-run"
  std::string run; ///< letters that all checkpoints of one run have, however often it was resumed; empty: not
                   ///< known, as of what was imported
  std::string planHash, target, configText;
  std::string optimizer;   ///< as DeepSpeed spells it: "AdamW"; empty: not known
  std::string modelConfig; ///< the Hugging Face config.json that the model came from; empty: from elsewhere
  Mesh mesh;
  uint32_t microBatch = 1, accumulation = 1;
  uint64_t seed = 0; ///< of initialisation and dropout
  DataCursor data;
  std::vector<EvalLoss> evaluations; ///< after this step, in the order of --eval-data; finite or not
  std::vector<CheckpointTensor> tensors;
  uint64_t chunkBytes = uint64_t(4) << 20;
  std::string save;                  ///< letters that all parts of one save have; empty: it has no parts
  std::vector<CheckpointNode> nodes; ///< all whose parts make the whole; none: it has no parts
  std::vector<uint32_t> parts;       ///< which of them the files are of
  std::vector<CheckpointFile> files;

  /// Whether nothing of it is on other nodes.
  bool isWhole() const { return parts.size() == nodes.size(); }
  /// Of a checkpoint of which some is elsewhere: "node 1 of 2 (host beta, ranks 2, 3)" and so on, of those
  /// that are here or of those that are not.
  std::string spellNodes(bool here) const;
};

/// The optimizer that a program's configuration names, Program::configText; empty: it names none.
std::string optimizerOf(std::string_view configText);

/// What the manifest of a checkpoint is called, or of one part of it.
std::string manifestName(const Manifest &manifest);
/// Whether a file of this name is a manifest.
bool isManifestName(std::string_view name);

/// The text of manifest.json.
std::string spellManifest(const Manifest &manifest);

/// Reads it. Corrupt: damaged, not a manifest, of a newer form, or names what may not be named. `path` is for
/// messages.
Result<Manifest> parseManifest(std::string_view text, const std::string &path);

/// Adds another part of the same save. Corrupt: it is of another, or is there already. `path` is that of its
/// manifest.
Status addPart(Manifest &manifest, Manifest part, const std::string &path);

/// The files of one rank as text for the others, and back; for messages between ranks.
std::string spellFiles(std::span<const CheckpointFile> files);
Result<std::vector<CheckpointFile>> parseFiles(std::string_view text);

} // namespace ds::rt

#endif // DS_RUNTIME_CHECKPOINT_MANIFEST_H
