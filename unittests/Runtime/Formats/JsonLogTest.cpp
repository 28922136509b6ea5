//===- JsonLogTest.cpp - Lines for machines, and what may go wrong -------------===//

#include "ds/Runtime/Formats/JsonLog.h"
#include "TestFiles.h"

#include "gmock/gmock.h"

#include <cmath>
#include <csignal>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace ds;
using namespace ds::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

StepRecord fullRecord() {
  StepRecord record;
  record.step = 1;
  record.loss = 2.5;
  record.gradNorm = 1;
  record.lr = 6e-4;
  record.lossScale = 65536;
  record.skipped = false;
  record.stepSeconds = 0.125;
  record.samplesPerSecond = 32;
  record.peakBytes = ArenaBytes{100, 20, 3};
  return record;
}

class JsonLogTest : public FormatsTest {
protected:
  JsonLog::Warning warn() {
    return [this](std::string text) { warnings.push_back(std::move(text)); };
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    std::ifstream in(path("log"));
    for (std::string line; std::getline(in, line);)
      out.push_back(line);
    return out;
  }
  static StepRecord step(uint64_t number) {
    StepRecord record;
    record.step = number;
    return record;
  }
  std::vector<std::string> warnings;
};

TEST_F(JsonLogTest, SaysWhetherAStepWasAGraph) {
  StepRecord record = step(2);
  record.graph = true;
  EXPECT_EQ(toJson(record), R"({"step":2,"graph":true})");
  record.graph = false;
  record.graphReason = "a \"kernel\"";
  EXPECT_EQ(toJson(record), R"({"step":2,"graph":false,"graph_reason":"a \"kernel\""})");
}

TEST_F(JsonLogTest, SaysWhatCameBeforeTheFirstStep) {
  StepRecord record = step(1);
  record.startupSeconds = {{"device", 0.5}, {"states", 2}};
  EXPECT_EQ(toJson(record), R"({"step":1,"startup_seconds":{"device":0.5,"states":2.0}})");
}

TEST_F(JsonLogTest, KeysOfTheContract) {
  EXPECT_EQ(
      toJson(fullRecord()),
      R"({"step":1,"loss":2.5,"grad_norm":1.0,"lr":6e-04,"loss_scale":65536.0,"skipped":false,)"
      R"("step_seconds":0.125,"samples_per_second":32.0,"peak_bytes":{"device":100,"host":20,"nvme":3}})");
}

TEST_F(JsonLogTest, SaysWhatIsSentByKindAndAxes) {
  StepRecord record;
  record.commBytes = 9;
  record.sentBytes = SentBytes{{"all_gather", {{"dp.local", 64}, {"dp.node", 8}}}, {"send", {{"pp", 3}}}};
  EXPECT_THAT(toJson(record), HasSubstr(R"("comm_bytes":9,"communication_bytes_by_axes":)"
                                        R"({"all_gather":{"dp.local":64,"dp.node":8},"send":{"pp":3}})"));
  record.sentBytes.emplace();
  EXPECT_THAT(toJson(record), HasSubstr(R"("communication_bytes_by_axes":{}})"));
}

TEST_F(JsonLogTest, SaysWhenAndAfterHowMuch) {
  StepRecord record = step(2);
  record.time = 1795700000.25;
  record.samples = 16;
  record.tokens = UINT64_MAX;
  const auto json = nlohmann::json::parse(toJson(record));
  EXPECT_EQ(json["time"].get<double>(), 1795700000.25);
  EXPECT_EQ(json["samples"].get<uint64_t>(), 16u);
  EXPECT_EQ(json["tokens"].get<uint64_t>(), UINT64_MAX);
}

TEST_F(JsonLogTest, AbsentValuesHaveNoKey) {
  EXPECT_EQ(toJson(step(7)), R"({"step":7})");
  StepRecord record = step(8);
  record.evaluations = {{"", 0.5}};
  EXPECT_EQ(toJson(record), R"({"step":8,"eval_loss":0.5})");
  record.skipped = true;
  record.targets = 0;
  EXPECT_EQ(toJson(record), R"({"step":8,"skipped":true,"targets":0,"eval_loss":0.5})");
}

