//===- ReadPlanJsonTest.cpp - Plans that are read back, and what is refused --------===//

#include "PlanSamples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds::report;
using ::testing::HasSubstr;

/// `text` with the first `from` replaced by `to`.
static std::string replaced(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

static void expectCorrupt(const std::string &text, const std::string &message) {
  ds::Result<PlanReport> plan = readPlanJson(text, "plan.json");
  ASSERT_FALSE(plan) << message;
  EXPECT_EQ(plan.error().code, ds::ExitCode::Corrupt);
  EXPECT_THAT(plan.error().message, HasSubstr("plan.json: " + message));
  EXPECT_FALSE(plan.error().hint.empty());
}

TEST(ReadPlanJson, JsonIsReadBackWhole) {
  for (const PlanReport &report : {sample(), twoGroups()}) {
    std::string text = printPlanJson(report);
    ds::Result<PlanReport> back = readPlanJson(text, "plan.json");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(printPlanJson(*back), text);
  }
}

TEST(ReadPlanJson, WhatComparisonsReadComesBack) {
  PlanReport report = twoGroups();
  report.predicted.terms = {{"forward", 0.1, "device.matmul_flops"}, {"update", 0, "device.memory"}};
  report.lossChunks = {4, 512, -4096, -0.25};
  report.trainedParameters = 4718592, report.ranks[0].states.frozen = 456 * kMiB;
  report.activeParameters = 62914560;
  report.tf32 = report.isPlanningOnly = true, report.basis = "rules", report.basisReason = "--basis rules";
  std::string text = printPlanJson(report);
  ds::Result<PlanReport> back = readPlanJson(text, "plan.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(printPlanJson(*back), text);
  EXPECT_EQ(back->inputs, report.inputs);
  EXPECT_EQ(back->trainedParameters, report.trainedParameters);
  EXPECT_EQ(back->activeParameters, report.activeParameters);
  EXPECT_EQ(back->ranks[0].states.frozen, report.ranks[0].states.frozen);
}

TEST(ReadPlanJson, AnyInputCanBeReadAgain) {
  PlanReport report = sample();
  std::string deep = std::string(60, '[') + std::string(60, ']');
  report.inputs = {{"deep", deep}, {"huge", "1e999"}, {"hex", "0x10"}, {"whole", "5e8"}};
  ds::Result<PlanReport> back = readPlanJson(printPlanJson(report), "plan.json");
  ASSERT_TRUE(back) << back.error().message;
  std::vector<PlanInput> expected = {
      {"deep", '"' + deep + '"'}, {"huge", "\"1e999\""}, {"hex", "\"0x10\""}, {"whole", "500000000"}};
  EXPECT_EQ(back->inputs, expected);
}

TEST(ReadPlanJson, ForeignBytesInNamesStayJson) {
  PlanReport report = sample();
  report.ranks[0].largest[0].name = "a\xFF\"\n";
  EXPECT_TRUE(readPlanJson(printPlanJson(report), "plan.json"));
}

TEST(ReadPlanJson, BadPlansAreNamedByKey) {
  const std::string good = printPlanJson(sample());
  expectCorrupt("", "byte 1: is no JSON");
  expectCorrupt("{\"world\": 1e999}", "top level: number overflow parsing '1e999'");
  expectCorrupt(good.substr(0, good.size() / 2), "byte ");
  expectCorrupt("[]", "top level: expects an object, but got array");
  expectCorrupt(replaced(good, "\"schema\": 1", "\"schema\": 2"), "schema: expects 1, but got 2");
  expectCorrupt(replaced(good, "\"schema\": 1,", ""), "schema: the key is missing");
  expectCorrupt(replaced(good, "\"schema\": 1", "\"schema\": 1, \"world\": 1"),
                "key \"world\": is given twice");
  expectCorrupt(replaced(good, "\"device\": 2097152000", "\"device\": -1"),
                "ranks[0].arenas.device: expects a whole number from 0 to 9223372036854775807, but got -1");
  expectCorrupt(replaced(good, "\"device\": 2097152000", "\"device\": 1e99"),
                "ranks[0].arenas.device: expects a whole");
  expectCorrupt(replaced(good, "\"device\": 2097152000", "\"device\": 9223372036854775808"),
                "ranks[0].arenas.device: expects a whole");
  expectCorrupt(replaced(good, "\"bytes\": 2097152000", "\"bytes\": 1.5"),
                "ranks[0].peak.bytes: expects a whole");
  expectCorrupt(replaced(good, "\"at_peak\"", "\"atpeak\""), "ranks[0].at_peak: the key is missing");
  expectCorrupt(replaced(good, "\"rank\": 0", "\"rank\": 3"),
                "ranks[0]: expects ranks from 0 below the world of 1");
  expectCorrupt(replaced(good, "\"rank\": 0", "\"ranks\": [0]"), "ranks[0].ranks: expects [first, last]");
  expectCorrupt(replaced(good, "\"world\": 1", "\"world\": 2"), "ranks: expects 2 ranks, but got 1");
  expectCorrupt(replaced(good, "\"world\": 1", "\"world\": 4294967296"), "world: expects a whole number");
  expectCorrupt(replaced(good, "\"fits\": true", "\"fits\": 1"), "fits: expects true or false");
  expectCorrupt(replaced(good, "\"fits\": true", "\"fits\": false"), "fits: contradicts");
  expectCorrupt(replaced(good, "\"category\": \"activations\"", "\"category\": \"air\""),
                "ranks[0].largest[0].category: expects one of");
  expectCorrupt(replaced(good, "\"flops_per_step\": 1250000000000", "\"flops_per_step\": \"many\""),
                "flops_per_step: expects a number");
  const std::string deep = std::string(200000, '[') + "1" + std::string(200000, ']');
  expectCorrupt(std::string(200000, '['), "top level: is nested more than 32 levels deep");
  expectCorrupt(replaced(good, "\"world\": 1", "\"world\": " + deep), "top level: is nested more than 32");
}

TEST(ReadPlanJson, BadKeysOfComparisonsAreNamed) {
  const std::string good = printPlanJson(sample());
  expectCorrupt(replaced(good, "\"inputs\": {", "\"inputs\": 3, \"other\": {"),
                "inputs: expects an object, but got number");
  expectCorrupt(replaced(good, "\"schema\": 1", "\"schema\": 1, \"tf32\": 1"), "tf32: expects true or false");
  const std::string terms = "\"communication_bytes\": {},\n    \"terms\": ";
  auto withTerms = [&](const std::string &list) {
    return replaced(good, "\"communication_bytes\": {}", terms + list);
  };
  expectCorrupt(withTerms("{}"), "predicted.terms: expects a list, but got object");
  expectCorrupt(withTerms("[{}]"), "predicted.terms[0].name: the key is missing");
  expectCorrupt(withTerms("[{\"name\": \"forward\", \"seconds\": \"1\"}]"),
                "predicted.terms[0].seconds: expects a number, but got string");
  auto withLoss = [&](const std::string &chunks) {
    return replaced(good, "\"schema\": 1",
                    "\"schema\": 1, \"loss_chunks\": {\"chunks\": 4, \"rows\": 512" + chunks + "}");
  };
  expectCorrupt(withLoss(""), "loss_chunks.saved_bytes: the key is missing");
  expectCorrupt(withLoss(", \"saved_bytes\": 0.5, \"more_seconds\": 0"),
                "loss_chunks.saved_bytes: expects a whole number, but got number");
  expectCorrupt(withLoss(", \"saved_bytes\": -5, \"more_seconds\": []"),
                "loss_chunks.more_seconds: expects a number, but got array");
}

TEST(ReadPlanJson, EveryTruncationIsRefused) {
  const std::string good = printPlanJson(sample());
  for (size_t size = 0; size + 2 < good.size(); size += 7)
    EXPECT_FALSE(readPlanJson(good.substr(0, size), "plan.json")) << size;
}

TEST(ReadPlanJson, UnknownKeysAreIgnored) {
  EXPECT_TRUE(readPlanJson(
      replaced(printPlanJson(sample()), "\"world\": 1", "\"world\": 1, \"new\": {\"a\": []}"), "p"));
}

TEST(ReadPlanJson, MemoryByPartComesBack) {
  PlanReport report = sample();
  report.ranks[0].memory = {
      {"parameters", "device", 474 * kMiB, "states of f32: 148"},
      {"activations of h.0 .. 11", "device", 1526 * kMiB, "12 layers of 512 bytes; read: 24"},
      {"device context", "device", kMiB, "device.context_bytes", true},
      {"staging of inputs", "host, page-locked", 4096, "places: 2", true}};
  std::string text = printPlanText(report);
  EXPECT_THAT(text, HasSubstr("\n    474.0 MiB  parameters                            states of f32: 148\n"));
  EXPECT_THAT(text, HasSubstr("  12 layers of 512 bytes\n" + std::string(53, ' ') + "read: 24\n"));
  EXPECT_THAT(text,
              HasSubstr("\n      2.0 GiB  together                              2,097,152,000 bytes\n"));
  EXPECT_THAT(text, HasSubstr("\n  Beyond the arenas\n    1.0 MiB  device context, device.context_bytes\n"
                              "    4.0 KiB  staging of inputs (host, page-locked), places: 2\n"));
  ::ds::Result<PlanReport> read = readPlanJson(printPlanJson(report), "plan.json");
  ASSERT_TRUE(bool(read));
  EXPECT_EQ(printPlanJson(*read), printPlanJson(report));
  PlanReport after = report;
  after.ranks[0].memory[0].bytes -= kMiB;
  EXPECT_THAT(diffPlans(report, after, "a", "b"), HasSubstr("device: parameters"));
  ::ds::Result<PlanReport> wrong = readPlanJson(
      replaced(printPlanJson(report), "\"beyond_arenas\": true", "\"beyond_arenas\": 1"), "plan.json");
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr("memory[2].beyond_arenas: expects true or false"));
}
