//===- FillSample.cpp - From one sample of a file to one row of the inputs -----===//

#include "FillSample.h"

#include "Files/Text.h"
#include "Formats/Convert.h"

#include <fmt/format.h>

#include <cstring>

using namespace ds;
using namespace ds::rt;

namespace {

/// Elements to convert, wherever they come from.
struct Elements {
  FileDType dtype = FileDType::I64;
  const std::byte *data = nullptr;
  size_t count = 0;
};

class Filler {
public:
  Filler(const DataOptions &options, std::span<const InputSpec> inputs, const SamplePlace &place)
      : options(options), inputs(inputs), file(*place.file), sample(place.sample) {}

  Status fill(uint64_t row, std::span<void *const> destinations);
  /// The targets of input `input` that count.
  Result<uint64_t> countTargets(size_t input);

private:
  Status readMask();
  Status findFacts();
  Status prepare();
  Elements elementsOf(size_t input) const;
  Status convert(size_t input, std::byte *target) const;
  Error badValue(std::string_view name, const Column &column, const BadElement &bad, bool isIndex) const;

  Elements stored(const Column &column) const {
    return {column.dtype, column.data + sample * column.stride, column.elements};
  }

  const DataOptions &options;
  std::span<const InputSpec> inputs;
  const Columns &file;
  uint64_t sample;
  WindowFacts facts; ///< of a window of tokens; `keep` also of other data that has a mask
  size_t masked = 0; ///< the input that `keep` is for; empty: nothing is masked
};

} // namespace

Error Filler::badValue(std::string_view name, const Column &column, const BadElement &bad,
                       bool isIndex) const {
  const std::string where =
      file.isTokenStream()
          ? fmt::format("token {}", column.firstToken + sample * column.elements + bad.position)
          : fmt::format("sample {}, element {}", sample, bad.position);
  return {ExitCode::Invalid,
          fmt::format("{}: argument {}, {}: value {} is outside {}", quote(file.mapped().path()), quote(name),
                      where, bad.value, bad.limit),
          isIndex ? "the data was made for another vocabulary or set of classes than the model" : ""};
}

/// The mask that the file holds.
Status Filler::readMask() {
  const Elements mask = stored(*file.mask);
  facts.keep.resize(mask.count);
  masked = file.masked;
  BadElement bad;
  if (mask.dtype == FileDType::Bool
          ? !convertElements(mask.dtype, mask.data, DType::Bool, facts.keep.data(), mask.count, {}, bad)
          : !convertElements(mask.dtype, mask.data, DType::U8, facts.keep.data(), mask.count, {2}, bad))
    return badValue(kLossMask, *file.mask, bad, /*isIndex=*/false);
  return {};
}

/// What follows from the window's tokens, where somebody wants to know.
Status Filler::findFacts() {
  const TokenInputs &places = *file.places;
  if (!options.documentToken && !places.positions)
    return {};
  const Elements tokens = stored(file.columns[places.tokens]);
  std::vector<int64_t> values(tokens.count);
  BadElement bad; // 64 bits hold every token but those of u64, of which there are no streams
  convertElements(tokens.dtype, tokens.data, DType::I64, values.data(), tokens.count, {}, bad);
  facts = factsOf(values, options.documentToken, options.resetPositions);
  masked = places.targets;
  return {};
}

Elements Filler::elementsOf(size_t input) const {
  auto computed = [](const std::vector<int64_t> &values) {
    return Elements{FileDType::I64, reinterpret_cast<const std::byte *>(values.data()), values.size()};
  };
  if (file.places && file.places->positions == input)
    return computed(facts.positions);
  if (file.places && file.places->documents == input)
    return computed(facts.documents);
  return stored(file.columns[input]);
}

