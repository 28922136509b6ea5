//===- BestLosses.h - The least held-out losses that a run has saved -----------------===//
#ifndef DS_LIB_RUNTIME_SAVING_BESTLOSSES_H
#define DS_LIB_RUNTIME_SAVING_BESTLOSSES_H

#include "ds/Runtime/Checkpoint/Keep.h"
#include "ds/Runtime/Checkpoint/Store.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::rt {

/// What a new held-out loss is compared with, to know whether its states are worth a checkpoint. The same on
/// every rank.
class BestLosses {
public:
  /// Of `rule`, which outlives it.
  explicit BestLosses(const KeepRule &rule) : rule(rule) {}

  /// Whether a checkpoint of these losses would be among the best ones.
  bool admits(std::span<const EvalLoss> losses) const;
  /// That a checkpoint of these losses has been saved.
  void add(std::span<const EvalLoss> losses);

  /// The losses of whole checkpoints of steps up to `last`, as text for other ranks; nothing without `last`,
  /// for a run that begins anew. Io: the directory cannot be read.
  Result<std::string> pack(const std::string &root, std::optional<uint64_t> last) const;
  /// Takes what `pack` has made.
  void unpack(const std::string &text);

private:
  void insert(double loss);

  const KeepRule &rule;
  std::vector<double> least; ///< ascending, at most rule.best
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAVING_BESTLOSSES_H
