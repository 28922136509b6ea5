//===- PlanReportTest.cpp - What plans print, and what is read back -------------===//
//
// Size: what plans print and what is read back are still one file.
//
//===---------------------------------------------------------------------------===//

#include "PlanSamples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

using namespace ds::report;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(PlanReport, UnitsRoundUpToTheNext) {
  EXPECT_EQ(ds::formatBytes(0), "0 B");
  EXPECT_EQ(ds::formatBytes(1023), "1023 B");
  EXPECT_EQ(ds::formatBytes(1024), "1.0 KiB");
  EXPECT_EQ(ds::formatBytes(kMiB - 1), "1.0 MiB"); // never "1024.0 KiB"
  EXPECT_EQ(ds::formatBytes(-1536), "-1.5 KiB");
  EXPECT_EQ(ds::formatBytes(INT64_MAX), "8.0 EiB");
  EXPECT_EQ(ds::formatExact(0), "0");
  EXPECT_EQ(ds::formatExact(-1234567), "-1,234,567");
  EXPECT_EQ(ds::formatExact(123456), "123,456");
}

TEST(PlanReport, SaysWhatRanksSendAndKeep) {
  PlanReport report = sample();
  EXPECT_EQ(printPlanText(report).find("Sent by each rank"), std::string::npos);
  report.predicted.communicationBytes = {{"all_gather", 2048}, {"reduce_scatter", 1024}};
  report.notes = {"@last: 1 gathered value stays"};
  const std::string text = printPlanText(report);
  EXPECT_NE(text.find("all_gather          2.0 KiB                 2,048 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("together            3.0 KiB                 3,072 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("@last: 1 gathered value stays"), std::string::npos);
  ::ds::Result<PlanReport> read = readPlanJson(printPlanJson(report), "plan.json");
  ASSERT_TRUE(bool(read));
  EXPECT_EQ(read->notes, report.notes);
  EXPECT_EQ(read->predicted.communicationBytes, report.predicted.communicationBytes);
}

TEST(PlanReport, SaysWhatAnotherChoiceWouldAddToThePeak) {
  PlanReport report = sample();
  report.largestValues = {
      {"gelu", "h.0", 4 * kMiB, "made again", "kept", -0.001, 3 * kMiB, /*isNextRefused=*/true},
      {"matmul", "h.1", 2 * kMiB, "on the host", "kept", 0, 0}};
  const std::string text = printPlanText(report);
  EXPECT_THAT(text, HasSubstr("made again          kept*: -0.001 s, +3.0 MiB\n"));
  EXPECT_THAT(text, HasSubstr("on the host\n")); // what is as good is left out
  EXPECT_THAT(text, HasSubstr("  * not taken, for the configuration asks for what was done\n"));
}

TEST(PlanReport, SaysHowFastAPlanTrainsAndWhatARunTakes) {
  PlanReport report = twoGroups(); // 8 ranks, 0.125 s a step
  EXPECT_THAT(printPlanText(report), Not(HasSubstr("Throughput")));
  EXPECT_THAT(printPlanJson(report), Not(HasSubstr("tokens")));
  report.predicted.terms = {{"products and attention", 0.125, "device.matmul_flops"}};
  report.tokensPerStep = 16384;
  report.modelFlops = 40e12, report.hardwareFlops = 50e12, report.peakFlops = 100e12; // 100 in a step of all
  report.run = {1e9, 2};
  const std::string text = printPlanText(report);
  // 16384 / 0.125 = 131072; 1e9 / 16384 = 61035.2, and 61036 * 0.125 s = 7629.5 s on 8 devices: 16.95 h.
  EXPECT_THAT(text,
              HasSubstr("\nThroughput: 131,072 tokens/s (16,384 a device), MFU 40.0 %, HFU 50.0 % of 100 "
                        "TFLOP/s a device\n"));
  EXPECT_THAT(text,
              HasSubstr("\n1e+09 tokens: 61,036 steps, 0.0883 days, 17 device-hours, 33.9 at 2 an hour\n"));
  const std::string json = printPlanJson(report);
  for (const char *part : {"\"tokens_per_second\": 131072", "\"mfu\": 0.4", "\"hfu\": 0.5",
                           "\"steps\": 61036", "\"cost\": 33.9"})
    EXPECT_THAT(json, HasSubstr(part));
  EXPECT_TRUE(bool(readPlanJson(json, "plan.json")));
  report.run->pricePerHour.reset();
  EXPECT_THAT(printPlanText(report), HasSubstr("17 device-hours\n"));
}

TEST(PlanReport, ListsThePartsOfEachArena) {
  PlanReport report = sample();
  report.ranks[0].memory = {{"parameters", "device", 5, "states of bf16: 1"},
                            {"optimizer moments", "host, page-locked", 7, "states of f32: 2"},
                            {"marks of streams", "host, page-locked", 9, "one each", /*beyondArenas=*/true}};
  const std::string text = printPlanText(report);
  const size_t host = text.find("Memory by part, at the peak of the host's arena");
  ASSERT_NE(host, std::string::npos) << text;
  EXPECT_LT(text.find("Memory by part, at the peak of the device's arena"), host);
  EXPECT_LT(host, text.find("optimizer moments"));
  EXPECT_THAT(text.substr(host), HasSubstr("7 B  together"));
  EXPECT_THAT(text, Not(HasSubstr("nvme's arena")));
}

TEST(PlanReport, JsonIsTheContract) {
  // Byte for byte: other programs read these keys in this order.
  EXPECT_EQ(printPlanJson(sample()), R"({
  "schema": 1,
  "world": 1,
  "mesh": {
    "dp": 1,
    "tp": 1,
    "pp": 1,
    "sp": 1
  },
  "ranks": [
    {
      "rank": 0,
      "stage": 0,
      "states": {
        "parameters": 497025024,
        "gradients": 0,
        "optimizer": 995098624,
        "padding": 4096,
        "scalars": 0
      },
      "arenas": {
        "device": 2097152000,
        "host": 0,
        "nvme": 0
      },
      "peak": {
        "bytes": 2097152000,
        "at": "cross_entropy backward, lm_head"
      },
      "at_peak": {
        "parameters": 497025024,
        "gradients": 1048576,
        "optimizer": 995098624,
        "activations": 524288000,
        "communication": 0,
        "workspace": 79691776
      },
      "lower_bound": 2086666240,
      "largest": [
        {
          "name": "logits",
          "layer": "lm_head",
          "bytes": 412090368,
          "category": "activations"
        },
        {
          "name": "wte.weight",
          "layer": "wte",
          "bytes": 154140672,
          "category": "parameters"
        }
      ],
      "by_layer": [
        {
          "layer": "wte",
          "bytes": 157286400
        },
        {
          "layer": "h.0",
          "bytes": 25165824
        },
        {
          "layer": "h.1",
          "bytes": 25165824
        },
        {
          "layer": "h.2",
          "bytes": 25165824
        },
        {
          "layer": "lm_head",
          "bytes": 419430400
        }
      ]
    }
  ],
  "fits": true,
  "predicted": {
    "step_seconds": null,
    "tflops_per_device": null,
    "compute_seconds": null,
    "exposed_communication_seconds": null,
    "communication_bytes": {}
  },
  "flops_per_step": 1250000000000,
  "parameters": 124439808,
  "notes": [],
  "model": "gpt.pt",
  "target": "cpu",
  "memory_limit": 17179869184,
  "basis": "program",
  "inputs": {
    "train_micro_batch_size_per_gpu": 4,
    "precision": "bf16",
    "zero_optimization.offload_param": {
      "device": "cpu"
    },
    "optimizer.params.lr": 0.001
  }
}
)");
}

