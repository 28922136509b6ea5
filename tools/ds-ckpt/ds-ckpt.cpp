//===- ds-ckpt.cpp - Looks at checkpoints, and changes their form ------------------===//
//
// Reads the command line and hands over to include/ds/Runtime/CheckpointTool. Knows neither programs nor
// devices: no MLIR, no LLVM, no LibTorch.
//
//===---------------------------------------------------------------------------===//
#include "../DescribeTool.h"
#include "../PrintHelp.h"
#include "Commands.h"
#include "Tell.h"
#include "ds/Support/Numbers.h"
#include "ds/Support/RunTool.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <functional>
#include <iostream>
#include <map>

using namespace ds;
using namespace ds::rt;

namespace {

/// What a command line says; `job` is set while it is read and done afterwards.
struct Line {
  std::string path, other;
  bool json = false;
  unsigned threads = 2;
  DescribeOptions words;
  ExportOptions exported;
  ImportOptions imported;
  CollectOptions collected;
  KeepRule kept; ///< of `collected`, where it has one
  std::function<int()> job;
};

/// An option that takes a whole number from `least` to `most`, and hands it to `take`.
CLI::Option *addWhole(CLI::App &app, const std::string &name, const std::string &help, uint64_t least,
                      uint64_t most, std::function<void(uint64_t)> take) {
  const auto read = [name, least, most, take = std::move(take)](const std::string &text) {
    take(orExit(parseWhole(name, text, least, most)));
  };
  return app.add_option_function<std::string>(name, read, help)->type_name("N");
}

/// "5GB" as Hugging Face's tools have it, and what every tool here takes: "4GiB", "1048576".
uint64_t readShardBytes(const std::string &text) {
  static const std::map<std::string, double> kUnits = {{"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}};
  const auto unit = text.size() > 2 ? kUnits.find(text.substr(text.size() - 2)) : kUnits.end();
  if (unit == kUnits.end())
    return orExit(parseBytes("--max-shard-bytes", text));
  const std::string number = text.substr(0, text.size() - 2);
  const double value = orExit(parseReal("--max-shard-bytes", number, 1 / unit->second, 9e18 / unit->second));
  return static_cast<uint64_t>(value * unit->second);
}

/// A command that looks at a checkpoint or at all of a directory.
CLI::App *addLooking(CLI::App &app, Line &line, const char *name, const char *help, const char *argument) {
  CLI::App *command = app.add_subcommand(name, help);
  command->add_option(argument, line.path, "a checkpoint (DIR/step-N), or a directory of checkpoints")
      ->required()
      ->type_name("DIR");
  command->add_flag("--json", line.json, "print JSON");
  return command;
}

void declareList(CLI::App &app, Line &line) {
  CLI::App *command = app.add_subcommand("ls", "List the checkpoints in a directory, newest first");
  command->add_option("DIR", line.path, "directory of checkpoints")->required()->type_name("DIR");
  command->add_flag("--json", line.json, "print JSON");
  command->callback([&line] { line.job = [&line] { return runList(line.path, line.json); }; });
}

void declareShow(CLI::App &app, Line &line) {
  CLI::App *command =
      addLooking(app, line, "show", "Say what a checkpoint holds; of a directory, its newest one", "PATH");
  command->add_flag("--tensors", line.words.tensors,
                    "also a line for each tensor, with its layout over ranks");
  command->add_flag("--config", line.words.config, "also the configuration that it was trained with");
  command->callback([&line] {
    line.job = [&line] {
      line.words.json = line.json;
      return runShow(line.path, line.words);
    };
  });
}

void declareVerify(CLI::App &app, Line &line) {
  CLI::App *command = addLooking(
      app, line, "verify", "Read all bytes and compare them with their digests; exit 5: damaged", "PATH");
  addWhole(*command, "--threads", "files that are read at a time (default: 2)", 1, 256,
           [&line](uint64_t number) { line.threads = static_cast<unsigned>(number); });
  command->callback(
      [&line] { line.job = [&line] { return runVerify(line.path, line.threads, line.json); }; });
}

void declareDiff(CLI::App &app, Line &line) {
  CLI::App *command = addLooking(
      app, line, "diff", "Compare the tensors of two checkpoints to the bit; exit 3: they differ", "A");
  command->add_option("B", line.other, "the other one")->required()->type_name("DIR");
  command->callback([&line] { line.job = [&line] { return runDiff(line.path, line.other, line.json); }; });
}

void declareExport(CLI::App &app, Line &line) {
  ExportOptions &options = line.exported;
  CLI::App *command = app.add_subcommand("export", "Write the weights as a folder of a Hugging Face model");
  command->add_option("PATH", options.from, "a checkpoint (DIR/step-N), or a directory of checkpoints")
      ->required()
      ->type_name("DIR");
  command->add_option("OUT", options.to, "folder to make; it must not exist, or be empty")
      ->required()
      ->type_name("DIR");
  command
      ->add_option("--dtype", options.dtype, "fp32, bf16 or fp16: round all floats (default: exact values)")
      ->transform(CLI::CheckedTransformer(std::map<std::string, FileDType>{
          {"fp32", FileDType::F32}, {"bf16", FileDType::BF16}, {"fp16", FileDType::F16}}))
      ->type_name("TYPE");
  command
      ->add_option_function<std::string>(
          "--max-shard-bytes",
          [&options](const std::string &text) { options.maxShardBytes = readShardBytes(text); },
          "bytes of tensors in one file at most: 5GB (default), 4GiB, ...")
      ->type_name("BYTES");
  command
      ->add_option("--config", options.config,
                   "a config.json to go with them (default: the one that the model came from)")
      ->type_name("FILE");
  command->add_flag(
      "--merge", options.merge,
      "of a model with adapters: its weights with them added (default: the adapters, for PEFT)");
  command->add_flag("--tied", options.tied, "also a copy under each other name of a tied tensor");
  command->callback([&line] { line.job = [&line] { return runExport(line.exported); }; });
}

void declareImport(CLI::App &app, Line &line) {
  ImportOptions &options = line.imported;
  CLI::App *command = app.add_subcommand(
      "import", "Make a checkpoint of a folder of DeepSpeed (ZeRO, universal) or of Hugging Face weights");
  command->add_option("FOREIGN", options.from, "the folder, or one whose file `latest` names it")->required();
  command->add_option("OUT", options.to, "directory of checkpoints that step-N is written to")
      ->required()
      ->type_name("DIR");
  addWhole(*command, "--step", "steps that were made (default: as the files say; 0 of weights alone)", 0,
           UINT64_MAX, [&options](uint64_t number) { options.step = number; });
  addWhole(*command, "--seed", "of dropout and of the order of data from here on (default: 0)", 0, UINT64_MAX,
           [&options](uint64_t number) { options.seed = number; });
  command->callback([&line] { line.job = [&line] { return runImport(line.imported); }; });
}

void declareCollect(CLI::App &app, Line &line) {
  CollectOptions &options = line.collected;
  CLI::App *command =
      app.add_subcommand("gc", "Remove what unfinished saves have left, and checkpoints that are too old");
  command->add_option("DIR", options.root, "directory of checkpoints")->required()->type_name("DIR");
  KeepRule &rule = line.kept;
  CLI::Option *keep =
      addWhole(*command, "--keep", "also all but the N newest whole checkpoints; two at least stay", 2,
               UINT32_MAX, [&rule](uint64_t number) { rule.newest = static_cast<uint32_t>(number); });
  addWhole(*command, "--keep-best", "with --keep: those of the N least held-out losses stay too", 1,
           UINT32_MAX, [&rule](uint64_t number) { rule.best = static_cast<uint32_t>(number); })
      ->needs(keep);
  addWhole(*command, "--keep-every", "with --keep: those of every N-th step stay too", 1, UINT64_MAX,
           [&rule](uint64_t steps) { rule.every = steps; })
      ->needs(keep);
  command->add_flag("--damaged", options.damaged, "also checkpoints that `ls` calls not whole");
  command->add_flag("--set-aside", options.setAside,
                    "also checkpoints that a run has set aside which went back before them");
  command->add_flag("--dry-run", options.dryRun, "say what would go, and remove nothing");
  command->callback([&line, keep] {
    if (keep->count() > 0)
      line.collected.keep = line.kept;
    line.job = [&line] { return runCollect(line.collected); };
  });
}

/// Parses the line and does the job; help goes to stdout.
int parseAndRun(CLI::App &app, const Line &line, int argc, char **argv) {
  try {
    app.parse(argc, argv);
    return line.job();
  } catch (const Refusal &refusal) {
    return report(refusal.error);
  } catch (const CLI::ParseError &error) {
    if (asksForHelp(argc, argv)) {
      const Status status = printHelp(app);
      return status ? 0 : report(status.error());
    }
    if (error.get_exit_code() != 0)
      return report({ExitCode::Usage, error.what(), "ds-ckpt --help lists the commands"});
    app.exit(error);
    if (std::cout.flush())
      return 0;
    return report({ExitCode::Io, "cannot write to standard output", "free space where it goes"});
  }
}

int run(int argc, char **argv) {
  std::signal(SIGPIPE, SIG_IGN); // a reader that is gone is an error of writing
  CLI::App app("Looks at the checkpoints of ds-run, and changes their form.", "ds-ckpt");
  addVersionAndDescription(app);
  app.require_subcommand(1);
  Line line;
  for (const auto declare :
       {declareList, declareShow, declareVerify, declareDiff, declareExport, declareImport, declareCollect})
    declare(app, line);
  return parseAndRun(app, line, argc, argv);
}

} // namespace

int main(int argc, char **argv) { return runTool("ds-ckpt", argc, argv, run); }
