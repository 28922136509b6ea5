//===- Fibers.h - Threads of a block that wait for one another -----------------===//
//
// Runs a function once per thread of a block, each on a stack of its own, and switches between them where
// they meet: at barriers of the block or of a warp, and at exchanges within a warp. A thread that has ended
// counts as one that has come, as on the device. A block in which nobody can go on is a failed test.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_CUDA_FIBERS_H
#define DS_UNITTESTS_CUDA_FIBERS_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#if defined(__x86_64__) && !defined(DS_SANITIZED)
#define DS_SWITCHES_STACKS
#else
#include <ucontext.h>
#endif

namespace ds::test {

class Block {
public:
  static constexpr unsigned kWarp = 32;

  explicit Block(unsigned threads);
  ~Block();
  /// A block of so many threads that stays, with their stacks, for the next launch of this host thread.
  static Block &kept(unsigned threads);

  /// Runs `body(thread)` for every thread; false when the threads wait for one another for ever.
  bool run(const std::function<void(unsigned thread)> &body);

  // Called by the threads.
  unsigned current() const { return running; }
  void blockBarrier() { wait(kBlock); }
  void warpBarrier() { wait(running / kWarp); }
  /// `word` of the thread of the warp whose number differs in `mask`.
  uint32_t shuffle(uint32_t word, unsigned mask) { return exchange(word, running ^ mask); }
  /// `word` of lane `lane` of the warp.
  uint32_t broadcast(uint32_t word, unsigned lane) { return exchange(word, running / kWarp * kWarp + lane); }
  /// Whether any thread of the block says so.
  bool any(bool mine);

private:
  static constexpr unsigned kBlock = ~0u; ///< the group of all

  /// Where a thread or the scheduler goes on: the end of its stack, where its registers lie, or what the
  /// system keeps of it. Sanitizers follow no jump to another stack but the system's.
#ifdef DS_SWITCHES_STACKS
  using Place = void *;
#else
  using Place = std::unique_ptr<ucontext_t>;
#endif
  struct Fiber {
    bool done = false, waits = false, says = false;
    unsigned group = 0;     ///< that it waits for: a warp's number, or kBlock
    uint32_t words[2] = {}; ///< what it hands over, alternating
    unsigned exchanges = 0;
    Place place = {};
    std::unique_ptr<char[]> stack;
  };

  uint32_t exchange(uint32_t word, unsigned from);
  void wait(unsigned group);
  void runWarp(size_t first, size_t last);
  bool release(size_t first, size_t last, unsigned group);
  void start(size_t thread);
  static void enter(Block *block);
  static void go(Place &from, Place &to);

  std::vector<Fiber> fibers;
  Place scheduler = {};
  unsigned running = 0;
  const std::function<void(unsigned)> *body = nullptr;
};

} // namespace ds::test

#endif // DS_UNITTESTS_CUDA_FIBERS_H
