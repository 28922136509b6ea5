//===- NpyTest.cpp - Arrays that are read and arrays that are not --------------===//

#include "ds/Runtime/Formats/Npy.h"
#include "TestFiles.h"

#include "gmock/gmock.h"

#include <random>

using namespace ds;
using namespace ds::rt;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// A file with this dictionary, as numpy pads it.
std::string npy(std::string header, std::string_view data, char major = 1) {
  size_t prefix = major == 1 ? 10 : 12;
  header.append((64 - (prefix + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  uint32_t length = uint32_t(header.size());
  std::string out = "\x93NUMPY";
  out += major;
  out += '\0';
  out.append(reinterpret_cast<const char *>(&length), prefix - 8);
  return out + header + std::string(data);
}

class NpyTest : public FormatsTest {
protected:
  std::string refusal(std::string_view bytes, ExitCode code) {
    auto file = NpyFile::open(write("a.npy", bytes));
    EXPECT_FALSE(file);
    if (file)
      return "";
    EXPECT_EQ(file.error().code, code) << file.error().message;
    EXPECT_THAT(file.error().message, HasSubstr("a.npy"));
    return file.error().message;
  }
  std::string corrupt(std::string_view bytes) { return refusal(bytes, ExitCode::Corrupt); }
  std::string invalid(std::string_view bytes) { return refusal(bytes, ExitCode::Invalid); }
  std::string corruptHeader(const std::string &header) { return corrupt(npy(header, "")); }
};

TEST_F(NpyTest, ReadsAnArray) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  for (char major : {1, 2, 3}) {
    auto file = NpyFile::open(write(
        "a.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", bytesOf(values), major)));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(file->dtype(), FileDType::F32);
    EXPECT_THAT(file->shape(), ElementsAre(2, 3));
    ASSERT_EQ(file->data().size(), 24u);
    EXPECT_EQ(memcmp(file->data().data(), values.data(), 24), 0);
  }
}

TEST_F(NpyTest, Shapes) {
  auto shapeOf = [&](const std::string &shape, size_t bytes) {
    auto file =
        NpyFile::open(write("a.npy", npy("{'descr':'|u1','fortran_order':False,'shape':" + shape + "}",
                                         std::string(bytes, 'x'))));
    EXPECT_TRUE(file) << file.error().message;
    return file ? std::vector<int64_t>(file->shape().begin(), file->shape().end()) : std::vector<int64_t>{-1};
  };
  EXPECT_THAT(shapeOf("()", 1), ElementsAre());
  EXPECT_THAT(shapeOf("(5,)", 5), ElementsAre(5));
  EXPECT_THAT(shapeOf("(2, 0)", 0), ElementsAre(2, 0));
  EXPECT_THAT(shapeOf("( 1,2 ,3 )", 6), ElementsAre(1, 2, 3));
}

TEST_F(NpyTest, ElementTypes) {
  auto typeOf = [&](const std::string &descr, size_t bytes) {
    auto file =
        NpyFile::open(write("a.npy", npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,)}",
                                         std::string(bytes, 0))));
    EXPECT_TRUE(file) << file.error().message;
    return file ? file->dtype() : FileDType::F4;
  };
  EXPECT_EQ(typeOf("<i8", 8), FileDType::I64);
  EXPECT_EQ(typeOf("<u2", 2), FileDType::U16);
  EXPECT_EQ(typeOf("<f2", 2), FileDType::F16);
  EXPECT_EQ(typeOf("|b1", 1), FileDType::Bool);
  EXPECT_EQ(typeOf("|i1", 1), FileDType::I8);
  EXPECT_EQ(typeOf("<f8", 8), FileDType::F64);
}

TEST_F(NpyTest, RefusesWhatWouldRunCodeOrNeedConverting) {
  auto withDescr = [&](const std::string &descr) {
    return invalid(npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,)}", "12345678"));
  };
  EXPECT_THAT(withDescr("|O"), HasSubstr("pickled Python objects are never read"));
  EXPECT_THAT(withDescr(">f4"), HasSubstr("big-endian"));
  EXPECT_THAT(withDescr("<V2"), HasSubstr("bf16"));
  EXPECT_THAT(withDescr("<U4"), HasSubstr("'<U4'"));
  EXPECT_THAT(withDescr("f4"), HasSubstr("'f4'"));
  EXPECT_THAT(withDescr("|f4"), HasSubstr("no byte order"));
  EXPECT_THAT(withDescr(""), HasSubstr("expects little-endian"));
  EXPECT_THAT(invalid(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234")),
              HasSubstr("list of fields"));
}

