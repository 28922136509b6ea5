//===- DataFilesTest.cpp - Patterns and blends, in their spellings -------------===//

#include "ds/Runtime/Data/DataFiles.h"
#include "TestFiles.h"

#include "gmock/gmock.h"

using namespace ds;
using namespace ds::rt;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

namespace {

class DataFilesTest : public FormatsTest {
protected:
  std::vector<std::string> namesOf(const DataPart &part) const {
    std::vector<std::string> names;
    for (const std::string &file : part.files) {
      EXPECT_TRUE(file.starts_with(directory + "/")) << file;
      names.push_back(file.substr(directory.size() + 1));
    }
    return names;
  }
  static std::string refusal(const Result<DataFiles> &data, ExitCode code) {
    EXPECT_FALSE(data);
    if (data)
      return "";
    EXPECT_EQ(data.error().code, code) << data.error().message;
    return data.error().message;
  }
  std::string blendRefusal(std::string_view json) {
    return refusal(findDataFiles(write("b.json", json)), ExitCode::Corrupt);
  }
  void touch(std::initializer_list<const char *> names) {
    for (const char *name : names)
      write(name, "");
  }
};

TEST_F(DataFilesTest, OneFileIsItself) {
  Result<DataFiles> data = findDataFiles("nowhere/x.bin");
  ASSERT_TRUE(data);
  EXPECT_FALSE(data->isBlend);
  ASSERT_EQ(data->parts.size(), 1u);
  EXPECT_THAT(data->parts[0].files, ElementsAre("nowhere/x.bin")); // the reader says that there is none
}

TEST_F(DataFilesTest, PatternsAreSortedByName) {
  touch({"t-2.bin", "t-10.bin", "t-1.bin", "T-1.bin", "u.bin", ".t-0.bin"});
  Result<DataFiles> data = findDataFiles(path("t-*.bin"));
  ASSERT_TRUE(data);
  EXPECT_THAT(namesOf(data->parts[0]), ElementsAre("t-1.bin", "t-10.bin", "t-2.bin"));
  EXPECT_THAT(namesOf(findDataFiles(path("[tT]-1.bin"))->parts[0]), ElementsAre("T-1.bin", "t-1.bin"));
  EXPECT_THAT(namesOf(findDataFiles(path("?.bin"))->parts[0]), ElementsAre("u.bin"));
}

TEST_F(DataFilesTest, PairsCountOnce) {
  touch({"a.bin", "a.idx", "b.bin", "c.idx"});
  EXPECT_THAT(namesOf(findDataFiles(path("[abc]*"))->parts[0]), ElementsAre("a.idx", "b.bin", "c.idx"));
  EXPECT_EQ(pairPrefix(path("a.bin")), path("a"));
  EXPECT_EQ(pairPrefix(path("a")), path("a"));
  EXPECT_EQ(pairPrefix(path("b.bin")), "");
}

TEST_F(DataFilesTest, PatternWithoutMatch) {
  EXPECT_THAT(refusal(findDataFiles(path("t-*.bin")), ExitCode::Io), HasSubstr("t-*.bin': no file matches"));
  EXPECT_THAT(refusal(findDataFiles("1:" + path("t-*.bin")), ExitCode::Io), HasSubstr("no file matches"));
}

TEST_F(DataFilesTest, AFileOfThatNameComesFirst) {
  touch({"t-*.bin", "t-1.bin"});
  EXPECT_THAT(namesOf(findDataFiles(path("t-*.bin"))->parts[0]), ElementsAre("t-*.bin"));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory);
  touch({"7:x.bin"});
  EXPECT_FALSE(findDataFiles("7:x.bin")->isBlend);
  EXPECT_TRUE(findDataFiles("8:x.bin")->isBlend);
  std::filesystem::current_path(before);
}

TEST_F(DataFilesTest, BlendsOnTheCommandLine) {
  touch({"w1.bin", "w2.bin", "c.idx"});
  Result<DataFiles> data = findDataFiles("0.7:" + path("w*.bin") + ",3e-1:" + path("c.idx"));
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_TRUE(data->isBlend);
  ASSERT_EQ(data->parts.size(), 2u);
  EXPECT_EQ(data->parts[0].weight, "0.7");
  EXPECT_THAT(namesOf(data->parts[0]), ElementsAre("w1.bin", "w2.bin"));
  EXPECT_EQ(data->parts[1].weight, "3e-1");
  EXPECT_EQ(data->parts[1].name, path("c.idx"));
}

