//===- StorageWatchTest.cpp - Storage that does not answer is told of -----------===//

#include "ds/Runtime/Files/StorageWatch.h"
#include "ds/Runtime/Files/AtomicFile.h"

#include "gmock/gmock.h"

#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace ds;
using namespace ds::rt;
using std::chrono::milliseconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// What a watch tells, and a way to wait for it.
class Told {
public:
  void add(const std::string &line) {
    std::lock_guard<std::mutex> lock(mutex);
    lines.push_back(line);
    changed.notify_all();
  }
  /// The first `count` lines, or fewer after a minute.
  std::vector<std::string> await(size_t count) {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait_for(lock, std::chrono::minutes(1), [&] { return lines.size() >= count; });
    return lines;
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::string> lines;
};

StorageWatch::Tell to(Told &told) {
  return [&](const std::string &line) { told.add(line); };
}

TEST(StorageWatch, TellsOfAnOperationThatTakesLong) {
  Told told;
  StorageWatch watch(milliseconds(50), to(told));
  const std::string path = "/data/x.bin";
  const StorageOperation reading("reading", path);
  EXPECT_THAT(told.await(1), ElementsAre("reading '/data/x.bin' for 0 s"));
}

/// After 50, 100, 200, 400 ms: not for each look.
TEST(StorageWatch, TellsAgainWhenTheTimeHasDoubled) {
  Told told;
  StorageWatch watch(milliseconds(50), to(told));
  const std::string path = "x";
  const auto begin = std::chrono::steady_clock::now();
  const StorageOperation reading("reading", path);
  EXPECT_EQ(told.await(4).size(), 4u);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(400));
}

TEST(StorageWatch, TellsOfNothingThatIsOver) {
  Told told;
  {
    StorageWatch watch(milliseconds(200), to(told));
    const std::string paths[] = {"a", "b", "c"};
    for (int i = 0; i < 3; ++i) { // together longer than the patience; also out of order
      std::optional<StorageOperation> first(std::in_place, "reading", paths[0]);
      const StorageOperation second("reading", paths[1]);
      first.reset();
      const StorageOperation third("reading", paths[2]);
      std::this_thread::sleep_for(milliseconds(100));
    }
    std::this_thread::sleep_for(milliseconds(300));
  }
  EXPECT_THAT(told.await(0), IsEmpty());
}

/// A pipe that nobody reads is a disk that does not answer.
TEST(StorageWatch, KnowsOfWritesToFiles) {
  char pattern[] = "/tmp/ds-storage-test-XXXXXX";
  const std::string pipe = std::string(::mkdtemp(pattern)) + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  Told told;
  {
    StorageWatch watch(milliseconds(50), to(told));
    std::thread writer([&] {
      Result<AtomicFile> file = AtomicFile::create(pipe);
      ASSERT_TRUE(file) << file.error().message;
      EXPECT_TRUE(file->write(std::string(1 << 20, 'x')));
    });
    EXPECT_THAT(told.await(1), Contains(HasSubstr("writing '" + pipe + "' for ")));
    ::fcntl(reader, F_SETFL, 0); // reads wait from here on
    char bytes[65536];
    for (ssize_t left = 1 << 20, size = 0; left > 0; left -= std::max<ssize_t>(size, 0))
      size = ::read(reader, bytes, sizeof bytes);
    writer.join();
  }
  ::close(reader);
  ::unlink(pipe.c_str());
  ::rmdir(pattern);
}

TEST(StorageWatch, MayBeMissing) {
  const std::string path = "x";
  const StorageOperation alone("reading", path);
}

} // namespace
