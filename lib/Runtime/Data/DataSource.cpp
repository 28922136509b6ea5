//===- DataSource.cpp - What `--data` means: which samples go where ------------===//

#include "ds/Runtime/Data/DataSource.h"

#include "Files/Text.h"
#include "FillSample.h"
#include "Sources.h"

#include "ds/Runtime/Program/ProgramFile.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <new>

using namespace ds;
using namespace ds::rt;

struct DataSource::Impl {
  DataOptions options;
  std::vector<InputSpec> inputs;
  Sources data;
  std::vector<std::optional<uint64_t>> epochs; ///< by source, of the last sample read; empty before the first
  std::string sign;                            ///< empty until it is asked for

  uint64_t globalBatch() const {
    return uint64_t(options.microBatch) * options.accumulation * options.world; // checked when opened
  }
  /// Of the first sample of `step`; 128 bits hold it for every step and batch.
  Position firstPosition(uint64_t step) const {
    return options.firstSample + Position(step - options.firstStep) * globalBatch();
  }
  void noticeWraps(uint64_t step, Position first);
};

/// Of each element of a sample whether it is a target that may be ignored; empty where none is.
static std::vector<uint8_t> targetsOf(const Input &input, const Buffer &buffer) {
  if (input.targets.empty() || !input.hasIgnoreIndex)
    return {};
  const int64_t samples = buffer.shape.empty() ? 1 : buffer.shape[0];
  std::vector<uint8_t> marks(static_cast<size_t>(numElements(buffer) / samples));
  for (const IndexRange &run : input.targets)
    std::fill_n(marks.begin() + static_cast<ptrdiff_t>(run.first), run.count, uint8_t(1));
  return marks;
}

std::vector<InputSpec> ds::rt::inputSpecs(const Program &program) {
  std::vector<InputSpec> specs;
  for (const Input &input : program.inputs) {
    const Buffer &buffer = program.buffers[input.buffer];
    const auto isSame = [&](const InputSpec &spec) { return spec.name == input.name; };
    if (std::ranges::any_of(specs, isSame))
      continue;
    specs.push_back({input.name, buffer.dtype, buffer.shape, input.indexLimit, input.hasIgnoreIndex,
                     input.ignoreIndex, targetsOf(input, buffer)});
  }
  return specs;
}

/// Checks what does not depend on the file: the batch arithmetic and the inputs' own shapes.
static Status checkInputs(const DataOptions &options, std::span<const InputSpec> inputs) {
  unsigned __int128 batch = (unsigned __int128)options.microBatch * options.accumulation * options.world;
  if (batch == 0 || batch > uint64_t(INT64_MAX))
    return Error{ExitCode::Invalid,
                 "a global batch of " + std::to_string(options.microBatch) + " samples * " +
                     std::to_string(options.accumulation) + " micro-steps * " +
                     std::to_string(options.world) + " ranks is not between 1 and 2^63 - 1",
                 ""};
  if (inputs.empty())
    return Error{ExitCode::Invalid, "the forward has no arguments that data could fill", ""};
  for (const InputSpec &input : inputs) {
    int64_t count = 0;
    if (input.shape.empty() || input.shape[0] != int64_t(options.microBatch) ||
        !checkedProduct(input.shape, count))
      return Error{ExitCode::Invalid,
                   "argument " + quote(input.name) + " of shape " + spellShape(input.shape) +
                       " does not have the micro-batch of " + std::to_string(options.microBatch) +
                       " as dimension 0",
                   "give the micro-batch as the first dimension in --input"};
  }
  return {};
}

Result<DataSource> DataSource::open(const DataOptions &options, std::vector<InputSpec> inputs) try {
  if (Status status = checkInputs(options, inputs); !status)
    return status.error();
  Result<Sources> data = openSources(options, inputs);
  if (!data)
    return data.error();
  auto impl = std::make_unique<Impl>(Impl{options, std::move(inputs), std::move(*data), {}, ""});
  impl->epochs.resize(impl->data.list.size());
  const Sources &sources = impl->data;
  if (sources.numSamples() < impl->globalBatch())
    return Error{ExitCode::Invalid,
                 fmt::format("{}: has {}{} samples, but one global batch needs {} ({} samples * {} "
                             "micro-steps * {} ranks)",
                             quote(options.path),
                             sources.list.size() > 1 ? "" : sources.list[0].files[0].contents(),
                             sources.numSamples(), impl->globalBatch(), options.microBatch,
                             options.accumulation, options.world),
                 "use more data, a smaller train_batch_size or fewer ranks"};
  return DataSource(std::move(impl));
} catch (const std::bad_alloc &) {
  return Error{ExitCode::Io, "no memory for the data in " + quote(options.path), "free memory"};
}