TEST_F(DataFilesTest, MisspeltBlends) {
  for (const char *text : {"0.7:a.bin,b.bin", "0.7:a.bin,", "0.7:a.bin,,1:b", "0.7:", "1:a.bin,x:b.bin"})
    EXPECT_THAT(refusal(findDataFiles(text), ExitCode::Usage), HasSubstr("expects WEIGHT:PATH")) << text;
  EXPECT_TRUE(findDataFiles("-1:a.bin")->isBlend); // whose weight is then refused
}

TEST_F(DataFilesTest, BlendFiles) {
  touch({"w1.bin", "w2.bin"});
  Result<DataFiles> data = findDataFiles(write("b.json", R"({"sources": [
      {"path": "w*.bin", "weight": 0.7}, {"weight": 3, "path": "/elsewhere/c,1.idx", "token_dtype": "u32"}]})"));
  ASSERT_TRUE(data) << data.error().message;
  EXPECT_TRUE(data->isBlend);
  EXPECT_THAT(namesOf(data->parts[0]), ElementsAre("w1.bin", "w2.bin")); // beside the blend's file
  EXPECT_EQ(data->parts[0].weight, "0.7");
  EXPECT_EQ(data->parts[0].tokenDtype, "");
  EXPECT_THAT(data->parts[1].files, ElementsAre("/elsewhere/c,1.idx"));
  EXPECT_EQ(data->parts[1].weight, "3");
  EXPECT_EQ(data->parts[1].tokenDtype, "u32");
}

TEST_F(DataFilesTest, DamagedBlendFiles) {
  EXPECT_THAT(blendRefusal("{"), HasSubstr("b.json': is not JSON"));
  EXPECT_THAT(blendRefusal(""), HasSubstr("is not JSON"));
  EXPECT_THAT(blendRefusal(R"({"sources": [{"path": "a", "weight": 1e999}]})"), HasSubstr("is not JSON"));
  EXPECT_THAT(blendRefusal(std::string("{\"sources\": []}\0", 16)), HasSubstr("has a NUL at byte 15"));
  for (const char *text :
       {"[]", "{}", R"({"sources": []})", R"({"sources": {}})", R"({"sources": [{}], "x": 1})"})
    EXPECT_THAT(blendRefusal(text), HasSubstr("the one key 'sources', a list")) << text;
  auto second = [&](const std::string &source) {
    return blendRefusal(R"({"sources": [{"path": "a", "weight": 1}, )" + source + "]}");
  };
  EXPECT_THAT(second("3"), HasSubstr("source 2: expects an object"));
  EXPECT_THAT(second(R"({"path": "a"})"), HasSubstr("source 2: expects the 'path' of a file"));
  EXPECT_THAT(second(R"({"weight": 1})"), HasSubstr("source 2: expects the 'path' of a file"));
  EXPECT_THAT(second(R"({"path": "a\u0000", "weight": 1})"), HasSubstr("source 2: expects the 'path'"));
  EXPECT_THAT(second(R"({"path": "a", "weight": "1"})"),
              HasSubstr("source 2: expects a number for 'weight'"));
  EXPECT_THAT(second(R"({"path": 1, "weight": 1})"), HasSubstr("source 2: expects text for 'path'"));
  EXPECT_THAT(second(R"({"path": "a", "weigth": 1})"), HasSubstr("source 2: has the unknown key 'weigth'"));
  EXPECT_THAT(second(R"({"path": "a.json", "weight": 1})"), HasSubstr("source 2: is a blend itself"));
  EXPECT_THAT(second(R"({"path": "a", "path": "b", "weight": 1})"), HasSubstr("has the key 'path' twice"));
  EXPECT_THAT(blendRefusal(std::string(5, '[')), HasSubstr("is nested deeper than 4"));
  EXPECT_THAT(blendRefusal(std::string(100000, '[')), HasSubstr("is nested deeper than 4"));
  EXPECT_THAT(blendRefusal(std::string((1 << 20) + 1, ' ')), HasSubstr("is longer than 1048576 bytes"));
  EXPECT_THAT(refusal(findDataFiles(path("none.json")), ExitCode::Io), HasSubstr("none.json"));
}

TEST_F(DataFilesTest, ListNamesWhateverIsRead) {
  touch({"w1.bin", "w2.bin", "c.idx", "c.bin"});
  const std::string blend = "7:" + path("w*.bin") + ",3:" + path("c");
  EXPECT_THAT(listDataFiles(blend), UnorderedElementsAre(blend, path("w1.bin"), path("w2.bin"), path("c"),
                                                         path("c.idx"), path("c.bin")));
  EXPECT_THAT(listDataFiles(path("w1.bin")), ElementsAre(path("w1.bin")));
  EXPECT_THAT(listDataFiles(path("none-*")), ElementsAre(path("none-*")));
}
} // namespace
