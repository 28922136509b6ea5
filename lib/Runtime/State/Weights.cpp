//===- Weights.cpp - Reads weights files into states ---------------------------===//
//
// A weights file is mapped and read piece by piece on all threads, each piece's pages given back at once:
// reading adds nothing that matters to the process's peak. Values go from there to where a state lies, or to
// page-locked memory on its way. A rank reads what it holds of a state alone, run by run. Masters are read
// from the file, not from their rounded parameters.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/State/Weights.h"

#include "Formats/Convert.h"
#include "LocalState.h"
#include "Program/StateNames.h"

#include "ds/Runtime/Files/StorageWatch.h"
#include "ds/Runtime/Formats/SafeTensors.h"
#include "ds/Support/Adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <sys/mman.h>
#include <unordered_map>
#include <unordered_set>

namespace ds::rt {
namespace {

constexpr size_t kMaxListed = 12; // names of each kind of mismatch in a message

/// What is wrong with a file for a program, by kind.
struct Mismatch {
  std::vector<std::string> missing, unknown, different;

  bool any() const { return !missing.empty() || !unknown.empty() || !different.empty(); }
  static void append(std::string &text, const char *kind, const std::vector<std::string> &names) {
    if (names.empty())
      return;
    const size_t listed = std::min(names.size(), kMaxListed);
    text += fmt::format("\n  {} ({}): {}", kind, names.size(),
                        fmt::join(names.begin(), names.begin() + listed, ", "));
    if (listed < names.size())
      text += fmt::format(" and {} more", names.size() - listed);
  }
  Error error(const std::string &path, const char *what) const {
    std::string text = fmt::format("{}: does not hold the {} of this model", path, what);
    append(text, "missing", missing);
    append(text, "unknown", unknown);
    append(text, "different", different);
    return Error{ExitCode::Invalid, text, fmt::format("use the {} that belong to the program", what)};
  }
};

std::string shapeText(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// What a file is to have.
enum class Wanted {
  Weights, ///< of the model; its adapters, all or none
  Adapters
};

/// Whether `state` is a factor of an adapter, of a program that may have some.
bool isAdapter(const State &state, bool hasAdapters) {
  return hasAdapters && state.trainable && !layerOfAdapter(state.name).empty();
}

/// Whether `state` can be read from a tensor of `dtype`. The file must have the state's own type; 16-bit
/// parameters, which a run rounds from wider ones, can be read from those too, and programs may say that all
/// can be converted.
bool takes(const Program &program, const State &state, const State &master, FileDType dtype) {
  const DType own = program.buffers[state.buffer].dtype, exact = program.buffers[master.buffer].dtype;
  if (!program.convertsWeights && own != DType::F16 && own != DType::BF16 && &master == &state &&
      layerOfAdapter(state.name).empty())
    return dtype == toFileDType(own);
  return isConvertible(dtype, own) && isConvertible(dtype, exact);
}

/// Notes how `entry` differs from what `state` and its `master` need.
void compare(const Program &program, const State &state, const State &master, const TensorEntry &entry,
             Mismatch &mismatch) {
  const DType expected = program.buffers[master.buffer].dtype;
  if (!takes(program, state, master, entry.dtype))
    mismatch.different.push_back(
        fmt::format("{} is {}, expected {}", entry.name, spell(entry.dtype), spell(toFileDType(expected))));
  else if (!std::equal(entry.shape.begin(), entry.shape.end(), state.logicalShape.begin(),
                       state.logicalShape.end()))
    mismatch.different.push_back(fmt::format("{} is {}, expected {}", entry.name, shapeText(entry.shape),
                                             shapeText(state.logicalShape)));
}

/// The entry of each state that files hold, null for the others; tied names must hold the same tensor. Of
/// copies on several stages the first is compared.
std::vector<const TensorEntry *> matchEntries(const Program &program, const WeightFiles &files, Wanted wanted,
                                              Mismatch &mismatch) {
  std::vector<const TensorEntry *> matched;
  std::vector<std::string> missingAdapters;
  size_t adapters = 0;
  const bool hasAdapters = !adapterConfigOf(program.modelConfig).empty();
  const std::vector<const State *> masters = mastersOf(program);
  std::unordered_set<std::string_view> known(program.unusedWeights.begin(), program.unusedWeights.end());
  std::unordered_map<std::string_view, const TensorEntry *> seen;
  for (const State &state : program.states) {
    if (const auto first = seen.find(state.name); first != seen.end()) {
      matched.push_back(first->second);
      continue;
    }
    const TensorEntry *found = nullptr;
    const bool isOne = isAdapter(state, hasAdapters);
    const bool isWanted = isInFiles(state) && (isOne || wanted == Wanted::Weights);
    for (const std::string &name : namesInFiles(state)) {
      const TensorEntry *entry = isWanted ? files.find(name) : nullptr;
      if (!entry)
        continue;
      known.insert(entry->name);
      if (!found)
        compare(program, state, *masters[matched.size()], *entry, mismatch);
      else if (entry->bytes != found->bytes || std::memcmp(entry->data, found->data, entry->bytes) != 0)
        mismatch.different.push_back(
            fmt::format("{} and {} are one tensor in the model", found->name, entry->name));
      found = found ? found : entry;
    }
    adapters += isOne && found;
    if (!found && isWanted)
      (isOne ? missingAdapters : mismatch.missing).push_back(state.name);
    matched.push_back(found);
    seen.emplace(state.name, found);
  }
  for (const TensorEntry *entry : files.entries())
    if (!known.contains(entry->name))
      mismatch.unknown.emplace_back(entry->name);
  if (wanted == Wanted::Adapters || adapters > 0)
    mismatch.missing.insert(mismatch.missing.end(), missingAdapters.begin(), missingAdapters.end());
  return matched;
}

/// Gives back the pages that lie in [from, from + bytes) of a mapped file.
void giveBack(const std::byte *from, size_t bytes) {
  constexpr uintptr_t kPage = 4096;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(from) / kPage * kPage;
  const uintptr_t end = reinterpret_cast<uintptr_t>(from + bytes) / kPage * kPage;
  if (begin < end)
    ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
}

/// Reads `count` elements that this rank holds of a state, from its element `first` on, to `to`, converted to
/// its type.
Status readPiece(const LocalState &local, uint64_t first, uint64_t count, const TensorEntry &entry,
                 std::byte *to) {
  ElementRuns runs = local.runsFrom(first);
  const size_t fileSize = bitSize(entry.dtype) / 8;
  const std::byte *begin = nullptr, *end = nullptr; // of what is read, in the file
  while (count > 0) {
    const ElementRun run = *runs.next(UINT64_MAX, count);
    const std::byte *from = entry.data + run.first * fileSize;
    BadElement bad;
    if (!convertElements(entry.dtype, from, local.dtype, to, run.count, {}, bad))
      return Error{ExitCode::Invalid,
                   fmt::format("'{}', element {}: value {} is outside {}", entry.name,
                               run.first + bad.position, bad.value, bad.limit),
                   "train in bf16 or f32, which hold it"};
    begin = begin ? begin : from;
    end = from + run.count * fileSize;
    to += run.count * local.elementBytes();
    count -= run.count;
  }
  giveBack(begin, static_cast<size_t>(end - begin));
  return {};
}

/// Reads what this rank holds of a state.
Status readState(StateWriter &writer, const LocalState &local, const TensorEntry &entry,
                 const std::string &path) {
  return writer.write(local.address(local.held.at), local.held.count, local.elementBytes(),
                      [&](uint64_t first, uint64_t count, std::byte *to) {
                        const StorageOperation reading("reading", path);
                        return readPiece(local, first, count, entry, to);
                      });
}

/// Reads what is `wanted` of `path`.
Status load(Executor &executor, const std::string &path, Wanted wanted) {
  Result<WeightFiles> files = WeightFiles::open(path);
  if (!files)
    return files.error();
  Mismatch mismatch;
  const Program &whole = executor.whole();
  const std::vector<const TensorEntry *> entries = matchEntries(whole, *files, wanted, mismatch);
  if (mismatch.any())
    return mismatch.error(path, wanted == Wanted::Weights ? "weights" : "adapters");
  const std::vector<const State *> origins = originsOf(whole);
  StateWriter writer(executor);
  for (size_t i = 0; i < whole.states.size(); ++i) {
    const TensorEntry *entry = entries[static_cast<size_t>(origins[i] - whole.states.data())];
    if (!entry || !isLoaded(executor, whole.states[i]))
      continue;
    const LocalState local(executor, whole.states[i]);
    if (Status status = readState(writer, local, *entry, path); !status)
      return Error{status.error().code, path + ": " + status.error().message, status.error().hint};
  }
  for (const SafeTensorsFile &file : files->files())
    if (Status status = file.file().checkUnchanged(); !status)
      return status;
  return writer.finish();
}

} // namespace

Status loadWeights(Executor &executor, const std::string &path) {
  return load(executor, path, Wanted::Weights);
}

Status loadAdapter(Executor &executor, const std::string &folder) {
  return load(executor, (std::filesystem::path(folder) / kAdapterWeightsFile).string(), Wanted::Adapters);
}

} // namespace ds::rt
