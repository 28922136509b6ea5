//===- Sample.cpp - The command line of ds-run --sample ------------------------------===//
#include "Sample.h"

#include "../DescribeTool.h"
#include "Options.h"
#include "Start.h"
#include "ds/Runtime/Sampling/Sample.h"
#include "ds/Runtime/Training/Trainer.h"
#include "ds/Support/Numbers.h"

#include <filesystem>

bool asksForSample(int argc, char **argv) {
  return hasOption(argc, argv, "--sample") || hasOption(argc, argv, "--sample-tokens");
}

namespace {

/// What is given as text until the line is parsed.
struct Line {
  std::string text, tokens;
};

/// "1,2,3"
ds::Result<std::vector<int64_t>> parseTokens(const std::string &list) {
  std::vector<int64_t> tokens;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    const ds::Result<uint64_t> token =
        ds::parseWhole("--sample-tokens", list.substr(begin, end - begin), 0, INT64_MAX);
    if (!token)
      return token.error();
    tokens.push_back(static_cast<int64_t>(*token));
    begin = end + 1;
  }
  return tokens;
}

void declareSample(CLI::App &app, Line &line, ds::rt::SampleOptions &options) {
  CLI::Option *text =
      app.add_option("--sample", line.text, "text that the model continues")->type_name("TEXT");
  CLI::Option *tokens = app.add_option("--sample-tokens", line.tokens,
                                       "its tokens, by commas: numbers are printed, unless with --tokenizer")
                            ->type_name("N,N,...");
  text->excludes(tokens);
  app.add_option("--tokenizer", options.tokenizer,
                 "tokenizer.json of the model (default: beside the weights, or beside the program)")
      ->type_name("FILE");
  addWhole(app, "--length", "tokens to write (default: 100)", 1, UINT32_MAX,
           [&](uint64_t number) { options.length = number; });
  addReal(app, "--temperature", "that logits are divided by; 0: always the likeliest token (default: 1)", 0,
          1e6, [&](double number) { options.temperature = number; });
  addWhole(app, "--top-k", "likeliest tokens that are drawn from (default: all)", 1, UINT32_MAX,
           [&](uint64_t number) { options.topK = number; });
}

void declareRun(CLI::App &app, ds::rt::TrainOptions &run, uint64_t &seed) {
  app.add_option("PROGRAM", run.program, "program made by ds-opt --emit=program --entry logits")
      ->required()
      ->type_name("FILE");
  app.add_option("--weights", run.weights,
                 "of the model (default: the file beside the program); none: from --seed")
      ->type_name("FILE|DIR|none");
  app.add_option("--resume", run.resume,
                 "in place of weights a checkpoint, or the newest in a directory of them")
      ->type_name("DIR");
  addWhole(app, "--seed", "of what is drawn (default: 0)", 0, UINT64_MAX,
           [&](uint64_t number) { seed = number; });
  app.add_option("--log-jsonl", run.logJsonl, "add one JSON object about the text")->type_name("FILE");
  app.add_option("--nvme", run.nvme, "directory on a local disk for what the program keeps on NVMe")
      ->type_name("DIR");
  app.add_option("--device", run.device, "cpu or cuda")->capture_default_str()->type_name("cpu|cuda");
  addRanksAndTimeout(app, run.ranks, "start this many ranks here (under mpirun or srun: how many there are)",
                     run.timeoutSeconds);
}

Files filesOf(const ds::rt::TrainOptions &run, const ds::rt::SampleOptions &options) {
  Files files;
  files.inputs = {{"PROGRAM", run.program}, {"--tokenizer", options.tokenizer}};
  if (run.weights != ds::rt::kFromSeed)
    files.inputs.push_back({"--weights", run.weights});
  files.outputs = {{"--log-jsonl", run.logJsonl}};
  return files;
}

} // namespace

int runSample(int argc, char **argv) {
  CLI::App app("Writes how a model continues a text.", "ds-run");
  Line line;
  ds::rt::TrainOptions run;
  ds::rt::SampleOptions options;
  ds::addVersionAndDescription(app);
  declareSample(app, line, options);
  declareRun(app, run, options.seed);
  if (const std::optional<int> code = parseLine(app, argc, argv))
    return *code;
  if (app.count("--sample") > 0)
    options.text = line.text;
  else if (ds::Result<std::vector<int64_t>> tokens = parseTokens(line.tokens))
    options.tokens = std::move(*tokens);
  else
    return report(tokens.error());
  run.evalOnly = true; // no step: no optimizer is asked
  if (run.resume == "auto")
    return report({ds::ExitCode::Usage, "--resume auto is of a run with --save",
                   "name the checkpoint, or the directory"});
  if (run.resume.empty())
    run.seed = options.seed; // of initial values, too
  if (!ds::rt::isStartedAsRank() && run.ranks > 1)
    if (const ds::Status status = ds::rt::checkBeforeLaunch(run); !status)
      return report(status.error());
  if (const std::optional<int> code = takeIdentity(run.place, run.ranks, app.count("--ranks") > 0,
                                                   run.timeoutSeconds, filesOf(run, options), argv))
    return *code;
  const ds::Status status = ds::rt::sample(run, options);
  return status ? 0 : report(status.error());
}
