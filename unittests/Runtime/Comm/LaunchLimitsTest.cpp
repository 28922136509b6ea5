//===- LaunchLimitsTest.cpp - The local launcher where something runs out ---------===//
#include "Processes.h"
#include "Ranks.h"

#include "Comm/Control/Limits.h"
#include "Comm/Control/Socket.h"

#include <gmock/gmock.h>

#include <algorithm>

#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>

namespace ds::rt {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using test::Process;
using test::TemporaryDirectory;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr milliseconds kLimit(120000); // of what takes a second

/// comm-player as launcher, with a folder for temporary files of its own.
struct Job {
  explicit Job(const std::string &options, const std::string &before = "")
      : process({"sh", "-c", before + " exec " DS_COMM_PLAYER " --timeout 60 " + options},
                {{"TMPDIR", temporary.path}}, directory.path + "/out") {}
  int wait() { return process.wait(kLimit); }
  std::string output() const { return process.output(); }
  bool hasFolder() const { return !fs::is_empty(temporary.path); }

  TemporaryDirectory directory, temporary;
  Process process;
};

TEST(Limits, are_raised_as_far_as_they_may) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const uint64_t open = openDescriptors();
  EXPECT_GE(open, 3u);
  const Socket one(::dup(1));
  EXPECT_EQ(openDescriptors(), open + 1);
  rlimit low{open + 5, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &low), 0);
  EXPECT_TRUE(reserveDescriptors(4, "this"));
  ::getrlimit(RLIMIT_NOFILE, &low);
  EXPECT_EQ(low.rlim_cur, open + 5) << "there was room";
  EXPECT_TRUE(reserveDescriptors(20, "this"));
  ::getrlimit(RLIMIT_NOFILE, &low);
  EXPECT_EQ(low.rlim_cur, open + 21);
  const Status status = reserveDescriptors(before.rlim_max, "--ranks 7");
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::Io);
  EXPECT_THAT(status.error().message, AllOf(HasSubstr("--ranks 7 needs "), HasSubstr("file descriptors"),
                                            HasSubstr("the limit is " + std::to_string(before.rlim_max))));
}

TEST(LauncherLimits, too_few_descriptors_are_refused) {
  Job job("--ranks 4", "ulimit -n 12;");
  EXPECT_EQ(job.wait(), 6) << job.output();
  EXPECT_THAT(job.output(),
              AllOf(HasSubstr("error: --ranks 4 needs "), HasSubstr("file descriptors"),
                    HasSubstr("the limit is 12\n"), HasSubstr("hint: raise the limit with `ulimit -n ")));
  EXPECT_FALSE(job.hasFolder());
}

/// What is refused is refused with a message, and what is not refused works.
TEST(LauncherLimits, any_number_of_descriptors_is_enough_or_refused) {
  int refused = 0;
  for (int descriptors = 5; descriptors < 30; ++descriptors) {
    Job job("--ranks 3 --steps 1", "ulimit -n " + std::to_string(descriptors) + ";");
    const int code = job.wait();
    if (code == 127 && job.output().find("while loading shared libraries") != std::string::npos)
      continue; // with so few not even the loader starts a program
    EXPECT_THAT(code, AnyOf(0, 6)) << descriptors << ": " << job.output();
    if (code == 6 && ++refused) {
      EXPECT_THAT(job.output(), HasSubstr("`ulimit -n "));
    }
    EXPECT_FALSE(job.hasFolder());
  }
  EXPECT_GT(refused, 5);
  EXPECT_LT(refused, 25);
}

/// At once: not after a minute in which they have all tried.
TEST(LauncherLimits, more_ranks_than_can_meet_are_refused) {
  Job job("--ranks 317", "taskset -p -c 0 $$ > /dev/null;");
  EXPECT_EQ(job.wait(), 6) << job.output();
  EXPECT_THAT(job.output(),
              HasSubstr("error: --ranks 317: on 1 processor at most 316 come together within 60 s\n"));
  EXPECT_FALSE(job.hasFolder());
}

TEST(LauncherLimits, a_soft_limit_is_raised) {
  Job job("--ranks 3", "ulimit -S -n 7;");
  EXPECT_EQ(job.wait(), 0) << job.output();
  EXPECT_EQ(job.output(), "done: 18\n");
}

TEST(LauncherLimits, a_rank_that_cannot_be_started_ends_all) {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1); // whatever were left would become this test's child
  for (int rank = 0; rank < 3; ++rank) {
    Job job("--ranks 3 --failing-forks " + std::to_string(rank) + ":100");
    EXPECT_EQ(job.wait(), 6);
    EXPECT_THAT(job.output(), AllOf(HasSubstr("error: --ranks 3: cannot start rank " + std::to_string(rank) +
                                              ": Resource temporarily unavailable\n"),
                                    HasSubstr("`ulimit -u`")));
    EXPECT_FALSE(job.hasFolder());
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  }
  ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(LauncherLimits, a_soft_limit_of_processes_is_raised) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NPROC, &limit);
  if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < 10000)
    GTEST_SKIP() << "few processes are allowed here";
  Job job("--ranks 2 --failing-forks 1:1", "ulimit -S -p 9000 2> /dev/null || ulimit -S -u 9000;");
  EXPECT_EQ(job.wait(), 0) << job.output();
}

