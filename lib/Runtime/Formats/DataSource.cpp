//===- DataSource.cpp - What `--data` means: which samples go where ------------===//

#include "ds/Runtime/Formats/DataSource.h"

#include "Convert.h"
#include "DataColumns.h"
#include "Text.h"
#include "ds/Runtime/Formats/Permutation.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <new>

using namespace ds;
using namespace ds::rt;

struct DataSource::Impl {
  DataOptions options;
  std::vector<InputSpec> inputs;
  Columns data;
  std::optional<uint64_t> epoch; ///< of the last sample read; empty before the first batch

  uint64_t globalBatch() const {
    return uint64_t(options.microBatch) * options.accumulation * options.world; // checked when opened
  }
  /// Of the first sample of `step`; 128 bits hold it for every step and batch.
  unsigned __int128 firstPosition(uint64_t step) const {
    return options.firstSample + (unsigned __int128)(step - options.firstStep) * globalBatch();
  }
  void noticeWrap(uint64_t step, unsigned __int128 firstPosition);
  Error badValue(size_t input, uint64_t sample, const BadElement &bad) const;
  Status fillInput(size_t input, unsigned __int128 firstPosition, void *destination) const;
};

std::vector<InputSpec> ds::rt::inputSpecs(const Program &program) {
  std::vector<InputSpec> specs;
  for (const Input &input : program.inputs) {
    const Buffer &buffer = program.buffers[input.buffer];
    specs.push_back(
        {input.name, buffer.dtype, buffer.shape, input.indexLimit, input.hasIgnoreIndex, input.ignoreIndex});
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
  Result<Columns> data = openColumns(options, inputs);
  if (!data)
    return data.error();
  auto impl = std::make_unique<Impl>(Impl{options, std::move(inputs), std::move(*data), std::nullopt});
  if (impl->data.numSamples < impl->globalBatch())
    return Error{ExitCode::Invalid,
                 quote(options.path) + ": has " + impl->data.contents +
                     std::to_string(impl->data.numSamples) + " samples, but one global batch needs " +
                     std::to_string(impl->globalBatch()) + " (" + std::to_string(options.microBatch) +
                     " samples * " + std::to_string(options.accumulation) + " micro-steps * " +
                     std::to_string(options.world) + " ranks)",
                 "use more data, a smaller train_batch_size or fewer ranks"};
  return DataSource(std::move(impl));
} catch (const std::bad_alloc &) {
  return Error{ExitCode::Io, "no memory for the data in " + quote(options.path), "free memory"};
}

DataSource::DataSource(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
DataSource::DataSource(DataSource &&) noexcept = default;
DataSource &DataSource::operator=(DataSource &&) noexcept = default;
DataSource::~DataSource() = default;

uint64_t DataSource::numSamples() const { return impl->data.numSamples; }
uint64_t DataSource::numBatches() const { return impl->data.numSamples / impl->globalBatch(); }

std::string DataSource::describe() const {
  std::string text =
      quote(impl->options.path) + ": " + impl->data.contents + std::to_string(numSamples()) + " samples";
  if (impl->data.isTokenStream)
    text += " of " + std::to_string(impl->data.columns[0].elements);
  text += ", " + std::to_string(numBatches()) + " global batches of " + std::to_string(impl->globalBatch());
  if (impl->options.shuffle)
    text += ", shuffled by seed " + std::to_string(impl->options.seed);
  return text;
}

/// Adds what a file begins with, which has the header of every format but one, and how long it is.
static uint64_t addToDigest(uint64_t digest, std::span<const std::byte> file) {
  constexpr size_t kMiB = size_t(1) << 20;
  const uint64_t size = file.size();
  digest = XXH3_64bits_withSeed(&size, sizeof(size), digest);
  return XXH3_64bits_withSeed(file.data(), std::min(file.size(), kMiB), digest);
}

std::string DataSource::sign() const {
  const std::string order = impl->options.shuffle ? fmt::format("shuffled by seed {}", impl->options.seed)
                                                  : std::string("in file order");
  uint64_t digest = addToDigest(0, impl->data.mapped().bytes());
  if (const MappedFile *index = impl->data.index())
    digest = addToDigest(digest, index->bytes());
  return fmt::format("{}{} samples, digest {:016x}, {}", impl->data.contents, numSamples(), digest, order);
}

uint64_t DataSource::position(uint64_t step) const {
  return uint64_t(std::min<unsigned __int128>(impl->firstPosition(step), UINT64_MAX));
}

/// Tells once for each new epoch that the data starts over. Looks at the whole micro-step of all ranks, so
/// that every rank would say the same.
void DataSource::Impl::noticeWrap(uint64_t step, unsigned __int128 firstPosition) {
  uint64_t microStep = uint64_t(options.microBatch) * options.world;
  uint64_t first = uint64_t(firstPosition / data.numSamples);
  uint64_t last = uint64_t((firstPosition + microStep - 1) / data.numSamples);
  uint64_t before = epoch.value_or(first); // a resumed run does not report the epochs of its predecessor
  epoch = last;
  if (last > before && options.notice)
    options.notice(quote(options.path) + ": all " + std::to_string(data.numSamples) +
                   " samples were read; starting over in step " + std::to_string(step + 1) + " (epoch " +
                   std::to_string(last + 1) + ")");
}

Error DataSource::Impl::badValue(size_t input, uint64_t sample, const BadElement &bad) const {
  const Column &column = data.columns[input];
  std::string where = "sample " + std::to_string(sample) + ", element " + std::to_string(bad.position);
  if (data.isTokenStream)
    where = "token " + std::to_string(column.firstToken + sample * column.elements + bad.position);
  bool isIndex = inputs[input].indexLimit != 0;
  return {ExitCode::Invalid,
          quote(options.path) + ": argument " + quote(inputs[input].name) + ", " + where + ": value " +
              bad.value + " is outside " + bad.limit,
          isIndex ? "the data was made for another vocabulary or set of classes than the model" : ""};
}

Status DataSource::Impl::fillInput(size_t input, unsigned __int128 firstPosition, void *destination) const {
  const InputSpec &spec = inputs[input];
  const Column &column = data.columns[input];
  IndexRule rule{spec.indexLimit, spec.hasIgnoreIndex, spec.ignoreIndex};
  size_t sampleBytes = column.elements * elementBytes(spec.dtype);
  for (uint64_t i = 0; i < options.microBatch; ++i) {
    uint64_t epochOfSample = uint64_t((firstPosition + i) / data.numSamples);
    uint64_t sample = uint64_t((firstPosition + i) % data.numSamples);
    if (options.shuffle)
      sample = Permutation(data.numSamples, options.seed, epochOfSample)(sample);
    BadElement bad;
    if (!convertElements(column.dtype, column.data + sample * column.stride, spec.dtype,
                         static_cast<std::byte *>(destination) + i * sampleBytes, column.elements, rule, bad))
      return badValue(input, sample, bad);
  }
  return {};
}

Status DataSource::fill(uint64_t step, uint32_t microStep, uint32_t rank,
                        std::span<void *const> destinations) {
  const DataOptions &options = impl->options;
  if (step < options.firstStep || microStep >= options.accumulation || rank >= options.world ||
      destinations.size() != impl->inputs.size())
    return Error{ExitCode::Internal,
                 "data asked for step " + std::to_string(step) + " from " +
                     std::to_string(options.firstStep) + ", micro-step " + std::to_string(microStep) +
                     " of " + std::to_string(options.accumulation) + ", rank " + std::to_string(rank) +
                     " of " + std::to_string(options.world) + ", " + std::to_string(destinations.size()) +
                     " inputs of " + std::to_string(impl->inputs.size()),
                 ""};
  if (Status status = impl->data.mapped().checkUnchanged(); !status)
    return status;
  unsigned __int128 position =
      impl->firstPosition(step) + uint64_t(microStep) * options.world * options.microBatch;
  impl->noticeWrap(step, position);
  for (size_t i = 0; i < destinations.size(); ++i)
    if (Status status = impl->fillInput(i, position + uint64_t(rank) * options.microBatch, destinations[i]);
        !status)
      return status;
  return {};
}
