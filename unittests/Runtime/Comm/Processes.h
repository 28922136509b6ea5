//===- Processes.h - Ranks as processes of a test --------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_COMM_PROCESSES_H
#define DS_UNITTESTS_RUNTIME_COMM_PROCESSES_H

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ds::rt::test {

/// A started program whose output goes to a file. Killed when it goes out of scope, stopped or not.
class Process {
public:
  Process(std::vector<std::string> command, const std::map<std::string, std::string> &environment,
          std::string outputFile)
      : outputFile(std::move(outputFile)), begin(std::chrono::steady_clock::now()) {
    std::vector<char *> arguments;
    for (std::string &word : command)
      arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid = ::fork();
    if (pid != 0)
      return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (const auto &[name, value] : environment)
      ::setenv(name.c_str(), value.c_str(), 1);
    const int fd = ::open(this->outputFile.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    ::dup2(fd, STDOUT_FILENO);
    ::dup2(fd, STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  Process(Process &&other) noexcept
      : outputFile(std::move(other.outputFile)), begin(other.begin), pid(std::exchange(other.pid, -1)) {}
  ~Process() {
    if (pid <= 0)
      return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  /// Exit code, or minus the signal; -1000 if it still runs after `limit`.
  int wait(std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() >= deadline)
        return -1000;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    pid = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  std::string output() const {
    std::ifstream file(outputFile);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }

  pid_t id() const { return pid; }
  double seconds = 0; ///< from start to end, once waited for

private:
  std::string outputFile;
  std::chrono::steady_clock::time_point begin;
  pid_t pid = -1;
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_COMM_PROCESSES_H
