//===- ForeignStates.h - DeepSpeed's *_states.pt --------------------------------===//
//
// A model file has the module (whole, or placeholders), the shapes of what the optimizer holds in flat
// groups, and how far the training is; an optimizer file has one rank's part of the groups.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_FOREIGN_FOREIGNSTATES_H
#define DS_LIB_RUNTIME_FOREIGN_FOREIGNSTATES_H

#include "ForeignView.h"

namespace ds::rt {

/// A parameter and its whole shape.
struct ForeignShape {
  std::string name;
  std::vector<int64_t> dims;
  uint64_t numElements = 0;
};
using ForeignShapes = std::vector<ForeignShape>;

/// What is read of a model file.
struct ModelStates {
  std::vector<ForeignShapes> groups; ///< trained parameters, by flat group, in the order of the flat elements
  ForeignShapes frozen;
  std::map<std::string, uint32_t, std::less<>> frozenParts; ///< name to source: whole, or this rank's part
  std::vector<std::pair<std::string, uint32_t>> buffers;    ///< name and source
  std::vector<std::pair<std::string, std::string>> tied;    ///< alias, and the name that it stands for
};

/// Reads a model file. `isFirst`: also what is the same in all of them goes to the view.
Result<ModelStates> readModelStates(ForeignView &view, const std::string &name, bool isFirst);

/// A flat group of one rank: sources and how many of their elements count.
struct FlatPart {
  uint32_t source = 0;
  uint64_t numElements = 0;
};
struct FlatGroup {
  FlatPart value;
  std::map<std::string, FlatPart> slots; ///< "exp_avg", ...
};

/// What is read of an optimizer file.
struct OptimizerStates {
  int64_t stage = 0;
  int64_t numRanks = 0; ///< as the file says
  std::vector<FlatGroup> groups;
};

/// Reads an optimizer file. `isFirst`: the loss scale and the step go to the view.
Result<OptimizerStates> readOptimizerStates(ForeignView &view, const std::string &name, bool isFirst);

/// A shape of integers, or a reason for the message.
Status readShape(const PickleValue &value, const std::string &path, ForeignShape &shape);

/// The loss scaler in an optimizer's state.
void readLossScale(const PickleValue &optimizer, ForeignView &view);

/// An integer, also one that is kept as a float or as a tensor of one element.
std::optional<int64_t> readCount(const PickleValue &value, const TorchFile &file);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FOREIGN_FOREIGNSTATES_H
