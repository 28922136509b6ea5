//===- Length.h - How long samples are ------------------------------------------------===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_LENGTH_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_LENGTH_H

#include "Options.h"

namespace ds::opt {

/// Brings `--length` into the `--input`s, so that all that is asked of a model is asked of samples of that
/// length: dimension 1 of the first that has one, and of the others where they have as many there; of a
/// config.json without any, its input that has a length, of the configured micro-batch. Does nothing without
/// `--length`.
Status settleLength(Options &options, const config::Config &config);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_LENGTH_H
