//===- ImportClientTest.cpp - However the import process ends, the caller lives -===//
//
// Stands a shell script in the importer's place: what it does is what a broken or conquered importer could
// do.
//
//===---------------------------------------------------------------------------===//

#include "ds/Import/ImportClient.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ds;
namespace fs = std::filesystem;

namespace {

class ImportClientTest : public testing::Test {
protected:
  void SetUp() override {
    umask(022);
    folder = testing::TempDir() + "import-client-" + std::to_string(getpid());
    fs::create_directories(folder);
    request.path = folder + "/model.pt";
    request.weightsDirectory = folder;
    request.importerPath = folder + "/importer";
    request.inputs = {"x=4xf32"};
    std::ofstream(request.path) << "archive";
  }
  void TearDown() override { fs::remove_all(folder); }

  Result<ImportedModel> run(const std::string &script) {
    std::ofstream(request.importerPath) << "#!/bin/sh\n" << script << "\n";
    chmod(request.importerPath.c_str(), 0755);
    return importTorchScript(request);
  }

  /// The error of a run that must fail, and leave nothing behind.
  Error failure(const std::string &script) {
    auto result = run(script);
    size_t files = 0;
    for ([[maybe_unused]] const auto &entry : fs::directory_iterator(folder))
      ++files;
    EXPECT_EQ(files, 2u) << "only the model and the importer may be there";
    if (result) {
      ADD_FAILURE() << "the import succeeded";
      return {};
    }
    return result.error();
  }

  std::string folder;
  ImportRequest request;
};

TEST_F(ImportClientTest, HandsBackTextAndWeights) {
  auto result = run("cat <&3 >&4; printf weights >&6; printf 'notice 2\\nhidone 0\\n' >&5");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->mlirText, "archive");
  EXPECT_EQ(result->notices, std::vector<std::string>{"hi"});
  EXPECT_EQ(result->weights.keep(folder + "/kept"), 0);
  std::ifstream weights(folder + "/kept");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(weights), {}), "weights");
  struct stat info = {};
  stat((folder + "/kept").c_str(), &info);
  EXPECT_EQ(info.st_mode & 0777, 0644u); // As any file that this user makes.
}

TEST_F(ImportClientTest, PassesItsOptions) {
  request.loss = "mse";
  auto result = run("echo \"$@\" >&4; printf 'done 0\\n' >&5");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_NE(result->mlirText.find("--weights-fd=6 --input=x=4xf32 --loss=mse"), std::string::npos)
      << result->mlirText;
  request.wantWeights = false;
  auto second = run("echo \"$@\" >&4; printf 'done 0\\n' >&5");
  ASSERT_TRUE(second);
  EXPECT_EQ(second->weights.fd(), -1);
  EXPECT_EQ(second->mlirText.find("--weights-fd"), std::string::npos);
  EXPECT_EQ(second->mlirText.find("--allow-unsandboxed"), std::string::npos);
  request.allowUnsandboxed = true;
  request.memoryBytes = 77;
  request.seconds = 5;
  auto third = run("echo \"$@\" >&4; printf 'done 0\\n' >&5");
  ASSERT_TRUE(third);
  EXPECT_NE(third->mlirText.find("--import-memory=77 --import-seconds=5 --allow-unsandboxed"),
            std::string::npos)
      << third->mlirText;
}

TEST_F(ImportClientTest, TellsTheReportedError) {
  Error error = failure("printf 'code 1\\n3hint 3\\ntryerror 5\\nwrong' >&5; exit 3");
  EXPECT_EQ(error.code, ExitCode::Invalid);
  EXPECT_EQ(error.message, request.path + ": wrong");
  EXPECT_EQ(error.hint, "try");
}

