//===- Weights.cpp - Initialises, loads and saves states -----------------------===//
//
// A weights file is mapped and copied piece by piece, each piece's pages given back at once: reading adds
// nothing that matters to the process's peak.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Weights.h"

#include "Convert.h"

#include "ds/Runtime/Formats/SafeTensors.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <sys/mman.h>
#include <unordered_set>

namespace ds::rt {
namespace {

constexpr size_t kPiece = size_t(8) << 20;
constexpr size_t kMaxListed = 12; // names of each kind of mismatch in a message

bool isInFiles(const State &state) { return state.role == Role::Parameter || state.role == Role::Buffer; }

/// Writes `count` values of `spec` from position `first` on through a converting buffer, for types other than
/// f32.
void fillConverted(std::byte *to, DType dtype, const RandomCall &spec, Isa isa) {
  std::vector<float> values(static_cast<size_t>(spec.count));
  RandomCall call = spec;
  call.data = values.data();
  fillRandom(call, isa);
  for (size_t i = 0; i < values.size(); ++i)
    storeElement(to + i * byteSize(dtype), dtype, values[i]);
}

void fillState(Executor &executor, const State &state, uint64_t seed) {
  const Buffer &buffer = executor.program().buffers[state.buffer];
  std::byte *data = static_cast<std::byte *>(executor.data(state.buffer));
  const int64_t count = numElements(buffer);
  const bool normal = state.init.kind == Init::Kind::Normal;
  RandomCall call{reinterpret_cast<float *>(data),
                  count,
                  seed,
                  XXH3_64bits(state.name.data(), state.name.size()),
                  static_cast<float>(state.init.a),
                  static_cast<float>(normal ? state.init.b : state.init.b - state.init.a),
                  normal,
                  executor.program().threads};
  switch (state.init.kind) {
  case Init::Kind::Normal:
  case Init::Kind::Uniform:
    if (buffer.dtype == DType::F32)
      return fillRandom(call, bestIsa());
    return fillConverted(data, buffer.dtype, call, bestIsa());
  case Init::Kind::Constant: {
    const int64_t value = std::bit_cast<int64_t>(state.init.a);
    const View view{data, buffer.shape.data(), buffer.strides.data(),
                    static_cast<uint32_t>(buffer.shape.size()), buffer.dtype};
    return libraryFunction(LibraryFn::Fill, bestIsa())({&view, &value, 1, executor.program().threads});
  }
  case Init::Kind::Zero:
  case Init::Kind::Required:
    std::memset(data, 0, extentBytes(buffer));
  }
}

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
  Error error(const std::string &path) const {
    std::string text = fmt::format("{}: does not hold the weights of this model", path);
    append(text, "missing", missing);
    append(text, "unknown", unknown);
    append(text, "different", different);
    return Error{ExitCode::Invalid, text, "use the weights file that belongs to the program"};
  }
};

std::string shapeText(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

/// Notes how `entry` differs from what `state` needs.
void compare(const Program &program, const State &state, const TensorEntry &entry, Mismatch &mismatch) {
  const DType dtype = program.buffers[state.buffer].dtype;
  if (entry.dtype != toFileDType(dtype))
    mismatch.different.push_back(
        fmt::format("{} is {}, expected {}", entry.name, spell(entry.dtype), spell(toFileDType(dtype))));
  else if (!std::equal(entry.shape.begin(), entry.shape.end(), state.logicalShape.begin(),
                       state.logicalShape.end()))
    mismatch.different.push_back(fmt::format("{} is {}, expected {}", entry.name, shapeText(entry.shape),
                                             shapeText(state.logicalShape)));
}

/// The entry of each state, null for those that files do not hold; tied names must hold the same tensor.
std::vector<const TensorEntry *> matchEntries(const Program &program, const WeightFiles &files,
                                              Mismatch &mismatch) {
  std::vector<const TensorEntry *> matched;
  std::unordered_set<std::string_view> known(program.unusedWeights.begin(), program.unusedWeights.end());
  for (const State &state : program.states) {
    const TensorEntry *found = nullptr;
    std::vector<std::string> names = state.aliases;
    names.insert(names.begin(), state.name);
    for (const std::string &name : names) {
      const TensorEntry *entry = isInFiles(state) ? files.find(name) : nullptr;
      if (!entry)
        continue;
      known.insert(entry->name);
      if (!found)
        compare(program, state, *entry, mismatch);
      else if (entry->bytes != found->bytes || std::memcmp(entry->data, found->data, entry->bytes) != 0)
        mismatch.different.push_back(
            fmt::format("{} and {} are one tensor in the model", found->name, entry->name));
      found = found ? found : entry;
    }
    if (!found && isInFiles(state))
      mismatch.missing.push_back(state.name);
    matched.push_back(found);
  }
  for (const TensorEntry *entry : files.entries())
    if (!known.contains(entry->name))
      mismatch.unknown.emplace_back(entry->name);
  return matched;
}

/// Copies mapped memory, giving back the pages of each piece once it is copied.
void copyMapped(std::byte *to, const std::byte *from, size_t bytes) {
  constexpr uintptr_t kPage = 4096;
  for (size_t done = 0; done < bytes; done += kPiece) {
    const size_t size = std::min(kPiece, bytes - done);
    std::memcpy(to + done, from + done, size);
    const uintptr_t begin = reinterpret_cast<uintptr_t>(from + done) / kPage * kPage;
    const uintptr_t end = reinterpret_cast<uintptr_t>(from + done + size) / kPage * kPage;
    if (begin < end)
      ::madvise(reinterpret_cast<void *>(begin), end - begin, MADV_DONTNEED);
  }
}

/// Whether `state` is the (seed, counter) that random ops read.
bool isGenerator(const Buffer &buffer, const State &state) {
  return state.role == Role::Scalar && state.name == "rng" && buffer.dtype == DType::I64 &&
         state.logicalShape == std::vector<int64_t>{2};
}

} // namespace

Status initializeStates(Executor &executor, uint64_t seed, bool alsoRequired) {
  const Program &program = executor.program();
  for (const State &state : program.states) {
    if (state.init.kind == Init::Kind::Required && !alsoRequired)
      return Error{ExitCode::Invalid,
                   fmt::format("'{}' has no initialisation: only a weights file can give it", state.name),
                   "give the model's weights with --weights FILE.safetensors"};
    fillState(executor, state, seed);
    if (isGenerator(program.buffers[state.buffer], state))
      *static_cast<uint64_t *>(executor.data(state.buffer)) = seed; // the counter behind it starts at 0
  }
  return syncMasters(executor);
}

Status loadWeights(Executor &executor, const std::string &path) {
  Result<WeightFiles> files = WeightFiles::open(path);
  if (!files)
    return files.error();
  Mismatch mismatch;
  const Program &program = executor.program();
  const std::vector<const TensorEntry *> entries = matchEntries(program, *files, mismatch);
  if (mismatch.any())
    return mismatch.error(path);
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i])
      copyMapped(static_cast<std::byte *>(executor.data(program.states[i].buffer)), entries[i]->data,
                 entries[i]->bytes);
  for (const SafeTensorsFile &file : files->files())
    if (Status status = file.file().checkUnchanged(); !status)
      return status;
  return syncMasters(executor);
}

