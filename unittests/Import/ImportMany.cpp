//===- ImportMany.cpp - Imports archive after archive, each in a process of its own ===//
//
// For test/fuzz/archives.py: starting LibTorch takes half a second, forking a process in which it has started
// takes milliseconds. A line of standard input is the path of an archive; a line of standard output says what
// became of it, as JSON: how the process ended, and what it reported.
//
//===---------------------------------------------------------------------------===//

#include "../../lib/Import/Guard/Report.h"
#include "../../lib/Import/Torch/Process.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <functional>
#include <iostream>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

std::string readBack(int fd) {
  std::string text(1 << 20, '\0');
  ssize_t got = pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  return text;
}

/// What the process that imports does; it does not return.
[[noreturn]] void importHere(ds::ts::ProcessOptions options, int log) {
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  options.modelFd = open(options.path.c_str(), O_RDONLY | O_CLOEXEC);
  _exit(ds::ts::runProcess(options));
}

/// Waits for the process, and stops it after `seconds`; true when it had to be stopped.
bool waitFor(pid_t pid, int &status, double seconds) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + std::chrono::duration<double>(seconds);
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (Clock::now() > end) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

nlohmann::json importOne(ds::ts::ProcessOptions options, double waitSeconds) {
  int report = memfd_create("report", MFD_CLOEXEC), log = memfd_create("log", MFD_CLOEXEC);
  int text = memfd_create("mlir", MFD_CLOEXEC), weights = memfd_create("weights", MFD_CLOEXEC);
  options.reportFd = report;
  options.mlirFd = text;
  options.weightsFd = weights;
  pid_t pid = fork();
  if (pid == 0)
    importHere(options, log);
  int status = 0;
  nlohmann::json result;
  result["hung"] = waitFor(pid, status, waitSeconds);
  result["exit"] = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  result["signal"] = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  auto told = ds::import_report::parse(readBack(report));
  result["done"] = told.isComplete;
  result["code"] = told.error ? static_cast<int>(told.error->code) : 0;
  result["message"] = told.error ? told.error->message + "\n" + told.error->hint : "";
  result["made"] = std::hash<std::string>()(readBack(text) + readBack(weights));
  result["log"] = ds::import_report::printable(readBack(log), 2000);
  for (int fd : {report, log, text, weights})
    close(fd);
  return result;
}

} // namespace

/// ds-import-many MEMORY-BYTES SECONDS INPUT...
int main(int argc, char **argv) {
  ds::ts::ProcessOptions options;
  options.memoryBytes = argc > 1 ? std::stoull(argv[1]) : 0;
  options.seconds = argc > 2 ? std::stoull(argv[2]) : 0;
  options.inputs.assign(argv + std::min(argc, 3), argv + argc);
  ds::ts::warmUp();
  double waitSeconds = 120 + 10.0 * static_cast<double>(options.seconds ? options.seconds : 60);
  for (std::string path; std::getline(std::cin, path);) {
    options.path = path;
    std::cout << importOne(options, waitSeconds).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace)
              << std::endl;
  }
  return 0;
}
