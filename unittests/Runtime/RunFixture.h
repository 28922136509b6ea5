//===- RunFixture.h - ds-run started by a test ----------------------------------===//
//
// A temporary directory with data for a regression, and the real binary run in it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_RUNFIXTURE_H
#define DS_UNITTESTS_RUNTIME_RUNFIXTURE_H

#include "ProgramBuilder.h"

#include "ds/Runtime/Formats/SafeTensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ds::rt::test {

namespace fs = std::filesystem;

/// The regression: 8 rows of x [6] and t [3] are one global batch.
inline constexpr int64_t kRows = 8, kIn = 6, kOut = 3;

/// y = x w^T, loss = mean (y - t)^2, w -= 0.05 * (y - t)^T x; the same loss for evaluation.
/// `seen` is the size of a state that nothing uses.
inline Program regression(int64_t seen = 2) {
  ProgramBuilder b;
  const uint32_t x = b.input("x", {kRows, kIn}), t = b.input("t", {kRows, kOut});
  const uint32_t w = b.state("w", {kOut, kIn}, {Init::Kind::Normal, 0.0, 0.5});
  b.state("steps_seen", {seen}, {Init::Kind::Constant, 3.0, 0}, Role::Buffer);
  const uint32_t loss = b.output("loss"), evalLoss = b.output("eval_loss");
  const uint32_t workspace = keepWorkspace(b, 1 << 16);
  const uint32_t y = b.place({kRows, kOut}), d = b.place({kRows, kOut}), g = b.place({kOut, kIn});
  auto forward = [&](uint32_t segment, uint32_t to) {
    b.live(y, segment, 0, 2);
    b.live(d, segment, 1, segment == 0 ? 4 : 3);
    b.library(LibraryFn::Matmul, {x, w, y}, {0, 1, 0, 0}).workspace = workspace;
    b.launch("ds_subtract", kRows * kOut, {y, t, d});
    b.launch("ds_mean_square", 1, {d, to}, {kRows * kOut});
  };
  forward(0, loss);
  b.live(g, 0, 3, 5);
  b.library(LibraryFn::Matmul, {d, x, g}, {1, 0, 0, 0}).workspace = workspace;
  b.launch("ds_descend", 0, {w, g}, {kOut * kIn, 50});
  b.segment();
  forward(1, evalLoss);
  b.program.stages[0].evaluation = static_cast<int32_t>(b.segment({Work::Evaluation}, "evaluation"));
  b.program.microBatch = kRows;
  b.program.image = readBytes(DS_TEST_KERNELS);
  return b.program;
}

struct Outcome {
  int code = -1;
  std::string out, err;
};

/// A temporary directory with data, and ds-run started in it.
class RunFixture : public testing::Test {
protected:
  explicit RunFixture(const std::string &parent = "/tmp") {
    std::string pattern = parent + "/ds-run-test-XXXXXX";
    directory = ::mkdtemp(pattern.data());
    writeData("data.safetensors", 64);
  }
  ~RunFixture() override { fs::remove_all(directory); }

  std::string at(const std::string &name) const { return directory + "/" + name; }
  void write(const Program &program, const std::string &name = "p.dsx") {
    Status status = writeProgram(program, at(name));
    ASSERT_TRUE(status) << status.error().message;
  }
  void writeData(const std::string &name, int64_t samples, int64_t badSample = -1, float badValue = NAN) {
    std::vector<float> x(samples * kIn), t(samples * kOut);
    for (int64_t i = 0; i < samples * kIn; ++i)
      x[i] = std::sin(float(i * i % 1009));
    for (int64_t i = 0; i < samples * kOut; ++i)
      t[i] = x[i / kOut * kIn + i % kOut];
    if (badSample >= 0)
      x[badSample * kIn] = badValue;
    const TensorSource sources[] = {{"x", FileDType::F32, {samples, kIn}, x.data()},
                                    {"t", FileDType::F32, {samples, kOut}, t.data()}};
    ASSERT_TRUE(writeSafeTensors(at(name), sources));
  }

  /// Starts ds-run with `environment` ("KEY=VALUE") added; its output goes to the files "out" + tag, "err" +
  /// tag.
  pid_t start(std::vector<std::string> arguments, const std::string &tag = "",
              const std::vector<std::string> &environment = {}) {
    arguments.insert(arguments.begin(), binary);
    std::vector<char *> argv;
    for (std::string &argument : arguments)
      argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(::open(at("out" + tag).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), 1);
      ::dup2(::open(at("err" + tag).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), 2);
      for (const std::string &variable : environment)
        ::putenv(const_cast<char *>(variable.c_str()));
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::signal(SIGHUP, SIG_DFL); // the test itself may run under nohup
      if (inChild)
        inChild();
      ::chdir(at(folder).c_str());
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    return child;
  }
  Outcome finish(pid_t child, const std::string &tag = "") {
    int status = 0;
    ::waitpid(child, &status, 0);
    auto text = [&](const char *name) {
      const std::vector<uint8_t> bytes = readBytes(at(name + tag));
      return std::string(bytes.begin(), bytes.end());
    };
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text("out"), text("err")};
  }
  Outcome run(const std::string &options) {
    std::istringstream words("p.dsx " + options);
    return finish(start({std::istream_iterator<std::string>(words), {}}));
  }
  std::vector<nlohmann::json> log(const std::string &name) {
    std::vector<nlohmann::json> lines;
    std::ifstream file(at(name));
    for (std::string line; std::getline(file, line);)
      lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  std::string directory, binary = DS_RUN;
  std::string folder = ".";      ///< of `directory`: where processes are started
  std::function<void()> inChild; ///< run in the new process before it becomes ds-run
};

/// Waits until `holds` does, for a minute at most.
template <class Condition>
bool waitUntil(Condition &&holds) {
  for (int i = 0; i < 12000; ++i) {
    if (holds())
      return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

inline bool hasText(const std::string &path, const std::string &text) {
  const std::vector<uint8_t> bytes = readBytes(path);
  return std::string(bytes.begin(), bytes.end()).find(text) != std::string::npos;
}

/// Waits until the file has a line with a step, for a minute at most.
inline void waitForStep(const std::string &path) {
  ASSERT_TRUE(waitUntil([&] { return hasText(path, "step 1/"); })) << "no step within a minute";
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_RUNFIXTURE_H
