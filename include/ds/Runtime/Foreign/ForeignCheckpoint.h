//===- ForeignCheckpoint.h - Checkpoints that others have written ---------------===//
//
// One view of four kinds of folders: DeepSpeed's universal checkpoint, its ZeRO 1/2 and ZeRO 3 folders of
// one file per rank, and weights as Hugging Face keeps them (safetensors or files of torch.save). Whatever
// was cut over ranks appears whole: a tensor has the parameter's name and shape, and is read by its row-major
// elements from wherever its pieces lie. Opening reads the pickles, not the numbers.
//
//     Result<ForeignCheckpoint> checkpoint = ForeignCheckpoint::open("run/checkpoints");
//     for (const ForeignTensor &tensor : checkpoint->tensors())  // "h.0.mlp.weight", "exp_avg", F32, [768,
//     3072]
//       checkpoint->read(tensor, 0, tensor.numElements(), buffer);
//
// Nothing in such a file is executed (see Pickle.h). What only DeepSpeed itself could put together (tensor
// parallel ranks, pipeline layers, experts) is refused by name.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FOREIGN_FOREIGNCHECKPOINT_H
#define DS_RUNTIME_FOREIGN_FOREIGNCHECKPOINT_H

#include "ds/Runtime/Formats/FileDType.h"
#include "ds/Support/Error.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ds::rt {

enum class ForeignFormat : uint8_t {
  Universal,  ///< zero/<parameter>/fp32.pt, exp_avg.pt, ...
  ZeroFlat,   ///< ZeRO 1 and 2: the parameters of a group one after another, cut over the ranks
  ZeroSliced, ///< ZeRO 3: each parameter cut over the ranks
  Weights,    ///< safetensors, or files of torch.save, by name
};

enum class ForeignRole : uint8_t {
  Parameter,
  Frozen, ///< a parameter that was not trained: it has a value only
  Buffer, ///< what a module saves beside its parameters
};

struct NamedNumber {
  std::string name;
  double value = 0;
};

/// One tensor of the checkpoint, whole.
struct ForeignTensor {
  std::string name; ///< of the parameter, as the module calls it
  std::string slot; ///< "value", or the optimizer state as the file calls it: "exp_avg", "exp_avg_sq", ...
  FileDType dtype = FileDType::F32;
  std::vector<int64_t> shape;
  ForeignRole role = ForeignRole::Parameter;
  /// What a universal checkpoint says of how the tensor was put together: cat_dim, param_n_sub_params,
  /// vocab_tensor (then rows that only padded the vocabulary are gone). Not needed to read it.
  std::vector<NamedNumber> notes;

  uint64_t numElements() const;
};

/// How far the training had come; what the files do not say is absent.
struct ForeignProgress {
  std::optional<int64_t> steps;           ///< optimizer steps asked for, skipped ones included
  std::optional<int64_t> skippedSteps;    ///< of them, without an update
  std::optional<int64_t> optimizerSteps;  ///< updates that the optimizer counts (Adam's bias correction)
  std::optional<int64_t> samples, tokens; ///< consumed
};

/// The state of fp16's loss scaler.
struct ForeignLossScale {
  double scale = 1;
  bool isDynamic = false;
  std::vector<NamedNumber> numbers; ///< all that the scaler keeps: cur_scale, cur_iter, scale_window, ...
};

struct ForeignView;

/// An open folder. Movable; what it shows stays valid over a move. Reading is thread-safe: one read at a
/// time.
class ForeignCheckpoint {
public:
  /// `path`: the folder, or one with a file `latest` (else `latest_universal`) that names it. Invalid: a
  /// folder of another kind, or one that is refused by name. Corrupt: a file that is damaged, missing or at
  /// odds with the others. Io: one that could not be read.
  static Result<ForeignCheckpoint> open(const std::string &path);

  ForeignFormat format() const;
  /// "ZeRO 3 of 8 ranks".
  std::string describe() const;
  /// The folder that the files lie in.
  const std::string &folder() const;

  const ForeignProgress &progress() const;
  /// The learning-rate scheduler's numbers, by name ("last_batch_iteration", "base_lrs[0]").
  std::span<const NamedNumber> scheduler() const;
  const std::optional<ForeignLossScale> &lossScale() const;
  /// What DeepSpeed's configuration in the files calls the optimizer; empty where it names none, as of one
  /// that was made by the training script.
  const std::string &optimizer() const;

  /// In the order of the files. Of tied parameters only the first of its group is here.
  std::span<const ForeignTensor> tensors() const;
  const ForeignTensor *find(std::string_view name, std::string_view slot = "value") const;
  /// Parameters that are one tensor: the name under which it is in `tensors`, then its other names.
  std::span<const std::vector<std::string>> tied() const;

  /// Writes elements first .. first + count of row-major order to `to`, packed, little-endian. `tensor` is
  /// one of `tensors()`. Corrupt where a checksum does not hold.
  Status read(const ForeignTensor &tensor, uint64_t first, uint64_t count, void *to) const;

  ForeignCheckpoint(ForeignCheckpoint &&) noexcept;
  ForeignCheckpoint &operator=(ForeignCheckpoint &&) noexcept;
  ~ForeignCheckpoint();

private:
  explicit ForeignCheckpoint(std::unique_ptr<ForeignView> view);
  std::unique_ptr<ForeignView> view; ///< never null but after a move
};

} // namespace ds::rt

#endif // DS_RUNTIME_FOREIGN_FOREIGNCHECKPOINT_H
