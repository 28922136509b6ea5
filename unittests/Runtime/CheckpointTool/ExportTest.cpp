//===- ExportTest.cpp - A checkpoint as a folder of a model --------------------------------===//

#include "ToolFixture.h"

#include "CheckpointTool/ExportFiles.h"
#include "ds/Runtime/CheckpointTool/Export.h"
#include "ds/Runtime/Formats/SafeTensors.h"

#include <nlohmann/json.hpp>

#include <bit>
#include <random>
#include <set>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

namespace {

class Export : public ToolFixture {
protected:
  Result<ExportReport> exportIt(const std::string &from, ExportOptions options = {}) {
    options.from = from;
    options.to = out();
    return exportCheckpoint(options);
  }
  std::string out() const { return root + "/out"; }
  std::set<std::string> files(const std::string &folder) {
    std::set<std::string> names;
    for (const fs::directory_entry &entry : fs::directory_iterator(folder))
      names.insert(entry.path().filename());
    return names;
  }
  template <class T>
  std::vector<T> values(const WeightFiles &weights, const std::string &name) {
    const TensorEntry *entry = weights.find(name);
    EXPECT_TRUE(entry) << name;
    std::vector<T> all(entry ? entry->bytes / sizeof(T) : 0);
    if (entry)
      std::memcpy(all.data(), entry->data, entry->bytes);
    return all;
  }
};

TEST_F(Export, parametersAndBuffersAlone) {
  Given tied = givenFloats("tokens", {1, 2});
  tied.tensor.aliases = {"head"};
  const std::string path =
      write(7, {tied, given<float>("tokens.exp_avg", FileDType::F32, {2}, {3, 4}, Role::Moment),
                given<int64_t>("count", FileDType::I64, {}, {9}, Role::Buffer),
                given<int64_t>("step", FileDType::I64, {}, {7}, Role::Scalar),
                given<float>("empty", FileDType::F32, {0, 3}, {})});
  const Result<ExportReport> report = exportIt(path);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->tensors, 3u);
  EXPECT_EQ(report->bytes, 16u);
  EXPECT_THAT(report->tiedNames, ElementsAre("head"));
  EXPECT_THAT(files(out()), ElementsAre("model.safetensors"));
  EXPECT_THAT(files(root), ElementsAre("out", "step-7"));
  const Result<WeightFiles> weights = WeightFiles::open(out());
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_EQ(weights->entries().size(), 3u);
  EXPECT_THAT(values<float>(*weights, "tokens"), ElementsAre(1, 2));
  EXPECT_THAT(values<int64_t>(*weights, "count"), ElementsAre(9));
}

/// How ranks held a tensor is not seen in what is exported: a fused one cut by heads, a padded table.
TEST_F(Export, layoutsLeaveNoTrace) {
  Model whole(Mesh{}), cut(Mesh{{"dp", 2}, {"tp", 2}});
  Layout heads, table;
  heads.view = {6, 3, 4, 2};
  heads.cuts = {{}, {}, {1}, {}};
  table.view = {12, 5};
  table.existing = 11;
  table.cuts = {{1}, {}};
  table.bucket = {0};
  table.shardElements = 15;
  for (Model *model : {&whole, &cut}) {
    const bool isCut = model == &cut;
    model->add("qkv", {6, 24}, isCut ? heads : Layout());
    model->add("table", {11, 5}, isCut ? table : Layout());
  }
  const auto exported = [&](const Model &model, uint64_t step) {
    const Result<std::string> path = save(systemFiles(), model, root, 1);
    EXPECT_TRUE(path) << path.error().message;
    EXPECT_TRUE(exportIt(*path)) << step;
    EXPECT_TRUE(removeCheckpoint(systemFiles(), *path));
    const std::string text = readText(out() + "/model.safetensors");
    fs::remove_all(out());
    return text;
  };
  const std::string expected = exported(whole, 1);
  ASSERT_GT(expected.size(), (6 * 24 + 11 * 5) * sizeof(float));
  EXPECT_EQ(exported(cut, 2), expected);
}

