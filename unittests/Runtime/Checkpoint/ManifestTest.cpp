//===- ManifestTest.cpp - What a checkpoint says of itself ------------------------------===//

#include "ds/Runtime/Checkpoint/Manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::rt;

namespace {

Manifest example() {
  Manifest manifest;
  manifest.step = 12;
  manifest.writer = "test";
  manifest.run = "0123abcd";
  manifest.planHash = "abc";
  manifest.target = "cpu";
  manifest.configText = "a = \"b\"\nc";
  manifest.modelConfig = "{\"model_type\": \"gpt2\"}";
  manifest.mesh = Mesh{{"dp.node", 2}, {"dp.local", 2}, {"tp", 2}};
  manifest.microBatch = 4;
  manifest.accumulation = 3;
  manifest.seed = UINT64_MAX;
  manifest.data = {"15 samples", 96, 4096, true, 7};
  manifest.evaluations = {{"valid", 0.1}, {"a \"b\"", INFINITY}};
  Layout layout;
  layout.cuts = {AxisSet(), AxisSet{2}};
  layout.bucket = {0, 1};
  layout.offset = 5;
  layout.shardElements = 11;
  manifest.tensors = {
      {"w", Role::Parameter, "", FileDType::F32, {4, 8}, {"tied"}, true, layout, FileDType::BF16},
      {"w.exp_avg", Role::Moment, "w", FileDType::F32, {4, 8}, {}, false, layout, FileDType::F32},
      {"step", Role::Scalar, "", FileDType::I64, {}, {}, false, {}, FileDType::I64}};
  manifest.chunkBytes = 64;
  manifest.files = {{"one.safetensors", 65, {std::string(32, '1'), std::string(32, '2')}}};
  return manifest;
}

/// The same with a view of 8 rows, of which 4 exist, of its first tensor.
Manifest padded() {
  Manifest manifest = example();
  Layout &layout = manifest.tensors[0].layout;
  layout.view = {8, 2, 4};
  layout.existing = 4;
  layout.cuts = {AxisSet{2}, AxisSet(), AxisSet()};
  return manifest;
}

/// The same with pieces of a dimension of its first tensor.
Manifest inPieces() {
  Manifest manifest = padded();
  Layout &layout = manifest.tensors[0].layout;
  layout.view.clear();
  layout.existing.reset();
  layout.cuts = {AxisSet{2}, AxisSet()};
  layout.pieces = {2, 2};
  return manifest;
}

TEST(Manifest, readsWhatItSpells) {
  const Result<Manifest> read = parseManifest(spellManifest(example()), "m");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(spellManifest(*read), spellManifest(example()));
  EXPECT_EQ(read->tensors[0].layout, example().tensors[0].layout);
  EXPECT_EQ(read->run, "0123abcd");
  EXPECT_EQ(read->seed, UINT64_MAX);
  EXPECT_EQ(read->data.samples, 96u);
  ASSERT_EQ(read->evaluations.size(), 2u);
  EXPECT_EQ(read->evaluations[0], example().evaluations[0]) << "to the bit";
  EXPECT_EQ(read->evaluations[1].name, "a \"b\"");
  EXPECT_TRUE(std::isnan(read->evaluations[1].loss)) << "JSON has no infinity";
  EXPECT_EQ(read->tensors[0].held, FileDType::BF16);
}

/// The form of those that have no views stays the one that older builds read.
TEST(Manifest, viewsHaveAFormOfTheirOwn) {
  EXPECT_NE(spellManifest(example()).find("\"version\": 1"), std::string::npos);
  const Result<Manifest> read = parseManifest(spellManifest(padded()), "m");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->tensors[0].layout, padded().tensors[0].layout);
  EXPECT_EQ(spellManifest(*read), spellManifest(padded()));
  EXPECT_NE(spellManifest(padded()).find("\"version\": 2"), std::string::npos);
}

/// One that was written before optimizers had a place of their own names it in its configuration.
TEST(Manifest, namesItsOptimizer) {
  Manifest manifest = example();
  EXPECT_EQ(parseManifest(spellManifest(manifest), "m")->optimizer, "");
  manifest.configText = "a = 1\noptimizer.type = \"Lion\"      # ds_config.json:3:5\nb = 2\n";
  EXPECT_EQ(parseManifest(spellManifest(manifest), "m")->optimizer, "Lion");
  manifest.optimizer = "SGD";
  EXPECT_EQ(parseManifest(spellManifest(manifest), "m")->optimizer, "SGD");
  EXPECT_EQ(optimizerOf("optimizer.type = \"AdamW\"\n"), "AdamW");
  for (const char *none : {"", "my.optimizer.type = \"SGD\"", "optimizer.type = null", "optimizer.type"})
    EXPECT_EQ(optimizerOf(none), "") << none;
}

TEST(Manifest, everyFlippedByteIsRefused) {
  const std::string good = spellManifest(example());
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 1);
    const Result<Manifest> read = parseManifest(bad, "m");
    ASSERT_FALSE(read) << at;
    ASSERT_EQ(read.error().code, ExitCode::Corrupt);
  }
  for (size_t bytes = 0; bytes < good.size(); ++bytes)
    ASSERT_FALSE(parseManifest(good.substr(0, bytes), "m")) << bytes;
}

/// The manifest with one change and a digest that fits it: what a stranger may send.
Result<Manifest> parseChanged(const std::string &from, const std::string &to,
                              const Manifest &manifest = example()) {
  std::string text = spellManifest(manifest);
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  const std::string body = text.substr(text.find('\n') + 1);
  return parseManifest("{\"digest\": \"" + digestOf(std::as_bytes(std::span(body))) + "\",\n" + body, "m");
}