TEST_F(NpyTest, FortranOrder) {
  std::string header = "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2)}";
  EXPECT_THAT(invalid(npy(header, "abcd")), HasSubstr("Fortran order for shape [2, 2]"));
  EXPECT_TRUE(
      NpyFile::open(write("a.npy", npy("{'descr': '|u1', 'fortran_order': True, 'shape': (4,)}", "abcd"))));
}

TEST_F(NpyTest, Prefix) {
  EXPECT_THAT(corrupt(""), HasSubstr("is not a .npy file"));
  EXPECT_THAT(corrupt("\x93NUMPY\x01"), HasSubstr("is not a .npy file"));
  EXPECT_THAT(corrupt("PK\x03\x04 an .npz, renamed"), HasSubstr("is not a .npy file"));
  EXPECT_THAT(corrupt(npy("{}", "", 4)), HasSubstr("version 4.0"));
  EXPECT_THAT(corrupt(std::string_view("\x93NUMPY\x01\0\xff\x00{}", 12)),
              HasSubstr("255 bytes does not fit"));
  EXPECT_THAT(corrupt(std::string_view("\x93NUMPY\x02\0\xff\xff\xff\xff{}", 14)),
              HasSubstr("over the limit"));
  EXPECT_THAT(corrupt(std::string_view("\x93NUMPY\x02\0\x01\0", 10)), HasSubstr("does not fit"));
}

TEST_F(NpyTest, Dictionary) {
  EXPECT_THAT(corruptHeader("[]"), HasSubstr("expects '{'"));
  EXPECT_THAT(corruptHeader("{'descr': '<f4'}"), HasSubstr("one is missing"));
  EXPECT_THAT(corruptHeader("{'descr': '<f4', 'descr': '<f4'}"), HasSubstr("duplicate key 'descr'"));
  EXPECT_THAT(corruptHeader("{'dtype': '<f4'}"), HasSubstr("unknown key 'dtype'"));
  EXPECT_THAT(corruptHeader("{'shape': (-1,)}"), HasSubstr("expects a dimension"));
  EXPECT_THAT(corruptHeader("{'shape': (9223372036854775808,)}"), HasSubstr("expects a dimension"));
  EXPECT_THAT(corruptHeader("{'shape': (1 2)}"), HasSubstr("expects ',' or ')'"));
  EXPECT_THAT(corruptHeader("{'shape': [1]}"), HasSubstr("expects a tuple"));
  EXPECT_THAT(corruptHeader("{'fortran_order': 0}"), HasSubstr("expects True or False"));
  EXPECT_THAT(corruptHeader("{'descr': '<f4"), HasSubstr("unterminated"));
  EXPECT_THAT(corruptHeader("{'descr': '\\x3cf4'}"), HasSubstr("escape"));
  EXPECT_THAT(corruptHeader("{'descr': '<f4', 'fortran_order': False, 'shape': ()} x"),
              HasSubstr("text after"));
  std::string shape(2 * 65, '1');
  for (size_t i = 1; i < shape.size(); i += 2)
    shape[i] = ',';
  EXPECT_THAT(corruptHeader("{'shape': (" + shape + ")}"), HasSubstr("more than 64 dimensions"));
}

TEST_F(NpyTest, Sizes) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}";
  EXPECT_THAT(corrupt(npy(header, std::string(23, 0))),
              HasSubstr("shape [2, 3] of F32 takes 24 bytes, but the file has 23"));
  EXPECT_THAT(corrupt(npy(header, std::string(25, 0))), HasSubstr("the file has 25"));
  EXPECT_THAT(corruptHeader("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
              HasSubstr("overflows"));
  EXPECT_THAT(corruptHeader("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,)}"),
              HasSubstr("overflows"));
}

TEST_F(NpyTest, MutatedFilesDoNotCrash) {
  std::string valid = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", std::string(24, 0));
  std::mt19937_64 random(7);
  for (unsigned i = 0; i < 4000; ++i) {
    std::string bytes = valid;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits)
      bytes[random() % 90] = char(random() % 2 ? random() : "{}(),:'0123456789 "[random() % 18]);
    auto file = NpyFile::open(write("a.npy", bytes));
    if (!file)
      ASSERT_TRUE(file.error().code == ExitCode::Corrupt || file.error().code == ExitCode::Invalid);
  }
}
} // namespace
