//===- PlanHtmlData.h - What the page's script reads ----------------------------------===//
#ifndef DS_LIB_REPORT_PLANHTMLDATA_H
#define DS_LIB_REPORT_PLANHTMLDATA_H

#include "ds/Report/PlanHtml.h"

namespace ds::report {

/// The plan as JSON in ASCII, without a character that means something to HTML: it can stand inside a script
/// element. Texts are numbered in `strings`; times are whole nanoseconds; buffers and commands are columns.
std::string printPageData(const PlanReport &report, const std::vector<PlanTimeline> &timelines,
                          const PageLimits &limits);

} // namespace ds::report

#endif // DS_LIB_REPORT_PLANHTMLDATA_H
