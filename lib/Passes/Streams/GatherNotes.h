//===- GatherNotes.h - What a schedule of gathers says of one function ------------===//
//
// Example, of a step of 4 micro-steps: @wte of 8 MiB stays for the step, so 1 gather is left of 8; @h.0 of 2
// MiB stays from forward to backward, 4 of 8; @h.1 is gathered 8 times, because keeping it would take 24.5
// MiB where 24 are allowed.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_STREAMS_GATHERNOTES_H
#define DS_LIB_PASSES_STREAMS_GATHERNOTES_H

#include "ds/Analysis/Gathers/GatherSchedule.h"
#include "ds/Dialect/Decisions.h"

namespace mlir::ds {

/// What stays gathered in one function, what does not, and why.
struct GatherNotes {
  struct Entry {
    StringRef name;
    int64_t bytes = 0;
    int64_t gathers = 0; ///< that a step would need without keeping it
  };
  struct Again {
    StringRef name;
    ::ds::analysis::Regather reason;
  };

  /// The same as figures of `function`.
  KeptGathers describe(StringRef function, const ::ds::analysis::GatherProblem &problem,
                       double exposedSeconds) const;

  std::vector<Entry> forStep, forBackward;
  std::vector<Again> again;

private:
  void addAgain(bool isForOneSegment, const ::ds::analysis::GatherProblem &problem,
                KeptGathers &gathers) const;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_STREAMS_GATHERNOTES_H
