//===- SafeTensorsFuzzTest.cpp - Mutated files neither crash nor explode -------===//
//
// A fixed generator mutates a valid file some thousand times. Whatever comes out is accepted or refused as
// corrupt; what is accepted keeps the promises that readers rely on.
//
//===---------------------------------------------------------------------------===//

#include "CountedMemory.h"
#include "TestFiles.h"
#include "ds/Runtime/Formats/SafeTensors.h"

#include <random>

using namespace ds;
using namespace ds::rt;

namespace {

class SafeTensorsFuzzTest : public FormatsTest {
protected:
  /// Bytes allocated at the worst moment of opening `bytes`.
  size_t peakOf(std::string_view bytes, bool &accepted) {
    std::string name = write("t", bytes);
    PeakMemory peak;
    auto file = SafeTensorsFile::open(name);
    accepted = bool(file);
    return peak.bytes();
  }
};

/// What every accepted file promises: each tensor lies inside the file and has the bytes its shape asks for.
void expectSound(const SafeTensorsFile &file) {
  std::span<const std::byte> bytes = file.file().bytes();
  for (const TensorEntry &entry : file.entries()) {
    ASSERT_GE(entry.data, bytes.data());
    ASSERT_LE(entry.bytes, uint64_t(bytes.data() + bytes.size() - entry.data));
    uint64_t count = 1;
    for (int64_t dim : entry.shape)
      count *= uint64_t(dim);
    ASSERT_EQ(entry.bytes, count * bitSize(entry.dtype) / 8);
    ASSERT_EQ(file.find(entry.name), &entry);
  }
}

std::string mutate(std::string bytes, std::mt19937_64 &random) {
  static const char *const kTokens[] = {"{",
                                        "}",
                                        "[",
                                        "]",
                                        ",",
                                        ":",
                                        "\"",
                                        "0",
                                        "18446744073709551615",
                                        "-1",
                                        "1e9",
                                        "\"a\"",
                                        "null",
                                        "\"__metadata__\":{}",
                                        "\"dtype\":\"F64\"",
                                        "\\u0000",
                                        "\xff"};
  for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
    size_t at = random() % bytes.size();
    switch (random() % 5) {
    case 0:
      bytes[at] = char(random());
      break;
    case 1:
      bytes[at] ^= char(1 << random() % 8);
      break;
    case 2:
      bytes.insert(at, kTokens[random() % std::size(kTokens)]);
      break;
    case 3:
      bytes.erase(at, 1 + random() % 8);
      break;
    case 4:
      bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40));
      break;
    }
    if (bytes.empty())
      bytes = "x";
  }
  return bytes;
}

/// Puts the true length of the header back, so that mutations behind it reach the later rules.
void repairLength(std::string &bytes) {
  size_t end = bytes.rfind('}');
  if (bytes.size() < 8 || end == std::string::npos || end < 8)
    return;
  uint64_t length = end - 7;
  memcpy(bytes.data(), &length, 8);
}

TEST_F(SafeTensorsFuzzTest, MutatedFiles) {
  std::string valid = safeTensors(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"BF16","shape":[],"data_offsets":[24,26]},)"
      R"("c":{"dtype":"U8","shape":[4,0],"data_offsets":[26,26]}})",
      std::string(26, '\0'));
  std::mt19937_64 random(2024);
  unsigned numAccepted = 0;
  for (unsigned i = 0; i < 6000; ++i) {
    std::string bytes = mutate(valid, random);
    if (i % 2)
      repairLength(bytes);
    auto file = SafeTensorsFile::open(write("t", bytes));
    if (!file) {
      ASSERT_EQ(file.error().code, ExitCode::Corrupt) << file.error().message;
      ASSERT_LT(file.error().message.size(), 1500u);
      continue;
    }
    ++numAccepted;
    expectSound(*file);
  }
  EXPECT_GT(numAccepted, 20u); // renamed tensors and the like: the mutations do reach the end
}

TEST_F(SafeTensorsFuzzTest, MemoryIsBoundedByTheHeader) {
#ifdef DS_SANITIZED
  GTEST_SKIP() << "memory is not counted under sanitizers";
#endif
  constexpr size_t kRepeats = 100'000;
  // The headers with the most to remember for a byte: dimensions, empty tensors, metadata, one long name.
  std::string dims = "1";
  for (unsigned i = 1; i < 64; ++i)
    dims += ",1";
  std::string shapes = "{", pairs = "{\"__metadata__\":{", empties = "{";
  for (size_t i = 0; i < kRepeats; ++i) {
    std::string separator = i ? "," : "", name = "\"" + std::to_string(i) + "\"";
    empties += separator + name + R"(:{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
    pairs += separator + name + ":\"\"";
    if (i % 4 == 0)
      shapes +=
          separator + name + R"(:{"dtype":"U8","shape":[0,)" + dims.substr(2) + R"(],"data_offsets":[0,0]})";
  }
  std::string longName =
      "{\"" + std::string(10'000'000, 'n') + R"(":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  for (std::string header : {shapes, pairs + "}", empties, longName}) {
    header += "}";
    bool accepted = false;
    size_t peak = peakOf(safeTensors(header), accepted);
    EXPECT_TRUE(accepted) << header.substr(0, 60);
    EXPECT_LT(peak, header.size() * 7) << header.substr(0, 60);
  }
}

TEST_F(SafeTensorsFuzzTest, RefusalCostsNoMemory) {
#ifdef DS_SANITIZED
  GTEST_SKIP() << "memory is not counted under sanitizers";
#endif
  bool accepted = true;
  // A length that the file does not have may not be believed.
  uint64_t length = kMaxSafeTensorsHeader;
  std::string bytes(reinterpret_cast<char *>(&length), 8);
  EXPECT_LT(peakOf(bytes + "{}", accepted), 100'000u);
  EXPECT_FALSE(accepted);
  // Nor an offset.
  EXPECT_LT(
      peakOf(
          safeTensors(
              R"({"a":{"dtype":"U8","shape":[1152921504606846976],"data_offsets":[0,1152921504606846976]}})"),
          accepted),
      100'000u);
  EXPECT_FALSE(accepted);
}
} // namespace
