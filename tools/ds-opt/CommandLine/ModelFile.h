//===- ModelFile.h - Says what a file is that is no model -------------------------===//
#ifndef DS_TOOLS_DS_OPT_COMMANDLINE_MODELFILE_H
#define DS_TOOLS_DS_OPT_COMMANDLINE_MODELFILE_H

#include "ds/Support/Error.h"

#include <string>

namespace ds::opt {

struct Options;

/// The file that is meant: of a folder its config.json, and of a published model that has a name as well.
std::string modelFile(const std::string &input);

/// Refuses, in words of its own, an input that plainly is something else than a model: weights, a program, a
/// text for people, a configuration. What may be a model is left to who reads it, and so are pipes.
Status checkModelFile(const Options &options);

/// Refuses to write bytes that are no text to a terminal.
Status checkTerminal(const Options &options, bool writesBytecode);

} // namespace ds::opt

#endif // DS_TOOLS_DS_OPT_COMMANDLINE_MODELFILE_H
