//===- ds-run.cpp - Trains a compiled model ------------------------------------===//
//
// Reads the command line and hands over to the runtime; see include/ds/Runtime/Trainer.h. Starts in
// milliseconds: no MLIR, no LLVM, no LibTorch.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Trainer.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <optional>

namespace {

void declareOptions(CLI::App &app, ds::rt::TrainOptions &options) {
  app.add_option("PROGRAM", options.program, "program made by ds-opt --emit=program")->required();
  app.add_option("--data", options.data, "training data: .safetensors, .npy or .bin")->required();
  app.add_option("--token-dtype", options.tokenDtype, "type of a .bin without header: u16 (default) or u32");
  app.add_flag("--shuffle", options.shuffle, "draw samples in an order chosen by --seed");
  app.add_option("--weights", options.weights, "start from this file (default: the one beside the program)");
  app.add_option("--steps", options.steps, "training steps (default: once over the data)");
  app.add_option("--seed", options.seed, "of initialisation and shuffling")->capture_default_str();
  app.add_option("--eval-data", options.evalData, "held-out data");
  app.add_option("--eval-every", options.evalEvery, "steps between evaluations (default: after the last)");
  app.add_option("--log-jsonl", options.logJsonl, "write one JSON object a step");
  app.add_option("--trace", options.trace, "write a Chrome trace of the measured steps");
  app.add_option("--save-weights", options.saveWeights, "write the weights after the last step");
  app.add_option("--device", options.device, "cpu or cuda")->capture_default_str();
  app.add_option("--ranks", options.ranks,
                 "start this many ranks here (under mpirun or srun: how many there are)")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--timeout", options.timeoutSeconds, "seconds that a rank waits for another")
      ->check(CLI::Range(0.1, 1e6))
      ->capture_default_str();
  app.add_option("--save", options.save, "checkpoint directory");
  app.add_option("--resume", options.resume, "checkpoint directory, or auto");
}

int report(const ds::Error &error) {
  std::fprintf(stderr, "ds-run: %s%s\n",
               error.code == ds::ExitCode::Interrupted ? "" : "error: ", error.message.c_str());
  if (!error.hint.empty())
    std::fprintf(stderr, "  hint: %s\n", error.hint.c_str());
  return static_cast<int>(error.code);
}

/// Finds out which rank this is, or becomes the launcher of all: then the exit code is the result.
std::optional<int> takePlace(const CLI::App &app, ds::rt::TrainOptions &options, char **argv) {
  using ds::rt::Place;
  const ds::Result<Place> place = ds::rt::findPlace();
  if (!place)
    return report(place.error());
  options.place = *place;
  if (place->kind != Place::Kind::Alone && app.count("--ranks") > 0 && options.ranks != place->world)
    return report({ds::ExitCode::Usage,
                   "--ranks " + std::to_string(options.ranks) + ", but the launcher has started " +
                       std::to_string(place->world),
                   "leave --ranks out under mpirun and srun"});
  if (place->kind != Place::Kind::Alone || options.ranks == 1)
    return std::nullopt;
  ds::rt::LaunchOptions launch;
  launch.ranks = options.ranks;
  launch.timeout = std::chrono::milliseconds(static_cast<int64_t>(options.timeoutSeconds * 1000));
  return ds::rt::launchRanks(launch, argv);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Trains a model that ds-opt has compiled.", "ds-run");
  ds::rt::TrainOptions options;
  declareOptions(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ds::ExitCode::Usage);
  }
  if (const std::optional<int> code = takePlace(app, options, argv))
    return *code;
  const ds::Status status = ds::rt::train(options);
  return status ? 0 : report(status.error());
}
