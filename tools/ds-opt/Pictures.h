//===- Pictures.h - A plan to look at ----------------------------------------------===//
#ifndef DS_TOOLS_DSOPT_PICTURES_H
#define DS_TOOLS_DSOPT_PICTURES_H

#include "CommandLine/Options.h"
#include "ds/Report/PlanTimeline.h"

namespace ds::opt {

/// Writes what --plan-html, --memviz and --trace ask for; `timelines` has one entry for each of
/// `report.ranks`.
Status writePictures(const Options &options, const report::PlanReport &report,
                     const std::vector<report::PlanTimeline> &timelines);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_PICTURES_H
