//===- ImportClient.cpp - Imports a TorchScript model through ds-import ---------===//

#include "ds/Import/ImportClient.h"
#include "../Guard/Limits.h"
#include "../Guard/PlainWords.h"
#include "../Guard/Report.h"
#include "ChildProcess.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ds {

using import_report::Report;

/// MLIR text beyond this is no model, but an attempt to fill the memory.
static constexpr off_t maxTextBytes = off_t(1) << 30;
static constexpr off_t maxReportBytes = off_t(16) << 20;

static Error ioError(const std::string &what, const std::string &path, std::string hint = "") {
  if (hint.empty() && (errno == EMFILE || errno == ENFILE))
    hint = "raise the number of descriptors (ulimit -n)";
  return {ExitCode::Io, "cannot " + what + " '" + path + "': " + std::strerror(errno), std::move(hint)};
}

/// The directory of the running binary, with a slash.
static std::string ownDirectory() {
  std::string path(4096, '\0');
  ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  path.resize(length > 0 ? static_cast<size_t>(length) : 0);
  return path.substr(0, path.rfind('/') + 1);
}

/// All that was written to a file that has no name.
static Result<std::string> readBack(int fd, off_t limit, const char *what) {
  struct stat info = {};
  if (fstat(fd, &info) != 0 || info.st_size > limit)
    return Error{ExitCode::Invalid,
                 std::string("ds-import wrote ") + std::to_string(info.st_size) + " bytes of " + what +
                     "; the limit is " + std::to_string(limit),
                 ""};
  std::string text(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < text.size()) {
    ssize_t got = pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return ioError("read back", what);
    done += static_cast<size_t>(got);
  }
  return text;
}

namespace {

/// The descriptors that the importer writes to.
struct Channels {
  Descriptor model, mlir, report, log;
  uint64_t modelBytes = 0;
  TemporaryFile weights;
};

} // namespace

/// Makes the weights file in `directory`, or in the machine's place for temporary files.
static Status openWeights(std::string directory, TemporaryFile &weights) {
  if (directory.empty()) {
    const char *chosen = std::getenv("TMPDIR");
    directory = chosen && *chosen ? chosen : "/tmp";
  }
  errno = weights.open(directory + "/ds-weights");
  return errno == 0 ? Status() : ioError("make a file in", directory, "name a directory that can be written");
}

