//===- PlanReportTest.cpp - What plans print ----------------------------------------===//

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

TEST(PlanReport, SaysHowMuchIsTrained) {
  PlanReport report = sample();
  EXPECT_EQ(printPlanText(report).find("trained"), std::string::npos);
  EXPECT_EQ(printPlanText(report).find("frozen"), std::string::npos);
  report.trainedParameters = 4718592, report.ranks[0].states.frozen = 456 * kMiB;
  const std::string text = printPlanText(report);
  EXPECT_NE(text.find("124.4 M parameters, 4.7 M of them trained"), std::string::npos) << text;
  EXPECT_NE(text.find("of them frozen  456.0 MiB"), std::string::npos) << text;
}

TEST(PlanReport, SaysHowMuchATokenMeets) {
  PlanReport report = sample();
  EXPECT_EQ(printPlanText(report).find("active"), std::string::npos);
  EXPECT_EQ(printPlanJson(report).find("active"), std::string::npos);
  report.activeParameters = 62914560;
  const std::string text = printPlanText(report);
  EXPECT_NE(text.find("124.4 M parameters, 62.9 M of them active for a token"), std::string::npos) << text;
}

TEST(PlanReport, SaysAlongWhichAxesRanksSend) {
  PlanReport report = sample();
  report.predicted.communicationBytes = {{"all_gather", 3072}};
  report.predicted.communicationByAxes = {{"all_gather", "dp.local", 2048}, {"all_gather", "dp.node", 1024}};
  const std::string text = printPlanText(report);
  EXPECT_NE(text.find("all_gather          3.0 KiB"), std::string::npos) << text;
  EXPECT_NE(text.find("  along dp.local    2.0 KiB"), std::string::npos) << text;
  EXPECT_NE(text.find("  along dp.node     1.0 KiB"), std::string::npos) << text;
  ::ds::Result<PlanReport> read = readPlanJson(printPlanJson(report), "plan.json");
  ASSERT_TRUE(bool(read));
  EXPECT_EQ(read->predicted.communicationByAxes, report.predicted.communicationByAxes);

  // Where all is along one set of axes, the title says it once.
  report.predicted.communicationByAxes.pop_back();
  EXPECT_NE(printPlanText(report).find("Sent by each rank in a step along dp.local"), std::string::npos);
  EXPECT_EQ(printPlanText(report).find("  along"), std::string::npos);
}

TEST(PlanReport, SaysWhatAnotherChoiceWouldAddToThePeak) {
  PlanReport report = sample();
  report.largestValues = {
      {"gelu", "h.0", 4 * kMiB, "recomputed", "kept", -0.001, 3 * kMiB, /*isNextRefused=*/true},
      {"matmul", "h.1", 2 * kMiB, "on the host", "kept", 0, 0}};
  const std::string text = printPlanText(report);
  EXPECT_THAT(text, HasSubstr("recomputed          kept*: -0.001 s, +3.0 MiB\n"));
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

TEST(PlanReport, EqualRanksAreGivenOnce) {
  std::string text = printPlanJson(twoGroups());
  EXPECT_THAT(text, HasSubstr("\"ranks\": [\n        0,\n        6\n      ]"));
  EXPECT_THAT(text, HasSubstr("\"rank\": 7"));
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
