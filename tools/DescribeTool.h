//===- DescribeTool.h - --version, and a description for manuals and shells --------===//
//
// Manual pages and completions are made of what a tool itself declares (script/describe-tools), which it
// prints as JSON when it is asked by an option that --help does not list.
// tools/ds-opt/CommandLine/Describe.cpp prints the same for options that LLVM parses. C++17, for ds-import.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_TOOLS_DESCRIBETOOL_H
#define DS_TOOLS_DESCRIBETOOL_H

#include "ds/Support/Version.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <iostream>
#include <string>

namespace ds {

/// What a tool prints for --version.
inline std::string versionText(const std::string &tool) { return tool + " (Deepstage) " + kVersion; }

/// The options of `app` that --help lists. A value's type has CLI11's sets of words behind it, as in
/// "WHICH:{first,all}".
inline nlohmann::json describeOptions(CLI::App &app) {
  nlohmann::json options = nlohmann::json::array();
  for (const CLI::Option *option : app.get_options()) {
    if (option->get_group().empty())
      continue;
    nlohmann::json names = nlohmann::json::array();
    for (const std::string &name : option->get_snames())
      names.push_back("-" + name);
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
    const bool takesValue = option->get_positional() || option->get_items_expected_max() > 0;
    if (names.empty())
      names.push_back(option->get_name(true));
    options.push_back({{"names", std::move(names)},
                       {"positional", option->get_positional() && option->get_lnames().empty()},
                       {"value", takesValue ? option->get_type_name() : ""},
                       {"help", option->get_description()}});
  }
  return options;
}

/// Adds --version and --describe-options to the command line of a tool, which must outlive `app`'s parsing.
inline void addVersionAndDescription(CLI::App &app) {
  app.set_version_flag("--version", versionText(app.get_name()), "Print the version and end");
  const auto describe = [&app] {
    nlohmann::json commands = nlohmann::json::array();
    commands.push_back({{"name", ""}, {"summary", app.get_description()}, {"options", describeOptions(app)}});
    for (CLI::App *command : app.get_subcommands({}))
      commands.push_back({{"name", command->get_name()},
                          {"summary", command->get_description()},
                          {"options", describeOptions(*command)}});
    std::cout << nlohmann::json{{"tool", app.get_name()}, {"version", kVersion}, {"commands", commands}}.dump(
                     1)
              << "\n";
    throw CLI::Success();
  };
  app.add_flag_callback("--describe-options", describe)->group("");
}

} // namespace ds

#endif // DS_TOOLS_DESCRIBETOOL_H
