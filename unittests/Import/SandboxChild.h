//===- SandboxChild.h - Runs something in the sandbox and says what became of it -===//
//
// The filter cannot be taken back, so that a child enters it, ends by _exit() and tells by its exit code and
// report what happened.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_IMPORT_SANDBOXCHILD_H
#define DS_UNITTESTS_IMPORT_SANDBOXCHILD_H

#include "Guard/Report.h"
#include "Guard/Sandbox.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ds {

/// What became of a child.
struct Outcome {
  int exitCode = -1, signal = 0;
  import_report::Report report;
  std::string message() const { return report.error ? report.error->message : ""; }
};

inline constexpr int unconfined = 99;

/// Limits that no test meets unasked.
inline ImportLimits roomy() {
  ImportLimits limits;
  limits.memoryBytes = uint64_t(64) << 20;
  limits.processorSeconds = 20;
  limits.fileBytes = 1 << 20;
  limits.memorySource = limits.timeSource = "of the test";
  return limits;
}

/// Runs `body` in a child, in the sandbox; its result is the exit code.
inline Outcome confined(const std::function<int()> &body, const ImportLimits &limits = roomy()) {
  int report = memfd_create("report", MFD_CLOEXEC);
  pid_t pid = fork();
  if (pid == 0)
    _exit(enterSandbox(limits, report).empty() ? body() : unconfined);
  int status = 0;
  waitpid(pid, &status, 0);
  Outcome outcome;
  outcome.exitCode = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  outcome.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  std::string text(4096, '\0');
  ssize_t got = pread(report, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  outcome.report = import_report::parse(text);
  close(report);
  return outcome;
}

inline void expectRefused(const Outcome &outcome, const std::string &part) {
  EXPECT_EQ(outcome.exitCode, 3);
  ASSERT_TRUE(outcome.report.error) << "no report, signal " << outcome.signal;
  EXPECT_EQ(outcome.report.error->code, ExitCode::Invalid);
  EXPECT_NE(outcome.message().find(part), std::string::npos) << outcome.message();
  EXPECT_FALSE(outcome.report.error->hint.empty());
}

} // namespace ds

#endif // DS_UNITTESTS_IMPORT_SANDBOXCHILD_H
