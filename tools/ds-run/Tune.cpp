//===- Tune.cpp - The command line of ds-run --tune --------------------------------===//
#include "Tune.h"

#include "Options.h"
#include "Start.h"
#include "ds/Runtime/Calibrate/Tune.h"

bool asksForTuning(int argc, char **argv) { return hasOption(argc, argv, "--tune"); }

int runTuning(int argc, char **argv) {
  CLI::App app("Finds the fastest form of each product of a program on this machine, for ds-opt --tuning.",
               "ds-run");
  ds::rt::TuneOptions options;
  app.add_option("--tune", options.program, "program made by ds-opt --emit=program")->required();
  app.add_option("-o,--output", options.output, "file to write (default: stdout)");
  addReal(app, "--product-seconds", "time for all forms of one product (default: 2)", 0.001, 3600,
          [&](double seconds) { options.productSeconds = seconds; });
  if (const std::optional<int> code = parseLine(app, argc, argv))
    return *code;
  ds::rt::RankIdentity place;
  if (const std::optional<int> code =
          takeIdentity(place, 1, false, 0, {{{"--tune", options.program}}, {{"-o", options.output}}}, argv))
    return *code;
  if (place.world > 1)
    return report({ds::ExitCode::Usage, "--tune: one rank measures", "start it without mpirun or srun"});
  const ds::Status status = ds::rt::tuneProducts(options);
  return status ? 0 : report(status.error());
}
