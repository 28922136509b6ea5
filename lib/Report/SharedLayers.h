//===- SharedLayers.h - How ranks share layers, in a plan's forms ------------------===//
#ifndef DS_LIB_REPORT_SHAREDLAYERS_H
#define DS_LIB_REPORT_SHAREDLAYERS_H

#include "TextPage.h"

#include <nlohmann/json_fwd.hpp>

namespace ds::report {

/// A section of the page: parameters, what each rank computes whole, exchanges.
void printSharedLayers(TextPage &page, const SharedLayers &shared);

/// "shared_layers" of the plan.
nlohmann::ordered_json sharedLayersJson(const SharedLayers &shared);

} // namespace ds::report

#endif // DS_LIB_REPORT_SHAREDLAYERS_H
