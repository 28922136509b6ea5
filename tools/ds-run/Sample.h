//===- Sample.h - The command line of ds-run --sample --------------------------------===//
#ifndef DS_TOOLS_DSRUN_SAMPLE_H
#define DS_TOOLS_DSRUN_SAMPLE_H

/// Whether the line asks for text rather than for training.
bool asksForSample(int argc, char **argv);

/// Samples as the line asks for; the exit code.
int runSample(int argc, char **argv);

#endif // DS_TOOLS_DSRUN_SAMPLE_H
