//===- Fibers.cpp - Threads of a block that wait for one another ---------------===//

#include "Fibers.h"
#include <algorithm>
#include <map>

namespace ds::test {

static constexpr size_t kStackBytes = 64 << 10;

Block::Block(unsigned threads) : fibers(threads) {
  scheduler.start = std::make_unique<ucontext_t>();
  for (Fiber &fiber : fibers) {
    fiber.place.start = std::make_unique<ucontext_t>();
    fiber.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
  }
}

Block::~Block() = default;

Block &Block::kept(unsigned threads) {
  thread_local std::map<unsigned, Block> blocks;
  return blocks.try_emplace(threads, threads).first->second;
}

/// Leaves `from` and goes on at `to`. swapcontext would ask the kernel for the signal mask twice a switch,
/// which is most of a block's time; but sanitizers follow no jump to another stack.
[[gnu::noinline]] void Block::go(Place &from, Place &to) {
  from.isLeft = true;
#ifdef DS_SANITIZED
  swapcontext(from.start.get(), to.start.get());
#else
  if (_setjmp(from.left) != 0)
    return;
  if (to.isLeft)
    _longjmp(to.left, 1);
  setcontext(to.start.get());
#endif
}

/// makecontext passes ints: the address comes in two. A thread that has ended waits for the block's next run.
void Block::enter(unsigned high, unsigned low) {
  auto *block = reinterpret_cast<Block *>(uintptr_t(high) << 32 | low);
  for (;;) {
    (*block->body)(block->running);
    Fiber &fiber = block->fibers[block->running];
    fiber.done = true;
    go(fiber.place, block->scheduler);
  }
}

bool Block::run(const std::function<void(unsigned)> &function) {
  body = &function;
  auto address = reinterpret_cast<uintptr_t>(this);
  for (Fiber &fiber : fibers) {
    if (!fiber.done) { // it has not run yet, or waited for ever
      ucontext_t &start = *fiber.place.start;
      fiber.place.isLeft = false;
      getcontext(&start);
      start.uc_stack.ss_sp = fiber.stack.get();
      start.uc_stack.ss_size = kStackBytes;
      start.uc_link = nullptr;
      makecontext(&start, reinterpret_cast<void (*)()>(&Block::enter), 2, unsigned(address >> 32),
                  unsigned(address));
    }
    fiber.done = fiber.waits = false;
    fiber.exchanges = 0;
  }
  do
    for (size_t first = 0; first < fibers.size(); first += kWarp)
      runWarp(first, std::min(first + kWarp, fibers.size()));
  while (release(0, fibers.size(), kBlock));
  return std::all_of(fibers.begin(), fibers.end(), [](const Fiber &fiber) { return fiber.done; });
}

/// Runs threads `first` .. `last`, a warp, until each has ended or waits for other warps. One warp at a time
/// stays in the processor's nearest cache.
void Block::runWarp(size_t first, size_t last) {
  do
    for (size_t thread = first; thread < last; ++thread)
      if (!fibers[thread].done && !fibers[thread].waits) {
        running = static_cast<unsigned>(thread);
        go(scheduler, fibers[thread].place);
      }
  while (release(first, last, static_cast<unsigned>(first / kWarp)));
}

/// Lets threads `first` .. `last` go on if all of them wait for `group` or have ended; false if none does.
bool Block::release(size_t first, size_t last, unsigned group) {
  bool any = false;
  for (size_t thread = first; thread < last; ++thread) {
    const Fiber &fiber = fibers[thread];
    if (!fiber.done && !(fiber.waits && fiber.group == group))
      return false;
    any |= !fiber.done;
  }
  for (size_t thread = first; thread < last; ++thread)
    fibers[thread].waits = false;
  return any;
}

void Block::wait(unsigned group) {
  Fiber &fiber = fibers[running];
  fiber.waits = true;
  fiber.group = group;
  go(fiber.place, scheduler);
}

uint32_t Block::exchange(uint32_t word, unsigned from) {
  unsigned turn = fibers[running].exchanges++ % 2;
  fibers[running].words[turn] = word;
  warpBarrier();
  return fibers[from].words[turn];
}

bool Block::any(bool mine) {
  fibers[running].says = mine;
  blockBarrier();
  bool result = false;
  for (const Fiber &fiber : fibers)
    result |= !fiber.done && fiber.says;
  blockBarrier(); // before one of them says something else
  return result;
}

} // namespace ds::test
