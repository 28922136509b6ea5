//===- Calibrate.cpp - The command line of ds-run --calibrate ---------------------===//
#include "Calibrate.h"

#include "../DescribeTool.h"
#include "Options.h"
#include "Start.h"
#include "ds/Runtime/Calibrate/Calibrate.h"

bool asksForCalibration(int argc, char **argv) { return hasOption(argc, argv, "--calibrate"); }

int runCalibration(int argc, char **argv) {
  CLI::App app("Measures this machine and writes a cluster description for ds-opt --cluster.", "ds-run");
  ds::addVersionAndDescription(app);
  std::string mode = "full";
  uint32_t ranks = 1;
  double timeoutSeconds = 600;
  ds::rt::CalibrateOptions options;
  app.add_option("--calibrate", mode, "full (default), or quick: few sizes, for tests")
      ->check(CLI::IsMember({"full", "quick"}))
      ->expected(0, 1)
      ->default_str("full");
  app.add_option("-o,--output", options.output, "file to write (default: stdout)")->type_name("FILE");
  addRanksAndTimeout(app, ranks, "measure with this many ranks at once, each with its share of the cores",
                     timeoutSeconds);
  app.add_option("--device", options.device, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_option("--nvme", options.nvme,
                 "directory on the disk that states are to be offloaded to: find how it is best driven")
      ->type_name("DIR");
  CLI::Option *only = app.add_option("--only", options.only, "parts of a GPU's figures, by commas")
                          ->delimiter(',')
                          ->type_name("PARTS");
  CLI::Option *log =
      app.add_option("--log-jsonl", options.logJsonl, "one object a measurement of a GPU")->type_name("FILE");
  if (const std::optional<int> code = parseLine(app, argc, argv))
    return *code;
  if (options.device == "cpu" && (only->count() > 0 || log->count() > 0))
    return report({ds::ExitCode::Usage, "--only and --log-jsonl are for --device cuda", ""});
  if (options.device == "cuda" && ranks > 1)
    return report(
        {ds::ExitCode::Usage, "--device cuda: one GPU is measured, by one rank", "leave --ranks out"});
  options.quick = mode == "quick";
  if (const std::optional<int> code =
          takeIdentity(options.place, ranks, app.count("--ranks") > 0, timeoutSeconds,
                       {{}, {{"-o", options.output}, {"--log-jsonl", options.logJsonl}}}, argv))
    return *code;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(timeoutSeconds * 1000));
  const ds::Status status = ds::rt::calibrate(options);
  return status ? 0 : report(status.error());
}
