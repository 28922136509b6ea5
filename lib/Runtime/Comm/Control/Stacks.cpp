//===- Stacks.cpp - Where the threads of this process are --------------------------===//
#include "Stacks.h"

#include "Socket.h"
#include "Symbols.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <dirent.h>
#include <execinfo.h>
#include <fstream>
#include <memory>
#include <mutex>
#include <poll.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace ds::rt {
namespace {

constexpr int kMostFrames = 48;
constexpr size_t kMostThreads = 256;
/// Frames of a handler and of the kernel's return from it, which say nothing.
constexpr int kHandlerFrames = 2;

/// One question at a time, to one thread. The thread takes it by moving `state` on, and so does whoever is
/// tired of waiting for it: only one of them succeeds. The frames belong to the thread until it is Answered.
struct Question {
  enum State : int { None, Asked, Taken, Answered };
  std::atomic<int> state{None};
  std::atomic<pid_t> thread{0};
  std::array<void *, kMostFrames> frames{};
  int numFrames = 0;
  sem_t answered;
};
Question question;
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler may use nothing else");

void onStackSignal(int) {
  const int error = errno;
  int asked = Question::Asked;
  if (question.thread.load() == static_cast<pid_t>(::syscall(SYS_gettid)) &&
      question.state.compare_exchange_strong(asked, Question::Taken)) {
    question.numFrames = ::backtrace(question.frames.data(), kMostFrames);
    question.state = Question::Answered;
    ::sem_post(&question.answered);
  }
  errno = error;
}

/// Waits for the answer of a thread; false if it takes no signals.
bool awaitAnswer(std::chrono::milliseconds patience) {
  timespec until{};
  ::clock_gettime(CLOCK_MONOTONIC, &until);
  const int64_t ns = until.tv_nsec + patience.count() % 1000 * 1000000;
  until.tv_sec += patience.count() / 1000 + ns / 1000000000;
  until.tv_nsec = ns % 1000000000;
  int failed = 0;
  while ((failed = ::sem_clockwait(&question.answered, CLOCK_MONOTONIC, &until)) != 0 && errno == EINTR) {
  }
  int asked = Question::Asked;
  if (failed != 0 && question.state.compare_exchange_strong(asked, Question::None))
    return false;
  while (failed != 0 && (failed = ::sem_wait(&question.answered)) != 0) { // it is at it
  }
  return question.state.exchange(Question::None) == Question::Answered;
}

std::vector<pid_t> threadsOfProcess() {
  std::vector<pid_t> threads;
  const std::unique_ptr<DIR, int (*)(DIR *)> list(::opendir("/proc/self/task"), ::closedir);
  while (const dirent *entry = list ? ::readdir(list.get()) : nullptr)
    if (const pid_t thread = std::atoi(entry->d_name); thread > 0)
      threads.push_back(thread);
  std::sort(threads.begin(), threads.end());
  if (threads.size() > kMostThreads)
    threads.resize(kMostThreads);
  return threads;
}

/// What the kernel calls the thread, and where in it the thread sleeps.
std::string nameOf(pid_t thread) {
  const auto read = [&](const char *what) {
    std::ifstream file(fmt::format("/proc/self/task/{}/{}", thread, what));
    std::string text;
    std::getline(file, text);
    return text;
  };
  const std::string place = read("wchan");
  return fmt::format("thread {} ({}){}", thread, read("comm"),
                     place.empty() || place == "0" ? "" : ", asleep in the kernel's " + place);
}

/// The frames of the answer, but for the first `hidden`.
std::string spellStack(const std::string &name, int hidden, Symbols &symbols) {
  std::string text = fmt::format("  {}\n", name);
  for (int i = hidden; i < question.numFrames; ++i)
    text += fmt::format("    #{} {}\n", i - hidden, symbols.describe(question.frames[i]));
  return text;
}

} // namespace

int stackSignal() { return SIGRTMIN + 6; }

void prepareStacks() {
  static std::once_flag once;
  std::call_once(once, [] {
    ::sem_init(&question.answered, /*pshared=*/0, 0);
    ::backtrace(question.frames.data(), kMostFrames); // loads the library that walks stacks
    struct sigaction action = {};
    action.sa_handler = onStackSignal;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    ::sigaction(stackSignal(), &action, nullptr);
  });
}

std::string describeStacks(std::chrono::milliseconds patience) {
  const Deadline deadline = Clock::now() + patience;
  const pid_t self = static_cast<pid_t>(::syscall(SYS_gettid));
  Symbols symbols;
  std::string text;
  for (const pid_t thread : threadsOfProcess()) {
    if (remainingMs(deadline) == 0)
      break;
    const std::string name = nameOf(thread);
    if (thread == self) {
      question.numFrames = ::backtrace(question.frames.data(), kMostFrames);
      text += spellStack(name, 1, symbols);
      continue;
    }
    question.thread = thread;
    question.state = Question::Asked;
    const bool answers =
        ::syscall(SYS_tgkill, ::getpid(), thread, stackSignal()) == 0 &&
        awaitAnswer(std::min(patience / 4, std::chrono::milliseconds(remainingMs(deadline))));
    question.state = Question::None;
    text +=
        answers ? spellStack(name, kHandlerFrames, symbols) : fmt::format("  {}: takes no signals\n", name);
  }
  return text;
}

void writeToStderr(const std::string &text, std::chrono::milliseconds patience) {
  const Deadline deadline = Clock::now() + patience;
  for (size_t at = 0; at < text.size();) {
    pollfd entry{STDERR_FILENO, POLLOUT, 0};
    const int ready = ::poll(&entry, 1, remainingMs(deadline));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready <= 0 || !(entry.revents & POLLOUT))
      return;
    const ssize_t written =
        ::write(STDERR_FILENO, text.data() + at, std::min<size_t>(text.size() - at, PIPE_BUF));
    if (written < 0 && errno != EINTR && errno != EAGAIN)
      return;
    at += written > 0 ? static_cast<size_t>(written) : 0;
  }
}

} // namespace ds::rt
