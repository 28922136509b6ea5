//===- DescribeTest.cpp - Checkpoints in words ----------------------------------------------===//

#include "ToolFixture.h"

#include "ds/Runtime/CheckpointTool/Describe.h"
#include "ds/Runtime/CheckpointTool/Place.h"

#include <nlohmann/json.hpp>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::HasSubstr;
using testing::Not;

namespace {

class Describe : public ToolFixture {
protected:
  /// Takes what a command tells beside its result.
  Notice notice() {
    return [this](const std::string &text) { notices.push_back(text); };
  }
  std::vector<std::string> notices;
};

TEST_F(Describe, layoutsInWords) {
  Model model(Mesh{{"dp", 2}, {"tp", 2}});
  Layout layout;
  layout.cuts = {AxisSet(), *model.program.mesh.find("tp")};
  layout.bucket = *model.program.mesh.find("dp");
  layout.shardElements = 6;
  model.add("both", {4, 6}, layout);
  model.add("none", {2});
  layout.view = {4, 2, 3};
  layout.cuts.emplace_back();
  layout.existing = 3;
  model.add("padded", {3, 6}, layout);
  const Result<std::string> text =
      describeCheckpoint(*save(systemFiles(), model, root, 1), {.tensors = true});
  ASSERT_TRUE(text) << text.error().message;
  EXPECT_THAT(*text, HasSubstr("'both' parameter F32 [4, 6], dim 1 over tp, then flat over dp\n"));
  EXPECT_THAT(*text, HasSubstr("'none' parameter F32 [2], whole\n"));
  EXPECT_THAT(*text,
              HasSubstr("'padded' parameter F32 [3, 6], as [4, 2, 3] with 1 row of padding, dim 1 over tp, "
                        "then flat over dp\n"));
  EXPECT_THAT(*text, HasSubstr("parameter    3 tensors, 44 elements, 176 B\n"));
  EXPECT_THAT(*text, HasSubstr("mesh         4 ranks [dp = 2, tp = 2]\n"));
}

/// Texts of strangers do nothing to a terminal, and stay themselves in JSON.
TEST_F(Describe, controlCharactersAreSpelt) {
  const std::string path = write(1, {givenFloats("a\x1b[2J", {1})});
  Result<Manifest> manifest = readManifest(path);
  manifest->writer = manifest->planHash = manifest->target = manifest->data.sign = "\x1b[2J";
  manifest->configText = "one\n\ttwo\x1b[2J\x7f";
  rewriteManifest(path, *manifest);
  const std::string text = *describeCheckpoint(path, {true, true, false});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, HasSubstr("one\n\ttwo\\x1b[2J\\x7f\n"));
  const std::string json = *describeCheckpoint(path, {true, true, true});
  EXPECT_EQ(nlohmann::json::parse(json)["config"], manifest->configText);
}

TEST_F(Describe, theNewestWholeOneIsChosen) {
  write(3, {givenFloats("w", {1})});
  const std::string good = write(2, {givenFloats("w", {1})});
  fs::remove(root + "/step-3" + kFile);
  const Result<std::string> chosen = chooseCheckpoint(root + "/", notice());
  ASSERT_TRUE(chosen);
  EXPECT_EQ(*chosen, good);
  EXPECT_THAT(notices, testing::ElementsAre(HasSubstr("step-3")));
  EXPECT_EQ(*chooseCheckpoint(good + "/", notice()), good);
  EXPECT_EQ(chooseCheckpoint(root + "/none", notice()).error().code, ExitCode::Io);
}

TEST_F(Describe, aListSaysWhatElseIsThere) {
  for (const uint64_t step : {1, 2, 3, 4})
    write(step, {givenFloats("w", {1})});
  fs::remove(root + "/step-1/manifest.json");
  fs::rename(root + "/step-3", root + "/step-3.aside-ab");
  fs::create_directory(root + "/step-5.tmp-ab");
  const std::string text = *describeStore(root, /*json=*/false);
  EXPECT_THAT(text, HasSubstr("\nstep-4 "));
  EXPECT_THAT(text, HasSubstr("\nstep-2 "));
  EXPECT_THAT(
      text,
      HasSubstr("\nleft by an unfinished removal: 'step-1'\nleft by an unfinished save: 'step-5.tmp-ab'\n"
                "set aside by a run that went back before it: 'step-3.aside-ab'\n"));
  const auto json = nlohmann::json::parse(*describeStore(root, /*json=*/true));
  EXPECT_EQ(json["leftovers"], nlohmann::json::array({"step-1", "step-5.tmp-ab"}));
  EXPECT_EQ(json["set_aside"], nlohmann::json::array({"step-3.aside-ab"}));
  EXPECT_EQ(json["checkpoints"].size(), 2u);
}

/// A copy of a checkpoint may have any name; one without a manifest is known by its name.
TEST_F(Describe, placesAreKnown) {
  fs::copy(write(2, {givenFloats("w", {1})}), root + "/copy");
  fs::create_directory(root + "/step-9");
  EXPECT_TRUE(placeOf(root + "/copy")->isCheckpoint);
  EXPECT_TRUE(placeOf(root + "/step-9/")->isCheckpoint);
  EXPECT_FALSE(placeOf(root)->isCheckpoint);
  EXPECT_FALSE(placeOf(root + "/copy/manifest.json"));
}

} // namespace
