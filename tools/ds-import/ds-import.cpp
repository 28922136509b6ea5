//===- ds-import.cpp - Turns a TorchScript archive into MLIR and weights --------===//
//
// The only program that links LibTorch. Its parent gives it descriptors to write to; by hand it writes the
// MLIR to standard output.
//
//===---------------------------------------------------------------------------===//

#include "../../lib/Import/Torch/Operators.h"
#include "../../lib/Import/Torch/Process.h"
#include "../DescribeTool.h"
#include "ds/Support/Error.h"

#include <CLI/CLI.hpp>

#include <csignal>
#include <cstdio>

#include <sys/prctl.h>
#include <unistd.h>

/// Lets the process end when `parent` does, however that ends.
static void endWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) // it ended before that
    _exit(static_cast<int>(ds::ExitCode::Interrupted));
}

static void listOperators() {
  for (const std::string &name : ds::ts::operatorNames())
    std::puts(name.c_str());
  throw CLI::Success();
}

int main(int argc, char **argv) {
  ds::ts::ProcessOptions options;
  CLI::App app("Turns a TorchScript archive into MLIR and weights", "ds-import");
  ds::addVersionAndDescription(app);
  app.add_option("MODEL", options.path, "TorchScript archive")->required();
  app.add_flag_callback("--list-operators", listOperators,
                        "Print the operators that can be imported, and end");
  app.add_option("--input", options.inputs, "Shape of an argument or label: NAME=SHAPExTYPE, as x=4x256xi64")
      ->take_all();
  app.add_option("--loss", options.loss, "Loss to add to a model of logits")
      ->check(CLI::IsMember({"cross_entropy", "mse"}));
  app.add_option("--import-memory", options.memoryBytes,
                 "Bytes the import may take; default: by the sizes of archive and inputs");
  app.add_option("--import-seconds", options.seconds,
                 "Processor time the import may take; default: by the sizes of archive and inputs");
  app.add_flag("--allow-unsandboxed", options.allowUnsandboxed,
               "Import also where the archive's code cannot be confined");
  app.add_option("--model-fd", options.modelFd, "Read the archive here, not by its name");
  app.add_option("--mlir-fd", options.mlirFd, "Write the MLIR text here")->capture_default_str();
  app.add_option("--weights-fd", options.weightsFd, "Write a safetensors file here");
  app.add_option("--report-fd", options.reportFd, "Write errors and notices here, as records");
  app.add_option_function<pid_t>("--parent", endWithParent,
                                 "End when this process does, which has started this one");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(ds::ExitCode::Usage);
  }
  ds::ts::warmUp();
  _exit(ds::ts::runProcess(options)); // Nobody needs what LibTorch would tear down.
}
