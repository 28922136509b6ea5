//===- GatherNotes.cpp - What a schedule of gathers says of one function ----------===//
#include "GatherNotes.h"

using namespace mlir;
using namespace mlir::ds;
namespace analysis = ::ds::analysis;

static std::vector<std::string> namesOf(ArrayRef<GatherNotes::Entry> entries) {
  std::vector<std::string> names;
  for (const GatherNotes::Entry &entry : entries)
    names.push_back(entry.name.str());
  return names;
}

static int64_t bytesOf(ArrayRef<GatherNotes::Entry> entries) {
  int64_t bytes = 0;
  for (const GatherNotes::Entry &entry : entries)
    bytes += entry.bytes;
  return bytes;
}

static KeptFrom reasonOf(analysis::GatherLimit limit) {
  switch (limit) {
  case analysis::GatherLimit::Choice:
    return KeptFrom::Choice;
  case analysis::GatherLimit::Bytes:
    return KeptFrom::Memory;
  case analysis::GatherLimit::LiveElements:
    return KeptFrom::LiveElements;
  case analysis::GatherLimit::ReuseElements:
    return KeptFrom::ReuseElements;
  }
  llvm_unreachable("all limits are reasons");
}

/// How much there is of what `limit` limits; 0 where nothing is.
static int64_t mostOf(analysis::GatherLimit limit, const analysis::GatherProblem &problem) {
  switch (limit) {
  case analysis::GatherLimit::Choice:
    return 0;
  case analysis::GatherLimit::Bytes:
    return problem.budgetBytes;
  case analysis::GatherLimit::LiveElements:
    return problem.maxLiveElements;
  case analysis::GatherLimit::ReuseElements:
    return problem.maxReuseElements;
  }
  llvm_unreachable("all limits are there");
}

/// One entry for each limit.
void GatherNotes::addAgain(bool isForOneSegment, const analysis::GatherProblem &problem,
                           KeptGathers &gathers) const {
  using Limit = analysis::GatherLimit;
  for (Limit limit : {Limit::Bytes, Limit::LiveElements, Limit::ReuseElements, Limit::Choice}) {
    RepeatedGathers repeated;
    repeated.isForBackward = isForOneSegment;
    repeated.reason = reasonOf(limit);
    repeated.limit = mostOf(limit, problem);
    repeated.wanted = std::numeric_limits<int64_t>::max();
    for (const Again &entry : again)
      if (entry.reason.limit == limit && entry.reason.isForOneSegment == isForOneSegment) {
        repeated.states.push_back(entry.name.str());
        repeated.wanted = std::min(repeated.wanted, entry.reason.wanted);
      }
    if (!repeated.states.empty())
      gathers.again.push_back(std::move(repeated));
  }
}

KeptGathers GatherNotes::describe(StringRef function, const analysis::GatherProblem &problem,
                                  double exposedSeconds) const {
  KeptGathers gathers;
  gathers.function = function.str();
  gathers.forStep = namesOf(forStep);
  gathers.forStepBytes = bytesOf(forStep);
  gathers.savedGathers = forStep.empty() ? 0 : forStep.front().gathers;
  gathers.forBackward = namesOf(forBackward);
  gathers.forBackwardBytes = bytesOf(forBackward);
  gathers.exposedSeconds = exposedSeconds;
  addAgain(/*isForOneSegment=*/true, problem, gathers);
  addAgain(/*isForOneSegment=*/false, problem, gathers);
  return gathers;
}
