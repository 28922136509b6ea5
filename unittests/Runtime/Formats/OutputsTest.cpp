//===- OutputsTest.cpp - Outputs that are refused before the work ------------------===//

#include "ds/Runtime/Files/Outputs.h"
#include "TestFiles.h"

#include "gmock/gmock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ds;
using namespace ds::rt;
using testing::HasSubstr;

namespace {

class OutputsTest : public FormatsTest {
protected:
  /// The exit code and message for an input and outputs, by their names in the directory.
  Error check(const std::string &input, const std::vector<std::string> &outputs) const {
    std::vector<FileArgument> list;
    for (const std::string &output : outputs)
      list.push_back({"--out" + std::to_string(list.size()), path(output)});
    Status status = checkOutputs({{"--in", path(input)}}, list);
    return status ? Error{ExitCode::Ok, "", ""} : status.error();
  }
};

TEST_F(OutputsTest, FilesOfTheirOwnAreFine) {
  write("in", "x");
  write("old", "x");
  EXPECT_EQ(check("in", {"old", "new", "other"}).code, ExitCode::Ok);
  EXPECT_EQ(list(), (std::set<std::string>{"in", "old"})) << "nothing is made";
}

TEST_F(OutputsTest, AnInputIsNoOutputHoweverItIsSpelt) {
  write("in", "x");
  std::filesystem::create_symlink("in", path("link"));
  std::filesystem::create_hard_link(path("in"), path("hard"));
  std::filesystem::create_directory(path("d"));
  for (const char *output : {"in", "link", "hard", "d/../in", "./in"}) {
    Error error = check("in", {output});
    EXPECT_EQ(error.code, ExitCode::Usage) << output;
    EXPECT_THAT(error.message, HasSubstr("is the file that --in '" + path("in") + "' reads")) << output;
    EXPECT_EQ(check("link", {output}).code, ExitCode::Usage) << output;
  }
}

TEST_F(OutputsTest, TwoOutputsAreTwoFiles) {
  write("old", "x");
  std::filesystem::create_symlink("old", path("link"));
  std::filesystem::create_symlink("later", path("dangling"));
  std::filesystem::create_directory_symlink(".", path("same"));
  EXPECT_EQ(check("in", {"old", "link"}).code, ExitCode::Usage);
  EXPECT_EQ(check("in", {"new", "new"}).code, ExitCode::Usage);
  EXPECT_EQ(check("in", {"new", "same/new"}).code, ExitCode::Usage);
  EXPECT_EQ(check("in", {"later", "dangling"}).code, ExitCode::Usage);
  EXPECT_THAT(
      check("in", {"a", "new", "new"}).message,
      HasSubstr("--out2 '" + path("new") + "': is the file that --out1 '" + path("new") + "' writes"));
}

TEST_F(OutputsTest, TheRunningProgramIsNoOutput) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  Status status = checkOutputs({}, {{"-o", self}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Usage);
  EXPECT_THAT(status.error().message, HasSubstr("is the running program"));
}

TEST_F(OutputsTest, WeightsInADirectoryAreInputs) {
  std::filesystem::create_directory(path("model"));
  write("model/a.safetensors", "x");
  EXPECT_EQ(check("model", {"model/a.safetensors"}).code, ExitCode::Usage);
  EXPECT_EQ(check("model", {"model/log.jsonl"}).code, ExitCode::Ok);
  EXPECT_EQ(check("model", {"model/b.safetensors"}).code, ExitCode::Ok);
}

TEST_F(OutputsTest, WhatCannotBeWrittenIsIo) {
  write("file", "x");
  for (const char *output : {"none/a", "file/a", "", "d/"}) {
    Error error = check("in", {output});
    EXPECT_EQ(error.code, ExitCode::Io) << output;
    EXPECT_FALSE(error.hint.empty());
  }
  EXPECT_THAT(
      check("in", {"none/a"}).message,
      HasSubstr("--out0 '" + path("none/a") + "': cannot write into '" + path("none") + "': No such file"));
  EXPECT_EQ(checkOutputPath({"-o", "/proc/self/ds-outputs-test"}).error().code, ExitCode::Io);
}

TEST_F(OutputsTest, DevicesAndPipesMayBeShared) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", path("null"));
  EXPECT_EQ(check("null", {"null", "null"}).code, ExitCode::Ok);
  // Opened, it would wait for a reader; opened and closed, the reader would see the end.
  EXPECT_EQ(check("pipe", {"pipe", "pipe"}).code, ExitCode::Ok);
}

TEST_F(OutputsTest, StandardOutputIsAnOutput) {
  const int before = dup(STDOUT_FILENO), file = open(path("printed").c_str(), O_CREAT | O_WRONLY, 0600);
  dup2(file, STDOUT_FILENO);
  Error error = check("in", {"printed"});
  Status asStream = checkOutputs({}, {{"-o", "/dev/stdout"}});
  dup2(before, STDOUT_FILENO);
  close(before);
  close(file);
  EXPECT_EQ(error.code, ExitCode::Usage);
  EXPECT_THAT(error.message, HasSubstr("is the file behind /dev/stdout"));
  EXPECT_TRUE(asStream) << asStream.error().message;
}

} // namespace
