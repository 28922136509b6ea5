//===- Options.cpp - How ds-run reads its command lines ----------------------------===//
#include "Options.h"

#include "../PrintHelp.h"
#include "Start.h"
#include "ds/Support/EditDistance.h"
#include "ds/Support/Numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace {

/// Carries an error of ours out of the parser.
struct Refusal {
  ds::Error error;
};

} // namespace

/// An option with a number that `parse` reads.
template <class Number, class Parse>
static CLI::Option *addNumber(CLI::App &app, const std::string &name, const std::string &help, Number least,
                              Number most, std::function<void(Number)> take, Parse *parse) {
  auto read = [name, least, most, take = std::move(take), parse](const std::string &text) {
    const ds::Result<Number> number = parse(name, text, least, most);
    if (!number)
      throw Refusal{number.error()};
    take(*number);
  };
  return app.add_option_function<std::string>(name, read, help);
}

CLI::Option *addWhole(CLI::App &app, const std::string &name, const std::string &help, uint64_t least,
                      uint64_t most, std::function<void(uint64_t)> take) {
  return addNumber(app, name, help, least, most, std::move(take), ds::parseWhole)->type_name("N");
}

CLI::Option *addReal(CLI::App &app, const std::string &name, const std::string &help, double least,
                     double most, std::function<void(double)> take) {
  return addNumber(app, name, help, least, most, std::move(take), ds::parseReal)->type_name("NUMBER");
}

bool hasOption(int argc, char **argv, std::string_view name) {
  return std::any_of(argv + 1, argv + argc, [name](std::string_view word) {
    return word.starts_with(name) && (word.size() == name.size() || word[name.size()] == '=');
  });
}

void addRanksAndTimeout(CLI::App &app, uint32_t &ranks, const std::string &ranksHelp,
                        double &timeoutSeconds) {
  addWhole(app, "--ranks", ranksHelp + " (default: 1)", 1, 1024,
           [&](uint64_t number) { ranks = static_cast<uint32_t>(number); });
  addReal(app, "--timeout",
          fmt::format("seconds that a rank waits for another (default: {:g})", timeoutSeconds), 0.1, 1e6,
          [&](double seconds) { timeoutSeconds = seconds; })
      ->type_name("SECONDS");
}

/// The option of `app` that is nearest to `word`; empty where none is near.
static std::string nearestOption(const CLI::App &app, const std::string &word) {
  constexpr size_t kMostEdits = 3;
  std::string best;
  size_t least = std::min(kMostEdits, word.size() / 3) + 1;
  for (const CLI::Option *option : app.get_options())
    for (const std::string &name : option->get_lnames())
      if (const size_t distance = ds::editDistance(word, "--" + name); distance < least) {
        least = distance;
        best = "--" + name;
      }
  return best;
}

/// What is said of words that no option takes: of the first that looks like one what may be meant. CLI11
/// names all of them, the values of a misspelt option as well, and none that is known.
static ds::Error spellExtras(const CLI::App &app) {
  const std::vector<std::string> extras = app.remaining();
  const std::string help = app.get_name() + " --help lists the options";
  for (const std::string &word : extras)
    if (word.size() > 1 && word[0] == '-') {
      const std::string name = word.substr(0, word.find('=')), nearest = nearestOption(app, name);
      return {ds::ExitCode::Usage, "there is no option " + name,
              (nearest.empty() ? "" : "did you mean " + nearest + "? ") + help};
    }
  return {ds::ExitCode::Usage, "'" + extras.front() + "' is one argument too many", help};
}

/// The exit code of a line that `error` ended: the version was asked for, or it is wrong.
static int endLine(CLI::App &app, const CLI::ParseError &error) {
  if (dynamic_cast<const CLI::ExtrasError *>(&error))
    return report(spellExtras(app));
  if (error.get_exit_code() != 0)
    return report({ds::ExitCode::Usage, error.what(), "ds-run --help lists the options"});
  app.exit(error);
  if (std::cout.flush())
    return 0;
  return report({ds::ExitCode::Io, "cannot write to standard output", "free space where it goes"});
}

std::optional<int> parseLine(CLI::App &app, int argc, char **argv) {
  if (ds::asksForHelp(argc, argv)) { // CLI11 would take it for the value of an option that waits for one
    const ds::Status status = ds::printHelp(app);
    return status ? 0 : report(status.error());
  }
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const Refusal &refusal) {
    return report(refusal.error);
  } catch (const CLI::ParseError &error) {
    return endLine(app, error);
  }
}