static Status openChannels(const ImportRequest &request, Channels &channels) {
  channels.model = Descriptor(open(request.path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!channels.model)
    return ioError("open", request.path);
  struct stat info = {};
  if (fstat(channels.model.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return Error{ExitCode::Io, "'" + request.path + "' is not a regular file", ""};
  channels.modelBytes = static_cast<uint64_t>(info.st_size);
  channels.mlir = Descriptor(memfd_create("ds-mlir", MFD_CLOEXEC));
  channels.report = Descriptor(memfd_create("ds-report", MFD_CLOEXEC));
  channels.log = Descriptor(memfd_create("ds-log", MFD_CLOEXEC));
  if (!channels.mlir || !channels.report || !channels.log)
    return ioError("make", "a file in memory");
  return request.wantWeights ? openWeights(request.weightsDirectory, channels.weights) : Status();
}

/// LibTorch does not end well where it has too little: OpenBLAS asks for its buffer for ever before main, and
/// a tiny stack is a crash that looks like a damaged archive. Measured: 900 MiB of addresses are enough, 600
/// are not; 64 KiB of stack are, 32 are not. What it tells of an error is written to a file in memory.
static Status checkLimits() {
  struct Need {
    decltype(RLIMIT_AS) limit; // an enumeration in glibc
    const char *what, *option;
    rlim_t bytes;
    ExitCode code = ExitCode::DoesNotFit;
  };
  for (const Need &need : {Need{RLIMIT_AS, "addresses", "ulimit -v", rlim_t(1) << 30},
                           Need{RLIMIT_DATA, "data", "ulimit -d", rlim_t(1) << 29},
                           Need{RLIMIT_STACK, "stack", "ulimit -s", rlim_t(1) << 17},
                           Need{RLIMIT_FSIZE, "one file", "ulimit -f", rlim_t(1) << 16, ExitCode::Io}}) {
    struct rlimit found = {};
    if (getrlimit(need.limit, &found) != 0 || found.rlim_cur >= need.bytes)
      continue;
    return Error{need.code,
                 std::string("the import of TorchScript needs ") + std::to_string(need.bytes) + " bytes of " +
                     need.what + ", but " + need.option + " allows " + std::to_string(found.rlim_cur),
                 std::string("raise ") + need.option + ", or plan from the model's config.json"};
  }
  return {};
}

static std::vector<std::string> makeArguments(const ImportRequest &request) {
  std::vector<std::string> arguments = {request.path, "--parent=" + std::to_string(getpid()), "--model-fd=3",
                                        "--mlir-fd=4", "--report-fd=5"};
  if (request.wantWeights)
    arguments.push_back("--weights-fd=6");
  for (const std::string &input : request.inputs)
    arguments.push_back("--input=" + input);
  if (!request.loss.empty())
    arguments.push_back("--loss=" + request.loss);
  if (request.memoryBytes > 0)
    arguments.push_back("--import-memory=" + std::to_string(request.memoryBytes));
  if (request.seconds > 0)
    arguments.push_back("--import-seconds=" + std::to_string(request.seconds));
  if (request.allowUnsandboxed)
    arguments.push_back("--allow-unsandboxed");
  return arguments;
}

/// The last that a process said, in plain words; empty where it said nothing.
static std::string lastWords(const std::string &log) {
  constexpr size_t tail = 8192, most = 300;
  std::string text =
      import_report::printable(std::string_view(log).substr(log.size() - std::min(log.size(), tail)), tail);
  bool isBlank = text.find_first_not_of(" \n") == text.npos;
  return isBlank ? "" : "; its last words: " + plainWords(text, most);
}

/// What to say of a process that a signal ended.
static Error explainSignal(int signal, const ImportLimits &limits, const std::string &log) {
  if (signal == SIGXCPU)
    return timeError(limits);
  if (signal == SIGXFSZ)
    return fileSizeError(limits);
  if (signal == SIGABRT && tellsOfMemory(log))
    return memoryError(limits);
  std::string name = "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  if (signal == SIGSYS)
    return {ExitCode::Invalid, "the archive's code made a system call that an import may not make: " + name,
            "a model does not need this: do not trust the archive"};
  if (signal == SIGKILL)
    return {ExitCode::Invalid,
            "the import process was killed by " + name +
                ", as the kernel does when the machine's memory runs out; its own limit is " +
                std::to_string(limits.memoryBytes >> 20) + " MiB",
            "free some memory, or bound the import by --import-memory"};
  return {ExitCode::Corrupt,
          "the import process died of " + name + " while it read the archive" + lastWords(log),
          "the file is damaged or made to do harm: export it again with torch.jit.save"};
}

/// What to say of a process that ended without saying why.
static Error explainDeath(const ImportLimits &limits, const ChildResult &child, const std::string &log) {
  constexpr int notLoaded = 127; // of the dynamic linker
  if (child.timedOut)
    return waitError(limits);
  if (child.signal != 0)
    return explainSignal(child.signal, limits, log);
  if (child.exitCode == notLoaded)
    return {
        ExitCode::Io, "ds-import cannot be started" + lastWords(log),
        "script/setup installs its libraries; loading them takes memory and descriptors (ulimit -v, -d, -n)"};
  return {ExitCode::Internal,
          "ds-import ended with exit code " + std::to_string(child.exitCode) + " and no report" +
              lastWords(log),
          ""};
}

static Error withPath(const ImportRequest &request, Error error) {
  error.message = request.path + ": " + error.message;
  return error;
}

static Result<ImportedModel> collectResult(const ImportRequest &request, const ImportLimits &limits,
                                           const ChildResult &child, Channels &channels) {
  auto reportText = readBack(channels.report.get(), maxReportBytes, "report");
  if (!reportText)
    return reportText.error();
  Report report = import_report::parse(*reportText);
  if (report.error)
    return withPath(request, *report.error);
  auto log = readBack(channels.log.get(), maxReportBytes, "log");
  if (child.timedOut || child.exitCode != 0 || !report.isComplete)
    return withPath(request, explainDeath(limits, child, log ? *log : ""));
  auto text = readBack(channels.mlir.get(), maxTextBytes, "MLIR text");
  if (!text)
    return text.error();
  return ImportedModel{std::move(*text), std::move(channels.weights), std::move(report.notices)};
}

Result<ImportedModel> importTorchScript(const ImportRequest &request) {
  if (Status status = checkLimits(); !status)
    return status.error();
  Channels channels;
  if (Status status = openChannels(request, channels); !status)
    return status.error();
  std::string program = request.importerPath.empty() ? ownDirectory() + "ds-import" : request.importerPath;
  std::vector<std::pair<int, int>> descriptors = {{channels.log.get(), STDOUT_FILENO},
                                                  {channels.log.get(), STDERR_FILENO},
                                                  {channels.model.get(), 3},
                                                  {channels.mlir.get(), 4},
                                                  {channels.report.get(), 5}};
  if (request.wantWeights)
    descriptors.emplace_back(channels.weights.fd(), 6);
  ImportLimits limits =
      deriveLimits({channels.modelBytes, request.inputs, request.memoryBytes, request.seconds});
  if (request.waitSeconds > 0)
    limits.waitSeconds = request.waitSeconds;
  auto seconds = static_cast<unsigned>(std::min<uint64_t>(limits.waitSeconds, UINT_MAX));
  auto child = runChild(program, makeArguments(request), descriptors, seconds);
  if (!child)
    return child.error();
  return collectResult(request, limits, *child, channels);
}

} // namespace ds
