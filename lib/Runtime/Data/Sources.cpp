//===- Sources.cpp - Where a position of the data lies -------------------------===//

#include "Sources.h"

#include "Files/Text.h"
#include "ds/Runtime/Data/Permutation.h"

#include <fmt/format.h>

#include <algorithm>

using namespace ds;
using namespace ds::rt;

SamplePlace Source::operator()(Position index, std::optional<uint64_t> seed) const {
  uint64_t sample = uint64_t(index % numSamples);
  if (seed)
    sample = Permutation(numSamples, *seed, uint64_t(index / numSamples))(sample);
  const size_t file = size_t(std::ranges::upper_bound(ends, sample) - ends.begin());
  return {&files[file], sample - (file == 0 ? 0 : ends[file - 1])};
}

std::string Source::describe() const {
  const Columns &first = files.front();
  std::string text = files.size() == 1 ? first.contents() : fmt::format("{} files, ", files.size());
  if (files.size() > 1 && first.isTokenStream()) {
    uint64_t tokens = 0; // no overflow: the files are mapped
    for (const Columns &file : files)
      tokens += file.numTokens;
    text += fmt::format("{} tokens, ", tokens);
  }
  text += fmt::format("{} samples", numSamples);
  if (first.isTokenStream())
    text += fmt::format(" of {}", first.columns[first.places->tokens].elements);
  return text;
}

SamplePlace Sources::operator()(Position position, std::optional<uint64_t> seed) const {
  const auto [source, sample] = blend(position);
  if (seed) // sources of equal length need not be drawn alike
    *seed += source * 0x9e3779b97f4a7c15;
  return list[source](sample, seed);
}

uint64_t Sources::numSamples() const {
  uint64_t count = 0;
  for (const Source &source : list)
    count += source.numSamples;
  return count;
}

/// A file that gives nothing, where others do, is one that was not written.
static Status checkNotEmpty(const std::string &path, const Columns &file, std::span<const InputSpec> inputs) {
  if (file.numSamples > 0)
    return {};
  const std::string found = !file.isTokenStream() ? "has no samples"
                            : file.numTokens == 0 ? "is empty"
                                                  : fmt::format("has {} tokens, but one sample takes {}",
                                                                file.numTokens, inputs[0].shape[1] + 1);
  return Error{ExitCode::Invalid, quote(path) + ": " + found, "complete the file, or leave it out"};
}

/// A width that a blend's file says, or the command line.
static Result<std::optional<TokenWidth>> widthOf(const DataPart &part, const DataOptions &options) {
  if (part.tokenDtype.empty())
    return options.tokenWidth;
  const std::optional<TokenWidth> width = parseTokenWidth(part.tokenDtype);
  if (!width)
    return Error{ExitCode::Usage,
                 quote(options.path) + ": token_dtype " + quote(part.tokenDtype) + " of " + quote(part.name) +
                     ": known are u16 and u32",
                 ""};
  return width;
}

static Result<Source> openSource(const DataPart &part, const DataOptions &options, bool isAll,
                                 std::span<const InputSpec> inputs) {
  Result<std::optional<TokenWidth>> width = widthOf(part, options);
  if (!width)
    return width.error();
  Source source;
  source.name = part.name;
  for (const std::string &path : part.files) {
    Result<Columns> file = openColumns(path, *width, inputs);
    if (!file)
      return file.error();
    if (Status status = checkNotEmpty(path, *file, inputs); !status && !(isAll && part.files.size() == 1))
      return status.error();
    source.numSamples += file->numSamples;
    source.ends.push_back(source.numSamples);
    source.files.push_back(std::move(*file));
  }
  return source;
}

/// The order in which the parts of a blend take turns.
static Result<Blend> blendOf(const DataFiles &data) {
  std::vector<Weight> weights;
  for (const DataPart &part : data.parts) {
    Result<Weight> weight = parseWeight(part.weight);
    if (!weight)
      return Error{weight.error().code, quote(part.name) + ": " + weight.error().message,
                   weight.error().hint};
    weights.push_back(*weight);
  }
  Result<std::vector<uint32_t>> shares = sharesOf(weights);
  return shares ? Result<Blend>(Blend(*shares)) : Result<Blend>(shares.error());
}

Result<Sources> ds::rt::openSources(const DataOptions &options, std::span<const InputSpec> inputs) {
  Result<DataFiles> data = findDataFiles(options.path);
  if (!data)
    return data.error();
  Result<Blend> blend = blendOf(*data);
  if (!blend)
    return blend.error();
  Sources sources{{}, std::move(*blend), data->isBlend};
  for (const DataPart &part : data->parts) {
    Result<Source> source = openSource(part, options, !data->isBlend, inputs);
    if (!source)
      return source.error();
    for (const Columns &file : source->files)
      if (Status status = checkDocuments(options, inputs, file.isTokenStream()); !status)
        return status.error();
    sources.list.push_back(std::move(*source));
  }
  return sources;
}