TEST(LauncherLimits, a_missing_temporary_directory_is_named) {
  TemporaryDirectory directory;
  Process process({DS_COMM_PLAYER, "--ranks", "2"}, {{"TMPDIR", directory.path + "/none"}},
                  directory.path + "/out");
  EXPECT_EQ(process.wait(kLimit), 6) << process.output();
  EXPECT_THAT(process.output(),
              AllOf(HasSubstr("cannot make the folder '" + directory.path + "/none/ds-ranks-"),
                    HasSubstr("(TMPDIR): No such file or directory\n  hint: set TMPDIR")));
}

TEST(LauncherLimits, ignored_ends_of_children_lose_no_exit_code) {
  ::signal(SIGCHLD, SIG_IGN);   // what the new process inherits
  TemporaryDirectory directory; // no shell, which would no longer ignore them
  Process process({DS_COMM_PLAYER, "--ranks", "2", "--timeout", "60", "--fault", "between:1:exit"}, {},
                  directory.path + "/out");
  ::signal(SIGCHLD, SIG_DFL);
  EXPECT_EQ(process.wait(kLimit), 5) << process.output();
}

void waitForFolder(const Job &job) {
  for (int i = 0; i < 12000 && !job.hasFolder(); ++i)
    std::this_thread::sleep_for(milliseconds(5));
  ASSERT_TRUE(job.hasFolder());
}

/// Until every rank has left its card: a rank that has not become the program yet still holds its launcher's
/// lock.
void waitForCards(const Job &job) {
  waitForFolder(job);
  auto cards = [&] {
    int count = 0;
    for (const auto &entry : fs::recursive_directory_iterator(job.temporary.path))
      count += entry.path().extension() == ".0" || entry.path().extension() == ".1";
    return count;
  };
  for (int i = 0; i < 12000 && cards() < 2; ++i)
    std::this_thread::sleep_for(milliseconds(5));
  ASSERT_EQ(cards(), 2);
}

TEST(LauncherFolder, of_a_killed_launcher_is_removed_by_the_next) {
  Job killed("--ranks 2 --steps 1000000");
  waitForCards(killed);
  ::kill(killed.process.id(), SIGKILL);
  EXPECT_EQ(killed.wait(), -SIGKILL);
  ASSERT_TRUE(killed.hasFolder());
  TemporaryDirectory directory;
  Process next({DS_COMM_PLAYER, "--ranks", "2"}, {{"TMPDIR", killed.temporary.path}},
               directory.path + "/out");
  EXPECT_EQ(next.wait(kLimit), 0) << next.output();
  EXPECT_FALSE(killed.hasFolder());
}

TEST(LauncherFolder, of_a_living_launcher_is_left_to_it) {
  Job living("--ranks 2 --steps 1000000 --fault exchange:0:stop");
  waitForFolder(living);
  const fs::path folder = *fs::directory_iterator(living.temporary.path);
  // Its first file comes after the lock. A folder that is not locked yet may be taken for an abandoned one,
  // and its launcher then makes another.
  for (int i = 0; i < 12000 && fs::is_empty(folder); ++i)
    std::this_thread::sleep_for(milliseconds(5));
  ::kill(living.process.id(), SIGSTOP); // even where it does nothing
  TemporaryDirectory directory;
  Process next({DS_COMM_PLAYER, "--ranks", "2"}, {{"TMPDIR", living.temporary.path}},
               directory.path + "/out");
  EXPECT_EQ(next.wait(kLimit), 0) << next.output();
  EXPECT_TRUE(fs::exists(folder));
}

/// 32 MiB without the end of a line.
TEST(LauncherOutput, is_cut_into_lines) {
  Job job("--ranks 2 --fault between:1:flood");
  EXPECT_EQ(job.wait(), 0);
  const std::string output = job.output();
  size_t longest = 0, flood = 0;
  for (size_t begin = 0, end; (end = output.find('\n', begin)) != std::string::npos; begin = end + 1) {
    longest = std::max(longest, end - begin);
    flood += static_cast<size_t>(std::count(output.begin() + begin, output.begin() + end, 'x'));
  }
  EXPECT_LE(longest, 16384u + 16);
  EXPECT_EQ(flood, size_t(32) << 20);
}

/// Nobody reads what the launcher writes, and a rank has much to say.
TEST(LauncherOutput, that_nobody_reads_keeps_no_signal_waiting) {
  TemporaryDirectory directory;
  ASSERT_EQ(::mkfifo((directory.path + "/out").c_str(), 0600), 0);
  const Socket reader(::open((directory.path + "/out").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  Process process({DS_COMM_PLAYER, "--ranks", "2", "--timeout", "600", "--fault", "between:1:flood"}, {},
                  directory.path + "/out");
  for (int bytes = 0; bytes < 40000;) { // the pipe is as good as full
    ASSERT_EQ(::ioctl(reader.get(), FIONREAD, &bytes), 0);
    std::this_thread::sleep_for(milliseconds(5));
  }
  std::this_thread::sleep_for(milliseconds(100));
  int code = -1000; // a signal each second: the first ends the ranks, the next the wait for the reader
  for (int i = 0; i < 60 && code == -1000; ++i) {
    ::kill(process.id(), SIGTERM);
    code = process.wait(milliseconds(1000));
  }
  EXPECT_EQ(code, 128 + SIGTERM);
}

} // namespace
} // namespace ds::rt
