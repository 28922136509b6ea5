//===- SafeTensorsTest.cpp - Every rule of the format, one by one --------------===//

#include "ds/Runtime/Formats/SafeTensors.h"
#include "TestFiles.h"

#include "gmock/gmock.h"

#include <numeric>

using namespace ds;
using namespace ds::rt;
using testing::HasSubstr;

namespace {

class SafeTensorsTest : public FormatsTest {
protected:
  /// The message with which a file of these bytes is refused; "" if it is accepted.
  std::string refusal(std::string_view bytes) {
    auto file = SafeTensorsFile::open(write("t.safetensors", bytes));
    if (file)
      return "";
    EXPECT_EQ(file.error().code, ExitCode::Corrupt) << file.error().message;
    EXPECT_THAT(file.error().message, HasSubstr("t.safetensors"));
    return file.error().message;
  }

  /// The same for a header and `dataBytes` zero bytes of data.
  std::string headerRefusal(std::string_view json, size_t dataBytes = 0) {
    return refusal(safeTensors(json, std::string(dataBytes, '\0')));
  }
};

TEST_F(SafeTensorsTest, ReadsTensors) {
  std::vector<float> a = {1, 2, 3, 4, 5, 6};
  std::vector<int64_t> b = {7, 8};
  auto file = SafeTensorsFile::open(
      write("t", safeTensors(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[16,40]},)"
                             R"("b":{"dtype":"I64","shape":[2],"data_offsets":[0,16]},)"
                             R"("__metadata__":{"format":"pt"}}  )",
                             bytesOf(b) + bytesOf(a))));
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->entries().size(), 2u);
  EXPECT_EQ(file->entries()[0].name, "b"); // in the order of the data
  const TensorEntry *entry = file->find("a");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->dtype, FileDType::F32);
  EXPECT_THAT(entry->shape, testing::ElementsAre(2, 3));
  EXPECT_EQ(entry->bytes, 24u);
  EXPECT_EQ(memcmp(entry->data, a.data(), 24), 0);
  EXPECT_FALSE(file->find("c"));
  ASSERT_EQ(file->metadata().size(), 1u);
  EXPECT_EQ(file->metadata()[0].key, "format");
  EXPECT_EQ(file->metadata()[0].value, "pt");
}

