//===- ForeignView.cpp - Whole tensors from pieces of files ---------------------===//

#include "ForeignView.h"

#include "Files/Text.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <dirent.h>

using namespace ds;
using namespace ds::rt;

Error ds::rt::foreignCorrupt(const std::string &path, const std::string &what) {
  return {ExitCode::Corrupt, quote(path) + ": " + what, "copy the checkpoint again, or take an older one"};
}

Error ds::rt::foreignInvalid(const std::string &path, const std::string &what, const std::string &hint) {
  return {ExitCode::Invalid, quote(path) + ": " + what, hint};
}

Result<std::vector<std::string>> ds::rt::listFolder(const std::string &folder) {
  DIR *directory = opendir(folder.c_str());
  if (!directory)
    return ioError("open", folder, errno);
  std::vector<std::string> names;
  while (dirent *entry = readdir(directory))
    if (std::string_view name = entry->d_name; name != "." && name != "..")
      names.emplace_back(name);
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

//===---------------------------------------------------------------------------===//
// Files
//===---------------------------------------------------------------------------===//

/// Makes `file` the slot's; closes the one that was not used for longest if there are too many.
void TorchFiles::keep(Slot &slot, File file) {
  if (numOpen == kMaxOpen) {
    auto isWorse = [](const Slot &a, const Slot &b) {
      return !a.file < !b.file || (!a.file == !b.file && a.lastUse < b.lastUse); // open ones first
    };
    std::min_element(slots.begin(), slots.end(), isWorse)->file.reset();
    --numOpen;
  }
  slot.file = std::move(file);
  ++numOpen;
}

Result<TorchFiles::File> TorchFiles::add(const std::string &directory, const std::string &name,
                                         uint32_t &number) {
  Result<TorchFile> opened = TorchFile::openBeneath(directory, name);
  if (!opened)
    return opened.error();
  number = uint32_t(slots.size());
  auto file = std::make_shared<const TorchFile>(std::move(*opened));
  slots.push_back({directory, name, file->identity(), nullptr, ++clock});
  keep(slots.back(), file);
  return file;
}

Result<TorchFiles::File> TorchFiles::use(uint32_t number) {
  Slot &slot = slots[number];
  slot.lastUse = ++clock;
  if (slot.file)
    return slot.file;
  Result<TorchFile> opened = TorchFile::openBeneath(slot.directory, slot.name);
  if (!opened)
    return opened.error();
  if (opened->identity() != slot.identity)
    return Error{ExitCode::Io, quote(opened->path()) + ": was changed while it was being read",
                 "read checkpoints that nobody writes"};
  keep(slot, std::make_shared<const TorchFile>(std::move(*opened)));
  return slot.file;
}

//===---------------------------------------------------------------------------===//
// Pieces
//===---------------------------------------------------------------------------===//

static constexpr uint32_t kHole = UINT32_MAX;

void FlatVector::append(uint32_t source, uint64_t count) {
  if (count == 0)
    return;
  parts.push_back({total, count, source, 0});
  total += count;
}

void FlatVector::appendHole(uint64_t count) { append(kHole, count); }

bool FlatVector::cut(uint64_t from, uint64_t count, uint64_t begin, ForeignPieces &out) const {
  if (from > total || count > total - from)
    return false;
  auto part = std::upper_bound(parts.begin(), parts.end(), from,
                               [](uint64_t place, const ForeignPiece &piece) { return place < piece.begin; });
  for (part -= part != parts.begin(); count > 0; ++part) {
    uint64_t skipped = from - part->begin, taken = std::min(count, part->count - skipped);
    if (part->source == kHole)
      return false;
    out.push_back({begin, taken, part->source, part->first + skipped});
    from += taken, begin += taken, count -= taken;
  }
  return true;
}

Result<uint32_t> ForeignView::addSource(uint32_t file, const std::string &path, PickleTensor tensor) {
  if (tensor.numElements() > tensor.storageElements)
    return foreignCorrupt(path, "a tensor of shape " + spellShape(tensor.shape) + " repeats the " +
                                    std::to_string(tensor.storageElements) + " elements of its storage");
  sources.push_back({file, std::move(tensor)});
  return uint32_t(sources.size() - 1);
}

FileDType ForeignView::dtypeOf(uint32_t source) const {
  return sources[source].entry ? sources[source].entry->dtype : sources[source].tensor.dtype;
}

Status ForeignView::addTensor(ForeignTensor tensor, ForeignPieces list) {
  assert((list.empty() ? 0 : list.back().begin + list.back().count) == tensor.numElements() &&
         "pieces end elsewhere");
  if (tensor.name.empty() || !isUtf8(tensor.name) || tensor.name.find('\0') != std::string::npos)
    return foreignCorrupt(folder, "a parameter is called " + quote(tensor.name));
  for (const ForeignPiece &piece : list)
    if (dtypeOf(piece.source) != dtypeOf(list.front().source))
      return foreignCorrupt(folder, "the pieces of " + quote(tensor.name) + ", " + quote(tensor.slot) +
                                        ", have different element types");
  if (!list.empty())
    tensor.dtype = dtypeOf(list.front().source);
  if (!byName.try_emplace({tensor.name, tensor.slot}, tensors.size()).second)
    return foreignCorrupt(folder, "parameter " + quote(tensor.name) + " occurs twice");
  tensors.push_back(std::move(tensor));
  pieces.push_back(std::move(list));
  return {};
}

Status ForeignView::addWhole(ForeignTensor tensor, uint32_t source) {
  const ForeignSource &from = sources[source];
  if (from.entry)
    tensor.shape.assign(from.entry->shape.begin(), from.entry->shape.end());
  else if (tensor.shape.empty())
    tensor.shape = from.tensor.shape;
  tensor.dtype = dtypeOf(source);
  uint64_t count = tensor.numElements();
  ForeignPieces list;
  if (count > 0)
    list.push_back({0, count, source, 0});
  return addTensor(std::move(tensor), std::move(list));
}

void ForeignView::tie(const std::string &name, const std::string &alias) {
  if (name == alias || !has(name) || has(alias))
    return;
  for (std::vector<std::string> &group : tied)
    if (group.front() == name) {
      if (std::find(group.begin(), group.end(), alias) == group.end())
        group.push_back(alias);
      return;
    }
  tied.push_back({name, alias});
}

bool ForeignView::has(std::string_view name, std::string_view slot) const {
  return byName.find(std::pair(std::string(name), std::string(slot))) != byName.end();
}

/// Reads `count` elements of a piece after the first `skipped`.
Status ForeignView::readPiece(const ForeignPiece &piece, uint64_t skipped, uint64_t count, std::byte *to) {
  const ForeignSource &source = sources[piece.source];
  uint64_t first = piece.first + skipped;
  if (source.entry) {
    uint64_t width = bitSize(source.entry->dtype) / 8;
    memcpy(to, source.entry->data + first * width, count * width);
    return {};
  }
  Result<TorchFiles::File> file = files.use(source.file);
  return file ? (*file)->read(source.tensor, first, count, to) : Status(file.error());
}
