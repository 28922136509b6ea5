//===- Options.h - How ds-run reads its command lines ------------------------------===//
#ifndef DS_TOOLS_DSRUN_OPTIONS_H
#define DS_TOOLS_DSRUN_OPTIONS_H

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

/// An option that takes a whole number from `least` to `most`, and hands it to `take`.
CLI::Option *addWhole(CLI::App &app, const std::string &name, const std::string &help, uint64_t least,
                      uint64_t most, std::function<void(uint64_t)> take);

/// An option that takes a finite number from `least` to `most`, and hands it to `take`.
CLI::Option *addReal(CLI::App &app, const std::string &name, const std::string &help, double least,
                     double most, std::function<void(double)> take);

/// --ranks and --timeout, which both command lines have.
void addRanksAndTimeout(CLI::App &app, uint32_t &ranks, const std::string &ranksHelp, double &timeoutSeconds);

/// Whether the line has the option "--name" or "--name=...".
bool hasOption(int argc, char **argv, std::string_view name);

/// Parses the line. The exit code where there is nothing left to do: help was asked for, or the line is
/// wrong.
std::optional<int> parseLine(CLI::App &app, int argc, char **argv);

#endif // DS_TOOLS_DSRUN_OPTIONS_H