TEST_F(Export, tiedNamesAreWrittenWhenAskedFor) {
  Given tied = givenFloats("tokens", {1, 2});
  tied.tensor.aliases = {"head"};
  ASSERT_TRUE(exportIt(write(1, {tied}), {.tied = true}));
  EXPECT_THAT(values<float>(*WeightFiles::open(out()), "head"), ElementsAre(1, 2));
}

/// The nearest of two neighbours, the even one in the middle: said by arithmetic, not by the code under test.
uint16_t nearestBrain(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value), low = bits & 0xffff0000u;
  const double below = std::bit_cast<float>(low), above = std::bit_cast<float>(low + 0x10000);
  const double toBelow = std::abs(value - below), toAbove = std::abs(above - value);
  const bool up = toAbove < toBelow || (toAbove == toBelow && (low >> 16 & 1));
  return static_cast<uint16_t>((low >> 16) + up);
}

TEST_F(Export, roundsToTheNearestEven) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> exact = {1, -1, 0, std::bit_cast<float>(0x3f808000), std::bit_cast<float>(0x3f818000)};
  for (int i = 0; i < 3'000'000; ++i) // more than one batch
    exact.push_back(normal(random));
  const std::string path = write(1, {givenFloats("w", exact), givenFloats("x", {0.5})}, 1 << 20);
  ASSERT_TRUE(exportIt(path, {.dtype = FileDType::BF16}));
  const Result<WeightFiles> weights = WeightFiles::open(out());
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->find("w")->dtype, FileDType::BF16);
  const std::vector<uint16_t> rounded = values<uint16_t>(*weights, "w");
  ASSERT_EQ(rounded.size(), exact.size());
  for (size_t i = 0; i < exact.size(); ++i)
    ASSERT_EQ(rounded[i], nearestBrain(exact[i])) << exact[i];
  EXPECT_THAT(values<uint16_t>(*weights, "x"), ElementsAre(0x3f00));
}

TEST_F(Export, otherTypesBecomeWhatIsAskedFor) {
  const std::string path = write(1, {given<uint16_t>("b", FileDType::BF16, {2}, {0x3f80, 0x3fc0}),
                                     given<uint16_t>("h", FileDType::F16, {1}, {0x3c00}),
                                     given<uint8_t>("mask", FileDType::Bool, {2}, {0, 1}, Role::Buffer)});
  ASSERT_TRUE(exportIt(path, {.dtype = FileDType::F16}));
  Result<WeightFiles> weights = WeightFiles::open(out());
  EXPECT_THAT(values<uint16_t>(*weights, "b"), ElementsAre(0x3c00, 0x3e00)); // 1 and 1.5
  EXPECT_THAT(values<uint16_t>(*weights, "h"), ElementsAre(0x3c00));
  EXPECT_THAT(values<uint8_t>(*weights, "mask"), ElementsAre(0, 1));
  fs::remove_all(out());
  ASSERT_TRUE(exportIt(path, {.dtype = FileDType::F32}));
  weights = WeightFiles::open(out());
  EXPECT_THAT(values<float>(*weights, "b"), ElementsAre(1, 1.5));
  EXPECT_THAT(values<float>(*weights, "h"), ElementsAre(1));
}

TEST_F(Export, overflowIsRefusedByNameAndLeavesNothing) {
  const std::string path = write(1, {givenFloats("fine", {65504}), givenFloats("large", {1, 2, 70000})});
  const Result<ExportReport> report = exportIt(path, {.dtype = FileDType::F16, .maxShardBytes = 1});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ExitCode::Invalid);
  EXPECT_THAT(report.error().message, HasSubstr("'large': element 2 is 70000"));
  EXPECT_THAT(files(root), ElementsAre("step-1"));
  EXPECT_TRUE(exportIt(path, {.dtype = FileDType::BF16}));
}