DataSource::DataSource(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
DataSource::DataSource(DataSource &&) noexcept = default;
DataSource &DataSource::operator=(DataSource &&) noexcept = default;
DataSource::~DataSource() = default;

uint64_t DataSource::numSamples() const { return impl->data.numSamples(); }
uint64_t DataSource::numBatches() const { return numSamples() / impl->globalBatch(); }

/// The sources with their shares.
static std::string describeBlend(const Sources &data, bool withNames) {
  std::string text;
  for (size_t i = 0; i < data.list.size(); ++i)
    text += fmt::format("{}{} of {}{} ({})", i == 0 ? "" : " + ", data.blend.share(i), data.blend.period(),
                        withNames ? " from " + quote(data.list[i].name) : "", data.list[i].describe());
  return text;
}

std::string DataSource::describe() const {
  const Sources &data = impl->data;
  std::string text =
      quote(impl->options.path) + ": " +
      (data.isBlend ? "blend of " + describeBlend(data, /*withNames=*/true) : data.list[0].describe());
  text += fmt::format(", {} global batches of {}", numBatches(), impl->globalBatch());
  if (impl->options.shuffle)
    text += ", shuffled by seed " + std::to_string(impl->options.seed);
  return text;
}

/// Adds what a file begins with, which has the header of every format but one, and how long it is.
static uint64_t addToDigest(uint64_t digest, std::span<const std::byte> file, size_t limit) {
  const uint64_t size = file.size();
  digest = XXH3_64bits_withSeed(&size, sizeof(size), digest);
  return XXH3_64bits_withSeed(file.data(), std::min(file.size(), limit), digest);
}

/// Of all files in their order. Of many files less of each is read: 1 MiB together, but 4 KiB of each.
static uint64_t digestOf(const Sources &data) {
  constexpr size_t kMiB = size_t(1) << 20, kLeast = 4096;
  size_t numFiles = 0;
  for (const Source &source : data.list)
    numFiles += source.files.size();
  const size_t limit = std::max(kMiB / numFiles, kLeast);
  uint64_t digest = 0;
  for (const Source &source : data.list)
    for (const Columns &file : source.files) {
      digest = addToDigest(digest, file.mapped().bytes(), limit);
      if (const MappedFile *index = file.index())
        digest = addToDigest(digest, index->bytes(), limit);
    }
  return digest;
}

std::string DataSource::sign() const {
  const DataOptions &options = impl->options;
  std::string &sign = impl->sign;
  if (!sign.empty())
    return sign;
  sign = fmt::format("{}, digest {:016x}, {}",
                     impl->data.isBlend ? describeBlend(impl->data, /*withNames=*/false)
                                        : impl->data.list[0].describe(),
                     digestOf(impl->data),
                     options.shuffle ? fmt::format("shuffled by seed {}", options.seed) : "in file order");
  if (options.documentToken)
    sign += fmt::format(", documents end with {}", *options.documentToken);
  return sign;
}

uint64_t DataSource::position(uint64_t step) const {
  return uint64_t(std::min<Position>(impl->firstPosition(step), UINT64_MAX));
}

/// Tells once for each new epoch of a source that it starts over. Looks at the whole micro-step of all ranks,
/// so that every rank would say the same.
void DataSource::Impl::noticeWraps(uint64_t step, Position first) {
  const Position end = first + uint64_t(options.microBatch) * options.world;
  for (size_t i = 0; i < data.list.size(); ++i) {
    const Source &source = data.list[i];
    const Position from = data.blend.count(i, first), to = data.blend.count(i, end);
    if (from == to)
      continue;
    const auto last = uint64_t((to - 1) / source.numSamples);
    // A resumed run does not report the epochs of its predecessor.
    const uint64_t before = epochs[i].value_or(uint64_t(from / source.numSamples));
    epochs[i] = last;
    if (last > before && options.notice)
      options.notice(fmt::format("{}: all {} samples were read; starting over in step {} (epoch {})",
                                 quote(source.name), source.numSamples, step + 1, last + 1));
  }
}

/// Visits the samples of a micro-step of one rank, row by row.
Status DataSource::read(uint64_t step, uint32_t microStep, uint32_t rank,
                        const std::function<Status(const SamplePlace &place, uint64_t row)> &visit) {
  const DataOptions &options = impl->options;
  if (step < options.firstStep || microStep >= options.accumulation || rank >= options.world)
    return Error{ExitCode::Internal,
                 "data asked for step " + std::to_string(step) + " from " +
                     std::to_string(options.firstStep) + ", micro-step " + std::to_string(microStep) +
                     " of " + std::to_string(options.accumulation) + ", rank " + std::to_string(rank) +
                     " of " + std::to_string(options.world),
                 ""};
  const Position position =
      impl->firstPosition(step) + (uint64_t(microStep) * options.world + rank) * uint64_t(options.microBatch);
  const std::optional<uint64_t> seed = options.shuffle ? std::optional(options.seed) : std::nullopt;
  const Columns *checked = nullptr;
  for (uint64_t row = 0; row < options.microBatch; ++row) {
    const SamplePlace place = impl->data(position + row, seed);
    if (place.file != checked)
      if (Status status = place.file->mapped().checkUnchanged(); !status)
        return status;
    checked = place.file;
    if (Status status = visit(place, row); !status)
      return status;
  }
  return {};
}

Status DataSource::fill(uint64_t step, uint32_t microStep, uint32_t rank,
                        std::span<void *const> destinations) {
  const DataOptions &options = impl->options;
  if (destinations.size() != impl->inputs.size())
    return Error{ExitCode::Internal,
                 fmt::format("data asked for {} inputs of {}", destinations.size(), impl->inputs.size()), ""};
  if (step >= options.firstStep)
    impl->noticeWraps(step,
                      impl->firstPosition(step) + uint64_t(microStep) * options.world * options.microBatch);
  return read(step, microStep, rank, [&](const SamplePlace &place, uint64_t row) {
    return fillSample(options, impl->inputs, place, row, destinations);
  });
}

const std::string &DataSource::path() const { return impl->options.path; }

/// The input that has targets; their number where none has.
static size_t findTargets(std::span<const InputSpec> inputs) {
  const auto found =
      std::ranges::find_if(inputs, [](const InputSpec &input) { return !input.targets.empty(); });
  return static_cast<size_t>(found - inputs.begin());
}

uint64_t DataSource::numTargets() const {
  const size_t targets = findTargets(impl->inputs);
  if (targets == impl->inputs.size())
    return 0;
  const std::vector<uint8_t> &ofSample = impl->inputs[targets].targets;
  return uint64_t(std::ranges::count(ofSample, 1)) * impl->options.microBatch;
}

bool DataSource::mayLeaveOutTargets() const {
  const size_t targets = findTargets(impl->inputs);
  if (targets == impl->inputs.size())
    return false;
  for (const Source &source : impl->data.list)
    for (const Columns &file : source.files)
      if (mayLeaveOut(impl->options, file, targets, impl->inputs[targets].ignoreIndex))
        return true;
  return false;
}

Result<uint64_t> DataSource::countTargets(uint64_t step, uint32_t microStep, uint32_t rank) {
  const size_t targets = findTargets(impl->inputs);
  if (targets == impl->inputs.size())
    return uint64_t(0);
  uint64_t count = 0;
  Status status = read(step, microStep, rank, [&](const SamplePlace &place, uint64_t) -> Status {
    const Result<uint64_t> found = countTargetsOf(impl->options, impl->inputs, targets, place);
    count += found ? *found : 0;
    return found ? Status() : Status(found.error());
  });
  return status ? Result<uint64_t>(count) : Result<uint64_t>(status.error());
}
