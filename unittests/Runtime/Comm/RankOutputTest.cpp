//===- RankOutputTest.cpp - What the launcher passes on to stderr -----------------===//
#include "Launch/RankOutput.h"
#include "Comm/Control/Socket.h"

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace ds::rt {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    reading = Socket(ends[0]);
    writing = Socket(ends[1]);
  }
  std::string read() {
    char bytes[65536];
    const ssize_t size = ::read(reading.get(), bytes, sizeof bytes);
    return {bytes, size > 0 ? static_cast<size_t>(size) : 0};
  }
  Socket reading, writing;
};

TEST(RankLines, stand_behind_their_rank) {
  Pipe pipe;
  OutputQueue queue(pipe.writing.get());
  RankLines lines(3);
  lines.take("one\ntw", queue);
  lines.take("o\n\nrest", queue);
  queue.writeSome();
  EXPECT_EQ(pipe.read(), "[rank 3] one\n[rank 3] two\n[rank 3] \n");
  EXPECT_TRUE(queue.empty());
  lines.end(queue);
  lines.end(queue);
  queue.writeSome();
  EXPECT_EQ(pipe.read(), "[rank 3] rest\n");
}

TEST(RankLines, that_never_end_are_cut) {
  Pipe pipe;
  OutputQueue queue(pipe.writing.get());
  RankLines lines(0);
  size_t passedOn = 0;
  std::string last;
  auto passOn = [&] {
    while (!queue.empty()) {
      queue.writeSome();
      last = pipe.read();
      passedOn += last.size();
    }
  };
  for (int i = 0; i < 100; ++i) { // 1.6 MB
    lines.take(std::string(16000, 'x'), queue);
    EXPECT_FALSE(queue.full());
    passOn();
  }
  EXPECT_GE(passedOn, 1600000u - 16384);
  lines.take("\n", queue);
  passOn();
  EXPECT_EQ(last.back(), '\n');
  EXPECT_EQ(passedOn,
            1600000u + 98 * 10); // 97 whole pieces of 16384 and a rest, each with "[rank 0] " and an end
}

TEST(OutputQueues, write_what_a_pipe_takes_and_fill_up) {
  Pipe pipe;
  OutputQueue queue(pipe.writing.get());
  const std::string line(99, 'x');
  size_t lines = 0;
  for (; !queue.full(); ++lines)
    queue.addLine(line);
  size_t writes = 0;
  for (pollfd entry{pipe.writing.get(), POLLOUT, 0}; ::poll(&entry, 1, 0) == 1; ++writes)
    queue.writeSome();
  EXPECT_GE(writes, 16u); // 64 KiB / 4000
  queue.writeSome();      // not ready after all: nothing is lost
  std::string all;
  while (!queue.empty()) {
    all += pipe.read();
    EXPECT_EQ(all.size() % 100, 0u) << "whole lines";
    queue.writeSome();
  }
  all += pipe.read();
  EXPECT_EQ(all.size(), lines * 100);
}

TEST(OutputQueues, lose_what_nobody_takes) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  pipe.reading = Socket();
  const Socket full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  for (int fd : {pipe.writing.get(), full.get(), -1}) {
    OutputQueue queue(fd);
    queue.addLine("lost");
    queue.writeSome();
    EXPECT_TRUE(queue.empty());
  }
}

} // namespace
} // namespace ds::rt
