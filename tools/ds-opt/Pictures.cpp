//===- Pictures.cpp - A plan to look at --------------------------------------------===//
#include "Pictures.h"

#include "Output.h"
#include "Trace.h"
#include "ds/Report/Memviz.h"
#include "ds/Report/PlanHtml.h"

#include "llvm/ADT/StringRef.h"

using namespace ds;
using namespace ds::opt;

/// The visualiser opens pickles alone; programs rather read JSON.
static report::MemvizFormat formatFor(llvm::StringRef path) {
  bool isPickle = path.ends_with(".pickle") || path.ends_with(".pkl");
  return isPickle ? report::MemvizFormat::Pickle : report::MemvizFormat::Json;
}

Status ds::opt::writePictures(const Options &options, const report::PlanReport &report,
                              const std::vector<report::PlanTimeline> &timelines) {
  if (!options.planHtml.empty())
    if (Status status = writeText(options.planHtml, printPlanHtml(report, timelines)); !status)
      return status;
  if (!options.memviz.empty())
    if (Status status = writeText(options.memviz, printMemviz(timelines, formatFor(options.memviz))); !status)
      return status;
  return options.trace.empty() ? Status() : writePlanTrace(timelines, options.trace);
}