/// Stretches that count are converted as they are; what stands elsewhere may be anything.
Status Filler::convert(size_t input, std::byte *target) const {
  const InputSpec &spec = inputs[input];
  const IndexRule rule{spec.indexLimit, spec.hasIgnoreIndex, spec.ignoreIndex};
  const Elements from = elementsOf(input);
  const size_t width = elementBytes(spec.dtype), fileWidth = bitSize(from.dtype) / 8;
  const bool isMasked = input == masked && !facts.keep.empty();
  for (size_t begin = 0, end = 0; begin < from.count; begin = end) {
    const bool keeps = !isMasked || facts.keep[begin];
    for (end = begin + 1; isMasked && end < from.count && facts.keep[end] == facts.keep[begin];)
      ++end;
    end = isMasked ? end : from.count;
    BadElement bad;
    if (keeps) {
      if (!convertElements(from.dtype, from.data + begin * fileWidth, spec.dtype, target + begin * width,
                           end - begin, rule, bad)) {
        bad.position += begin;
        const bool isStored = file.columns[input].data;
        return badValue(spec.name, file.columns[isStored ? input : file.places->tokens], bad,
                        isStored && spec.indexLimit != 0);
      }
      continue;
    }
    for (size_t i = begin; i < end; ++i)
      if (!convertElements(FileDType::I64, &spec.ignoreIndex, spec.dtype, target + i * width, 1, {}, bad))
        return Error{ExitCode::Invalid,
                     fmt::format("argument {} cannot hold the ignore index {} of its loss", quote(spec.name),
                                 spec.ignoreIndex),
                     "give it as i64"};
  }
  return {};
}

/// What the sample's mask or its tokens say.
Status Filler::prepare() {
  if (Status status = file.mask ? readMask() : Status(); !status)
    return status;
  return file.places ? findFacts() : Status();
}

Result<uint64_t> Filler::countTargets(size_t input) {
  if (Status status = prepare(); !status)
    return status.error();
  const InputSpec &spec = inputs[input];
  std::vector<std::byte> values(elementsOf(input).count * elementBytes(spec.dtype));
  if (Status status = convert(input, values.data()); !status)
    return status.error();
  uint64_t count = 0;
  for (size_t i = 0; i < spec.targets.size(); ++i) {
    int64_t wide = 0;
    int32_t narrow = 0;
    if (spec.dtype == DType::I64)
      std::memcpy(&wide, values.data() + i * sizeof wide, sizeof wide);
    else
      std::memcpy(&narrow, values.data() + i * sizeof narrow, sizeof narrow);
    count += spec.targets[i] && (spec.dtype == DType::I64 ? wide : narrow) != spec.ignoreIndex;
  }
  return count;
}

Status Filler::fill(uint64_t row, std::span<void *const> destinations) {
  if (Status status = prepare(); !status)
    return status;
  for (size_t input = 0; input < inputs.size(); ++input) {
    if (!destinations[input])
      continue;
    const size_t rowBytes = elementsOf(input).count * elementBytes(inputs[input].dtype);
    if (Status status = convert(input, static_cast<std::byte *>(destinations[input]) + row * rowBytes);
        !status)
      return status;
  }
  return {};
}

bool ds::rt::mayLeaveOut(const DataOptions &options, const Columns &file, size_t targets, int64_t ignored) {
  if (file.mask || (file.isTokenStream() && options.documentToken))
    return true;
  const FileDType dtype = file.columns[targets].dtype; // targets are stored, in every kind of file
  const bool isSigned =
      dtype == FileDType::I8 || dtype == FileDType::I16 || dtype == FileDType::I32 || dtype == FileDType::I64;
  return ignored >= 0 || isSigned;
}

Result<uint64_t> ds::rt::countTargetsOf(const DataOptions &options, std::span<const InputSpec> inputs,
                                        size_t targets, const SamplePlace &place) {
  return Filler(options, inputs, place).countTargets(targets);
}

Status ds::rt::fillSample(const DataOptions &options, std::span<const InputSpec> inputs,
                          const SamplePlace &place, uint64_t row, std::span<void *const> destinations) {
  return Filler(options, inputs, place).fill(row, destinations);
}