TEST_F(SafeTensorsTest, EntriesSurviveAMove) {
  auto file = SafeTensorsFile::open(
      write("t", safeTensors(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x")));
  ASSERT_TRUE(file);
  const TensorEntry *entry = file->find("a");
  SafeTensorsFile moved = std::move(*file);
  EXPECT_EQ(moved.find("a"), entry);
  EXPECT_EQ(char(*entry->data), 'x');
  EXPECT_EQ(entry->name, "a");
}

// Rule 1: the length.
TEST_F(SafeTensorsTest, EmptyFile) { EXPECT_THAT(refusal(""), HasSubstr("has 0 bytes")); }
TEST_F(SafeTensorsTest, ShorterThanTheLength) { EXPECT_THAT(refusal("\x02\0\0"), HasSubstr("bytes")); }
TEST_F(SafeTensorsTest, LengthOfAllOnes) {
  EXPECT_THAT(refusal(std::string(8, '\xff') + "{}"),
              HasSubstr("18446744073709551615 bytes is over the limit"));
}
TEST_F(SafeTensorsTest, LengthOverTheLimit) {
  uint64_t length = kMaxSafeTensorsHeader + 1;
  EXPECT_THAT(refusal(std::string(reinterpret_cast<char *>(&length), 8) + "{}"), HasSubstr("over the limit"));
}
TEST_F(SafeTensorsTest, LengthBehindTheFile) {
  EXPECT_THAT(refusal(std::string("\x03\0\0\0\0\0\0\0", 8) + "{}"), HasSubstr("3 bytes does not fit"));
}

// Rule 2: the text.
TEST_F(SafeTensorsTest, NoTensors) { EXPECT_EQ(headerRefusal("{}"), ""); }
TEST_F(SafeTensorsTest, WhitespaceAround) { EXPECT_EQ(headerRefusal(" \n{}   "), ""); }
TEST_F(SafeTensorsTest, EmptyHeader) { EXPECT_THAT(headerRefusal(""), HasSubstr("'{'")); }
TEST_F(SafeTensorsTest, OnlyABrace) { EXPECT_THAT(headerRefusal("{"), HasSubstr("not JSON")); }
TEST_F(SafeTensorsTest, NotAnObject) { EXPECT_THAT(headerRefusal("[]"), HasSubstr("'{'")); }
TEST_F(SafeTensorsTest, ByteOrderMark) { EXPECT_THAT(headerRefusal("\xef\xbb\xbf{}"), HasSubstr("'{'")); }
TEST_F(SafeTensorsTest, TrailingText) { EXPECT_THAT(headerRefusal("{}x"), HasSubstr("not JSON")); }
TEST_F(SafeTensorsTest, TextBehindANul) {
  EXPECT_THAT(headerRefusal(std::string_view("{}\0{}", 5)), HasSubstr("NUL at byte 2"));
}
TEST_F(SafeTensorsTest, BadUtf8) {
  EXPECT_THAT(headerRefusal("{\"\xff\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1),
              HasSubstr("not JSON"));
}
TEST_F(SafeTensorsTest, Comment) { EXPECT_THAT(headerRefusal("{/**/}"), HasSubstr("not JSON")); }

// Rule 3: the form.
TEST_F(SafeTensorsTest, MissingFields) {
  EXPECT_THAT(headerRefusal(R"({"a":{"shape":[],"data_offsets":[0,1]}})", 1), HasSubstr("dtype is missing"));
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", 1),
              HasSubstr("shape is missing"));
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[]}})", 1), HasSubstr("data_offsets is missing"));
}
TEST_F(SafeTensorsTest, UnknownField) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1],"x":1}})", 1),
              HasSubstr("tensor 'a': expects the keys dtype, shape and data_offsets, but got 'x'"));
}
TEST_F(SafeTensorsTest, WrongKinds) {
  EXPECT_THAT(headerRefusal(R"({"a":1})"), HasSubstr("expects an object"));
  EXPECT_THAT(headerRefusal(R"({"a":[]})"), HasSubstr("expects an object"));
  EXPECT_THAT(headerRefusal(R"({"a":null})"), HasSubstr("but got null"));
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":1,"shape":[],"data_offsets":[0,1]}})", 1),
              HasSubstr("expects a dtype, but got 1"));
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", 1),
              HasSubstr("expects an array of dimensions, but got 1"));
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":["1"],"data_offsets":[0,1]}})", 1),
              HasSubstr("expects an unsigned integer, but got '1'"));
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[true],"data_offsets":[0,1]}})", 1),
              HasSubstr("but got true"));
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[],"data_offsets":{}}})", 1),
              HasSubstr("expects an array of two offsets"));
}
TEST_F(SafeTensorsTest, NumberThatIsNoUnsignedInteger) {
  for (const char *number : {"1.0", "1e0", "-1", "-0", "18446744073709551616", "1e400"}) {
    EXPECT_NE(headerRefusal(
                  std::string(R"({"a":{"dtype":"U8","shape":[)") + number + R"(],"data_offsets":[0,1]}})", 1),
              "")
        << number;
    EXPECT_NE(headerRefusal(
                  std::string(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[)") + number + R"(,1]}})", 1),
              "")
        << number;
  }
}
TEST_F(SafeTensorsTest, NumberOfOffsets) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", 1),
              HasSubstr("but got 1"));
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,1]}})", 1),
              HasSubstr("got more"));
}
TEST_F(SafeTensorsTest, Depth) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", 1),
              HasSubstr("but got an array"));
  std::string bomb = "{\"a\":{\"shape\":" + std::string(3'000'000, '[');
  EXPECT_THAT(headerRefusal(bomb), HasSubstr("but got an array"));
}
TEST_F(SafeTensorsTest, MetadataHoldsStringsOnly) {
  EXPECT_EQ(headerRefusal(R"({"__metadata__":{}})"), "");
  EXPECT_THAT(headerRefusal(R"({"__metadata__":{"a":1}})"),
              HasSubstr("__metadata__: expects a string, but got 1"));
  EXPECT_THAT(headerRefusal(R"({"__metadata__":{"a":{}}})"), HasSubstr("__metadata__: expects a string"));
  EXPECT_THAT(headerRefusal(R"({"__metadata__":[]})"),
              HasSubstr("__metadata__: expects an object of strings"));
  EXPECT_THAT(headerRefusal(R"({"__metadata__":null})"), HasSubstr("but got null"));
}