TEST_F(Export, doublesAreNotRounded) {
  const std::string path = write(1, {given<double>("w", FileDType::F64, {1}, {1})});
  const Result<ExportReport> report = exportIt(path, {.dtype = FileDType::F32});
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("'w' is kept as F64"));
  EXPECT_TRUE(exportIt(path));
}

/// Tensors of 8, 8, 16 and 4 bytes in files of 16: two, one, and what is left.
TEST_F(Export, shardsHaveAnIndex) {
  const std::string path = write(1, {givenFloats("a", {1, 2}), givenFloats("b", {3, 4}),
                                     givenFloats("c", {5, 6, 7, 8}), givenFloats("d", {9})});
  const Result<ExportReport> report = exportIt(path, {.maxShardBytes = 16});
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_THAT(files(out()),
              ElementsAre("model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                          "model-00003-of-00003.safetensors", "model.safetensors.index.json"));
  const nlohmann::json index = nlohmann::json::parse(readText(out() + "/model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 36);
  EXPECT_EQ(index["weight_map"]["b"], "model-00001-of-00003.safetensors");
  EXPECT_EQ(index["weight_map"]["d"], "model-00003-of-00003.safetensors");
  const Result<WeightFiles> weights = WeightFiles::open(out());
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_THAT(values<float>(*weights, "c"), ElementsAre(5, 6, 7, 8));
}

TEST_F(Export, largerTensorsHaveAFileOfTheirOwn) {
  std::vector<ExportTensor> tensors = {{"a", nullptr, FileDType::F32, 4},
                                       {"b", nullptr, FileDType::F32, 100},
                                       {"c", nullptr, FileDType::F32, 4}};
  const std::vector<std::vector<ExportTensor>> shards = cutIntoShards(tensors, 10);
  ASSERT_EQ(shards.size(), 3u);
  EXPECT_EQ(shards[1][0].name, "b");
  EXPECT_EQ(cutIntoShards({}, 10).size(), 1u);
}

TEST_F(Export, foldersWithContentsAreLeftAlone) {
  const std::string path = write(1, {givenFloats("w", {1})});
  fs::create_directory(out());
  writeText(out() + "/mine", "x");
  const Result<ExportReport> report = exportIt(path);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ExitCode::Io);
  EXPECT_THAT(report.error().message, HasSubstr("cannot write '")); // before anything was done for it
  EXPECT_THAT(files(out()), ElementsAre("mine"));
  fs::remove(out() + "/mine");
  EXPECT_TRUE(exportIt(path)); // empty
}

TEST_F(Export, theModelsConfigGoesWithIt) {
  const std::string path = write(1, {givenFloats("w", {1})}, 4096, "{\"model_type\": \"gpt2\"}");
  ASSERT_TRUE(exportIt(path));
  EXPECT_EQ(readText(out() + "/config.json"), "{\"model_type\": \"gpt2\"}");
  fs::remove_all(out());
  writeText(root + "/other.json", "{}\n");
  ASSERT_TRUE(exportIt(path, {.config = root + "/other.json"}));
  EXPECT_EQ(readText(out() + "/config.json"), "{}\n");
  fs::remove_all(out());
  writeText(root + "/other.json", "[]");
  const Result<ExportReport> report = exportIt(path, {.config = root + "/other.json"});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ExitCode::Invalid);
  EXPECT_FALSE(fs::exists(out()));
}

TEST_F(Export, damageEndsIt) {
  const std::string path = write(1, {givenFloats("w", std::vector<float>(5000, 1))});
  std::string bytes = readText(path + kFile);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  writeText(path + kFile, bytes);
  const Result<ExportReport> report = exportIt(path);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ExitCode::Corrupt);
  EXPECT_THAT(files(root), ElementsAre("step-1"));
}

} // namespace