TEST(Manifest, strangersMayNotNameOtherFiles) {
  for (const char *name : {"../one", "/etc/passwd", "a/b", "..", ".", "", "manifest.json", "a\\u0000b"}) {
    const Result<Manifest> read = parseChanged("one.safetensors", name);
    ASSERT_FALSE(read) << name;
    EXPECT_EQ(read.error().code, ExitCode::Corrupt);
  }
  EXPECT_FALSE(parseChanged("one.safetensors", std::string(300, 'x')));
}

TEST(Manifest, valuesOfOtherKindsAreRefused) {
  for (const auto &[from, to] : std::vector<std::pair<std::string, std::string>>{
           {"\"step\": 12", "\"step\": -1"},
           {"\"step\": 12", "\"step\": 1.5"},
           {"\"step\": 12", "\"step\": \"12\""},
           {"\"step\": 12,", ""},
           {"[4,8]", "[4,-8]"},
           {"[4,8]", "[4611686018427387904,8]"},
           {"\"F32\"", "\"F33\""},
           {"\"F32\"", "\"F4\""}, // elements of half a byte
           {"\"w.exp_avg\",\"role", "\"w\",\"role"},
           {"\"w.exp_avg\",\"role", "\"tied\",\"role"},
           {"[\"tied\"]", "[\"step\"]"},
           {"\"files\": [", R"("files": [{"name":"one.safetensors","bytes":0,"digests":[]},)"},
           {"\"parameter\"", "\"gradient\""},
           {"\"dp.local\",\"size\":2", "\"dp.local\",\"size\":0"},
           {"\"dp.local\",\"size\":2", "\"dp.node\",\"size\":2"},
           {"[\"tp\"]", "[\"pp\"]"},
           {"\"offset\":5", "\"offset\":50"},
           {"\"bytes\":65", "\"bytes\":64"},
           {"\"chunk_bytes\": 64", "\"chunk_bytes\": 0"},
           {"\"chunk_bytes\": 64", "\"chunk_bytes\": 60"},
           {"\"samples\":96", "\"samples\":null"}}) {
    const Result<Manifest> read = parseChanged(from, to);
    ASSERT_FALSE(read) << from << " -> " << to;
    EXPECT_EQ(read.error().code, ExitCode::Corrupt) << to;
  }
}

TEST(Manifest, viewsThatDoNotFitAreRefused) {
  ASSERT_TRUE(parseChanged("x", "x", padded()));
  for (const auto &[from, to] : std::vector<std::pair<std::string, std::string>>{
           {"[8,2,4]", "[8,2,5]"},
           {"[8,2,4]", "[7,2,4]"}, // two ranks do not divide them
           {"[8,2,4]", "[8,-2,4]"},
           {"[8,2,4]", "[8,8]"}, // for three cuts
           {"[8,2,4]", "8"},
           {"\"existing\":4", "\"existing\":0"},
           {"\"existing\":4", "\"existing\":8"},
           {"\"existing\":4", "\"existing\":9"},
           {"\"existing\":4", "\"existing\":null"},
           {"\"existing\":4,", ""},
           {"\"view\":[8,2,4],", ""}}) {
    const Result<Manifest> read = parseChanged(from, to, padded());
    ASSERT_FALSE(read) << from << " -> " << to;
    EXPECT_EQ(read.error().code, ExitCode::Corrupt) << to;
  }
}

TEST(Manifest, piecesHaveAFormOfTheirOwn) {
  const Result<Manifest> read = parseManifest(spellManifest(inPieces()), "m");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->tensors[0].layout, inPieces().tensors[0].layout);
  EXPECT_EQ(spellManifest(*read), spellManifest(inPieces()));
  EXPECT_NE(spellManifest(inPieces()).find("\"version\": 3"), std::string::npos);
  for (const char *bad : {"[3,1]", "[2]", "[4,2]", "[0,4]", "[-2,6]", "4"})
    EXPECT_FALSE(parseChanged("\"pieces\":[2,2]", std::string("\"pieces\":") + bad, inPieces())) << bad;
}

TEST(Manifest, newerFormsAreRefusedByName) {
  const Result<Manifest> read = parseChanged("\"version\": 1", "\"version\": 4");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().message, "'m': has form 4, but this build reads forms up to 3");
}

/// Keys that no manifest has are passed over, in a time that grows with their number.
TEST(Manifest, aMillionKeysAreReadAtOnce) {
  std::string keys = "\"step\": 12";
  for (int i = 0; i < 1'000'000; ++i)
    keys += ",\n\"k" + std::to_string(i) + "\":0";
  EXPECT_TRUE(parseChanged("\"step\": 12", keys));
}

TEST(Manifest, depthIsNoDanger) {
  const std::string deep(1'000'000, '[');
  EXPECT_FALSE(parseChanged("\"step\": 12", "\"k\": " + deep));
  EXPECT_TRUE(
      parseChanged("\"step\": 12", "\"k\": " + deep + std::string(1'000'000, ']') + ", \"step\": 12"));
}

TEST(Manifest, filesOfARankTravelAsText) {
  const std::vector<CheckpointFile> files = example().files;
  const Result<std::vector<CheckpointFile>> read = parseFiles(spellFiles(files));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 1u);
  EXPECT_EQ((*read)[0].digests, files[0].digests);
  EXPECT_FALSE(parseFiles("nonsense"));
}

} // namespace