// Rule 4: no hole, no overlap, no tail.
TEST_F(SafeTensorsTest, Hole) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", 2),
              HasSubstr("tensor 'a': data_offsets [1, 2] leave a hole"));
  EXPECT_THAT(
      headerRefusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                    R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                    3),
      HasSubstr("tensor 'b': data_offsets [2, 3] leave a hole after the tensor before, which ends at 1"));
}
TEST_F(SafeTensorsTest, OverlapAttack) {
  // Ten tensors over the same four bytes: forty bytes out of four.
  std::string json = "{";
  for (int i = 0; i < 10; ++i)
    json += (i ? ",\"" : "\"") + std::to_string(i) + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_THAT(headerRefusal(json + "}", 4), HasSubstr("overlap"));
}
TEST_F(SafeTensorsTest, TrailingJunk) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 2),
              HasSubstr("end at byte 1 of the data, but the file has 2 bytes"));
  EXPECT_THAT(headerRefusal("{}", 1), HasSubstr("end at byte 0"));
}
TEST_F(SafeTensorsTest, TwoMissingBytes) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 6),
              HasSubstr("end after the file, which has 6 bytes"));
}
TEST_F(SafeTensorsTest, EndBeforeBegin) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("b":{"dtype":"U8","shape":[0],"data_offsets":[1,0]}})",
                            1),
              HasSubstr("tensor 'b': data_offsets [1, 0] end before they begin"));
}

// Rule 5: shapes and sizes.
TEST_F(SafeTensorsTest, CountOverflows) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})"),
              HasSubstr("more than 2^63 - 1 elements"));
}
TEST_F(SafeTensorsTest, DimensionOverTheLimit) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[0,9223372036854775808],"data_offsets":[0,0]}})"),
              HasSubstr("dimension 9223372036854775808 is over the limit of 2^63 - 1"));
}
TEST_F(SafeTensorsTest, BitsOverflow) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"F64","shape":[2305843009213693952],"data_offsets":[0,0]}})"),
              HasSubstr("more than 2^64 - 1 bits"));
}
TEST_F(SafeTensorsTest, SizeDisagrees) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,16]}})", 16),
              HasSubstr("hold 16 bytes, but shape [2, 3] of F32 takes 24"));
}
TEST_F(SafeTensorsTest, BitsThatFillNoByte) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}})", 2),
              HasSubstr("12 bits, which do not fill whole bytes"));
  EXPECT_EQ(headerRefusal(R"({"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}})", 2), "");
  EXPECT_EQ(headerRefusal(R"({"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}})", 3), "");
}
TEST_F(SafeTensorsTest, RankZeroAndZeroSize) {
  EXPECT_EQ(headerRefusal(R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4), "");
  EXPECT_EQ(headerRefusal(R"({"a":{"dtype":"F32","shape":[2,0],"data_offsets":[0,0]},)"
                          R"("b":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                          R"("c":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                          1),
            "");
}
TEST_F(SafeTensorsTest, RankLimit) {
  auto header = [](size_t rank) {
    std::string shape = "1";
    for (size_t i = 1; i < rank; ++i)
      shape += ",1";
    return R"({"a":{"dtype":"U8","shape":[)" + shape + R"(],"data_offsets":[0,1]}})";
  };
  EXPECT_EQ(headerRefusal(header(64), 1), "");
  EXPECT_THAT(headerRefusal(header(65), 1), HasSubstr("more than 64 dimensions"));
}

// Rule 6: element types.
TEST_F(SafeTensorsTest, EveryDTypeRoundTrips) {
  std::vector<TensorSource> sources;
  std::vector<std::byte> data(64);
  for (unsigned i = 0; i < kNumFileDTypes; ++i)
    sources.push_back({std::string(spell(FileDType(i))), FileDType(i), {8}, data.data()});
  ASSERT_TRUE(writeSafeTensors(path("t"), sources));
  auto file = SafeTensorsFile::open(path("t"));
  ASSERT_TRUE(file) << file.error().message;
  for (unsigned i = 0; i < kNumFileDTypes; ++i) {
    const TensorEntry *entry = file->find(spell(FileDType(i)));
    ASSERT_TRUE(entry);
    EXPECT_EQ(entry->dtype, FileDType(i));
    EXPECT_EQ(entry->bytes, bitSize(FileDType(i)));
  }
}
TEST_F(SafeTensorsTest, UnknownDType) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"f32","shape":[1],"data_offsets":[0,4]}})", 4),
              HasSubstr("tensor 'a': unknown dtype 'f32'"));
}

