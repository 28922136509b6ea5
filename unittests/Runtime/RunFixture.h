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
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace ds::rt::test {

namespace fs = std::filesystem;

/// The regression: 8 rows of x [6] and t [3] are one global batch.
inline constexpr int64_t kRows = 8, kIn = 6, kOut = 3;

struct Outcome {
  int code = -1;
  std::string out, err;
};

/// A temporary directory with data, and ds-run started in it.
class RunFixture : public testing::Test {
protected:
  RunFixture() {
    char pattern[] = "/tmp/ds-run-test-XXXXXX";
    directory = ::mkdtemp(pattern);
    writeData("data.safetensors", 64);
  }
  ~RunFixture() override { fs::remove_all(directory); }

  std::string at(const std::string &name) const { return directory + "/" + name; }
  void write(const Program &program, const std::string &name = "p.dsx") {
    Status status = writeProgram(program, at(name));
    ASSERT_TRUE(status) << status.error().message;
  }
  void writeData(const std::string &name, int64_t samples, int64_t badSample = -1) {
    std::vector<float> x(samples * kIn), t(samples * kOut);
    for (int64_t i = 0; i < samples * kIn; ++i)
      x[i] = std::sin(float(i * i % 1009));
    for (int64_t i = 0; i < samples * kOut; ++i)
      t[i] = x[i / kOut * kIn + i % kOut];
    if (badSample >= 0)
      x[badSample * kIn] = NAN;
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
      ::chdir(directory.c_str());
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
};

/// Waits until the file has a line with a step, for a minute at most.
inline void waitForStep(const std::string &path) {
  for (int i = 0; i < 6000; ++i) {
    const std::vector<uint8_t> bytes = readBytes(path);
    if (std::string(bytes.begin(), bytes.end()).find("step 1/") != std::string::npos)
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  FAIL() << "no step within a minute";
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_RUNFIXTURE_H
