//===- ds-run.cpp - Trains a compiled model ------------------------------------===//
//
// Reads the command line and hands over to the runtime; see include/ds/Runtime/Training/Trainer.h. Starts in
// milliseconds: no MLIR, no LLVM, no LibTorch.
//
//===---------------------------------------------------------------------------===//
#include "../DescribeTool.h"
#include "Calibrate.h"
#include "EvalData.h"
#include "Options.h"
#include "SafetyOptions.h"
#include "Sample.h"
#include "Start.h"
#include "Tune.h"
#include "ds/Runtime/Data/DataFiles.h"
#include "ds/Runtime/Training/Trainer.h"
#include "ds/Support/RunTool.h"

#include <cstdlib>
#include <filesystem>
#include <map>

namespace {

void declareCheckpoints(CLI::App &app, ds::rt::TrainOptions &options) {
  app.add_option("--save", options.save,
                 "directory for checkpoints: one after the last step, and before an end by a signal")
      ->type_name("DIR");
  addWhole(app, "--save-every", "also save every N steps", 1, UINT64_MAX,
           [&](uint64_t steps) { options.saveEvery = steps; });
  app.add_option("--save-seconds", options.saveSeconds, "also save when so many seconds have passed")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber);
  addWhole(app, "--keep", "checkpoints that stay, the newest ones (default: 2, the least)", 0, UINT32_MAX,
           [&](uint64_t number) { options.keep.newest = static_cast<uint32_t>(number); });
  addWhole(app, "--keep-best",
           "also those of the N least losses of the first --eval-data, which are saved for it", 1, UINT32_MAX,
           [&](uint64_t number) { options.keep.best = static_cast<uint32_t>(number); });
  addWhole(app, "--keep-every", "also those of every N-th step, which are saved for it", 1, UINT64_MAX,
           [&](uint64_t steps) { options.keep.every = steps; });
  app.add_option_function<std::string>(
         "--save-mode",
         [&](const std::string &word) {
           options.saveMode = word == "sync" ? ds::rt::SaveMode::Sync : ds::rt::SaveMode::Async;
         },
         "async (default): write from a copy while training continues; sync: before the next step")
      ->check(CLI::IsMember({"async", "sync"}))
      ->type_name("MODE");
  app.add_flag("--verify-saves", options.verifySaves, "read a new checkpoint again before an old one goes");
  app.add_option("--resume", options.resume,
                 "resume from a checkpoint, the newest in a directory of them, or auto: the newest in --save")
      ->type_name("DIR|auto");
  app.add_flag("--new-data", options.newData, "resume with other data, from their start");
  app.add_flag("--dry-run", options.dryRun, "say what --resume would do, and do nothing");
}

void declareData(CLI::App &app, ds::rt::TrainOptions &options) {
  app.add_option("PROGRAM", options.program, "program made by ds-opt --emit=program")
      ->required()
      ->type_name("FILE");
  app.add_option("--data", options.data,
                 "training data: FILE, 'PATTERN' of files, or a blend: W:FILE,W:FILE or .json")
      ->required()
      ->type_name("DATA");
  app.add_option("--token-dtype", options.tokenDtype, "type of a .bin without header: u16 (default) or u32")
      ->type_name("u16|u32");
  addWhole(app, "--document-token", "token that ends a document: the target after it does not count", 0,
           INT64_MAX, [&](uint64_t token) { options.documentToken = static_cast<int64_t>(token); });
  app.add_flag("--reset-positions", options.resetPositions, "begin position_ids anew with each document");
  app.add_flag("--reset-attention", options.resetAttention,
               "ask that the program keeps attention within a document, by its input document_ids");
  app.add_flag("--shuffle", options.shuffle, "draw samples in an order chosen by --seed");
  app.add_option("--weights", options.weights,
                 "start from this file (default: the one beside the program); none: from --seed")
      ->type_name("FILE|DIR|none");
  app.add_option("--adapter", options.adapter,
                 "start the adapters of ds-opt --lora from this folder of PEFT (default: drawn by --seed)")
      ->type_name("DIR");
}

void declareReports(CLI::App &app, ds::rt::TrainOptions &options) {
  app.add_option("--log-jsonl", options.logJsonl,
                 "write one JSON object a step; an earlier log.jsonl becomes log.1.jsonl")
      ->type_name("FILE");
  app.add_option_function<std::string>(
         "--log-ranks", [&](const std::string &word) { options.logAllRanks = word == "all"; },
         "who writes --log-jsonl: first (default), or all: rank 1 log.rank1.jsonl, and so on")
      ->check(CLI::IsMember({"first", "all"}))
      ->type_name("WHICH");
  addWhole(app, "--log-every",
           "print a line every N steps (default: the configuration's steps_per_print, else 1)", 1, UINT64_MAX,
           [&](uint64_t steps) { options.logEvery = steps; });
  app.add_option_function<std::string>(
         "--summary", [&](const std::string &word) { options.wholeSummary = word == "all"; },
         "what is reported of collectives at the end: short (default), or all")
      ->check(CLI::IsMember({"short", "all"}))
      ->type_name("WHICH");
}