TEST_F(JsonLogTest, NonFiniteValuesAreNullAndNamed) {
  StepRecord record = step(1);
  record.loss = NAN;
  record.gradNorm = INFINITY;
  record.lr = -INFINITY;
  record.lossScale = 1;
  auto json = nlohmann::json::parse(toJson(record)); // which plain "nan" would not pass
  EXPECT_TRUE(json["loss"].is_null());
  EXPECT_TRUE(json["grad_norm"].is_null());
  EXPECT_EQ(json["loss_scale"], 1.0);
  EXPECT_EQ(json["non_finite"], (nlohmann::json{{"loss", "nan"}, {"grad_norm", "inf"}, {"lr", "-inf"}}));
}

/// The first one is eval_loss too, which is all that readers of one evaluation know.
TEST_F(JsonLogTest, EvaluationsHaveTheirNames) {
  StepRecord record = step(3);
  record.evaluations = {{"valid", 0.5}, {"co\"de", NAN}};
  EXPECT_EQ(toJson(record), R"({"step":3,"eval_loss":0.5,"eval":{"valid":0.5,"co\"de":null},)"
                            R"("non_finite":{"eval.co\"de":"nan"}})");
}

TEST_F(JsonLogTest, NumbersReadBackExactly) {
  StepRecord record = step(uint64_t(1) << 40);
  record.peakBytes = ArenaBytes{UINT64_MAX, 0, 0};
  for (double value : {0.1, 1e-300, 1e300, 2.2250738585072014e-308, double(0.1f), 0.0, -0.0, 3.0}) {
    record.loss = value;
    auto json = nlohmann::json::parse(toJson(record));
    EXPECT_EQ(json["loss"].get<double>(), value);
    EXPECT_TRUE(json["loss"].is_number_float());
    EXPECT_EQ(json["step"].get<uint64_t>(), record.step);
    EXPECT_EQ(json["peak_bytes"]["device"].get<uint64_t>(), UINT64_MAX);
  }
}

TEST_F(JsonLogTest, LineIsThereWhenWriteReturns) {
  auto log = JsonLog::open(path("log"), false, warn());
  ASSERT_TRUE(log);
  log->write(step(1));
  EXPECT_THAT(lines(), ElementsAre(R"({"step":1})"));
  log->write(step(2));
  EXPECT_EQ(read(path("log")), "{\"step\":1}\n{\"step\":2}\n");
}

TEST_F(JsonLogTest, NewRunStartsEmptyResumedRunAppends) {
  write("log", "{\"step\":1}\n");
  JsonLog::open(path("log"), true, warn())->write(step(2));
  EXPECT_EQ(lines().size(), 2u);
  JsonLog::open(path("log"), false, warn())->write(step(1));
  EXPECT_THAT(lines(), ElementsAre(R"({"step":1})"));
}

TEST_F(JsonLogTest, EarlierLogsAreKeptUnderNumbers) {
  write("log.jsonl", "first\n");
  JsonLog::open(path("log.jsonl"), false, warn())->write(step(2));
  EXPECT_EQ(read(path("log.1.jsonl")), "first\n");
  EXPECT_EQ(read(path("log.jsonl")), "{\"step\":2}\n");
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0], "the earlier log '" + path("log.jsonl") + "' is now '" + path("log.1.jsonl") + "'");
  JsonLog::open(path("log.jsonl"), false, warn())->write(step(3));
  EXPECT_EQ(read(path("log.1.jsonl")), "first\n");
  EXPECT_EQ(read(path("log.2.jsonl")), "{\"step\":2}\n");
  write(".hidden", "x");
  ASSERT_TRUE(JsonLog::open(path(".hidden"), false, warn()));
  EXPECT_EQ(read(path(".hidden.1")), "x");
}

TEST_F(JsonLogTest, EmptyAndSpecialFilesAreNotMoved) {
  write("log", "");
  ASSERT_TRUE(JsonLog::open(path("log"), false, warn()));
  ASSERT_TRUE(JsonLog::open("/dev/null", false, warn()));
  EXPECT_EQ(list(), std::set<std::string>{"log"});
  EXPECT_TRUE(warnings.empty());
}

TEST_F(JsonLogTest, BehindALinkTheFileIsMoved) {
  std::filesystem::create_directory(path("d"));
  write("d/real.jsonl", "first\n");
  std::filesystem::create_symlink("d/real.jsonl", path("log"));
  JsonLog::open(path("log"), false, warn())->write(step(1));
  EXPECT_TRUE(std::filesystem::is_symlink(path("log")));
  EXPECT_EQ(read(path("d/real.1.jsonl")), "first\n");
  EXPECT_EQ(read(path("d/real.jsonl")), "{\"step\":1}\n");
}

