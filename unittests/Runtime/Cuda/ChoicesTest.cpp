//===- ChoicesTest.cpp - Choices that ranks make together, and the file that keeps them ----===//
#include "Cuda/Binding/Choices.h"

#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Support/Processors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

namespace ds::rt::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Value = AlgorithmCache::Value;

/// Where ranks that are threads of this process meet.
struct Meeting {
  explicit Meeting(uint32_t world) : words(world) {}
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> words, last;
  uint32_t come = 0;
  uint64_t round = 0;
  bool failed = false;
};

class ThreadGroup final : public RankGroup {
public:
  ThreadGroup(Meeting &meeting, uint32_t rank) : meeting(meeting), self(rank) {}
  uint32_t rank() const override { return self; }
  uint32_t world() const override { return static_cast<uint32_t>(meeting.words.size()); }
  const std::string &host(uint32_t) const override { return name; }
  std::string transport() const override { return "none"; }
  Communicator &channel(uint32_t) override { std::abort(); }
  Communicator &subset(uint32_t, const std::vector<uint32_t> &) override { std::abort(); }
  Status addChannels(uint32_t) override { return {}; }
  Result<std::vector<std::string>> exchange(const std::string &mine, const char *) override {
    std::unique_lock lock(meeting.mutex);
    meeting.words[self] = mine;
    const uint64_t round = meeting.round;
    if (++meeting.come == world()) {
      meeting.last = meeting.words;
      meeting.come = 0;
      ++meeting.round;
      meeting.changed.notify_all();
    }
    const bool ended = meeting.changed.wait_for(lock, std::chrono::seconds(10),
                                                [&] { return meeting.round != round || meeting.failed; });
    if (!ended || meeting.round == round)
      return Error{ExitCode::Peer, ended ? "a rank has failed" : "a rank did not come", ""};
    return meeting.last;
  }
  void abort(const std::string &) override {
    const std::lock_guard lock(meeting.mutex);
    meeting.failed = true;
    meeting.changed.notify_all();
  }
  std::string failure() override { return ""; }
  Status finish() override { return {}; }

private:
  Meeting &meeting;
  uint32_t self;
  std::string name = "here";
};

/// What one rank does: problems, what it would choose for each, and what became of it.
struct Member {
  std::vector<std::string> problems;
  uint64_t choice = 0;   ///< 0: none runs
  uint64_t refuses = 99; ///< this value cannot be taken
  std::vector<std::string> chosen = {}, tried = {}, prepared = {};
  std::map<std::string, uint64_t> taken = {};
  Status status = {};

  Choice describe(const std::string &key) {
    return {key,
            "problem " + key,
            [this, key](bool) -> Result<Value> {
              chosen.push_back(key);
              return choice == 0 ? Result<Value>(Error{ExitCode::Device, "none runs", ""}) : Value{choice};
            },
            [this, key](const Value &value) -> Status {
              if (value.size() != 1 || value[0] == refuses)
                return Error{ExitCode::Device, "not here", ""};
              taken[key] = value[0];
              return {};
            },
            [this, key]() -> Status {
              tried.push_back(key);
              return {};
            },
            [](const Error &why) -> Status { return why; }};
  }
};

class ChoicesTest : public testing::Test {
protected:
  ChoicesTest() {
    char pattern[] = "/tmp/ds-choices-test-XXXXXX";
    folder = ::mkdtemp(pattern);
    ::setenv("DS_CACHE_DIR", folder.c_str(), 1);
  }
  ~ChoicesTest() override { std::filesystem::remove_all(folder); }

