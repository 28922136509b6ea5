//===- ds-import.cpp - Turns a TorchScript archive into MLIR and weights --------===//
//
// The only program that links LibTorch. It checks the archive, gives up its rights, loads the module and
// writes what it found to descriptors that its parent opened. By hand it writes the MLIR to standard output.
//
//===---------------------------------------------------------------------------===//

#include "../../lib/Import/Guard/Archive.h"
#include "../../lib/Import/Guard/Report.h"
#include "../../lib/Import/Guard/Sandbox.h"
#include "../../lib/Import/Torch/Failure.h"
#include "../../lib/Import/Torch/Import.h"
#include "../../lib/Import/Torch/Operators.h"

#include <ATen/Parallel.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <cstring>
#include <new>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

struct Options {
  std::string path, loss;
  std::vector<std::string> inputs;
  int modelFd = -1, mlirFd = STDOUT_FILENO, weightsFd = -1, reportFd = -1;
};

/// Tells the parent, or the person at the terminal.
void tellError(const Options &options, const ds::Error &error) {
  if (options.reportFd >= 0)
    return ds::import_report::writeError(options.reportFd, error);
  std::string text =
      options.path + ": " + error.message + (error.hint.empty() ? "" : "\n  hint: " + error.hint);
  std::fprintf(stderr, "ds-import: %s\n", ds::import_report::printable(text, 1 << 20).c_str());
}

void tellNotice(const Options &options, const std::string &text) {
  if (options.reportFd >= 0)
    return ds::import_report::writeNotice(options.reportFd, text);
  std::fprintf(stderr, "ds-import: %s\n", text.c_str());
}

int openModel(const Options &options) {
  int fd = options.modelFd >= 0 ? options.modelFd : open(options.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    throw ds::ts::Failure(
        {ds::ExitCode::Io, std::string("cannot open the file: ") + std::strerror(errno), ""});
  return fd;
}

/// Bounds in proportion to the archive: tensors are in memory once as they are and once as a copy at worst.
ds::SandboxLimits limitsFor(uint64_t unpackedBytes) {
  constexpr uint64_t gibibyte = uint64_t(1) << 30;
  return {16 * gibibyte + 4 * unpackedBytes, gibibyte + 2 * unpackedBytes, 120 + unpackedBytes / (50 << 20)};
}

void runImport(const Options &options) {
  ds::ts::Request request;
  request.modelFd = openModel(options);
  request.mlirFd = options.mlirFd;
  request.weightsFd = options.weightsFd;
  request.loss = options.loss;
  for (const std::string &input : options.inputs)
    request.inputs.push_back(ds::ts::parseInput(input));
  auto archive = ds::checkArchive(request.modelFd);
  if (!archive)
    throw ds::ts::Failure(archive.error());
  request.operatorNames = archive->operatorNames;
  std::string missing = ds::enterSandbox(limitsFor(archive->unpackedBytes), options.reportFd);
  if (!missing.empty())
    tellNotice(options, "the import runs without " + missing + ": import only archives that you trust");
  ds::ts::importModel(request);
}

void listOperators() {
  for (const std::string &name : ds::ts::operatorNames())
    std::puts(name.c_str());
  throw CLI::Success();
}

/// The error behind the exception in flight.
ds::Error explainException() {
  try {
    throw;
  } catch (const ds::ts::Failure &failure) {
    ds::Error error = failure.error;
    if (!error.message.empty() && error.message[0] == '\1') // The mark of a message that names its place.
      error.message.erase(0, 1);
    return error;
  } catch (const std::bad_alloc &) {
    return {ds::ExitCode::Invalid, "the import needs more memory than it is allowed",
            "check the shapes given by --input and the sizes that the model makes tensors of"};
  } catch (const std::exception &error) {
    std::string text = error.what();
    return {ds::ExitCode::Invalid,
            "LibTorch cannot evaluate the model: " + text.substr(0, text.find("\nException raised")),
            "check the shapes given by --input"};
  }
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  CLI::App app("Turns a TorchScript archive into MLIR and weights", "ds-import");
  app.add_option("MODEL", options.path, "TorchScript archive")->required();
  app.add_flag_callback("--list-operators", listOperators,
                        "Print the operators that can be imported, and end");
  app.add_option("--input", options.inputs, "Shape of an argument or label: NAME=SHAPExTYPE, as x=4x256xi64")
      ->take_all();
  app.add_option("--loss", options.loss, "Loss to add to a model of logits")
      ->check(CLI::IsMember({"cross_entropy", "mse"}));
  app.add_option("--model-fd", options.modelFd, "Read the archive here, not by its name");
  app.add_option("--mlir-fd", options.mlirFd, "Write the MLIR text here")->capture_default_str();
  app.add_option("--weights-fd", options.weightsFd, "Write a safetensors file here");
  app.add_option("--report-fd", options.reportFd, "Write errors and notices here, as records");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    int code = app.exit(error);
    return code == 0 ? 0 : static_cast<int>(ds::ExitCode::Usage);
  }
  try {
    at::set_num_threads(1); // What is evaluated is small; idle threads would spin.
    runImport(options);
    if (options.reportFd >= 0)
      ds::import_report::writeDone(options.reportFd);
    std::fflush(nullptr);
    _exit(0); // Nobody needs what LibTorch would tear down.
  } catch (...) {
    ds::Error error = explainException();
    tellError(options, error);
    return static_cast<int>(error.code);
  }
}
