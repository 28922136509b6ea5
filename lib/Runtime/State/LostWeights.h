//===- LostWeights.h - What is not finite in a file of weights -------------------------===//
//
// A run that begins with a NaN ends at its first step, long after the file was read. So the file is looked at
// once more when it has been read: each rank looks at its share of every tensor, whatever it holds itself,
// and the counts of all ranks are those of the file.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_STATE_LOSTWEIGHTS_H
#define DS_LIB_RUNTIME_STATE_LOSTWEIGHTS_H

#include "Formats/LostValues.h"

#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include <string>
#include <vector>

namespace ds::rt {

class LostWeights {
public:
  /// Of the states of `program` that weights files hold; those of all its stages.
  explicit LostWeights(const Program &program);

  /// Looks at share `rank` of `world` of each tensor in the files at `path`, which loadWeights has taken.
  Status look(const std::string &path, uint32_t rank, uint32_t world);

  /// What was found here, for `add` on another rank.
  std::string pack() const;
  void add(const std::string &packed);

  /// As LostLines says them.
  std::vector<std::string> lines() const;

private:
  struct Weight {
    std::vector<std::string> names; ///< that files may have for it
    std::vector<int64_t> shape;
    LostValues values;
  };
  std::vector<Weight> weights;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_STATE_LOSTWEIGHTS_H
