//===- LineErrors.cpp - What ds-opt says of a command line that it does not take -===//
//
// LLVM's parser goes on behind a mistake, so that one misspelt option is three messages: that it is unknown,
// what may be meant, and that its value is a model too many. It has no hook for the words; they are read from
// what it says. Words that are not known here are passed on.
//
//===---------------------------------------------------------------------------===//
#include "LineErrors.h"

#include "Notes.h"
#include "ds/Support/Messages.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cstdlib>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

using namespace ds;
using llvm::StringRef;

ExitCode ds::opt::complain(const Error &error) {
  tellNotes();
  llvm::errs() << spellError("ds-opt", error, terminalColumns(STDERR_FILENO));
  return error.code;
}

/// Where standard output leads while a help for a narrow terminal is made; -1 otherwise.
static int standardOutput = -1;

/// All bytes of `memory`, which is closed.
static std::string takeBytes(int memory) {
  std::string bytes;
  char part[1024];
  if (memory >= 0 && lseek(memory, 0, SEEK_SET) == 0)
    for (ssize_t size; (size = read(memory, part, sizeof part)) > 0;)
      bytes.append(part, static_cast<size_t>(size));
  if (memory >= 0)
    close(memory);
  return bytes;
}

/// LLVM has printed its help into memory and ends the process: the terminal gets it in lines that fit.
static void printHelpInColumns() {
  llvm::outs().flush();
  if (standardOutput < 0)
    return;
  const int memory = dup(STDOUT_FILENO);
  dup2(standardOutput, STDOUT_FILENO);
  close(std::exchange(standardOutput, -1));
  constexpr size_t kIndent = 8;
  llvm::outs() << wrapLines(takeBytes(memory), terminalColumns(STDOUT_FILENO), kIndent);
  llvm::outs().flush();
}

void ds::opt::fitHelp(int argc, char **argv) {
  constexpr size_t kWide = 160; // LLVM's help is as wide as its longest line
  const size_t columns = terminalColumns(STDOUT_FILENO);
  const bool asks = std::any_of(argv + 1, argv + argc, [](StringRef word) {
    return word.ltrim('-') == "help" || word.ltrim('-') == "help-hidden" || word == "-h";
  });
  const int memory = asks && columns > 0 && columns < kWide ? memfd_create("ds-opt-help", MFD_CLOEXEC) : -1;
  if (memory < 0)
    return;
  if (std::atexit(printHelpInColumns) == 0 && (standardOutput = dup(STDOUT_FILENO)) >= 0)
    dup2(memory, STDOUT_FILENO);
  close(memory);
}

/// Where standard error leads while it is led to memory; -1 otherwise.
static int standardError = -1;

/// Also what a parser that ends the process (--help) has done at its end: others may have errors to tell
/// then.
static void restoreStandardError() {
  if (standardError < 0)
    return;
  dup2(standardError, STDERR_FILENO);
  close(std::exchange(standardError, -1));
}

std::optional<std::string> ds::opt::errorsOf(llvm::function_ref<bool()> parse) {
  const int memory = memfd_create("ds-opt-errors", MFD_CLOEXEC);
  if (memory >= 0 && std::atexit(restoreStandardError) == 0 && (standardError = dup(STDERR_FILENO)) >= 0)
    dup2(memory, STDERR_FILENO);
  const bool isRead = parse();
  restoreStandardError();
  const std::string said = takeBytes(memory);
  return isRead ? std::nullopt : std::optional(said);
}

/// The text between the first `begin` and the next quote behind it; empty where there is none.
static StringRef quotedBehind(StringRef text, StringRef begin) {
  const size_t at = text.find(begin);
  return at == StringRef::npos ? StringRef()
                               : text.substr(at + begin.size()).take_until([](char c) { return c == '\''; });
}

/// "--emit" -> "ir, plan, program": the words of the option's value.
static std::string wordsOf(StringRef option) {
  const llvm::cl::Option *known = llvm::cl::getRegisteredOptions().lookup(option.ltrim('-'));
  llvm::SmallVector<StringRef> words;
  if (known)
    known->ValueStr.split(words, '|');
  return llvm::join(words, ", ");
}

Error ds::opt::spellLineError(StringRef said) {
  const char *const kHelp = "ds-opt --help lists the options";
  if (StringRef name = quotedBehind(said, "Unknown command line argument '"); !name.empty()) {
    StringRef nearest = quotedBehind(said, "Did you mean '");
    return {ExitCode::Usage, ("there is no option " + name).str(),
            (nearest.empty() ? "" : "did you mean " + nearest.str() + "? ") + kHelp};
  }
  // "ds-opt: for the --emit option: Cannot find option named 'plam'!"
  StringRef first = said.ltrim().take_until([](char c) { return c == '\n'; });
  first.consume_front("ds-opt: ");
  if (first.consume_front("for the ")) {
    auto [option, mistake] = first.split(" option: ");
    StringRef word = quotedBehind(mistake, "Cannot find option named '");
    if (!word.empty())
      return {ExitCode::Usage, (option + ": expects one of " + wordsOf(option) + ", but got " + word).str(),
              kHelp};
    return {ExitCode::Usage, (option + " " + mistake.rtrim('!')).str(), kHelp};
  }
  if (first.starts_with("Too many positional arguments"))
    return {ExitCode::Usage, "expects one model, but got several",
            "values of options follow them: --input x=4x64xi64, --set KEY=VALUE"};
  return {ExitCode::Usage, first.empty() ? "the command line cannot be read" : first.str(), kHelp};
}
