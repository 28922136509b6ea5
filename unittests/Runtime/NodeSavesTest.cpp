//===- NodeSavesTest.cpp - Runs whose nodes each have a directory of checkpoints ----------===//
//
// Two ranks in different working directories: `--save s` is another directory for each, as on two nodes with
// disks of their own.
//
//===---------------------------------------------------------------------------===//

#include "RankedRegression.h"

#include "ds/Runtime/Checkpoint/Store.h"

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

class NodeSavesTest : public RunFixture {
protected:
  /// In memory where that can be had: many runs sync their files.
  NodeSavesTest() : RunFixture(::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") {
    for (const char *name : {"n0", "n1", "one"})
      fs::create_directory(at(name));
    writeProgram(true, 2, "p.dsx");
    writeProgram(true, 1, "p1.dsx");
  }
  void writeProgram(bool local, uint32_t world, const std::string &name) {
    Program program = RankedRegression(world).b.program;
    program.nodeLocalSaves = local;
    write(program, name);
  }
  pid_t startRank(uint32_t rank, const std::string &options, std::vector<std::string> environment = {}) {
    std::istringstream words(at("p.dsx") + " --timeout 20 --data " + at("data.safetensors") + " " + options);
    environment.insert(environment.end(),
                       {"DS_RANK=" + std::to_string(rank), "DS_WORLD=2", "DS_RENDEZVOUS=" + directory,
                        "DS_NONCE=job" + std::to_string(jobs), "DS_ONE_HOST=1"});
    folder = "n" + std::to_string(rank);
    return start({std::istream_iterator<std::string>(words), {}}, std::to_string(rank), environment);
  }
  /// Both ranks; what they end with, in their order. `fault` strikes rank `struck`.
  std::vector<Outcome> train(const std::string &options, const std::string &fault = "", uint32_t struck = 0) {
    ++jobs;
    std::vector<pid_t> children;
    for (const uint32_t rank : {0u, 1u})
      children.push_back(
          startRank(rank, options,
                    fault.empty() || rank != struck
                        ? std::vector<std::string>()
                        : std::vector<std::string>{"LD_PRELOAD=" DS_FAULT_SHIM, "DS_FAULT_DIR=s",
                                                   "DS_FAULT=" + fault, "DS_FAULT_COUNT=" + at("calls")}));
    Outcome first = finish(children[0], "0");
    return {first, finish(children[1], "1")};
  }
  std::vector<std::string> saves(uint32_t rank) {
    std::vector<std::string> names;
    const Result<StoreListing> listing = listCheckpoints(at("n" + std::to_string(rank) + "/s"));
    for (const StoredCheckpoint &each : listing->checkpoints)
      if (each.problem.empty())
        names.push_back(each.name);
    return names;
  }
  std::map<uint64_t, double> losses(const std::string &name) {
    std::map<uint64_t, double> all;
    for (const nlohmann::json &line : log(name))
      all[line["step"]] = line["loss"];
    return all;
  }
  void expectGood(const std::vector<Outcome> &outcomes) {
    for (const Outcome &each : outcomes)
      EXPECT_EQ(each.code, 0) << each.err;
  }
  int jobs = 0;
};

TEST_F(NodeSavesTest, EachNodeKeepsItsPartAndGoesOn) {
  expectGood(train("--steps 6 --log-jsonl whole.jsonl"));
  const std::vector<Outcome> saved = train("--steps 4 --save s --save-every 1");
  expectGood(saved);
  EXPECT_THAT(saved[0].err, HasSubstr("--save 's' is a directory of each of 2 nodes"));
  for (const uint32_t rank : {0u, 1u})
    EXPECT_THAT(saves(rank), ElementsAre("step-4", "step-3"));
  EXPECT_TRUE(fs::exists(at("n0/s/step-4/manifest-00001-of-00002.json")));
  EXPECT_FALSE(fs::exists(at("n0/s/step-4/shard-00001-model-00001-of-00001.safetensors")));
  for (const std::string from : {"auto", "s", "s/step-4"}) {
    fs::remove(at("n0/rest.jsonl"));
    for (const uint32_t rank : {0u, 1u})
      fs::remove_all(at("n" + std::to_string(rank) + "/s/step-6"));
    expectGood(train("--steps 6 --save s --log-jsonl rest.jsonl --resume " + from));
    const std::map<uint64_t, double> whole = losses("n0/whole.jsonl"), rest = losses("n0/rest.jsonl");
    ASSERT_EQ(rest.size(), 2u) << from;
    for (const auto &[step, loss] : rest)
      EXPECT_EQ(loss, whole.at(step)) << from << ", step " << step;
  }
}

