//===- Calibrate.h - The command line of ds-run --calibrate ------------------------===//
#ifndef DS_TOOLS_DSRUN_CALIBRATE_H
#define DS_TOOLS_DSRUN_CALIBRATE_H

/// Whether the command line is about the machine, not about a program.
bool asksForCalibration(int argc, char **argv);

/// Reads it and measures; returns the exit code.
int runCalibration(int argc, char **argv);

#endif // DS_TOOLS_DSRUN_CALIBRATE_H
