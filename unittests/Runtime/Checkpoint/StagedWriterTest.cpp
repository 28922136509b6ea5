//===- StagedWriterTest.cpp - Files written by several threads are what was appended -----===//

#include "CheckpointFixture.h"
#include "CrashingFiles.h"
#include "Files/AlignedBlock.h"

#include "ds/Runtime/Checkpoint/StagedWriter.h"

using namespace ds::rt;
using namespace ds::rt::test;

namespace {

std::string randomText(size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(bytes, ' ');
  for (char &letter : text)
    letter = static_cast<char>(random());
  return text;
}

class StagedWriterTest : public CheckpointFixture {
protected:
  /// Appends `text` in pieces of random size and compares the file with it.
  void expectWrites(StagedWriter &writer, FileLayer &layer, const std::string &text, unsigned seed) {
    const std::string path = root + "/file";
    fs::remove(path);
    const int file = layer.create(path);
    ASSERT_GE(file, 0);
    writer.begin(file);
    std::mt19937 random(seed);
    for (size_t at = 0; at < text.size();) {
      const size_t part = std::min<size_t>(random() % 20000, text.size() - at);
      ASSERT_EQ(writer.append(std::as_bytes(std::span(text).subspan(at, part))), 0);
      at += part;
    }
    EXPECT_EQ(writer.finish(), 0);
    EXPECT_EQ(layer.close(file), 0);
    EXPECT_TRUE(readText(path) == text) << text.size() << " bytes";
  }
};

TEST_F(StagedWriterTest, writesAnySizeWithAnyNumberOfThreads) {
  for (const uint32_t threads : {0u, 1u, 4u}) {
    StagedWriter writer(systemFiles(), {threads, 8192});
    unsigned seed = 0;
    for (const size_t bytes : {0, 1, 4095, 4096, 4097, 8192, 8193, 12288, 100000, 300001, 5})
      expectWrites(writer, systemFiles(), randomText(bytes, seed), seed + 1), ++seed;
  }
}

TEST_F(StagedWriterTest, HasTheBlocksThatNotesOfTheConfigurationTell) {
  EXPECT_EQ(StagedWriterOptions().threads, 4u);
  EXPECT_EQ(StagedWriterOptions().blockBytes, 4u << 20);
  EXPECT_EQ(StagedWriter::memoryBytes({}), 8u * (4u << 20)); // four are filled while four are written
}

/// Bytes that stay are written from where they are, if that is aligned, and what is before and behind them
/// is copied.
TEST_F(StagedWriterTest, WritesWhatStaysFromWhereItIs) {
  const std::string text = randomText(100000, 9);
  const AlignedBlock block = allocateBlock(25 * kDirectUnit);
  std::memcpy(block.get(), text.data(), text.size());
  for (const uint32_t threads : {0u, 4u})
    for (const size_t shift : {0, 8, 4096}) {
      StagedWriter writer(systemFiles(), {threads, 8192});
      const std::string path = root + "/stable";
      fs::remove(path);
      const int file = systemFiles().create(path);
      writer.begin(file);
      EXPECT_EQ(writer.appendStable({block.get() + shift, text.size() - shift}), 0);
      EXPECT_EQ(writer.append(std::as_bytes(std::span(text).first(shift))), 0);
      EXPECT_EQ(writer.finish(), 0);
      EXPECT_EQ(systemFiles().close(file), 0);
      EXPECT_TRUE(readText(path) == text.substr(shift) + text.substr(0, shift)) << threads << ", " << shift;
    }
}

/// Where the system has no direct writes, as in memory, the same comes out.
TEST_F(StagedWriterTest, writesThroughTheCacheToo) {
  CrashingFiles files(root);
  StagedWriter writer(files, {0, 8192});
  expectWrites(writer, files, randomText(50001, 3), 4);
}

TEST_F(StagedWriterTest, aFailureIsToldAndTheNextFileIsWell) {
  CrashingFiles files(root, Fault::NoSpace, 4);
  StagedWriter writer(files, {0, 8192});
  const int file = files.create(root + "/bad");
  writer.begin(file);
  const std::string text = randomText(40000, 1);
  int failure = writer.append(std::as_bytes(std::span(text)));
  if (failure == 0)
    failure = writer.finish();
  EXPECT_EQ(failure, ENOSPC);
  expectWrites(writer, files, text, 2);
}

/// A file that may not grow: the error of any thread's write comes out.
TEST_F(StagedWriterTest, failuresOfThreadsAreTold) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  StagedWriter writer(systemFiles(), {4, 8192});
  writer.begin(full);
  const std::string text = randomText(400000, 1);
  writer.append(std::as_bytes(std::span(text)));
  EXPECT_EQ(writer.finish(), ENOSPC);
  ::close(full);
  expectWrites(writer, systemFiles(), text, 2);
}

} // namespace