void declareOptions(CLI::App &app, ds::rt::TrainOptions &options) {
  declareData(app, options);
  addWhole(app, "--steps", "training steps (default: once over the data)", 0, UINT64_MAX,
           [&](uint64_t steps) { options.steps = steps; });
  addWhole(app, "--seed", "of initialisation and shuffling (default: 0, or the checkpoint's)", 0, UINT64_MAX,
           [&](uint64_t seed) { options.seed = seed; });
  declareEvalData(app, options);
  addWhole(app, "--eval-every", "steps between evaluations (default: after the last)", 0, UINT64_MAX,
           [&](uint64_t steps) { options.evalEvery = steps; });
  app.add_flag("--eval-only", options.evalOnly,
               "print the loss of --eval-data, or of --data, and train nothing");
  declareReports(app, options);
  app.add_option("--trace", options.trace, "write a Chrome trace of the measured steps")->type_name("FILE");
  app.add_option("--save-weights", options.saveWeights, "write the weights after the last step")
      ->type_name("FILE");
  app.add_option(
         "--nvme", options.nvme,
         "directory on a local disk for what the program keeps on NVMe (default: the configuration's)")
      ->type_name("DIR");
  app.add_option("--nvme-parameters", options.nvmeParameters,
                 "another one for the parameters among it (default: --nvme, else the configuration's)")
      ->type_name("DIR");
  app.add_flag("--verify-storage", options.verifyStorage,
               "keep a digest of each MiB that is written there, and compare it when it is read");
  app.add_option("--device", options.device, "cpu or cuda")->capture_default_str()->type_name("cpu|cuda");
  addRanksAndTimeout(app, options.ranks,
                     "start this many ranks here (under mpirun or srun: how many there are)",
                     options.timeoutSeconds);
  declareSafety(app, options);
  declareCheckpoints(app, options);
}

/// Weights are those beside the program unless others are named, and beside an index there are shards.
Files filesOf(const ds::rt::TrainOptions &options) {
  const std::filesystem::path program(options.program), weights(options.weights);
  Files files;
  files.inputs = {{"PROGRAM", options.program}};
  const auto addData = [&](const char *option, const std::string &data) {
    for (const std::string &file : ds::rt::listDataFiles(data))
      files.inputs.push_back({option, file});
  };
  addData("--data", options.data);
  for (const ds::rt::EvalData &each : options.evalData)
    addData("--eval-data", each.data);
  if (options.weights.empty() || options.weights == ds::rt::kFromSeed)
    files.inputs.push_back({"PROGRAM", std::filesystem::path(program).replace_extension(".safetensors")});
  else
    files.inputs.push_back({"--weights", options.weights});
  files.inputs.push_back({"--adapter", options.adapter});
  if (weights.extension() == ".json")
    files.inputs.push_back({"--weights", weights.has_parent_path() ? weights.parent_path().string() : "."});
  files.outputs = {
      {"--log-jsonl", options.logJsonl}, {"--trace", options.trace}, {"--save-weights", options.saveWeights}};
  return files;
}

int run(int argc, char **argv) {
  if (asksForCalibration(argc, argv))
    return runCalibration(argc, argv);
  if (asksForTuning(argc, argv))
    return runTuning(argc, argv);
  if (asksForSample(argc, argv))
    return runSample(argc, argv);
  CLI::App app("Trains a model that ds-opt has compiled.", "ds-run");
  ds::rt::TrainOptions options;
  ds::addVersionAndDescription(app);
  declareOptions(app, options);
  uint64_t restarts = 0;
  addWhole(app, "--restarts", "start the ranks again after failures that may pass, N times at most", 0,
           UINT64_MAX, [&](uint64_t number) { restarts = number; });
  app.footer("ds-run PROGRAM --sample TEXT writes how a trained model continues a text.\n"
             "ds-run --calibrate [-o FILE] [--ranks N] measures this machine for ds-opt --cluster.\n"
             "ds-run --tune PROGRAM [-o FILE] finds its fastest products for ds-opt --tuning.");
  if (const std::optional<int> code = parseLine(app, argc, argv))
    return *code;
  if (const ds::Status status = checkEvalData(options); !status)
    return report(status.error());
  if (restarts > 0 && options.save.empty())
    return report(
        {ds::ExitCode::Usage, "--restarts needs --save", "without checkpoints all would begin anew"});
  if (!ds::rt::isStartedAsRank() && (options.ranks > 1 || restarts > 0))
    if (const ds::Status status = ds::rt::checkBeforeLaunch(options); !status)
      return report(status.error());
  if (const std::optional<int> code =
          takeIdentity(options.place, options.ranks, app.count("--ranks") > 0, options.timeoutSeconds,
                       filesOf(options), argv, {restarts, options.save}))
    return *code;
  if (const char *resume = std::getenv(ds::rt::kResumeVariable))
    options.resume = resume; // this job has been started again
  const ds::Status status = ds::rt::train(options);
  return status ? 0 : report(status.error());
}

} // namespace

int main(int argc, char **argv) { return ds::runTool("ds-run", argc, argv, run); }