/// One directory for all is an ordinary checkpoint, whatever the program allows.
TEST_F(NodeSavesTest, WhatAllSeeIsOneCheckpoint) {
  fs::create_directory(at("s"));
  expectGood(train("--steps 2 --save ../s"));
  EXPECT_TRUE(fs::exists(at("s/step-2/manifest.json")));
  EXPECT_FALSE(fs::exists(at("n0/s")));
}

/// Ranks on other meshes need all parts, and are told which bytes are where.
TEST_F(NodeSavesTest, AnotherMeshNeedsAllParts) {
  expectGood(train("--steps 2 --save s"));
  folder = "one";
  const std::string words = at("p1.dsx") + " --steps 3 --data " + at("data.safetensors") + " --resume ";
  const auto runAlone = [&](const std::string &from) {
    std::istringstream list(words + from);
    return finish(start({std::istream_iterator<std::string>(list), {}}));
  };
  const Outcome refused = runAlone("../n0/s/step-2");
  EXPECT_EQ(refused.code, 3) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("36 bytes that this rank needs of 'w' are of the part of node 2 of 2"));
  for (const char *node : {"n0", "n1"})
    fs::copy(at(node) + "/s/step-2", at("one/step-2"), fs::copy_options::recursive);
  const Outcome outcome = runAlone("step-2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(NodeSavesTest, ALostDirectoryIsToldAndNothingBegunAnew) {
  for (const uint32_t lost : {0u, 1u})
    for (const std::string from : {"auto", "s"}) {
      for (const uint32_t rank : {0u, 1u})
        fs::remove_all(at("n" + std::to_string(rank) + "/s"));
      expectGood(train("--steps 2 --save s"));
      fs::remove_all(at("n" + std::to_string(lost) + "/s"));
      const std::vector<Outcome> outcomes = train("--steps 4 --save s --resume " + from);
      const std::string kept = std::to_string(1 - lost), gone = std::to_string(lost);
      EXPECT_TRUE(outcomes[0].code == 5 || outcomes[1].code == 5);
      for (const Outcome &each : outcomes) { // whoever is later hears of the other's end
        EXPECT_TRUE(each.code == 5 || each.code == 7) << each.code;
        EXPECT_THAT(each.err, HasSubstr("no checkpoint in 's' is there on all nodes: rank " + kept));
        EXPECT_THAT(each.err, HasSubstr("has a part of 'step-2', rank " + gone));
      }
    }
}

/// Parts that have the same name but are of two saves do not go together.
TEST_F(NodeSavesTest, PartsOfTwoSavesAreNotMixed) {
  expectGood(train("--steps 2 --save s --save-every 1"));
  fs::rename(at("n1/s/step-2"), at("n1/kept"));
  fs::remove_all(at("n0/s/step-2"));
  expectGood(train("--steps 2 --save s --resume auto"));
  fs::remove_all(at("n1/s/step-2"));
  fs::rename(at("n1/kept"), at("n1/s/step-2"));
  const std::vector<Outcome> outcomes = train("--steps 3 --save s --resume auto");
  expectGood(outcomes);
  EXPECT_THAT(outcomes[0].err, HasSubstr("passed over 's/step-2': rank 1"));
  EXPECT_THAT(outcomes[0].err, HasSubstr("has one of another save there"));
  EXPECT_THAT(outcomes[0].err, HasSubstr("resumes from 's/step-1'"));
}

