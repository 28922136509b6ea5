//===- NewsTest.cpp - Whoever waits for news hears of the failure of the job ---------===//
#include "Comm/Control/News.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace ds::rt {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

Deadline in(int ms) { return Clock::now() + milliseconds(ms); }

TEST(News, tells_all_ranks_of_the_first_reason_before_it_acts) {
  std::vector<std::string> log;
  News *seen = nullptr;
  News news(3, 0, [&](const std::string &reason) {
    EXPECT_FALSE(seen->failed()); // nobody acts yet
    log.push_back("tells " + reason);
  });
  seen = &news;
  news.onFailure([&] { log.push_back("acts"); });
  news.fail("first");
  news.fail("second");
  news.onFailure([&] { log.push_back("acts at once"); });
  EXPECT_THAT(log, ElementsAre("tells first", "acts", "acts at once"));
  EXPECT_EQ(news.failure(), "first");
}

TEST(News, hands_over_blobs_in_the_order_in_which_they_came) {
  News news(3, 1, [](const std::string &) {});
  EXPECT_FALSE(news.awaitBlob(0, in(1)));
  EXPECT_THAT(news.withoutBlob(), ElementsAre(0u, 2u));
  news.addBlob(0, "a");
  news.addBlob(0, "b");
  EXPECT_TRUE(news.awaitBlob(0, in(1)));
  EXPECT_THAT(news.withoutBlob(), ElementsAre(2u));
  EXPECT_EQ(news.takeBlob(0), "a");
  EXPECT_EQ(news.takeBlob(0), "b");
}

TEST(News, ends_every_wait_when_the_job_fails) {
  News news(2, 0, [](const std::string &) {});
  std::thread failing([&] {
    std::this_thread::sleep_for(milliseconds(20));
    news.fail("gone");
  });
  const Deadline begin = Clock::now();
  EXPECT_TRUE(news.awaitBlob(1, in(60000)));
  EXPECT_THAT(news.awaitFinish(in(60000)), IsEmpty()); // it has not looked: the job has failed
  news.awaitAnswers({1}, milliseconds(60000));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
  failing.join();
}

TEST(News, knows_who_has_finished_and_who_answers) {
  News news(3, 0, [](const std::string &) {});
  news.setFinished(1);
  EXPECT_THAT(news.awaitFinish(in(1)), ElementsAre(2u));
  news.setAnswer(2, milliseconds(40));
  EXPECT_EQ(news.answerOf(2), milliseconds(40));
  news.forgetAnswers({2});
  EXPECT_EQ(news.answerOf(2), std::nullopt);
}

} // namespace
} // namespace ds::rt
