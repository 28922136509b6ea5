//===- Gaps.h - What of a model is not supported ----------------------------------===//
//
// An import does not end with the first operator that it does not know: all of them are told at once, with
// their places. What follows from one of them is not told.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_GAPS_H
#define DS_LIB_IMPORT_TORCH_GAPS_H

#include "Failure.h"
#include "FunctionText.h"

#include <map>
#include <set>

namespace ds::ts {

/// The calls that are under way.
struct CallPath {
  std::vector<torch::jit::Node *> callers; ///< that lead to the current node
  std::vector<std::string> layers;         ///< the module path of each active method

  /// The place of a node, or of the line of the model that led to it.
  Location locate(torch::jit::Node &node) const;
};

enum class GapKind { Operator, Write };

class Gaps {
public:
  explicit Gaps(const CallPath &path) : path(path) {}

  bool empty() const { return gaps.empty(); }
  void note(torch::jit::Node &node, const std::string &what, GapKind kind = GapKind::Operator);
  /// Tells of what is read in the arguments although it could not be imported.
  void noteRead(torch::jit::Node &node, const std::vector<Value> &arguments);
  /// Behind something that is not supported a contradiction is its consequence; else it ends the import, with
  /// its place.
  void endUnlessConsequence(torch::jit::Node &node, const Failure &failure) const;
  /// Throws one failure that lists all; does nothing where there is none.
  void refuse() const;

private:
  /// One kind of thing that is not supported.
  struct Gap {
    GapKind kind = GapKind::Operator;
    int64_t count = 0;
    std::vector<std::string> places; ///< the first few
    std::set<std::string> layers;
  };
  bool isConsequence(const Gap &gap) const;

  const CallPath &path;
  std::map<std::string, Gap> gaps;
};

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_GAPS_H