// Rule 7: duplicates.
TEST_F(SafeTensorsTest, DuplicateTensor) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                            2),
              HasSubstr("duplicate key 'a'"));
  // The same name, escaped.
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                            R"("\u0061":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                            2),
              HasSubstr("duplicate key 'a'"));
}
TEST_F(SafeTensorsTest, DuplicateField) {
  EXPECT_THAT(headerRefusal(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr("tensor 'a': duplicate key 'dtype'"));
}
TEST_F(SafeTensorsTest, DuplicateMetadata) {
  EXPECT_THAT(headerRefusal(R"({"__metadata__":{},"__metadata__":{}})"),
              HasSubstr("duplicate key '__metadata__'"));
  EXPECT_THAT(headerRefusal(R"({"__metadata__":{"a":"1","a":"2"}})"), HasSubstr("duplicate key 'a'"));
}
TEST_F(SafeTensorsTest, MessagesEscapeAndShortenNames) {
  std::string longName(5000, 'n');
  std::string message = headerRefusal("{\"" + longName + "\":1}");
  EXPECT_LT(message.size(), 800u);
  EXPECT_THAT(headerRefusal(R"({"a\n\u001b[31m":1})"), HasSubstr("'a\\x0a\\x1b[31m'"));
}

TEST_F(SafeTensorsTest, NonFiniteValuesAreData) {
  std::vector<float> values = {NAN, INFINITY, -INFINITY};
  ASSERT_TRUE(
      writeSafeTensors(path("t"), std::vector<TensorSource>{{"a", FileDType::F32, {3}, values.data()}}));
  auto file = SafeTensorsFile::open(path("t"));
  ASSERT_TRUE(file);
  EXPECT_EQ(memcmp(file->find("a")->data, values.data(), 12), 0);
}

// Rule 8: the writer.
TEST_F(SafeTensorsTest, WriterOrdersByAlignmentThenName) {
  char data[8] = {};
  std::vector<TensorSource> sources = {{"b", FileDType::U8, {1}, data},
                                       {"z", FileDType::F32, {1}, data},
                                       {"a", FileDType::F16, {1}, data},
                                       {"y", FileDType::F32, {1}, data},
                                       {"c", FileDType::I64, {1}, data}};
  auto header = serialiseHeader(sources, {{"z", "1"}, {"format", "pt"}});
  ASSERT_TRUE(header);
  EXPECT_THAT(header->order, testing::ElementsAre(4, 3, 1, 2, 0));
  EXPECT_EQ(header->dataBytes, 19u);
  EXPECT_EQ(header->bytes.size() % 8, 0u);
  EXPECT_EQ(header->bytes.substr(8, 90),
            R"({"__metadata__":{"format":"pt","z":"1"},"c":{"dtype":"I64","shape":[1],"data_offsets":[0,8)");
}

TEST_F(SafeTensorsTest, WriterRefuses) {
  char data[8] = {};
  auto refused = [&](std::vector<TensorSource> sources) {
    auto header = serialiseHeader(sources);
    EXPECT_FALSE(header);
    return header ? "" : header.error().message;
  };
  EXPECT_THAT(refused({{"a", FileDType::U8, {1}, data}, {"a", FileDType::I64, {1}, data}}),
              HasSubstr("two tensors"));
  EXPECT_THAT(refused({{"__metadata__", FileDType::U8, {1}, data}}), HasSubstr("other than __metadata__"));
  EXPECT_THAT(refused({{"\xff", FileDType::U8, {1}, data}}), HasSubstr("UTF-8"));
  EXPECT_THAT(refused({{"a", FileDType::U8, {-1}, data}}), HasSubstr("negative"));
  EXPECT_THAT(refused({{"a", FileDType::F4, {1}, data}}), HasSubstr("4 bits"));
  EXPECT_THAT(refused({{"a", FileDType::U8, std::vector<int64_t>(65, 1), data}}), HasSubstr("65 dimensions"));
  EXPECT_THAT(refused({{std::string(kMaxSafeTensorsHeader, 'x'), FileDType::U8, {1}, data}}),
              HasSubstr("over the format's limit"));
}

TEST_F(SafeTensorsTest, SavesOverTheMappedSource) {
  std::vector<float> values(1 << 18);
  std::iota(values.begin(), values.end(), 0.0f);
  int64_t count = int64_t(values.size());
  ASSERT_TRUE(
      writeSafeTensors(path("t"), std::vector<TensorSource>{{"a", FileDType::F32, {count}, values.data()}}));
  auto file = SafeTensorsFile::open(path("t"));
  ASSERT_TRUE(file);
  const TensorEntry *entry = file->find("a");
  ASSERT_TRUE(
      writeSafeTensors(path("t"), std::vector<TensorSource>{{"b", FileDType::F32, {count}, entry->data}}));
  auto again = SafeTensorsFile::open(path("t"));
  ASSERT_TRUE(again);
  EXPECT_EQ(memcmp(again->find("b")->data, values.data(), values.size() * 4), 0);
  EXPECT_EQ(memcmp(entry->data, values.data(), values.size() * 4), 0);
}

TEST_F(SafeTensorsTest, FailedSaveLeavesNothing) {
  EXPECT_FALSE(writeSafeTensors(path("t"), std::vector<TensorSource>{{"a", FileDType::F4, {1}, nullptr}}));
  EXPECT_TRUE(list().empty());
}
} // namespace
