//===- Tune.h - The command line of ds-run --tune ----------------------------------===//
#ifndef DS_TOOLS_DSRUN_TUNE_H
#define DS_TOOLS_DSRUN_TUNE_H

/// Whether the command line is about a program's products, not about training.
bool asksForTuning(int argc, char **argv);

/// Reads it and measures; returns the exit code.
int runTuning(int argc, char **argv);

#endif // DS_TOOLS_DSRUN_TUNE_H
