//===- WeightFilesTest.cpp - Shards and what an index may name -----------------===//

#include "TestFiles.h"
#include "ds/Runtime/Formats/SafeTensors.h"

#include "gmock/gmock.h"

using namespace ds;
using namespace ds::rt;
using testing::HasSubstr;

namespace {

class WeightFilesTest : public FormatsTest {
protected:
  WeightFilesTest() {
    write("s1.safetensors", safeTensors(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "A"));
    write("s2.safetensors", safeTensors(R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                                        R"("extra":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                        "BE"));
  }

  Result<WeightFiles> openIndex(std::string_view json) {
    return WeightFiles::open(write("model.safetensors.index.json", json));
  }

  /// The message with which an index is refused as corrupt.
  std::string refusal(std::string_view json) {
    auto weights = openIndex(json);
    EXPECT_FALSE(weights);
    if (weights)
      return "";
    EXPECT_EQ(weights.error().code, ExitCode::Corrupt) << weights.error().message;
    return weights.error().message;
  }
};

TEST_F(WeightFilesTest, JoinsShards) {
  auto weights = openIndex(R"({"metadata":{"total_size":2.0,"x":[{"y":null}]},)"
                           R"("weight_map":{"b":"s2.safetensors","a":"s1.safetensors"}})");
  ASSERT_TRUE(weights) << weights.error().message;
  ASSERT_EQ(weights->entries().size(), 2u);
  EXPECT_EQ(weights->entries()[0]->name, "a");
  EXPECT_EQ(char(*weights->find("a")->data), 'A');
  EXPECT_EQ(char(*weights->find("b")->data), 'B');
  EXPECT_FALSE(weights->find("extra")); // not in the index
  EXPECT_EQ(weights->files().size(), 2u);
}

TEST_F(WeightFilesTest, SingleFile) {
  auto weights = WeightFiles::open(path("s2.safetensors"));
  ASSERT_TRUE(weights);
  EXPECT_EQ(weights->entries().size(), 2u);
  EXPECT_TRUE(weights->find("extra"));
}

TEST_F(WeightFilesTest, DirectoryOfAModel) {
  auto nothing = WeightFiles::open(path(""));
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, ExitCode::Io);
  EXPECT_THAT(nothing.error().message,
              HasSubstr("has neither model.safetensors.index.json nor model.safetensors"));
  write("model.safetensors", safeTensors(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "X"));
  auto single = WeightFiles::open(path(""));
  ASSERT_TRUE(single) << single.error().message;
  EXPECT_EQ(char(*single->find("a")->data), 'X');
  // Where both are there the index says what the model is.
  write("model.safetensors.index.json", R"({"weight_map":{"b":"s2.safetensors","a":"s1.safetensors"}})");
  auto shards = WeightFiles::open(path(""));
  ASSERT_TRUE(shards) << shards.error().message;
  EXPECT_EQ(char(*shards->find("a")->data), 'A');
}

TEST_F(WeightFilesTest, OnlyNamesBesideTheIndex) {
  for (const char *name :
       {"../s1.safetensors", "/etc/passwd", "sub/s1.safetensors", "..", ".", "", "./s1.safetensors"})
    EXPECT_THAT(refusal(std::string(R"({"weight_map":{"a":")") + name + "\"}}"),
                HasSubstr("expects the name of a file in this directory"))
        << name;
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"s1.safetensors\u0000x"}})"), HasSubstr("\\x00"));
  std::string message = refusal(R"({"weight_map":{"a":")" + std::string(4096, 'n') + "\"}}");
  EXPECT_THAT(message, HasSubstr("at most 255 bytes"));
  EXPECT_LT(message.size(), 800u);
}

TEST_F(WeightFilesTest, LinkOutOfTheDirectory) {
  std::filesystem::create_directory(path("model"));
  std::filesystem::create_symlink("../s1.safetensors", path("model/out.safetensors"));
  std::filesystem::copy_file(path("s1.safetensors"), path("model/real.safetensors"));
  std::filesystem::create_symlink("real.safetensors", path("model/in.safetensors"));
  auto out = WeightFiles::open(write("model/i.json", R"({"weight_map":{"a":"out.safetensors"}})"));
  ASSERT_FALSE(out);
  EXPECT_EQ(out.error().code, ExitCode::Corrupt);
  EXPECT_THAT(out.error().message, HasSubstr("leads out of its directory"));
  EXPECT_TRUE(WeightFiles::open(write("model/i.json", R"({"weight_map":{"a":"in.safetensors"}})")));
}

TEST_F(WeightFilesTest, MissingShardIsIo) {
  auto weights = openIndex(R"({"weight_map":{"a":"s3.safetensors"}})");
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code, ExitCode::Io);
  EXPECT_THAT(weights.error().message, HasSubstr("s3.safetensors': No such file"));
}

TEST_F(WeightFilesTest, TensorThatTheShardDoesNotHave) {
  EXPECT_THAT(refusal(R"({"weight_map":{"b":"s1.safetensors"}})"),
              HasSubstr("places tensor 'b' in 's1.safetensors', which does not have it"));
}

TEST_F(WeightFilesTest, DamagedShardIsNamed) {
  write("s1.safetensors", "short");
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"s1.safetensors"}})"), HasSubstr("s1.safetensors': has 5 bytes"));
}

TEST_F(WeightFilesTest, FormOfTheIndex) {
  EXPECT_THAT(refusal("{}"), HasSubstr("expects an object 'weight_map'"));
  EXPECT_THAT(refusal("[]"), HasSubstr("expects an object"));
  EXPECT_THAT(refusal("7"), HasSubstr("expects an object"));
  EXPECT_THAT(refusal(""), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(R"({"weight_map":[]})"), HasSubstr("expects an object of file names"));
  EXPECT_THAT(refusal(R"({"weight_map":{"a":1}})"), HasSubstr("expects a file name for 'a'"));
  EXPECT_THAT(refusal(R"({"weight_map":{"a":{}}})"), HasSubstr("expects a file name for 'a'"));
  EXPECT_THAT(refusal(R"({"weight_map":{"a":"s1.safetensors","a":"s2.safetensors"}})"),
              HasSubstr("duplicate key 'a'"));
  EXPECT_THAT(refusal(R"({"weight_map":{},"weight_map":{}})"), HasSubstr("duplicate key 'weight_map'"));
  EXPECT_THAT(refusal("{\"metadata\":" + std::string(1'000'000, '[')), HasSubstr("nested deeper than 8"));
  EXPECT_THAT(refusal(std::string_view("{}\0", 3)), HasSubstr("NUL"));
}
} // namespace
