//===- ArchiveTest.cpp - Damaged and hostile archives are refused ---------------===//

#include "Guard/Archive.h"

#include <gtest/gtest.h>
#include <zip.h>

#include <fstream>
#include <map>
#include <random>

#include <fcntl.h>
#include <unistd.h>

using namespace ds;

namespace {

class ArchiveTest : public testing::Test {
protected:
  void SetUp() override {
    path = testing::TempDir() + "archive-" + std::to_string(getpid()) + ".pt";
    entries = {{"m/data.pkl", "\x80\x02K\x01."},
               {"m/constants.pkl", "\x80\x02)."},
               {"m/code/__torch__.py",
                "x = torch.add(y, torch.new_op(z))\nops.prim.NumToTensor(1)\nfoo.torch.no(1)\n"},
               {"m/data/0", std::string(4096, 'w')}};
  }
  void TearDown() override { unlink(path.c_str()); }

  /// Writes the entries; those named in `deflated` are compressed.
  void write(const std::string &deflated = "") {
    unlink(path.c_str());
    zip_t *archive = zip_open(path.c_str(), ZIP_CREATE | ZIP_TRUNCATE, nullptr);
    for (auto &[name, data] : entries) {
      auto *source = zip_source_buffer(archive, data.data(), data.size(), 0);
      zip_int64_t index = zip_file_add(archive, name.c_str(), source, ZIP_FL_ENC_UTF_8);
      zip_set_file_compression(archive, static_cast<zip_uint64_t>(index),
                               name == deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 9);
      if (name == encrypted)
        zip_file_set_encryption(archive, static_cast<zip_uint64_t>(index), ZIP_EM_AES_256, "secret");
    }
    ASSERT_EQ(zip_close(archive), 0) << zip_strerror(archive);
  }

  Result<ArchiveSummary> check(const ArchiveLimits &limits = {}) {
    int fd = open(path.c_str(), O_RDONLY);
    auto result = checkArchive(fd, limits);
    close(fd);
    return result;
  }

  void expectRefused(const std::string &part, ExitCode code = ExitCode::Corrupt,
                     const ArchiveLimits &limits = {}) {
    auto result = check(limits);
    ASSERT_FALSE(result) << "accepted, but expected: " << part;
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
    EXPECT_EQ(result.error().code, code);
  }

  std::string bytes() {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void replace(const std::string &content) { std::ofstream(path, std::ios::binary) << content; }

  std::string path, encrypted;
  std::map<std::string, std::string> entries;
};

TEST_F(ArchiveTest, AcceptsAndListsOperators) {
  write("m/code/__torch__.py");
  auto result = check();
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->operatorNames,
            (std::vector<std::string>{"aten::add", "aten::new_op", "prim::NumToTensor"}));
  uint64_t total = 0;
  for (auto &entry : entries)
    total += entry.second.size();
  EXPECT_EQ(result->unpackedBytes, total);
}

TEST_F(ArchiveTest, RefusesAWrongChecksum) {
  write();
  std::string content = bytes();
  content[content.find("wwww") + 17] = 'x';
  replace(content);
  expectRefused("entry 'm/data/0' is damaged");
}

TEST_F(ArchiveTest, RefusesEveryTruncation) {
  write();
  std::string content = bytes();
  for (size_t length = 0; length < content.size(); length += 37) {
    replace(content.substr(0, length));
    EXPECT_FALSE(check()) << length << " of " << content.size() << " bytes";
  }
}

TEST_F(ArchiveTest, NeverAcceptsChangedData) {
  write("m/code/__torch__.py");
  const std::string original = bytes();
  std::mt19937 random(1);
  for (int round = 0; round < 500; ++round) {
    std::string content = original;
    for (unsigned i = 0, count = 1 + random() % 4; i < count; ++i)
      content[random() % content.size()] = static_cast<char>(random());
    replace(content);
    auto result = check(); // It may not crash; what it accepts must unpack to what was packed.
    if (result)
      EXPECT_EQ(result->operatorNames,
                (std::vector<std::string>{"aten::add", "aten::new_op", "prim::NumToTensor"}));
  }
}

TEST_F(ArchiveTest, RefusesNamesThatLeaveTheArchive) {
  for (const char *name : {"../m/x", "/etc/x", "m/../../x", "m//x", "m\\x", "other/x"}) {
    SetUp();
    entries[name] = "x";
    write();
    EXPECT_FALSE(check()) << name;
  }
}

TEST_F(ArchiveTest, RefusesEncryption) {
  encrypted = "m/data/0";
  write();
  expectRefused("entry 'm/data/0' is encrypted");
}

TEST_F(ArchiveTest, RefusesABomb) {
  entries["m/data/0"] = std::string(4 << 20, '\0');
  write("m/data/0");
  expectRefused("the limits are a ratio of 200");
  ArchiveLimits limits;
  limits.unpackedRatio = 5000;
  limits.codeBytes = 1 << 20;
  expectRefused("1048576 bytes in all", ExitCode::Corrupt, limits);
}

TEST_F(ArchiveTest, RefusesTooManyEntries) {
  write();
  ArchiveLimits limits;
  limits.entries = 3;
  expectRefused("has 4 entries; the limit is 3", ExitCode::Corrupt, limits);
}

TEST_F(ArchiveTest, TellsAPlainTorchSaveFromAModule) {
  entries.erase("m/constants.pkl");
  write();
  expectRefused("no TorchScript module", ExitCode::Invalid);
  entries.erase("m/data.pkl");
  write();
  expectRefused("the archive has no m/data.pkl");
}

TEST_F(ArchiveTest, RefusesWhatIsNoFile) {
  path = "/dev/null";
  auto result = check();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ExitCode::Io);
  path = "";
}

} // namespace
