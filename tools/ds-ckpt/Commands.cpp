//===- Commands.cpp - The subcommands of ds-ckpt -------------------------------------===//
#include "Commands.h"

#include "Tell.h"
#include "ds/Runtime/Checkpoint/Store.h"
#include "ds/Runtime/CheckpointTool/Diff.h"
#include "ds/Runtime/CheckpointTool/Verify.h"
#include "ds/Support/Format.h"
#include "ds/Support/Messages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace ds;
using namespace ds::rt;

/// A directory that checkpoints are in, which is not one of them.
static std::string storeAt(const std::string &path) {
  const Place place = orExit(placeOf(path));
  if (place.isCheckpoint)
    throw Refusal{
        {ExitCode::Usage, fmt::format("'{}' is a checkpoint", path), "name the directory that it is in"}};
  return place.path;
}

int runList(const std::string &directory, bool json) {
  print(orExit(describeStore(storeAt(directory), json)));
  return 0;
}

int runShow(const std::string &path, const DescribeOptions &options) {
  print(orExit(describeCheckpoint(orExit(chooseCheckpoint(path, note)), options)));
  return 0;
}

int runVerify(const std::string &path, unsigned threads, bool json) {
  std::vector<VerifyReport> reports;
  size_t damaged = 0;
  const auto told = [&](VerifyReport report) {
    damaged += !report.damages.empty();
    for (const std::string &name : report.extra)
      note(fmt::format("the manifest of '{}' does not know '{}'; nothing reads it", report.directory,
                       printableName(name)));
    if (!json)
      print(spellReport(report));
    reports.push_back(std::move(report));
  };
  const Place place = orExit(placeOf(path)); // a checkpoint, or all of them in a directory
  if (place.isCheckpoint)
    told(orExit(verifyCheckpoint(place.path, threads)));
  else if (const Status status = verifyStore(place.path, threads, note, told); !status)
    throw Refusal{status.error()};
  if (json)
    print(spellReportsAsJson(reports));
  if (damaged == 0)
    return 0;
  return report({ExitCode::Corrupt,
                 reports.size() == 1
                     ? fmt::format("'{}' is damaged", reports[0].directory)
                     : fmt::format("{} of {} checkpoints are damaged", damaged, reports.size()),
                 "ds-run --resume auto takes the newest one that is whole"});
}

int runDiff(const std::string &a, const std::string &b, bool json) {
  const Checkpoint first = orExit(Checkpoint::open(orExit(chooseCheckpoint(a, note))));
  const Checkpoint second = orExit(Checkpoint::open(orExit(chooseCheckpoint(b, note))));
  const std::vector<TensorDifference> differences = orExit(diffTensors(first, second));
  print(spellDifferences(first, second, differences, json));
  return countDiffering(differences) == 0 ? 0 : static_cast<int>(ExitCode::Invalid);
}

int runExport(ExportOptions options) {
  options.from = orExit(chooseCheckpoint(options.from, note));
  const ExportReport done = orExit(exportCheckpoint(options));
  print(fmt::format("'{}': {} tensor{}, {}, of '{}': {}\n", options.to, done.tensors,
                    done.tensors == 1 ? "" : "s", formatBytes(static_cast<int64_t>(done.bytes)), options.from,
                    fmt::join(done.files, ", ")));
  if (!done.tiedNames.empty())
    note(fmt::format("left out, for they are other names of tensors that are there (--tied writes them): {}",
                     fmt::join(done.tiedNames, ", ")));
  if (!done.hasConfig && !done.isAdapter)
    note("there is no config.json: the checkpoint keeps none of its model, and --config was not given");
  return 0;
}

int runImport(const ImportOptions &options) {
  const ImportReport done = orExit(importCheckpoint(options));
  print(fmt::format("'{}' from {}: {} parameters, {} buffers, {} moments; step {}", done.path,
                    done.description, done.parameters, done.buffers, done.moments, done.step));
  if (done.moments > 0)
    print(fmt::format(", {} updates, {} samples", done.updates, done.samples));
  print("\n");
  for (const std::string &text : done.notes)
    note(text);
  return 0;
}

int runCollect(CollectOptions options) {
  options.root = storeAt(options.root);
  uint64_t count = 0, bytes = 0;
  const auto told = [&](const Removed &each) {
    print(fmt::format("{} '{}' ({}): {}\n", options.dryRun ? "would remove" : "removed", each.name, each.why,
                      formatBytes(static_cast<int64_t>(each.bytes))));
    ++count;
    bytes += each.bytes;
  };
  const Status status = collectGarbage(options, told, note);
  if (status || count > 0)
    print(fmt::format("{} director{} {}, {} bytes\n", count, count == 1 ? "y" : "ies",
                      options.dryRun ? "would go" : "removed", bytes));
  return status ? 0 : report(status.error());
}
