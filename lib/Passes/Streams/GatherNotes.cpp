//===- GatherNotes.cpp - What a schedule of gathers says of one function ----------===//
#include "GatherNotes.h"

#include "ds/Support/Format.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

/// "3 gathered values", "1 gathered value".
static std::string count(size_t number, StringRef what) {
  return std::to_string(number) + " " + what.str() + (number == 1 ? "" : "s");
}

/// At most four of `names`, and how many more there are.
static std::string list(ArrayRef<StringRef> names) {
  size_t shown = std::min<size_t>(names.size(), 4);
  return llvm::join(names.take_front(shown), ", ") +
         (shown < names.size() ? ", and " + std::to_string(names.size() - shown) + " more" : "");
}

/// The same of `entries`, as readers know them.
static std::string list(ArrayRef<GatherNotes::Entry> entries) {
  return list(
      llvm::map_to_vector(entries, [](const GatherNotes::Entry &entry) { return StringRef(entry.shown); }));
}

static SmallVector<StringRef> namesOf(ArrayRef<GatherNotes::Entry> entries) {
  return llvm::map_to_vector(entries, [](const GatherNotes::Entry &entry) { return entry.name; });
}

static int64_t bytesOf(ArrayRef<GatherNotes::Entry> entries) {
  int64_t bytes = 0;
  for (const GatherNotes::Entry &entry : entries)
    bytes += entry.bytes;
  return bytes;
}

/// Why values are not kept, of which the one that needs least would need `wanted`.
static std::string spell(analysis::GatherLimit limit, int64_t wanted,
                         const analysis::GatherProblem &problem) {
  auto elements = [&](StringRef key, int64_t most) {
    return (key + ": keeping one takes " + Twine(wanted) + " elements, the limit is " + Twine(most)).str();
  };
  switch (limit) {
  case analysis::GatherLimit::Choice:
    return "keeping one saves no time, or was expected to take memory that saves more elsewhere";
  case analysis::GatherLimit::Bytes:
    return "memory: keeping one takes " + ::ds::formatBytes(wanted) + ", the limit is " +
           ::ds::formatBytes(problem.budgetBytes);
  case analysis::GatherLimit::LiveElements:
    return elements("stage3_max_live_parameters", problem.maxLiveElements);
  case analysis::GatherLimit::ReuseElements:
    return elements("stage3_max_reuse_distance", problem.maxReuseElements);
  }
  llvm_unreachable("all limits are spelt");
}

/// One note for each limit.
void GatherNotes::noteAgain(bool isForOneSegment, const analysis::GatherProblem &problem,
                            SmallVectorImpl<std::string> &notes) const {
  using Limit = analysis::GatherLimit;
  for (Limit limit : {Limit::Bytes, Limit::LiveElements, Limit::ReuseElements, Limit::Choice}) {
    SmallVector<StringRef> names;
    int64_t wanted = std::numeric_limits<int64_t>::max();
    for (const Again &entry : again)
      if (entry.reason.limit == limit && entry.reason.isForOneSegment == isForOneSegment)
        names.push_back(entry.shown), wanted = std::min(wanted, entry.reason.wanted);
    if (!names.empty())
      notes.push_back(
          count(names.size(), "value") + (names.size() == 1 ? " is" : " are") +
          (isForOneSegment ? " gathered again for backward: " : " gathered anew in each micro-step: ") +
          list(names) + "; " + spell(limit, wanted, problem));
  }
}

DictionaryAttr GatherNotes::print(const analysis::GatherProblem &problem, double exposedSeconds,
                                  MLIRContext *context) const {
  SmallVector<std::string> notes;
  auto stay = [](size_t number) { return number == 1 ? " stays" : " stay"; };
  if (!forStep.empty())
    notes.push_back(count(forStep.size(), "gathered value") + stay(forStep.size()) +
                    " for all micro-steps (" + ::ds::formatBytes(bytesOf(forStep)) + "): " + list(forStep) +
                    "; there is room, and one gather takes the place of " +
                    std::to_string(forStep.front().gathers));
  if (!forBackward.empty())
    notes.push_back(count(forBackward.size(), "gathered value") + stay(forBackward.size()) +
                    " for backward (" + ::ds::formatBytes(bytesOf(forBackward)) + "): " + list(forBackward) +
                    "; there is room, and each saves a gather");
  noteAgain(true, problem, notes);
  noteAgain(false, problem, notes);

  Builder builder(context);
  SmallVector<StringRef> repeated, sentences(notes.begin(), notes.end());
  for (const Again &entry : again)
    if (entry.reason.isForOneSegment)
      repeated.push_back(entry.name);
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("kept_for_step", builder.getStrArrayAttr(namesOf(forStep))),
       builder.getNamedAttr("kept_for_step_bytes", builder.getI64IntegerAttr(bytesOf(forStep))),
       builder.getNamedAttr("kept", builder.getStrArrayAttr(namesOf(forBackward))),
       builder.getNamedAttr("kept_bytes", builder.getI64IntegerAttr(bytesOf(forBackward))),
       builder.getNamedAttr("gathered_again", builder.getStrArrayAttr(repeated)),
       builder.getNamedAttr("notes", builder.getStrArrayAttr(sentences)),
       builder.getNamedAttr("exposed_seconds", builder.getF64FloatAttr(exposedSeconds))});
}
