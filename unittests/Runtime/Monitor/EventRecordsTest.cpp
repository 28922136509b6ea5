//===- EventRecordsTest.cpp - Records that TensorBoard reads -----------------------===//

#include "Monitor/EventRecords.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace ds::rt;

namespace {

/// RFC 3720, B.4, and the value that all catalogues of checksums have.
TEST(EventRecordsTest, ChecksumIsCastagnolis) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

/// The first record of a file, byte by byte: 24 bytes of data, of which 9 are the time and 15 the version.
TEST(EventRecordsTest, FirstEventIsSpeltOut) {
  const std::string record = spellFirstEvent(0.0);
  ASSERT_EQ(record.size(), 8u + 4 + 24 + 4);
  EXPECT_EQ(record.substr(0, 8), std::string("\x18\0\0\0\0\0\0\0", 8));
  EXPECT_EQ(record.substr(12, 9), std::string("\x09\0\0\0\0\0\0\0\0", 9));
  EXPECT_EQ(record.substr(21, 15), std::string("\x1a\x0d") + "brain.Event:2");
}

/// A step beyond 127 takes two bytes; the value is a float within the summary's one value.
TEST(EventRecordsTest, ScalarsHaveTagStepAndValue) {
  const Scalar scalars[] = {{"loss", 1.5}};
  const std::string data = spellScalarEvent(0.0, 300, scalars).substr(12);
  EXPECT_EQ(data.substr(9, 3), "\x10\xac\x02");                      // field 2: 300
  EXPECT_EQ(data.substr(12, 4), "\x2a\x0d\x0a\x0b");                 // field 5 of 13 bytes: a value of 11
  EXPECT_EQ(data.substr(16, 6), std::string("\x0a\x04") + "loss");   // its tag
  EXPECT_EQ(data.substr(22, 5), std::string("\x15\0\0\xc0\x3f", 5)); // and 1.5
}

} // namespace
