//===- Fibers.cpp - Threads of a block that wait for one another ---------------===//

#include "Fibers.h"
#include <algorithm>
#include <map>

namespace ds::test {

/// How far the stacks of a warp's threads are apart within a page, or else the tops of all would share one
/// set of the nearest cache: 13 lines, which has no divisor in common with its 64 sets.
static constexpr size_t kStackStep = 13 * 64;
static constexpr size_t kStackBytes = (64 << 10) + Block::kWarp * kStackStep;

Block::Block(unsigned threads) : fibers(threads) {
  for (Fiber &fiber : fibers)
    fiber.stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
}

Block::~Block() = default;

Block &Block::kept(unsigned threads) {
  thread_local std::map<unsigned, Block> blocks;
  return blocks.try_emplace(threads, threads).first->second;
}

/// What a thread does on its stack. One that has ended waits for the block's next run.
void Block::enter(Block *block) {
  for (;;) {
    (*block->body)(block->running);
    Fiber &fiber = block->fibers[block->running];
    fiber.done = true;
    go(fiber.place, block->scheduler);
  }
}

#ifdef DS_SWITCHES_STACKS

/// Leaves the registers that a call keeps on this stack, writes its end to `from`, and takes those of `to`.
/// The system's swapcontext asks the kernel for the signal mask twice a switch, and its longjmp looks for
/// handlers of cancellation: each is most of a block's time.
[[gnu::naked, gnu::noinline]] static void exchangeStacks([[maybe_unused]] void **from,
                                                         [[maybe_unused]] void *to) {
  asm("pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
      "movq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\t"
      "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tret");
}

/// Where a stack begins: calls what %r12 says with what %rbx says. It never returns.
[[gnu::naked, gnu::noinline]] static void beginStack() { asm("movq %rbx, %rdi\n\tcallq *%r12\n\tud2"); }

void Block::go(Place &from, Place &to) { exchangeStacks(&from, to); }

/// Lays out what exchangeStacks takes from a stack: r15, r14, r13, r12, rbx, rbp and where to go on, where
/// the stack's end is a multiple of 16 bytes as calls want it.
void Block::start(size_t thread) {
  auto top =
      reinterpret_cast<uintptr_t>(fibers[thread].stack.get() + kStackBytes - thread % kWarp * kStackStep);
  auto *end = reinterpret_cast<void **>(top & ~uintptr_t(15)) - 9;
  void *const registers[] = {nullptr,
                             nullptr,
                             nullptr,
                             reinterpret_cast<void *>(&Block::enter),
                             this,
                             nullptr,
                             reinterpret_cast<void *>(&beginStack)};
  std::copy(std::begin(registers), std::end(registers), end);
  fibers[thread].place = end;
}

#else

void Block::go(Place &from, Place &to) {
  if (!from) // the scheduler, the first time
    from = std::make_unique<ucontext_t>();
  swapcontext(from.get(), to.get());
}

/// makecontext passes ints: the address comes in two.
void Block::start(size_t thread) {
  Fiber &fiber = fibers[thread];
  fiber.place = std::make_unique<ucontext_t>();
  getcontext(fiber.place.get());
  fiber.place->uc_stack.ss_sp = fiber.stack.get();
  fiber.place->uc_stack.ss_size = kStackBytes;
  fiber.place->uc_link = nullptr;
  void (*begin)(unsigned, unsigned) = [](unsigned high, unsigned low) {
    enter(reinterpret_cast<Block *>(uintptr_t(high) << 32 | low));
  };
  auto address = reinterpret_cast<uintptr_t>(this);
  makecontext(fiber.place.get(), reinterpret_cast<void (*)()>(begin), 2, unsigned(address >> 32),
              unsigned(address));
}

#endif

bool Block::run(const std::function<void(unsigned)> &function) {
  body = &function;
  for (size_t thread = 0; thread < fibers.size(); ++thread) {
    Fiber &fiber = fibers[thread];
    if (!fiber.done) // it has not run yet, or waited for ever
      start(thread);
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
