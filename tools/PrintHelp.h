//===- PrintHelp.h - --help in the width of a terminal ------------------------------===//
#ifndef DS_TOOLS_PRINTHELP_H
#define DS_TOOLS_PRINTHELP_H

#include "ds/Support/Messages.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstring>
#include <iostream>
#include <string>
#include <unistd.h>

namespace ds {

/// Whether somebody asks for help anywhere on the line, as a value of an option too: `--tune --help`.
inline bool asksForHelp(int argc, char **argv) {
  return std::any_of(argv + 1, argv + argc, [](const char *argument) {
    return std::strcmp(argument, "--help") == 0 || std::strcmp(argument, "-h") == 0;
  });
}

/// `text` of a help, of which what an option does goes on below itself.
inline std::string helpInColumns(const std::string &text, size_t columns) {
  constexpr size_t kOfOptions = 30; // what CLI11 gives to names
  return wrapLines(text, columns, std::min(kOfOptions, columns / 3));
}

/// Prints the help of `app`, or of its command that was named.
inline Status printHelp(const CLI::App &app) {
  std::cout << helpInColumns(app.help(), terminalColumns(STDOUT_FILENO));
  if (std::cout.flush())
    return {};
  return Error{ExitCode::Io, "cannot write to standard output", "free space where it goes"};
}

} // namespace ds

#endif // DS_TOOLS_PRINTHELP_H