/// What all nodes have of later steps is set aside on each; the run's own parts are not removed for it.
TEST_F(NodeSavesTest, WhatARunGoesBackBeforeIsSetAside) {
  expectGood(train("--steps 8 --save s --save-every 2 --keep 9"));
  const std::vector<Outcome> back = train("--steps 5 --resume s/step-2 --save s --save-every 1");
  expectGood(back);
  for (const uint32_t rank : {0u, 1u}) {
    EXPECT_THAT(back[rank].err, HasSubstr("'s/step-8' is not of the way that the run takes now"));
    EXPECT_THAT(saves(rank), ElementsAre("step-5", "step-4"));
    const Result<StoreListing> listing = listCheckpoints(at("n" + std::to_string(rank) + "/s"));
    EXPECT_THAT(listing->aside,
                ElementsAre(testing::StartsWith("step-4.aside-"), testing::StartsWith("step-6.aside-"),
                            testing::StartsWith("step-8.aside-")));
  }
  const std::vector<Outcome> next = train("--steps 6 --save s --resume auto");
  expectGood(next);
  EXPECT_THAT(next[0].err, HasSubstr("resumes from 's/step-5'"));
}

/// A directory of each node is refused by the rank that leads there.
TEST_F(NodeSavesTest, ANewRunIsRefusedWhereAnotherHasSaved) {
  expectGood(train("--steps 2 --save s"));
  fs::remove_all(at("n0/s"));
  const std::vector<Outcome> outcomes = train("--steps 2 --save s");
  EXPECT_EQ(outcomes[1].code, 3) << outcomes[1].err;
  EXPECT_THAT(outcomes[1].err,
              HasSubstr("--save 's': there are checkpoints of an earlier run, the last one of step 2"));
  EXPECT_EQ(outcomes[0].code, 7) << outcomes[0].err;
}

/// Killed at any call of either node, between the two renames too, the run goes on from what both have.
TEST_F(NodeSavesTest, AKillAtAnyInstantLeavesASaveOfAllNodes) {
  expectGood(train("--steps 4 --log-jsonl whole.jsonl"));
  const std::map<uint64_t, double> whole = losses("n0/whole.jsonl");
  const std::string options = "--save s --save-every 1 --save-mode sync --resume auto --steps 4";
  int uneven = 0;
  for (const uint32_t struck : {0u, 1u}) {
    for (uint64_t call = 1, calls = 1; call <= calls; call += std::getenv("DS_ALL_FAULTS") ? 1 : 5) {
      for (const uint32_t rank : {0u, 1u})
        fs::remove_all(at("n" + std::to_string(rank) + "/s"));
      fs::remove(at("n0/rest.jsonl"));
      expectGood(train("--save s --steps 1"));
      fs::remove(at("calls"));
      train(options, call == 1 ? "none:0" : "kill:" + std::to_string(call), struck);
      if (call == 1)
        std::ifstream(at("calls")) >> calls;
      uneven += saves(0) != saves(1);
      const std::vector<Outcome> rest = train(options + " --log-jsonl rest.jsonl");
      for (const Outcome &each : rest)
        ASSERT_EQ(each.code, 0) << "call " << call << " of rank " << struck << ": " << each.err;
      for (const auto &[step, loss] : losses("n0/rest.jsonl"))
        ASSERT_EQ(loss, whole.at(step)) << "call " << call << " of rank " << struck << ", step " << step;
      for (const uint32_t rank : {0u, 1u})
        ASSERT_EQ(saves(rank).front(), "step-4") << "call " << call << " of rank " << struck;
    }
  }
  EXPECT_GT(uneven, 0) << "no kill came between the two renames";
}

/// A save that one node cannot finish is none: the other takes its part back.
TEST_F(NodeSavesTest, AFailedNodeFailsTheSave) {
  fs::create_directory(at("n1/s"));
  std::ofstream(at("n1/s/step-1")) << "a file where the name is wanted";
  const std::vector<Outcome> outcomes = train("--steps 2 --save s --save-every 1 --save-mode sync");
  expectGood(outcomes);
  EXPECT_THAT(outcomes[0].err, HasSubstr("the checkpoint of step 1 could not be saved: rank 1: "));
  EXPECT_THAT(saves(0), ElementsAre("step-2"));
  EXPECT_THAT(saves(1), ElementsAre("step-2"));
  EXPECT_TRUE(listCheckpoints(at("n0/s"))->leftovers.empty());
}

} // namespace