TEST_F(ImportClientTest, SurvivesASignal) {
  Error error = failure("echo 'stack smashing' >&2; kill -SEGV $$");
  EXPECT_EQ(error.code, ExitCode::Corrupt);
  EXPECT_NE(error.message.find("died of signal 11"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("stack smashing"), std::string::npos) << error.message;
}

TEST_F(ImportClientTest, SurvivesAKillForMemory) {
  Error error = failure("kill -KILL $$");
  EXPECT_EQ(error.code, ExitCode::Invalid);
  EXPECT_NE(error.message.find("memory runs out"), std::string::npos) << error.message;
  EXPECT_EQ(error.hint.find("damaged"), std::string::npos) << error.hint;
}

TEST_F(ImportClientTest, TellsWhichLimitWasMet) {
  request.memoryBytes = 5 << 20;
  request.seconds = 9;
  Error error = failure("kill -XCPU $$");
  EXPECT_EQ(error.code, ExitCode::Invalid);
  EXPECT_NE(error.message.find("its limit of 9 seconds"), std::string::npos) << error.message;
  error = failure("echo \"terminate called after throwing an instance of 'std::bad_alloc'\"; kill -ABRT $$");
  EXPECT_EQ(error.code, ExitCode::Invalid);
  EXPECT_NE(error.message.find("its limit of 5 MiB"), std::string::npos) << error.message;
  error = failure("kill -XFSZ $$");
  EXPECT_NE(error.message.find("for one file"), std::string::npos) << error.message;
  error = failure("kill -SYS $$");
  EXPECT_EQ(error.code, ExitCode::Invalid);
  EXPECT_NE(error.message.find("system call"), std::string::npos) << error.message;
}

TEST_F(ImportClientTest, TellsNoStack) {
  Error error =
      failure("printf 'oh dear\\nException raised from f at g.cpp:1\\nframe #0: f + 0x1\\n'; kill -ABRT $$");
  EXPECT_NE(error.message.find("its last words: oh dear"), std::string::npos) << error.message;
  EXPECT_EQ(error.message.find("frame #"), std::string::npos) << error.message;
}

TEST_F(ImportClientTest, TellsMissingLibraries) {
  Error error = failure("echo 'error while loading shared libraries: libtorch.so: cannot open'; exit 127");
  EXPECT_EQ(error.code, ExitCode::Io);
  EXPECT_NE(error.message.find("libtorch.so"), std::string::npos) << error.message;
}

TEST_F(ImportClientTest, PassesOnThatTheMachineCannotConfine) {
  Error error = failure("printf 'code 1\\n9hint 0\\nerror 2\\nno' >&5; exit 9");
  EXPECT_EQ(error.code, ExitCode::Device);
}

TEST_F(ImportClientTest, StopsWhatDoesNotEnd) {
  request.waitSeconds = 1;
  Error error = failure("while :; do sleep 0.05; done");
  EXPECT_EQ(error.code, ExitCode::Invalid);
  EXPECT_NE(error.message.find("stopped after 1 seconds"), std::string::npos) << error.message;
}

TEST_F(ImportClientTest, NeedsACompleteReport) {
  Error error = failure("echo text >&4; exit 0");
  EXPECT_EQ(error.code, ExitCode::Internal);
  EXPECT_NE(error.message.find("no report"), std::string::npos) << error.message;
}

TEST_F(ImportClientTest, RefusesLimitsUnderWhichItWouldHang) {
  rlimit before;
  getrlimit(RLIMIT_STACK, &before);
  rlimit tiny = {32 << 10, before.rlim_max};
  setrlimit(RLIMIT_STACK, &tiny);
  auto result = run("printf 'done 0\\n' >&5");
  setrlimit(RLIMIT_STACK, &before);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ExitCode::DoesNotFit);
  EXPECT_NE(result.error().message.find("needs 131072 bytes of stack, but ulimit -s allows 32768"),
            std::string::npos)
      << result.error().message;
}

TEST_F(ImportClientTest, TellsAMissingModelAndImporter) {
  request.importerPath = folder + "/none";
  auto result = importTorchScript(request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ExitCode::Io);
  EXPECT_NE(result.error().message.find("cannot start"), std::string::npos) << result.error().message;
  request.path = folder + "/nothing.pt";
  result = importTorchScript(request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ExitCode::Io);
  request.path = folder;
  EXPECT_FALSE(importTorchScript(request));
}

TEST_F(ImportClientTest, TellsAWeightsDirectoryThatCannotBeWritten) {
  request.weightsDirectory = folder + "/none";
  auto result = run("printf 'done 0\\n' >&5");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ExitCode::Io);
}

} // namespace
