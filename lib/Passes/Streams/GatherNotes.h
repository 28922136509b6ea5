//===- GatherNotes.h - What a schedule of gathers says of one function ------------===//
#ifndef DS_LIB_PASSES_STREAMS_GATHERNOTES_H
#define DS_LIB_PASSES_STREAMS_GATHERNOTES_H

#include "ds/Analysis/Gathers/GatherSchedule.h"
#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// What stays gathered in one function, what does not, and why.
struct GatherNotes {
  struct Entry {
    StringRef name;
    std::string shown; ///< for readers, who know no buckets
    int64_t bytes = 0;
    int64_t gathers = 0; ///< that a step would need without keeping it
  };
  struct Again {
    StringRef name;
    std::string shown;
    ::ds::analysis::Regather reason;
  };

  /// The function's `ds.gathers`: names and sums for programs, `notes` with sentences for readers.
  DictionaryAttr print(const ::ds::analysis::GatherProblem &problem, double exposedSeconds,
                       MLIRContext *context) const;

  std::vector<Entry> forStep, forBackward;
  std::vector<Again> again;

private:
  void noteAgain(bool isForOneSegment, const ::ds::analysis::GatherProblem &problem,
                 SmallVectorImpl<std::string> &notes) const;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STREAMS_GATHERNOTES_H
