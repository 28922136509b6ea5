//===- NoCupti.cpp - A fake device without CUPTI, whose headers are missing ----------------===//
#include "Cupti.h"

namespace ds::rt::fake {

std::optional<ActivityNumber> noteLaunch() { return std::nullopt; }
void noteRun(const ActivityNumber &) {}

} // namespace ds::rt::fake