TEST_F(JsonLogTest, ResumedRunDropsATornLine) {
  write("log", "{\"step\":1}\n{\"step\":2,\"lo");
  JsonLog::open(path("log"), true, warn())->write(step(2));
  EXPECT_THAT(lines(), ElementsAre(R"({"step":1})", R"({"step":2})"));
  write("log", "{\"st");
  JsonLog::open(path("log"), true, warn())->write(step(1));
  EXPECT_THAT(lines(), ElementsAre(R"({"step":1})"));
  write("log", std::string(20000, 'x')); // not ours: kept, and our line stands alone
  JsonLog::open(path("log"), true, warn())->write(step(1));
  ASSERT_EQ(lines().size(), 2u);
  EXPECT_EQ(lines()[1], R"({"step":1})");
}

TEST_F(JsonLogTest, LaterStepsAreCutOff) {
  const std::string first = "not ours\n{\"step\":1}\n{\"step\":2,\"loss\":1.0}\n";
  for (const std::string rest :
       {"{\"step\":3}\n{\"step\":11}\n", "{\"step\":3}\n{\"step\":2}\n", "{\"step\":10}\n{\"st"}) {
    write("log", first + rest);
    const Result<uint64_t> dropped = dropLaterSteps(path("log"), 2);
    ASSERT_TRUE(dropped);
    EXPECT_EQ(*dropped, 2u);
    EXPECT_EQ(read(path("log")), first) << "from the first later step on, whatever follows";
  }
  EXPECT_EQ(*dropLaterSteps(path("log"), 2), 0u);
  write("log", first + "{\"st"); // what is cut off in the middle is the opened log's to drop
  EXPECT_EQ(*dropLaterSteps(path("log"), 2), 0u);
  EXPECT_EQ(read(path("log")), first + "{\"st");
  EXPECT_EQ(*dropLaterSteps(path("log"), 0), 3u);
  EXPECT_EQ(read(path("log")), "not ours\n");
}

TEST_F(JsonLogTest, WhatIsNoLogIsNotCutOff) {
  EXPECT_EQ(*dropLaterSteps(path("none"), 0), 0u);
  EXPECT_EQ(*dropLaterSteps("/dev/null", 0), 0u);
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(*dropLaterSteps(path("pipe"), 0), 0u) << "which opening would wait for a writer";
}

TEST_F(JsonLogTest, UnwritablePathIsRefusedAtTheStart) {
  auto log = JsonLog::open(path("missing/log"), false, warn());
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().code, ExitCode::Io);
  EXPECT_THAT(log.error().message, HasSubstr("missing/log"));
}

TEST_F(JsonLogTest, FullDiskWarnsOnce) {
  auto log = JsonLog::open("/dev/full", false, warn());
  ASSERT_TRUE(log);
  for (uint64_t i = 1; i < 5; ++i)
    log->write(step(i));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("No space left on device; training continues"));
}

TEST_F(JsonLogTest, LineThatDoesNotFitIsTakenBack) {
  auto log = JsonLog::open(path("log"), false, warn());
  ASSERT_TRUE(log);
  log->write(step(1));
  rlimit previous;
  getrlimit(RLIMIT_FSIZE, &previous);
  rlimit limit = {15, previous.rlim_max}; // 11 bytes are written, 4 are left
  signal(SIGXFSZ, SIG_DFL);               // would kill this process
  setrlimit(RLIMIT_FSIZE, &limit);
  log->write(step(2));
  log->write(step(3));
  setrlimit(RLIMIT_FSIZE, &previous);
  EXPECT_EQ(read(path("log")), "{\"step\":1}\n");
  EXPECT_EQ(warnings.size(), 1u);
  log->write(step(4)); // there is room again
  EXPECT_EQ(read(path("log")), "{\"step\":1}\n{\"step\":4}\n");
}

TEST_F(JsonLogTest, ReaderThatGoesAwayDoesNotKillTraining) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  auto log = JsonLog::open(path("pipe"), true, warn());
  ASSERT_TRUE(log);
  log->write(step(1));
  char buffer[64];
  EXPECT_EQ(::read(reader, buffer, sizeof(buffer)), 11);
  close(reader);
  log->write(step(2)); // would be killed by SIGPIPE
  log->write(step(3));
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_THAT(warnings[0], HasSubstr("Broken pipe; training continues without it"));
}
} // namespace