TEST(PlanReport, JsonIsReadBackWhole) {
  for (const PlanReport &report : {sample(), twoGroups()}) {
    std::string text = printPlanJson(report);
    ds::Result<PlanReport> back = readPlanJson(text, "plan.json");
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(printPlanJson(*back), text);
  }
}

TEST(PlanReport, WhatComparisonsReadComesBack) {
  PlanReport report = twoGroups();
  report.predicted.terms = {{"forward", 0.1, "device.matmul_flops"}, {"update", 0, "device.memory"}};
  report.lossChunks = {4, 512, -4096, -0.25};
  report.tf32 = report.isPlanningOnly = true, report.basis = "rules", report.basisReason = "--basis rules";
  std::string text = printPlanJson(report);
  ds::Result<PlanReport> back = readPlanJson(text, "plan.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(printPlanJson(*back), text);
  EXPECT_EQ(back->inputs, report.inputs);
}

TEST(PlanReport, AnyInputCanBeReadAgain) {
  PlanReport report = sample();
  std::string deep = std::string(60, '[') + std::string(60, ']');
  report.inputs = {{"deep", deep}, {"huge", "1e999"}, {"hex", "0x10"}, {"whole", "5e8"}};
  ds::Result<PlanReport> back = readPlanJson(printPlanJson(report), "plan.json");
  ASSERT_TRUE(back) << back.error().message;
  std::vector<PlanInput> expected = {
      {"deep", '"' + deep + '"'}, {"huge", "\"1e999\""}, {"hex", "\"0x10\""}, {"whole", "500000000"}};
  EXPECT_EQ(back->inputs, expected);
}

TEST(PlanReport, EqualRanksAreGivenOnce) {
  std::string text = printPlanJson(twoGroups());
  EXPECT_THAT(text, HasSubstr("\"ranks\": [\n        0,\n        6\n      ]"));
  EXPECT_THAT(text, HasSubstr("\"rank\": 7"));
}

TEST(PlanReport, ForeignBytesInNamesStayJson) {
  PlanReport report = sample();
  report.ranks[0].largest[0].name = "a\xFF\"\n";
  EXPECT_TRUE(readPlanJson(printPlanJson(report), "plan.json"));
}

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

TEST(PlanReport, BadPlansAreNamedByKey) {
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

TEST(PlanReport, BadKeysOfComparisonsAreNamed) {
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

TEST(PlanReport, EveryTruncationIsRefused) {
  const std::string good = printPlanJson(sample());
  for (size_t size = 0; size + 2 < good.size(); size += 7)
    EXPECT_FALSE(readPlanJson(good.substr(0, size), "plan.json")) << size;
}

TEST(PlanReport, UnknownKeysAreIgnored) {
  EXPECT_TRUE(readPlanJson(
      replaced(printPlanJson(sample()), "\"world\": 1", "\"world\": 1, \"new\": {\"a\": []}"), "p"));
}

TEST(PlanReport, MemoryByPartComesBack) {
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

TEST(PlanReport, SaysWhatAProgramIsCompiledFor) {
  PlanReport report = sample();
  EXPECT_THAT(printPlanText(report), Not(HasSubstr("target:")));
  report.programTarget = "cuda:sm_90", report.programTargetReason = "device.architecture of h200";
  EXPECT_THAT(printPlanText(report), HasSubstr("\ntarget: cuda:sm_90 (device.architecture of h200)\n"));
  ::ds::Result<PlanReport> read = readPlanJson(printPlanJson(report), "plan.json");
  ASSERT_TRUE(bool(read));
  EXPECT_EQ(printPlanJson(*read), printPlanJson(report));
  EXPECT_THAT(diffPlans(sample(), report, "a", "b"), HasSubstr("program target: (none) -> cuda:sm_90"));
}

TEST(PlanReport, TextSaysWhatFits) {
  std::string text = printPlanText(sample());
  EXPECT_THAT(text,
              HasSubstr("Memory plan of gpt.pt for cpu\n124.4 M parameters, 1.2 TFLOP a step, one rank\n"));
  EXPECT_THAT(text,
              HasSubstr("  peak        2.0 GiB  2,097,152,000 bytes, at cross_entropy backward, lm_head\n"));
  EXPECT_THAT(text, HasSubstr("the plan is 0.50 % above\n"));
  EXPECT_THAT(text, HasSubstr("  optimizer       949.0 MiB   47.5 %  █"));
  EXPECT_THAT(text, HasSubstr("  h.0 .. 2                             24.0 MiB x 3 "));
  EXPECT_THAT(text, HasSubstr("  live            1 B  ▁▂▄█▇▃  8 B\n"));
  EXPECT_THAT(text, ::testing::EndsWith("\nfits: 2.0 GiB of 16.0 GiB\n"));
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  PlanReport tight = sample();
  tight.memoryLimit = 1000 * kMiB;
  EXPECT_THAT(printPlanText(tight),
              ::testing::EndsWith("\ndoes not fit: 2.0 GiB of 1000.0 MiB, 1000.0 MiB too much\n"));
}

TEST(PlanReport, TextKeepsToItsWidth) {
  PlanReport report = twoGroups();
  report.ranks[0].largest[0] = {std::string(300, 'n'), std::string(300, 'l'), INT64_MAX,
                                Category::Communication};
  report.ranks[0].byLayer[0].layer = "a\nb" + std::string(200, 'x');
  report.predicted.terms = {{std::string(50, 't'), 0.1, std::string(200, 's')}};
  for (unsigned width : {60u, 100u, 160u}) {
    std::string text = printPlanText(report, {.width = width}), line;
    std::vector<std::string> tables; // the prose of title, peak and bound may be longer
    for (std::istringstream lines(text); std::getline(lines, line);)
      if (line.starts_with("  ") && !line.starts_with("  peak ") && !line.starts_with("  bound ")) {
        EXPECT_LE(std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xC0) != 0x80; }), width)
            << line;
      }
  }
}

TEST(PlanReport, TextSaysWhatAStepIsMadeOf) {
  EXPECT_THAT(printPlanText(sample()), Not(HasSubstr("Predicted step")));
  PlanReport report = twoGroups();
  report.predicted.terms = {{"products and attention", 0.1, "device.matmul_flops"},
                            {"exposed communication", 0.025, "inside.latency_seconds"}};
  std::string text = printPlanText(report);
  EXPECT_THAT(text, HasSubstr("\nPredicted step: 0.125 s, 40 TFLOP/s per device\n"));
  EXPECT_THAT(text, HasSubstr("  products and attention       0.1 s  80.0 %  device.matmul_flops\n"));
  EXPECT_THAT(text, HasSubstr("  exposed communication      0.025 s  20.0 %  inside.latency_seconds\n"));
}

TEST(PlanReport, TextHasNotesWhereThereAreSome) {
  EXPECT_THAT(printPlanText(sample()), Not(HasSubstr("Notes")));
  PlanReport report = sample();
  report.notes = {"one", "two"};
  EXPECT_THAT(printPlanText(report), HasSubstr("\nNotes\n  one\n  two\n"));
}

TEST(PlanReport, TextHasColourAndAsciiOnRequest) {
  EXPECT_THAT(printPlanText(sample(), {.colour = true}), HasSubstr("\x1b[32mfits: "));
  std::string ascii = printPlanText(sample(), {.unicode = false});
  EXPECT_TRUE(std::all_of(ascii.begin(), ascii.end(), [](char c) { return (unsigned char)c < 0x80; }));
  EXPECT_THAT(ascii, HasSubstr("####"));
}