Status saveWeights(const Executor &executor, const std::string &path) {
  std::vector<TensorSource> sources;
  const Program &program = executor.program();
  for (const State &state : program.states) {
    if (!isInFiles(state))
      continue;
    TensorSource source{state.name, toFileDType(program.buffers[state.buffer].dtype), state.logicalShape,
                        executor.data(state.buffer)};
    sources.push_back(source);
    for (const std::string &alias : state.aliases) {
      source.name = alias;
      sources.push_back(source);
    }
  }
  return writeSafeTensors(path, sources, {{"format", "pt"}});
}

Status syncMasters(Executor &executor) {
  const Program &program = executor.program();
  for (const State &master : program.states) {
    if (master.role != Role::Master)
      continue;
    const auto owner = std::find_if(program.states.begin(), program.states.end(),
                                    [&](const State &state) { return state.name == master.owner; });
    if (owner == program.states.end())
      return Error{ExitCode::Corrupt,
                   fmt::format("master '{}' belongs to '{}', which is no state", master.name, master.owner),
                   "compile the model again with ds-opt"};
    const Buffer &from = program.buffers[owner->buffer], &to = program.buffers[master.buffer];
    if (numElements(from) != numElements(to))
      return Error{ExitCode::Corrupt,
                   fmt::format("master '{}' has {} elements, its parameter {}", master.name, numElements(to),
                               numElements(from)),
                   "compile the model again with ds-opt"};
    const std::byte *source = static_cast<const std::byte *>(executor.data(owner->buffer));
    std::byte *target = static_cast<std::byte *>(executor.data(master.buffer));
    for (int64_t i = 0; i < numElements(to); ++i)
      storeElement(target + i * byteSize(to.dtype), to.dtype,
                   loadElement(source + i * byteSize(from.dtype), from.dtype));
  }
  return {};
}

} // namespace ds::rt
