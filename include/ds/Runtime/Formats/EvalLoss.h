//===- EvalLoss.h - A held-out loss and the data that it is of -------------------===//
#ifndef DS_RUNTIME_FORMATS_EVALLOSS_H
#define DS_RUNTIME_FORMATS_EVALLOSS_H

#include <string>

namespace ds::rt {

/// The loss of one `--eval-data`.
struct EvalLoss {
  std::string name; ///< of NAME=FILE; empty: the only one, which has no name
  double loss = 0;  ///< mean over the data; need not be finite

  bool operator==(const EvalLoss &) const = default;
};

} // namespace ds::rt

#endif // DS_RUNTIME_FORMATS_EVALLOSS_H
