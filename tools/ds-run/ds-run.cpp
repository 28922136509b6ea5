//===- ds-run.cpp - Trains a compiled model ------------------------------------===//
//
// Reads the command line and hands over to the runtime; see include/ds/Runtime/Trainer.h. Starts in
// milliseconds: no MLIR, no LLVM, no LibTorch.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Trainer.h"

#include <CLI/CLI.hpp>

#include <cstdio>

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
  app.add_option("--ranks", options.ranks, "number of ranks")->capture_default_str();
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
  const ds::Status status = ds::rt::train(options);
  return status ? 0 : report(status.error());
}
