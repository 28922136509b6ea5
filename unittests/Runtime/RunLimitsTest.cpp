//===- RunLimitsTest.cpp - Runs whose files and outputs have limits -------------===//
#include "RankedRegression.h"
#include "RunFixture.h"

#include <sys/resource.h>

namespace ds::rt {
namespace {

using namespace test;
using testing::HasSubstr;

class RunLimitsTest : public RunFixture {
protected:
  RunLimitsTest() {
    write(regression());
    write(RankedRegression(2).b.program, "p2.dsx");
  }
  /// Files of ds-run may have this size.
  void limitFiles(rlim_t bytes) {
    inChild = [bytes] {
      const rlimit limit{bytes, bytes};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      ::signal(SIGXFSZ, SIG_DFL);
    };
  }
};

/// More than the kernels, which are a file in memory, and less than what is written.
constexpr rlim_t kLimit = 40000;

TEST_F(RunLimitsTest, ATraceThatIsTooLargeIsAnErrorOfTheFile) {
  ASSERT_GT(kLimit, fs::file_size(DS_TEST_KERNELS));
  limitFiles(kLimit);
  const Outcome outcome = run("--data data.safetensors --steps 400 --trace t.json");
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("'t.json': File too large"));
  EXPECT_THAT(
      outcome.err,
      HasSubstr("hint: files of this process may have 40000 bytes: raise the limit with `ulimit -f`"));
  EXPECT_FALSE(fs::exists(at("t.json")));
}

TEST_F(RunLimitsTest, WeightsThatAreTooLargeAreRefusedBeforeTheFirstStep) {
  ProgramBuilder b;
  b.program = regression();
  b.state("ballast", {20000}, {Init::Kind::Constant, 3.0, 0}, Role::Buffer);
  write(b.program);
  limitFiles(kLimit);
  const Outcome outcome = run("--data data.safetensors --steps 1 --save-weights w.safetensors");
  EXPECT_EQ(outcome.code, 6) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("cannot write 'w.safetensors': it will have 80"));
  EXPECT_THAT(outcome.err, HasSubstr("the limit is 40000\n"));
  EXPECT_THAT(outcome.err, HasSubstr("`ulimit -f`"));
  EXPECT_EQ(outcome.out.find("step 1/"), std::string::npos);
}

TEST_F(RunLimitsTest, AnOutputThatIsFullDoesNotEndTheRun) {
  limitFiles(kLimit);
  const Outcome outcome =
      run("--data data.safetensors --steps 2000 --log-jsonl log.jsonl --save-weights w.safetensors");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out.size(), kLimit);
  EXPECT_THAT(outcome.err,
              HasSubstr("'log.jsonl': File too large; training continues, lines will be missing"));
  EXPECT_TRUE(SafeTensorsFile::open(at("w.safetensors")));
}

TEST_F(RunLimitsTest, NoFileMayHaveAByte) {
  for (const char *options : {"", "--ranks 2"}) {
    limitFiles(0);
    inChild = [limit = inChild] { // what it says goes to a pipe, which has no limit
      int pipe[2];
      if (::pipe(pipe) == 0 && ::dup2(pipe[1], 1) == 1 && ::dup2(pipe[1], 2) == 2)
        limit();
    };
    std::istringstream words(
        (*options ? "p2.dsx --data data.safetensors " : "p.dsx --data data.safetensors ") +
        std::string(options));
    EXPECT_EQ(finish(start({std::istream_iterator<std::string>(words), {}})).code, 6) << options;
  }
}

/// What a job needs is estimated before it starts. An estimate that is too low shows as another failure.
TEST_F(RunLimitsTest, AnyNumberOfDescriptorsIsEnoughOrRefused) {
  int refused = 0, trained = 0;
  for (rlim_t descriptors = 8; descriptors < 48; descriptors += 2)
    for (const char *transport : {"memory", "gloo"}) {
      inChild = [descriptors] {
        const rlimit limit{descriptors, descriptors};
        ::setrlimit(RLIMIT_NOFILE, &limit);
      };
      const Outcome outcome = finish(start({"p2.dsx", "--ranks", "2", "--data", "data.safetensors", "--steps",
                                            "2", "--eval-data", "data.safetensors", "--trace", "t.json",
                                            "--log-jsonl", "log.jsonl", "--save-weights", "w.safetensors"},
                                           "", {std::string("DS_TRANSPORT=") + transport}));
      EXPECT_THAT(outcome.code, testing::AnyOf(0, 6)) << descriptors << " " << transport << "\n"
                                                      << outcome.err;
      trained += outcome.code == 0;
      refused += outcome.code == 6;
      if (outcome.code == 6) {
        EXPECT_THAT(outcome.err, HasSubstr("hint: raise the limit with `ulimit -n "));
      }
    }
  EXPECT_GT(refused, 0);
  EXPECT_GT(trained, 0);
}

/// Each file that is opened would get the number of the closed stream, and its text.
TEST_F(RunLimitsTest, ClosedOutputsPutNothingIntoOtherFiles) {
  for (const char *program : {"p.dsx", "p2.dsx --ranks 2"}) {
    const std::string command = "cd " + directory + " && " DS_RUN " " + program +
                                " --data data.safetensors --steps 50 --log-jsonl log.jsonl "
                                "--save-weights w.safetensors <&- >&- 2>&-";
    ASSERT_EQ(std::system(command.c_str()), 0) << program;
    EXPECT_EQ(log("log.jsonl").size(), 50u) << program; // each a JSON object
    EXPECT_TRUE(SafeTensorsFile::open(at("w.safetensors"))) << program;
  }
}

/// The launcher has something to say when the run has been interrupted: what rank 1 says.
TEST_F(RunLimitsTest, AReaderThatGoesAwayDoesNotEndTheRanks) {
  inChild = [] {
    int pipe[2];
    if (::pipe(pipe) == 0 && ::dup2(pipe[1], 1) == 1 && ::dup2(pipe[1], 2) == 2)
      ::close(pipe[0]);
    ::signal(SIGPIPE, SIG_DFL);
  };
  const pid_t child = start({"p2.dsx", "--ranks", "2", "--data", "data.safetensors", "--steps", "100000000",
                             "--log-jsonl", "log.jsonl", "--save-weights", "w.safetensors"});
  ASSERT_TRUE(waitUntil([&] { return hasText(at("log.jsonl"), "\"step\":1,"); }));
  ::kill(child, SIGTERM);
  EXPECT_EQ(finish(child).code, 75);
  EXPECT_TRUE(SafeTensorsFile::open(at("w.safetensors")));
}

} // namespace
} // namespace ds::rt
