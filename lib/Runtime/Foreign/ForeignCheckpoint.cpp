//===- ForeignCheckpoint.cpp - Checkpoints that others have written -------------===//

#include "ds/Runtime/Foreign/ForeignCheckpoint.h"

#include "Files/Text.h"
#include "ForeignView.h"
#include "Program/Shape.h"

#include <algorithm>
#include <cassert>
#include <new>

#include <sys/stat.h>

using namespace ds;
using namespace ds::rt;

uint64_t ForeignTensor::numElements() const {
  return elementsOf(shape); // what is in a view has been counted before
}

static bool contains(const std::vector<std::string> &names, std::string_view name) {
  return std::binary_search(names.begin(), names.end(), name);
}

static bool isFolder(const std::string &path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

/// The folder that the text file `pointer` in `folder` names.
static Result<std::string> followPointer(const std::string &folder, const std::string &pointer) {
  Result<MappedFile> file = MappedFile::openBeneath(folder, pointer);
  if (!file)
    return file.error();
  std::string_view text(reinterpret_cast<const char *>(file->bytes().data()), file->bytes().size());
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  bool isPlain = !text.empty() && text.size() <= 255 && text != "." && text != ".." &&
                 text.find('/') == text.npos && text.find('\0') == text.npos;
  if (!isPlain)
    return foreignCorrupt(file->path(), "expects the name of a folder beside it, but got " + quote(text));
  std::string target = folder + "/" + std::string(text);
  if (!isFolder(target))
    return foreignCorrupt(file->path(), "names " + quote(text) + ", which is no folder beside it");
  return target;
}

/// Reads the folder by what lies in it; `mayPoint`: a pointer was not followed yet.
static Status readFolder(ForeignView &view, const std::string &folder, bool mayPoint) {
  Result<std::vector<std::string>> names = listFolder(folder);
  if (!names)
    return names.error();
  view.folder = folder;
  auto isState = [](const std::string &name) { return name.ends_with("_states.pt"); };
  if (contains(*names, "zero") && isFolder(folder + "/zero"))
    return readUniversal(view, *names);
  if (std::any_of(names->begin(), names->end(), isState))
    return readZero(view, *names);
  for (const char *pointer : {"latest", "latest_universal"})
    if (mayPoint && contains(*names, pointer)) {
      Result<std::string> target = followPointer(folder, pointer);
      return target ? readFolder(view, *target, false) : Status(target.error());
    }
  for (const char *name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"})
    if (contains(*names, name))
      return readWeights(view, *names);
  return foreignInvalid(folder,
                        "is no checkpoint that is known here: it has no zero/, no *_states.pt, no latest, no "
                        "model.safetensors and no pytorch_model.bin",
                        "give the folder that the files lie in");
}

Result<ForeignCheckpoint> ForeignCheckpoint::open(const std::string &path) try {
  auto view = std::make_unique<ForeignView>();
  std::string folder = path;
  while (folder.size() > 1 && folder.back() == '/')
    folder.pop_back();
  if (Status status = readFolder(*view, folder, true); !status)
    return status.error();
  return ForeignCheckpoint(std::move(view));
} catch (const std::bad_alloc &) {
  return Error{ExitCode::Io, "no memory for the index of " + quote(path), "free memory"};
}

Status ForeignCheckpoint::read(const ForeignTensor &tensor, uint64_t first, uint64_t count, void *to) const {
  size_t index = size_t(&tensor - view->tensors.data());
  assert(index < view->tensors.size() && "a tensor of another checkpoint");
  assert(first <= tensor.numElements() && count <= tensor.numElements() - first && "reads past the tensor");
  std::lock_guard<std::mutex> lock(view->reading);
  const ForeignPieces &pieces = view->pieces[index];
  auto piece =
      std::upper_bound(pieces.begin(), pieces.end(), first,
                       [](uint64_t place, const ForeignPiece &piece) { return place < piece.begin; });
  piece -= piece != pieces.begin();
  for (auto *out = static_cast<std::byte *>(to); count > 0; ++piece) {
    uint64_t skipped = first - piece->begin, taken = std::min(count, piece->count - skipped);
    if (Status status = view->readPiece(*piece, skipped, taken, out); !status)
      return status;
    out += taken * (bitSize(tensor.dtype) / 8);
    first += taken, count -= taken;
  }
  return {};
}

ForeignCheckpoint::ForeignCheckpoint(std::unique_ptr<ForeignView> view) : view(std::move(view)) {}
ForeignCheckpoint::ForeignCheckpoint(ForeignCheckpoint &&) noexcept = default;
ForeignCheckpoint &ForeignCheckpoint::operator=(ForeignCheckpoint &&) noexcept = default;
ForeignCheckpoint::~ForeignCheckpoint() = default;

ForeignFormat ForeignCheckpoint::format() const { return view->format; }
std::string ForeignCheckpoint::describe() const { return view->description; }
const std::string &ForeignCheckpoint::folder() const { return view->folder; }
const ForeignProgress &ForeignCheckpoint::progress() const { return view->progress; }
std::span<const NamedNumber> ForeignCheckpoint::scheduler() const { return view->scheduler; }
const std::optional<ForeignLossScale> &ForeignCheckpoint::lossScale() const { return view->lossScale; }
const std::string &ForeignCheckpoint::optimizer() const { return view->optimizer; }
std::span<const ForeignTensor> ForeignCheckpoint::tensors() const { return view->tensors; }
std::span<const std::vector<std::string>> ForeignCheckpoint::tied() const { return view->tied; }

const ForeignTensor *ForeignCheckpoint::find(std::string_view name, std::string_view slot) const {
  auto found = view->byName.find(std::pair(std::string(name), std::string(slot)));
  return found == view->byName.end() ? nullptr : &view->tensors[found->second];
}
