//===- ForeignViewTest.cpp - Whole tensors from pieces of files -----------------===//
//
// What folders of DeepSpeed become is compared with PyTorch by test/oracle/check_foreign.py; here are the
// pieces that the view is made of, and small folders that need no PyTorch.
//
//===---------------------------------------------------------------------------===//

#include "Foreign/ForeignView.h"

#include "Formats/PickleStreams.h"
#include "Formats/TestFiles.h"
#include "Formats/TorchArchives.h"

#include "gmock/gmock.h"

#include <filesystem>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::streams;
using testing::HasSubstr;

namespace {

class ForeignViewTest : public FormatsTest {
protected:
  /// A file of the dict `pairs`, with four numbers in data/0.
  void writeTorch(const std::string &name, const std::string &pairs, float first = 0) const {
    writeArchive(path(name),
                 {{"f/data.pkl", pickle("}(" + pairs + "u")},
                  {"f/data/0", bytesOf(std::vector<float>{first, first + 1, first + 2, first + 3})}});
  }

  static std::string four() { return tensor(storage("0", 4), 0, {4}, {1}); }

  Error refusal() const {
    Result<ForeignCheckpoint> checkpoint = ForeignCheckpoint::open(directory);
    EXPECT_FALSE(checkpoint) << "accepted";
    return checkpoint ? Error{} : checkpoint.error();
  }
};

TEST(FlatVectorTest, CutsAcrossParts) {
  FlatVector vector; // source 7 has elements 0..2, source 8 none, source 9 elements 3..7
  vector.append(7, 3), vector.append(8, 0), vector.append(9, 5);
  EXPECT_EQ(vector.size(), 8u);
  ForeignPieces pieces;
  ASSERT_TRUE(vector.cut(1, 4, 10, pieces)); // elements 1, 2 | 3, 4
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(std::tuple(pieces[0].source, pieces[0].first, pieces[0].count, pieces[0].begin),
            std::tuple(7u, 1u, 2u, 10u));
  EXPECT_EQ(std::tuple(pieces[1].source, pieces[1].first, pieces[1].count, pieces[1].begin),
            std::tuple(9u, 0u, 2u, 12u));
  pieces.clear();
  EXPECT_TRUE(vector.cut(3, 5, 0, pieces)); // a part's own begin, to the end
  EXPECT_EQ(pieces.size(), 1u);
  EXPECT_TRUE(vector.cut(8, 0, 0, pieces)) << "nothing, at the end";
  EXPECT_FALSE(vector.cut(8, 1, 0, pieces));
  EXPECT_FALSE(vector.cut(4, 5, 0, pieces));
  EXPECT_FALSE(vector.cut(1, UINT64_MAX, 0, pieces));
  EXPECT_TRUE(FlatVector().cut(0, 0, 0, pieces));
}

TEST(FlatVectorTest, HolesAreNotCut) {
  FlatVector vector;
  vector.append(1, 2), vector.appendHole(2), vector.append(2, 2);
  ForeignPieces pieces;
  EXPECT_TRUE(vector.cut(0, 2, 0, pieces));
  EXPECT_FALSE(vector.cut(1, 2, 0, pieces));
  EXPECT_FALSE(vector.cut(3, 1, 0, pieces));
  EXPECT_TRUE(vector.cut(4, 2, 0, pieces));
}

TEST_F(ForeignViewTest, ManyFilesAreReadWithFewOpen) {
  auto openFiles = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  constexpr unsigned kFiles = 80;
  std::string index;
  for (unsigned i = 0; i < kFiles; ++i) {
    std::string name = "t" + std::to_string(i), file = "w" + std::to_string(i) + ".bin";
    writeTorch(file, text(name) + four(), float(i));
    index += (i ? ",\"" : "\"") + name + "\":\"" + file + "\"";
  }
  write("pytorch_model.bin.index.json", "{\"weight_map\":{" + index + "}}");
  auto before = openFiles();
  Result<ForeignCheckpoint> checkpoint = ForeignCheckpoint::open(directory);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->tensors().size(), kFiles);
  for (unsigned i = 0; i < kFiles; ++i) {
    float value = -1;
    const ForeignTensor *tensor = checkpoint->find("t" + std::to_string(i));
    ASSERT_TRUE(tensor);
    ASSERT_TRUE(checkpoint->read(*tensor, 2, 1, &value));
    EXPECT_EQ(value, float(i + 2));
  }
  EXPECT_LE(openFiles() - before, 33);
}

