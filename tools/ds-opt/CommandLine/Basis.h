//===- Basis.h - What a plan rests on ---------------------------------------------===//
//
// A plan comes from the program itself, built and planned as it would run. Published rules about the model's
// sizes stand in where a program cannot be made yet; for questions about many plans they say which are worth
// making.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_BASIS_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_BASIS_H

#include "Options.h"
#include "ds/Config/Config.h"

namespace ds::opt {

struct Basis {
  bool isProgram = true;
  std::string reason; ///< why, for the plan's reader; empty where nothing was to choose
  bool isRanked =
      false; ///< of a program: rules choose the plans that are made for a question, and know of more changes
};

/// Refuses questions and choices that the rest of the command line leaves no answer to.
Status checkPlanner(const Options &options);

/// Chooses what answers. Fails where the basis that is asked for cannot.
Result<Basis> chooseBasis(const Options &options, const config::Config &config);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_BASIS_H