  /// All ranks at once; one that fails says so to the others, as a run does.
  static void settle(std::vector<Member> &members) {
    Meeting meeting(static_cast<uint32_t>(members.size()));
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < members.size(); ++rank)
      threads.emplace_back([&meeting, &member = members[rank], rank] {
        ThreadGroup group(meeting, rank);
        AlgorithmCache cache = AlgorithmCache::open();
        Choices choices;
        for (const std::string &key : member.problems)
          choices.add(member.describe(key));
        member.status = choices.settle(&group, cache);
        if (!member.status)
          group.abort("");
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  std::string file() const { return folder + "/choices"; }
  std::string folder;
};

TEST_F(ChoicesTest, Rank0ChoosesForAll) {
  std::vector<Member> members = {{{"a", "b", "a"}, 1}, {{"a", "b", "a"}, 2}, {{"a", "b", "a"}, 3}};
  settle(members);
  for (const Member &member : members) {
    ASSERT_TRUE(member.status) << member.status.error().message;
    EXPECT_EQ(member.taken, (std::map<std::string, uint64_t>{{"a", 1}, {"b", 1}}));
  }
  EXPECT_THAT(members[0].chosen, ElementsAre("a", "b")) << "once for each";
  EXPECT_THAT(members[0].tried, ElementsAre());
  EXPECT_THAT(members[1].chosen, ElementsAre());
  EXPECT_THAT(members[1].tried, ElementsAre("a", "b"));
}

TEST_F(ChoicesTest, LaterRunsTakeTheSame) {
  std::vector<Member> members = {{{"a"}, 1}, {{"a"}, 2}};
  settle(members);
  members = {{{"a"}, 7}, {{"a"}, 8}};
  settle(members);
  EXPECT_THAT(members[0].chosen, ElementsAre());
  EXPECT_EQ(members[0].taken["a"], 1u);
  EXPECT_EQ(members[1].taken["a"], 1u);
}

/// Once for each problem, on a thread that has entered the context, before any is taken.
TEST_F(ChoicesTest, WhatIsKeptIsPrepared) {
  static thread_local bool entered = false;
  std::mutex mutex;
  std::vector<std::pair<std::string, Value>> prepared;
  const auto settleAgain = [&](Member &member, const std::vector<std::string> &problems) {
    AlgorithmCache cache = AlgorithmCache::open();
    Choices choices;
    for (const std::string &key : problems) {
      Choice choice = member.describe(key);
      choice.prepare = [&, key](const Value &value) {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(entered);
        EXPECT_TRUE(member.taken.empty());
        prepared.emplace_back(key, value);
      };
      choices.add(choice);
    }
    ASSERT_TRUE(choices.settle(nullptr, cache, [] { entered = true; }));
  };
  Member first{{}, 1}, second{{}, 2};
  settleAgain(first, {"a", "b"});
  EXPECT_TRUE(prepared.empty()) << "nothing was kept";
  settleAgain(second, {"a", "b", "c", "a"});
  EXPECT_THAT(prepared, testing::UnorderedElementsAre(std::pair(std::string("a"), Value{1}),
                                                      std::pair(std::string("b"), Value{1})));
  EXPECT_EQ(second.taken, (std::map<std::string, uint64_t>{{"a", 1}, {"b", 1}, {"c", 2}}));
}

/// Every part is done once before its problem is chosen, of no more problems at once than there are
/// processors, and of none that is kept; choices come in the order in which they always do.
TEST_F(ChoicesTest, WhatIsChosenIsDoneAhead) {
  std::mutex mutex;
  std::map<std::string, int> done;
  const auto settleWith = [&](Member &member, const std::vector<std::string> &problems) {
    AlgorithmCache cache = AlgorithmCache::open();
    Choices choices;
    for (const std::string &key : problems) {
      Choice choice = member.describe(key);
      choice.choose = [&, key](bool byTime) -> Result<Value> {
        EXPECT_TRUE(byTime);
        EXPECT_EQ(done[key], 3);
        int open = 0;
        for (const auto &[other, parts] : done)
          open += parts > 0 &&
                  std::find(member.chosen.begin(), member.chosen.end(), other) == member.chosen.end();
        EXPECT_LE(open, static_cast<int>(processorsLeft(processorShare())));
        member.chosen.push_back(key);
        return Value{member.choice};
      };
      choice.ahead = [&, key](bool) {
        const auto part = [&, key] {
          const std::lock_guard lock(mutex);
          ++done[key];
        };
        return std::vector<std::function<void()>>{part, part, part};
      };
      choices.add(choice);
    }
    ASSERT_TRUE(choices.settle(nullptr, cache));
  };
  std::vector<std::string> problems;
  for (char name = 'a'; name <= 'z'; ++name)
    problems.emplace_back(1, name);
  Member first{{}, 1}, second{{}, 2};
  settleWith(first, problems);
  EXPECT_EQ(first.chosen, problems);
  problems.push_back("new");
  done.clear();
  settleWith(second, problems);
  EXPECT_THAT(second.chosen, ElementsAre("new"));
  EXPECT_EQ(done, (std::map<std::string, int>{{"new", 3}}));
}

TEST_F(ChoicesTest, AProblemIsTheFirstRanksThatHasIt) {
  std::vector<Member> members = {{{"a", "b"}, 1}, {{"b", "c", "d", "e"}, 2}, {{"f"}, 3}, {{}, 4}};
  settle(members);
  for (const Member &member : members)
    ASSERT_TRUE(member.status) << member.status.error().message;
  EXPECT_EQ(members[1].taken, (std::map<std::string, uint64_t>{{"b", 1}, {"c", 2}, {"d", 2}, {"e", 2}}));
  EXPECT_THAT(members[1].chosen, ElementsAre("c", "d", "e"));
  EXPECT_EQ(members[2].taken, (std::map<std::string, uint64_t>{{"f", 3}}));
}

TEST_F(ChoicesTest, EveryRankLearnsThatNothingRuns) {
  std::vector<Member> members = {{{"a"}, 0}, {{"a"}, 2}};
  settle(members);
  for (const Member &member : members) {
    ASSERT_FALSE(member.status);
    EXPECT_EQ(member.status.error().message, "problem a: none runs");
  }
  EXPECT_EQ(std::filesystem::file_size(file()), 0u);
}

TEST_F(ChoicesTest, ARankThatCannotTakeItEndsAll) {
  std::vector<Member> members = {{{"a", "b"}, 1}, {{"a", "b"}, 2, /*refuses=*/1}};
  settle(members);
  ASSERT_FALSE(members[1].status);
  EXPECT_EQ(members[1].status.error().message,
            "problem a: what rank 0 on host here has chosen cannot be done here: not here");
  ASSERT_FALSE(members[0].status);
  EXPECT_EQ(members[0].status.error().code, ExitCode::Peer);
  EXPECT_EQ(members[0].status.error().message, "a rank has failed");
}

TEST_F(ChoicesTest, AKeptValueThatCannotBeTakenIsReplaced) {
  std::vector<Member> members = {{{"a"}, 1}};
  settle(members);
  for (int run = 0; run < 2; ++run) {
    members = {{{"a"}, 2, /*refuses=*/1}};
    settle(members);
    EXPECT_EQ(members[0].taken["a"], 2u);
    EXPECT_EQ(members[0].chosen.size(), run == 0 ? 1u : 0u);
  }
}

TEST_F(ChoicesTest, TheFirstOfTwoProcessesCounts) {
  AlgorithmCache one = AlgorithmCache::open(), other = AlgorithmCache::open();
  EXPECT_EQ(one.keep("k", {1, 2}), (Value{1, 2}));
  EXPECT_EQ(other.keep("k", {3}), (Value{1, 2}));
  EXPECT_THAT(AlgorithmCache::open().find("k"), ElementsAre(Value{1, 2}, Value{3}));
}

TEST_F(ChoicesTest, DamagedLinesArePassedOver) {
  AlgorithmCache::open().keep("k", {1, 2});
  std::string line;
  std::getline(std::ifstream(file()), line);
  // Each byte in turn is another one; then the line is cut off behind each.
  for (size_t i = 0; i < line.size(); ++i) {
    std::string damaged = line;
    damaged[i] ^= 4;
    std::ofstream(file(), std::ios::trunc) << damaged << '\n' << line.substr(0, i);
    const AlgorithmCache cache = AlgorithmCache::open();
    EXPECT_TRUE(cache.find("k").empty()) << i;
    EXPECT_THAT(cache.notice(), HasSubstr(i == 0 ? "1 damaged line of" : "2 damaged lines of")) << i;
    EXPECT_THAT(cache.notice(), HasSubstr("the first is line 1"));
  }
  AlgorithmCache cache = AlgorithmCache::open();
  cache.keep("k", {5}); // behind a line without an end
  EXPECT_THAT(AlgorithmCache::open().find("k"), ElementsAre(Value{5}));
}

} // namespace
} // namespace ds::rt::cuda
