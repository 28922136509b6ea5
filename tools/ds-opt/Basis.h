//===- Basis.h - What a plan rests on ---------------------------------------------===//
//
// A plan comes from the program itself, built and planned as it would run, or from the published rules about
// the model's sizes. The program is exact and takes as long as a compilation; rules cover what has no pass
// yet and answer at once.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_TOOLS_DSOPT_BASIS_H
#define DS_TOOLS_DSOPT_BASIS_H

#include "Options.h"
#include "ds/Config/Config.h"

namespace ds::opt {

struct Basis {
  bool isProgram = true;
  std::string reason; ///< why, for the plan's reader; empty where nothing was to choose
};

/// A program is built without being asked for when its layers times the micro-step functions of its step are
/// at most so many: larger ones take longer than about five seconds of one core.
inline constexpr int64_t kMostLayersBuilt = 96;

/// Refuses questions and choices that the rest of the command line leaves no answer to.
Status checkPlanner(const Options &options);

/// Chooses what answers. Fails where the basis that is asked for cannot.
Result<Basis> chooseBasis(const Options &options, const config::Config &config);

} // namespace ds::opt

#endif // DS_TOOLS_DSOPT_BASIS_H
