//===- Process.cpp - What a process does that imports one archive ---------------===//

#include "Process.h"
#include "../Guard/Archive.h"
#include "../Guard/Limits.h"
#include "../Guard/PlainWords.h"
#include "../Guard/Report.h"
#include "../Guard/Sandbox.h"
#include "Failure.h"
#include "Import.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <new>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/// Of the OpenMP runtime that LibTorch uses.
extern "C" void omp_set_num_threads(int count);

namespace ds::ts {

namespace {
/// What an error is told by, also where it ends the process at once.
struct Context {
  ProcessOptions options;
  ImportLimits limits;
};
} // namespace

static Context *current = nullptr;

static void tellError(const ProcessOptions &options, const Error &error) {
  if (options.reportFd >= 0)
    return import_report::writeError(options.reportFd, error);
  std::string text =
      options.path + ": " + error.message + (error.hint.empty() ? "" : "\n  hint: " + error.hint);
  std::fprintf(stderr, "ds-import: %s\n", import_report::printable(text, 1 << 20).c_str());
}

static void tellNotice(const ProcessOptions &options, const std::string &text) {
  if (options.reportFd >= 0)
    return import_report::writeNotice(options.reportFd, text);
  std::fprintf(stderr, "ds-import: %s\n", text.c_str());
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

/// The error behind the exception in flight.
static Error explainException(const ImportLimits &limits) {
  try {
    throw;
  } catch (const Failure &failure) {
    Error error = failure.error;
    if (!error.message.empty() && error.message[0] == '\1') // The mark of a message that names its place.
      error.message.erase(0, 1);
    return error;
  } catch (const std::bad_alloc &) {
    return memoryError(limits);
  } catch (const std::exception &error) {
    if (tellsOfMemory(error.what()))
      return memoryError(limits);
    return {ExitCode::Invalid, "LibTorch cannot evaluate the model: " + plainWords(error.what()),
            "check the shapes given by --input"};
  } catch (...) {
    return {ExitCode::Invalid, "LibTorch cannot evaluate the model: it gives no reason", ""};
  }
}

/// Where an exception meets code that cannot pass it on, as in a destructor or on another thread.
[[noreturn]] static void onTerminate() {
  Error error = {ExitCode::Corrupt, "LibTorch gave up while it read the archive",
                 "export the model again with torch.jit.save"};
  if (current && std::current_exception())
    error = explainException(current->limits);
  if (current)
    tellError(current->options, error);
  std::fflush(nullptr);
  _exit(static_cast<int>(error.code));
}

//===----------------------------------------------------------------------===//
// The way of an archive
//===----------------------------------------------------------------------===//

static int openModel(const ProcessOptions &options) {
  int fd = options.modelFd >= 0 ? options.modelFd : open(options.path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    throw Failure({ExitCode::Io, std::string("cannot open the file: ") + std::strerror(errno), ""});
  return fd;
}

void warmUp() {
  setenv("TZ", "UTC0", 1); // libzip and warnings ask for the time of day; other zones are files.
  tzset();
  // What is evaluated is small; idle threads would spin. LibTorch's own call starts another pool first, which
  // waits for ever where the system has no thread left for it.
  omp_set_num_threads(1);
  try {
    TORCH_CHECK(false, "an exception looks for the names of its stack");
  } catch (const c10::Error &) {
  }
  at::Tensor matrix = at::randn({32, 32});
  at::Tensor image = at::randn({2, 8, 16, 16}), window = at::randn({8, 8, 3, 3}); // oneDNN takes these.
  (void)at::matmul(matrix, matrix);
  (void)at::conv2d(image, window);
  (void)at::softmax(matrix, 1).sum().item<float>();
}

static void import(const ProcessOptions &options, ImportLimits &limits) {
  Request request;
  request.modelFd = openModel(options);
  request.mlirFd = options.mlirFd;
  request.weightsFd = options.weightsFd;
  request.loss = options.loss;
  for (const std::string &input : options.inputs)
    request.inputs.push_back(parseInput(input));
  struct stat info = {};
  if (fstat(request.modelFd, &info) != 0 || !S_ISREG(info.st_mode))
    throw Failure({ExitCode::Io, "the model is not a regular file", ""});
  limits = deriveLimits(
      {static_cast<uint64_t>(info.st_size), options.inputs, options.memoryBytes, options.seconds});
  closeOthers({request.modelFd, options.mlirFd, options.weightsFd, options.reportFd});
  std::string missing = enterSandbox(limits, options.reportFd);
  if (!missing.empty() && !options.allowUnsandboxed)
    throw Failure({ExitCode::Device, "the import cannot be confined: this machine does not grant " + missing,
                   "a container must allow the system call seccomp; --allow-unsandboxed imports without, "
                   "which lets the archive's code do what you may do: only for archives that you trust"});
  if (!missing.empty())
    tellNotice(options, "the import runs without " + missing + ": the archive's code may do what you may do");
  auto archive = checkArchive(request.modelFd);
  if (!archive)
    throw Failure(archive.error());
  request.operatorNames = archive->operatorNames;
  importModel(request);
}

int runProcess(const ProcessOptions &options) {
  static Context context;
  context.options = options;
  current = &context;
  std::set_terminate(onTerminate);
  int code = 0;
  try {
    import(options, context.limits);
    if (options.reportFd >= 0)
      import_report::writeDone(options.reportFd);
  } catch (...) {
    Error error = explainException(context.limits);
    tellError(options, error);
    code = static_cast<int>(error.code);
  }
  std::fflush(nullptr);
  return code;
}

} // namespace ds::ts