TEST_F(ForeignViewTest, FilesThatAreReplacedAreRefused) {
  constexpr unsigned kFiles = 40; // more than stay open
  TorchFiles files;
  for (unsigned i = 0; i < kFiles; ++i) {
    uint32_t number;
    writeTorch(std::to_string(i), text("a") + four());
    ASSERT_TRUE(files.add(directory, std::to_string(i), number));
    EXPECT_EQ(number, i);
  }
  std::filesystem::remove(path("0"));
  writeTorch("0", text("a") + four(), 9);
  EXPECT_THAT(files.use(0).error().message, HasSubstr("was changed while it was being read"));
  EXPECT_TRUE(files.use(1));
}

TEST_F(ForeignViewTest, WeightsOfTorchSave) {
  writeTorch("pytorch_model.bin",
             text("a") + four() + text("b") + tensor(storage("0", 4), 1, {2}, {1}) + text("c") + four());
  Result<ForeignCheckpoint> checkpoint = ForeignCheckpoint::open(directory + "/");
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->format(), ForeignFormat::Weights);
  ASSERT_EQ(checkpoint->tensors().size(), 2u);
  ASSERT_EQ(checkpoint->tied().size(), 1u);
  EXPECT_EQ(checkpoint->tied()[0], (std::vector<std::string>{"a", "c"}));
  float values[2];
  ASSERT_TRUE(checkpoint->read(*checkpoint->find("b"), 0, 2, values));
  EXPECT_EQ(values[0], 1);
  EXPECT_EQ(checkpoint->find("b", "exp_avg"), nullptr);
  EXPECT_EQ(checkpoint->find("c"), nullptr);
}

TEST_F(ForeignViewTest, WeightsThatAreNone) {
  writeTorch("pytorch_model.bin", text("model") + "}");
  Error error = refusal();
  EXPECT_EQ(error.code, ExitCode::Invalid);
  EXPECT_THAT(error.message, HasSubstr("expects names of tensors, but got 'model': a dict"));
  writeTorch("pytorch_model.bin", text("a") + tensor(storage("0", 4), 0, {1 << 30}, {0}));
  EXPECT_THAT(refusal().message, HasSubstr("repeats the 4 elements of its storage"));
  writeTorch("pytorch_model.bin", text(std::string("a\0b", 3)) + four());
  EXPECT_THAT(refusal().message, HasSubstr("a parameter is called 'a\\x00b'"));
  writeTorch("pytorch_model.bin", text("a") + call(global("os", "system"), text("true")));
  EXPECT_THAT(refusal().message, HasSubstr("an object of 'os.system', which is not made"));
}

TEST_F(ForeignViewTest, ShardsMustBeTheirIndexs) {
  writeTorch("one.bin", text("a") + four() + text("hidden") + four());
  write("pytorch_model.bin.index.json", R"({"weight_map":{"a":"one.bin"}})");
  Result<ForeignCheckpoint> checkpoint = ForeignCheckpoint::open(directory);
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tensors().size(), 1u) << "what the index does not list is not visible";
  EXPECT_EQ(checkpoint->tied().size(), 0u);
  write("pytorch_model.bin.index.json", R"({"weight_map":{"a":"one.bin","b":"one.bin"}})");
  EXPECT_THAT(refusal().message, HasSubstr("places tensor 'b' in 'one.bin', which does not have it"));
  write("pytorch_model.bin.index.json", R"({"weight_map":{"a":"../one.bin"}})");
  EXPECT_EQ(refusal().code, ExitCode::Corrupt);
  std::filesystem::create_symlink("/dev/null", path("link.bin"));
  write("pytorch_model.bin.index.json", R"({"weight_map":{"a":"link.bin"}})");
  EXPECT_THAT(refusal().message, HasSubstr("is a link that leads out of its directory"));
}

TEST_F(ForeignViewTest, OtherFolders) {
  EXPECT_THAT(refusal().message, HasSubstr("is no checkpoint that is known here"));
  EXPECT_EQ(ForeignCheckpoint::open(path("missing")).error().code, ExitCode::Io);
  // latest that leads to a folder with another latest: one is followed.
  std::filesystem::create_directories(path("a/b"));
  write("latest", "a");
  write("a/latest", "b");
  EXPECT_THAT(refusal().message, HasSubstr("/a': is no checkpoint"));
  std::filesystem::create_directory(path("zero"));
  std::filesystem::create_directory_symlink("/tmp", path("zero/w"));
  EXPECT_THAT(refusal().message, HasSubstr("expects a folder of a parameter"));
}

} // namespace
