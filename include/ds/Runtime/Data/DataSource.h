//===- DataSource.h - What `--data` means: which samples go where --------------===//
//
// Data is a sequence of samples: a file's, those of several files one after another, or a blend of such
// sources by weight (DataFiles.h). An input of the program is a slice of M of them. With micro-batch M,
// G micro-steps a step and W data-parallel ranks, micro-step g of step s on rank r reads the positions
//   firstSample + ((s - firstStep) * G * W + g * W + r) * M  onward,
// and position p is sample p mod N of N: at the end it wraps, even inside a batch. With `shuffle` it is
// sample P(p mod N), where P is a permutation chosen by the seed and the epoch p / N (Permutation.h). In a
// blend, p is first a source and a count of its samples (lib/Runtime/Data/Blend.h), and each source
// wraps and is shuffled on its own.
//
// A position counts samples that the whole job has consumed, whatever ranks and micro-batches consumed them.
// So a run that goes on after step s needs two numbers, s and position(s), and may have another mesh,
// micro-batch or accumulation: it opens the same data (`sign`) with them as firstStep and firstSample.
//
// Every batch is checked as it is converted: a token id that is out of range is found here, by name, and not
// as an illegal address on a device.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_DATA_DATASOURCE_H
#define DS_RUNTIME_DATA_DATASOURCE_H

#include "ds/Runtime/Data/TokenStream.h"
#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::rt {

struct SamplePlace;

/// One argument of the forward, as the data must fill it.
struct InputSpec {
  std::string name;
  DType dtype = DType::I64;
  std::vector<int64_t> shape; ///< of one micro-batch on one rank; dimension 0 is the micro-batch
  int64_t indexLimit = 0;     ///< see Input in Program.h
  bool hasIgnoreIndex = false;
  int64_t ignoreIndex = 0;
  /// Of each element of a sample, 1 where the loss has it for a target; empty: none is, or it is not known.
  std::vector<uint8_t> targets = {};
};

/// The inputs of a program, in its order, each once: those of one name on several stages are one.
std::vector<InputSpec> inputSpecs(const Program &program);

struct DataOptions {
  std::string path;                        ///< what --data says: see DataFiles.h
  std::optional<TokenWidth> tokenWidth;    ///< of .bin files without header
  uint32_t microBatch = 1;                 ///< M
  uint32_t accumulation = 1;               ///< G; 1 for evaluation
  uint32_t world = 1;                      ///< W: data-parallel ranks, not all ranks
  bool shuffle = false;                    ///< never for evaluation
  uint64_t seed = 0;                       ///< of the shuffle
  std::optional<int64_t> documentToken;    ///< ends a document; the target behind it does not count
  bool resetPositions = false;             ///< position_ids begin anew with each document
  bool resetAttention = false;             ///< the program must have document_ids, by which it keeps apart
  uint64_t firstStep = 0;                  ///< steps that earlier runs have made
  uint64_t firstSample = 0;                ///< samples that they have consumed
  std::function<void(std::string)> notice; ///< told once when a source's end is passed; may be empty
};

/// Open data, checked against the program's inputs. One thread at a time.
class DataSource {
public:
  /// Refuses what can be known before the first step: Invalid (3) for missing or unknown arguments, shapes,
  /// element types, a file of several that is empty, and data shorter than one global batch; Usage (2),
  /// Corrupt (5), Io (6) from the readers.
  static Result<DataSource> open(const DataOptions &options, std::vector<InputSpec> inputs);

  /// N: samples in all files. In a token stream, windows of T + 1 tokens at stride T.
  uint64_t numSamples() const;

  /// Whole global batches in as many samples: how many steps an epoch, or an evaluation, has.
  uint64_t numBatches() const;

  /// What was opened, for the log: "'x.bin': 1000 tokens (U16), 15 samples of 64".
  std::string describe() const;

  /// What a checkpoint keeps of the data, and a resumed run compares: how many samples there are, a digest of
  /// the files' sizes and first MiB, and the order. The same for the same files under another name or in
  /// another folder, on another mesh and at another position.
  std::string sign() const;

  /// Samples that are consumed before `step`, by this run and those before it. At most 2^64 - 1: beyond, a
  /// counter of 64 bits stands still. Requires step >= firstStep.
  uint64_t position(uint64_t step) const;

  /// Fills the inputs of one micro-step; `step` counts from 0 (also in a resumed run, whose first one is
  /// firstStep), `rank` is the data-parallel one.
  /// `destinations` has one pointer for each input, to packed row-major memory of its shape; null: this rank
  /// has no use for it, and it is not looked at. Invalid (3): a value breaks its input's rule, with file,
  /// sample, value and limit. Io (6): the file was changed meanwhile.
  Status fill(uint64_t step, uint32_t microStep, uint32_t rank, std::span<void *const> destinations);

  /// The targets of a micro-step of one rank where none is left out; 0 where no input has any.
  uint64_t numTargets() const;

  /// Whether some may be left out: a mask, a document's end or a value of the file can be the ignore index.
  bool mayLeaveOutTargets() const;

  /// How many of a micro-step's targets the loss counts, found in the targets alone: no other input is read.
  /// Fails as `fill` does.
  Result<uint64_t> countTargets(uint64_t step, uint32_t microStep, uint32_t rank);

  /// What --data, or --eval-data, says.
  const std::string &path() const;

  struct Impl;
  DataSource(DataSource &&) noexcept;
  DataSource &operator=(DataSource &&) noexcept;
  ~DataSource();

private:
  Status read(uint64_t step, uint32_t microStep, uint32_t rank,
              const std::function<Status(const SamplePlace &place, uint64_t row)> &visit);
  explicit DataSource(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl; ///< never null but after a move
};

} // namespace ds::rt

#endif // DS_RUNTIME_DATA_DATASOURCE_H
