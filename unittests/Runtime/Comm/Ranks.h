//===- Ranks.h - Ranks as threads of one test process ----------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_COMM_RANKS_H
#define DS_UNITTESTS_RUNTIME_COMM_RANKS_H

#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Program/Program.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

namespace ds::rt::test {

/// A directory that is gone after the test.
struct TemporaryDirectory {
  TemporaryDirectory() {
    char pattern[] = "/tmp/ds-comm-test-XXXXXX";
    path = ::mkdtemp(pattern);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path); }
  std::string path;
};

inline RankIdentity placeOf(const std::string &directory, uint32_t rank, uint32_t world,
                            const char *nonce = "job") {
  RankIdentity place;
  place.kind = RankIdentity::Kind::Directory;
  place.rank = rank;
  place.world = world;
  place.oneHost = true;
  place.directory = directory;
  place.nonce = nonce;
  return place;
}

/// Connects `world` ranks, each on a thread, and runs `body` on all of them.
inline void runRanksOn(const char *transport, uint32_t world, const std::function<void(RankGroup &)> &body,
                       std::chrono::milliseconds timeout, bool finish) {
  TemporaryDirectory directory;
  ::setenv("DS_TRANSPORT", transport, 1);
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < world; ++rank)
    threads.emplace_back([&, rank] {
      ConnectOptions options;
      options.timeout = timeout;
      Result<std::unique_ptr<RankGroup>> group = connect(placeOf(directory.path, rank, world), options);
      ASSERT_TRUE(group) << group.error().message;
      EXPECT_EQ((*group)->transport(), transport);
      body(**group);
      if (!finish)
        return;
      const Status finished = (*group)->finish();
      EXPECT_TRUE(finished) << finished.error().message;
    });
  for (std::thread &thread : threads)
    thread.join();
  ::unsetenv("DS_TRANSPORT");
}

/// The same for both ways in which data travels between ranks of one machine.
inline void runRanks(uint32_t world, const std::function<void(RankGroup &)> &body,
                     std::chrono::milliseconds timeout = std::chrono::seconds(20), bool finish = true) {
  for (const char *transport : {"memory", "gloo"})
    runRanksOn(transport, world, body, timeout, finish);
}

/// Staging memory for a reduction of `elements` per rank (of the vector, for an all-reduce).
inline std::vector<std::byte> stagingFor(CollectiveKind kind, DType dtype, uint64_t elements,
                                         uint32_t world) {
  return std::vector<std::byte>(
      collectiveStagingBytes(Collective{kind, Reduction::Sum, dtype, elements, {}, ""}, world));
}

} // namespace ds::rt::test

#define EXPECT_OK(call)                                                                                      \
  do {                                                                                                       \
    const ::ds::Status okStatus = (call);                                                                    \
    EXPECT_TRUE(okStatus) << okStatus.error().message;                                                       \
  } while (false)

#endif // DS_UNITTESTS_RUNTIME_COMM_RANKS_H
