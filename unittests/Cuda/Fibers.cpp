//===- Fibers.cpp - Threads of a block that wait for one another ---------------===//

#include "Fibers.h"
#include <algorithm>
#include <map>

namespace ds::test {

static constexpr size_t kStackBytes = 64 << 10;

Block::Block(unsigned threads) : fibers(threads) {
  for (Fiber &fiber : fibers)
    fiber.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
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
  swapcontext(&from.start, &to.start);
#else
  if (_setjmp(from.left) != 0)
    return;
  if (to.isLeft)
    _longjmp(to.left, 1);
  setcontext(&to.start);
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
      ucontext_t &start = fiber.place.start;
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
    for (unsigned thread = 0; thread < fibers.size(); ++thread)
      if (!fibers[thread].done && !fibers[thread].waits) {
        running = thread;
        go(scheduler, fibers[thread].place);
      }
  while (release());
  for (const Fiber &fiber : fibers)
    if (!fiber.done)
      return false;
  return true;
}

/// Lets those go on whose group is complete: all of it waits there or has ended.
bool Block::release() {
  auto isComplete = [&](size_t first, size_t last, unsigned group) {
    for (size_t thread = first; thread < last; ++thread)
      if (!fibers[thread].done && !(fibers[thread].waits && fibers[thread].group == group))
        return false;
    return true;
  };
  bool any = false;
  for (Fiber &fiber : fibers) {
    if (fiber.done || !fiber.waits)
      continue;
    size_t thread = &fiber - fibers.data(), first = thread / kWarp * kWarp;
    bool ofBlock = fiber.group == ~0u;
    size_t begin = ofBlock ? 0 : first,
           end = ofBlock ? fibers.size() : std::min(first + kWarp, fibers.size());
    if (!isComplete(begin, end, fiber.group))
      continue;
    for (size_t member = begin; member < end; ++member)
      fibers[member].waits = false;
    any = true;
  }
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
