//===- PlanHtmlTest.cpp - What a plan's page holds ------------------------------------===//
#include "ds/Report/PlanHtml.h"
#include "TimelineInstances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

using namespace ds::report;
using namespace ds::report::test;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

static constexpr int64_t kMiB = 1 << 20;

/// The data that the page's script reads.
static Json dataOf(const std::string &page) {
  const std::string open = R"(<script type="application/json" id="plan-data">)";
  size_t begin = page.find(open);
  EXPECT_NE(begin, std::string::npos);
  begin += open.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

static size_t countOf(const std::string &text, const std::string &part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

/// The highest sum of categories in a page's curve.
static int64_t maximumOf(const Json &timeline) {
  int64_t most = 0;
  const Json &curve = timeline["curve"];
  for (size_t at = 0; at < curve.size(); at += 1 + kNumCategories) {
    int64_t sum = 0;
    for (size_t category = 1; category <= kNumCategories; ++category)
      sum += curve[at + category].get<int64_t>();
    most = std::max(most, sum);
  }
  return most;
}

TEST(PlanHtml, CurveReachesThePeakAndNoMore) {
  PlanTimeline step = stepOf(6, 4, 3 * kMiB);
  Json data = dataOf(printPlanHtml(reportOf(step, 200 * kMiB), {step}));
  const Json &timeline = data["timelines"][0];
  EXPECT_EQ(maximumOf(timeline), step.peakBytes);
  EXPECT_EQ(timeline["peak"], step.peakBytes);
  EXPECT_EQ(data["report"]["ranks"][0]["peak"], step.peakBytes);
  // Every buffer and command is there, with its name, layer and size.
  ASSERT_EQ(timeline["buffers"]["name"].size(), step.buffers.size());
  ASSERT_EQ(timeline["commands"]["name"].size(), step.commands.size());
  for (size_t i = 0; i < step.buffers.size(); ++i) {
    EXPECT_EQ(data["strings"][timeline["buffers"]["name"][i].get<size_t>()], step.buffers[i].name);
    EXPECT_EQ(data["strings"][timeline["buffers"]["layer"][i].get<size_t>()], step.buffers[i].layer);
    EXPECT_EQ(timeline["buffers"]["bytes"][i], step.buffers[i].bytes);
    EXPECT_EQ(timeline["buffers"]["offset"][i], step.buffers[i].offset);
  }
  EXPECT_TRUE(timeline["notes"].empty());
}

TEST(PlanHtml, NamesCannotBreakOutOfThePage) {
  const std::string evil = "</script><b>&amp;\"'<!--\xff";
  PlanTimeline step = stepOf(1, 1);
  PlanReport report = reportOf(step, kMiB);
  step.title = step.peakAt = step.streams[0] = evil;
  for (PlanTimeline::Command &command : step.commands)
    command.name = command.layer = command.segment = command.kind = evil;
  for (PlanTimeline::Buffer &buffer : step.buffers)
    buffer.name = buffer.layer = buffer.type = evil;
  report.model = report.target = report.basis = report.basisReason = evil;
  report.notes = {evil};
  report.predicted.terms = {{evil, 1, evil}};
  report.changes.resize(1);
  report.changes[0].change = evil;
  report.predicted.communicationBytes = {{evil, 1}};
  report.ranks[0].peakAt = evil;
  report.ranks[0].largest = {{evil, evil, 1, Category::Activations}};
  report.ranks[0].byLayer = {{evil, 1}};
  std::string page = printPlanHtml(report, {step});
  EXPECT_EQ(countOf(page, "</script"), 2u); // the data's and the script's
  EXPECT_EQ(countOf(page, "<b>"), 0u);
  EXPECT_EQ(countOf(page, "<!--"), 0u);
  // What comes back is what went in, but for the byte that is no UTF-8.
  EXPECT_EQ(dataOf(page)["report"]["model"], "</script><b>&amp;\"'<!--\xef\xbf\xbd");
}

TEST(PlanHtml, AsksForNothingElse) {
  PlanTimeline step = stepOf(2, 2);
  std::string page = printPlanHtml(reportOf(step, 0), {step});
  for (const char *outside :
       {"http:", "https:", "src=", "href=", "@import", "url(", "style=\"", "onclick=\""})
    EXPECT_THAT(page, Not(HasSubstr(outside)));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, Not(HasSubstr("{{")));
}

TEST(PlanHtml, EqualPlansGiveEqualBytes) {
  PlanTimeline step = stepOf(40, 20);
  PageLimits limits{500, 500}; // merging is as deterministic
  EXPECT_EQ(printPlanHtml(reportOf(step, kMiB), {step}, limits),
            printPlanHtml(reportOf(stepOf(40, 20), kMiB), {stepOf(40, 20)}, limits));
}

TEST(PlanHtml, WithoutTimelinesThereAreTables) {
  PlanTimeline step = stepOf(2, 2);
  Json data = dataOf(printPlanHtml(reportOf(step, 0), {}));
  EXPECT_TRUE(data["timelines"].empty());
  EXPECT_EQ(data["report"]["ranks"][0]["peak"], step.peakBytes);
}

TEST(PlanHtml, HasATimelineForEachOfTheRanks) {
  PlanTimeline first = stepOf(3, 2), second = stepOf(2, 2);
  PlanReport report = reportOf(first, 0);
  report.world = 2, report.mesh.pp = 2;
  report.ranks.push_back(reportOf(second, 0).ranks[0]);
  report.ranks[1].firstRank = report.ranks[1].lastRank = report.ranks[1].stage = 1;
  Json data = dataOf(printPlanHtml(report, {first, second}));
  ASSERT_EQ(data["timelines"].size(), 2u);
  EXPECT_EQ(maximumOf(data["timelines"][0]), first.peakBytes);
  EXPECT_EQ(maximumOf(data["timelines"][1]), second.peakBytes);
}

TEST(PlanHtml, APageOfAVastStepStaysSmallAndSaysSo) {
  PlanTimeline step = stepOf(250, 120); // 60,001 commands, 60,003 buffers
  Json data = dataOf(printPlanHtml(reportOf(step, 0), {step}));
  const Json &timeline = data["timelines"][0];
  EXPECT_LE(timeline["commands"]["name"].size(), 20000u);
  EXPECT_LE(timeline["buffers"]["name"].size(), 20000u);
  EXPECT_LE(timeline["curve"].size(), 20000u * (1 + kNumCategories));
  EXPECT_EQ(maximumOf(timeline), step.peakBytes);
  ASSERT_EQ(timeline["notes"].size(), 3u);
  EXPECT_THAT(timeline["notes"][0], HasSubstr("of 60,001 commands are too short"));
  EXPECT_THAT(timeline["notes"][1], HasSubstr("of 60,003 buffers are too small"));
  EXPECT_LT(printPlanHtml(reportOf(step, 0), {step}).size(), 6u * kMiB);
}

TEST(PlanHtml, MergedCommandsKeepTimeAndWork) {
  PlanTimeline step = stepOf(20, 10);
  MergedCommands all = mergeCommands(step.commands, 1000);
  EXPECT_EQ(all.merged, 0u);
  EXPECT_EQ(all.commands.size(), step.commands.size());
  MergedCommands few = mergeCommands(step.commands, 50);
  EXPECT_LE(few.commands.size(), 50u);
  EXPECT_EQ(few.commands.front().begin, 0);
  EXPECT_EQ(few.commands.back().end, step.commands.back().end);
  double before = 0, after = 0;
  for (const PlanTimeline::Command &command : step.commands)
    before += command.flops;
  for (const PlanTimeline::Command &command : few.commands)
    after += command.flops;
  EXPECT_NEAR(after, before, before * 1e-12);
  EXPECT_THAT(few.commands.front().name, HasSubstr(" commands"));
  // Each command went to the one that covers its time.
  for (size_t i = 0; i < step.commands.size(); ++i) {
    const PlanTimeline::Command &place = few.commands[few.moved[i]];
    EXPECT_LE(place.begin, step.commands[i].begin);
    EXPECT_GE(place.end, step.commands[i].end);
  }
}

TEST(PlanHtml, EventsAreNotDrawn) {
  std::vector<PlanTimeline::Command> commands(4);
  commands[0] = {"matmul", "", "", 0, "compute", 0, 1};
  commands[1] = {"record", "", "", 0, "record", 1, 1};
  commands[2] = {"wait", "", "", 1, "wait", 0, 1};
  commands[3] = {"wait", "", "", 1, "wait", 1, 1}; // waited for nothing
  MergedCommands drawn = mergeCommands(commands, 100);
  ASSERT_EQ(drawn.commands.size(), 2u);
  EXPECT_EQ(drawn.commands[1].kind, "wait");
  EXPECT_EQ(drawn.moved, (std::vector<uint32_t>{0, 0, 1, 1}));
  EXPECT_EQ(drawn.merged, 0u);
}

TEST(PlanHtml, BoxesCoverWhatTheyStandFor) {
  PlanTimeline step = stepOf(30, 20, kMiB);
  MergedBuffers few = mergeBuffers(step.buffers, 200);
  EXPECT_LE(few.buffers.size(), 200u);
  EXPECT_GT(few.merged, 0u);
  for (const PlanTimeline::Buffer &buffer : step.buffers)
    EXPECT_TRUE(std::any_of(few.buffers.begin(), few.buffers.end(),
                            [&](const PlanTimeline::Buffer &box) {
                              return box.category == buffer.category && box.begin <= buffer.begin &&
                                     buffer.end <= box.end && box.offset <= buffer.offset &&
                                     buffer.offset + buffer.bytes <= box.offset + box.bytes;
                            }))
        << buffer.name << " " << buffer.layer;
  // States, the largest of all, are as they were; so is what has no place.
  EXPECT_EQ(few.buffers[0].name, "parameters");
  EXPECT_EQ(few.buffers[3].offset, -1);
}

TEST(PlanHtml, ThinCurvesKeepEndsAndMaximum) {
  PlanTimeline step = stepOf(30, 20);
  std::vector<LivePoint> curve = liveCurve(step), thin = thinCurve(curve, 100);
  auto highest = [](const std::vector<LivePoint> &points) {
    int64_t most = 0;
    for (const LivePoint &point : points)
      most = std::max(most, point.total());
    return most;
  };
  EXPECT_EQ(thin.size(), 100u);
  EXPECT_EQ(highest(thin), highest(curve));
  EXPECT_EQ(thin.front().time, curve.front().time);
  EXPECT_EQ(thin.back().time, curve.back().time);
  EXPECT_TRUE(std::is_sorted(thin.begin(), thin.end(),
                             [](const LivePoint &a, const LivePoint &b) { return a.time < b.time; }));
  EXPECT_EQ(thinCurve(curve, curve.size()).size(), curve.size());
}
