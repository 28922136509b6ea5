//===- TorchFileTest.cpp - Files of torch.save ----------------------------------===//

#include "ds/Runtime/Formats/TorchFile.h"
#include "PickleStreams.h"
#include "TestFiles.h"
#include "TorchArchives.h"

#include "gmock/gmock.h"

#include <numeric>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::streams;
using testing::HasSubstr;

namespace {

/// 0, 1, 2, ...
std::string floats(size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return bytesOf(values);
}

class TorchFileTest : public FormatsTest {
protected:
  std::string write(const ArchiveEntries &entries, int method = ZIP_CM_STORE) const {
    writeArchive(path("f.pt"), entries, method);
    return path("f.pt");
  }
  /// A file whose value is `value`, with 12 numbers in data/0.
  std::string write(const std::string &value) const {
    return write({{"f/data.pkl", pickle(value)}, {"f/data/0", floats(12)}, {"f/version", "3\n"}});
  }

  static Error refusal(const std::string &path) {
    Result<TorchFile> file = TorchFile::open(path);
    EXPECT_FALSE(file) << "accepted";
    return file ? Error{} : file.error();
  }
};

std::vector<float> readAll(const TorchFile &file, const PickleTensor &tensor) {
  std::vector<float> values(tensor.numElements());
  Status status = file.read(tensor, 0, values.size(), values.data());
  EXPECT_TRUE(status) << status.error().message;
  return values;
}

TEST_F(TorchFileTest, PackedTensors) {
  Result<TorchFile> file = TorchFile::open(write(tensor(storage("0", 12), 2, {3, 3}, {3, 1})));
  ASSERT_TRUE(file) << file.error().message;
  PickleTensor view = *file->root().asTensor();
  EXPECT_EQ(readAll(*file, view), (std::vector<float>{2, 3, 4, 5, 6, 7, 8, 9, 10}));
  float part[2];
  ASSERT_TRUE(file->read(view, 4, 2, part));
  EXPECT_EQ(part[0], 6);
  EXPECT_EQ(part[1], 7);
  EXPECT_TRUE(file->read(view, 9, 0, nullptr));
}

TEST_F(TorchFileTest, TensorsInOtherOrders) {
  // A transposed tensor, one column of it, and one number that is seen four times.
  Result<TorchFile> file = TorchFile::open(
      write(tuple(tensor(storage("0", 12), 0, {4, 3}, {1, 4}) + tensor(storage("0", 12), 1, {3}, {4}) +
                  tensor(storage("0", 12), 5, {2, 2}, {0, 0}))));
  ASSERT_TRUE(file) << file.error().message;
  PickleTensor transposed = *file->root()[0].asTensor();
  EXPECT_EQ(readAll(*file, transposed), (std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(readAll(*file, *file->root()[1].asTensor()), (std::vector<float>{1, 5, 9}));
  EXPECT_EQ(readAll(*file, *file->root()[2].asTensor()), (std::vector<float>{5, 5, 5, 5}));
  float part[4];
  ASSERT_TRUE(file->read(transposed, 5, 4, part)); // from the middle of a row on
  EXPECT_EQ(std::vector<float>(part, part + 4), (std::vector<float>{9, 2, 6, 10}));
}

TEST_F(TorchFileTest, StoragesMustBeThere) {
  std::string four = pickle(tensor(storage("0", 4), 0, {4}, {1}));
  EXPECT_THAT(refusal(write({{"f/data.pkl", four}})).message,
              HasSubstr("expects 16 bytes in entry 'data/0', but there"));
  Error error = refusal(write({{"f/data.pkl", four}, {"f/data/0", floats(3)}}));
  EXPECT_THAT(error.message, HasSubstr("but it has 12"));
  EXPECT_EQ(error.code, ExitCode::Corrupt);
  std::string outside = pickle(tensor(storage("../version", 4), 0, {4}, {1}));
  EXPECT_THAT(refusal(write({{"f/data.pkl", outside}, {"f/version", floats(4)}})).message,
              HasSubstr("there is none"));
}

TEST_F(TorchFileTest, ArchivesThatTorchDoesNotWrite) {
  std::string value = pickle("N");
  EXPECT_THAT(refusal(write({{"f/data.pkl", std::string(1000, 'a')}}, ZIP_CM_DEFLATE)).message,
              HasSubstr("compressed or encrypted"));
  EXPECT_THAT(refusal(write({{"f/data.pkl", value}, {"g/data/0", ""}})).message,
              HasSubstr("outside of the archive's"));
  EXPECT_THAT(refusal(write({{"data.pkl", value}})).message, HasSubstr("outside of the archive's"));
  EXPECT_THAT(refusal(write({{"f/../data.pkl", value}})).message, HasSubstr("no plain relative path"));
  EXPECT_THAT(refusal(write({{"f/a", value}})).message, HasSubstr("has no f/data.pkl"));
  Error script = refusal(write({{"f/data.pkl", value}, {"f/constants.pkl", value}}));
  EXPECT_THAT(script.message, HasSubstr("is a TorchScript archive"));
  EXPECT_EQ(script.code, ExitCode::Invalid);
  Error order = refusal(write({{"f/data.pkl", value}, {"f/byteorder", "big"}}));
  EXPECT_THAT(order.message, HasSubstr("numbers in byte order 'big'"));
  EXPECT_EQ(order.code, ExitCode::Invalid);
  Result<TorchFile> little = TorchFile::open(write({{"f/data.pkl", value}, {"f/byteorder", "little"}}));
  EXPECT_TRUE(little) << little.error().message;
}

TEST_F(TorchFileTest, OtherFiles) {
  Error old = refusal(FormatsTest::write("old.pt", "\x80\x02\x8a\nl\xfc\x9c"
                                                   "F\xf9 j\xa8P\x19.\x80\x02M\xe9\x03."));
  EXPECT_EQ(old.code, ExitCode::Invalid);
  EXPECT_THAT(old.message, HasSubstr("before PyTorch 1.6"));
  EXPECT_EQ(refusal(FormatsTest::write("text.pt", "no archive")).code, ExitCode::Corrupt);
  EXPECT_EQ(refusal(FormatsTest::write("empty.pt", "")).code, ExitCode::Corrupt);
  EXPECT_EQ(refusal(path("missing.pt")).code, ExitCode::Io);
  EXPECT_EQ(refusal(directory).code, ExitCode::Io);
  EXPECT_EQ(TorchFile::openBeneath(directory, "../x.pt").error().code, ExitCode::Corrupt);
}

TEST_F(TorchFileTest, DamagedNumbersAreNoticedBeforeTheyAreUsed) {
  std::string file = write(tensor(storage("0", 12), 0, {2}, {1})), bytes = read(file);
  size_t place = bytes.find(floats(12));
  ASSERT_NE(place, std::string::npos);
  bytes[place + 40] ^= 1; // in a number that the tensor does not have
  Result<TorchFile> damaged = TorchFile::open(FormatsTest::write("f.pt", bytes));
  ASSERT_TRUE(damaged) << damaged.error().message;
  float values[2];
  Status status = damaged->read(*damaged->root().asTensor(), 0, 2, values);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Corrupt);
  EXPECT_THAT(status.error().message, HasSubstr("is damaged: CRC"));
}

TEST_F(TorchFileTest, MutatedArchives) {
  std::string value = "}(" + text("a") + tensor(storage("0", 12), 2, {2, 3}, {1, 4}) + text("b") +
                      tensor(storage("0", 12), 0, {12}, {1}) + "u";
  std::string right = read(write(value));
  int memory = memfd_create("archive", MFD_CLOEXEC); // ten thousand files without a disk
  std::string name = "/proc/self/fd/" + std::to_string(memory);
  std::mt19937_64 random(2024);
  unsigned numRead = 0, numRefused = 0;
  for (unsigned i = 0; i < 10'000; ++i) {
    std::string bytes = right;
    for (unsigned edits = 1 + random() % 4; edits > 0; --edits)
      bytes[random() % bytes.size()] = char(random());
    if (i % 8 == 0)
      bytes.resize(random() % bytes.size());
    ASSERT_EQ(ftruncate(memory, off_t(bytes.size())), 0);
    ASSERT_EQ(pwrite(memory, bytes.data(), bytes.size(), 0), ssize_t(bytes.size()));
    Result<TorchFile> file = TorchFile::open(name);
    Status status = file ? Status() : Status(file.error());
    std::vector<float> values(12);
    for (size_t k = 0; status && k < file->root().size(); ++k)
      if (std::optional<PickleTensor> tensor = file->root().value(k).asTensor();
          tensor && tensor->numElements() <= 12)
        status = file->read(*tensor, 0, tensor->numElements(), values.data());
    if (!status)
      ASSERT_TRUE(status.error().code == ExitCode::Corrupt || status.error().code == ExitCode::Invalid)
          << status.error().message;
    else if (file->root().find("b"))
      ASSERT_EQ(bytesOf(values), floats(12)) << "a checksum lets no changed number through";
    ++(status ? numRead : numRefused);
  }
  close(memory);
  EXPECT_GT(numRead, 100u); // times and attributes may change
  EXPECT_GT(numRefused, 5000u);
}

} // namespace
