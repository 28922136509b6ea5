//===- LocalTransport.cpp - Messages between the ranks of one machine ---------------===//
//
// A sender writes where its data lies into a ring that the receiver waits on; the receiver copies and counts,
// which tells the sender that its memory is free again. Whoever waits sleeps in the kernel.
//
//===---------------------------------------------------------------------------===//
#include "LocalTransport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <linux/futex.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

namespace ds::rt {
namespace {

/// Nobody sleeps longer without looking whether the transport has been closed.
constexpr std::chrono::milliseconds kLookAgain(50);
/// Who waits for one of several messages sleeps on the first, and looks for the others as often.
constexpr std::chrono::milliseconds kLookAround(1);

void sleepOn(std::atomic<uint32_t> &word, uint32_t value, std::chrono::milliseconds limit) {
  const timespec time{limit.count() / 1000, limit.count() % 1000 * 1000000};
  ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT, value, &time, nullptr, 0);
}

void wakeAll(std::atomic<uint32_t> &word) {
  ::syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

uint64_t randomNumber() {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    ::abort();
  return number;
}

void *mapShared(int fd, size_t bytes) {
  void *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

} // namespace

LocalTransport::LocalTransport(uint32_t rank, uint32_t world)
    : rank(rank), world(world), probe(randomNumber()), peers(world) {}

std::unique_ptr<LocalTransport> LocalTransport::create(uint32_t rank, uint32_t world) {
  std::unique_ptr<LocalTransport> transport(new LocalTransport(rank, world));
  return transport->open() ? std::move(transport) : nullptr;
}

bool LocalTransport::open() {
  memory = Socket(::memfd_create("ds-messages", MFD_CLOEXEC));
  const size_t bytes = world * sizeof(Ring);
  if (!memory || ::ftruncate(memory.get(), static_cast<off_t>(bytes)) != 0)
    return false;
  rings = static_cast<Ring *>(mapShared(memory.get(), bytes)); // zeros
  // Where only a debugger may read another process, this one lets the others of its user.
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
  own = fmt::format("{} {} {} {}", ::getpid(), memory.get(), reinterpret_cast<uintptr_t>(&probe), probe);
  return rings;
}

LocalTransport::~LocalTransport() {
  for (const Peer &peer : peers)
    if (peer.mapping)
      ::munmap(peer.mapping, world * sizeof(Ring));
  if (rings)
    ::munmap(rings, world * sizeof(Ring));
}

bool LocalTransport::connect(uint32_t rank, const std::string &address) {
  Peer &peer = peers[rank];
  uint64_t fd = 0, probeAddress = 0, expected = 0, read = 0;
  std::istringstream words(address);
  if (!(words >> peer.pid >> fd >> probeAddress >> expected))
    return fail("an address that is none");
  if (!copy(peer.pid, probeAddress, &read, sizeof read) || read != expected)
    return fail("its memory cannot be read");
  const size_t bytes = world * sizeof(Ring);
  const Socket file(::open(fmt::format("/proc/{}/fd/{}", peer.pid, fd).c_str(), O_RDWR | O_CLOEXEC));
  struct stat status;
  if (!file || ::fstat(file.get(), &status) != 0 || static_cast<size_t>(status.st_size) != bytes)
    return fail("its messages cannot be opened");
  peer.mapping = static_cast<Ring *>(mapShared(file.get(), bytes));
  if (!peer.mapping)
    return fail("its messages cannot be mapped");
  peer.out = peer.mapping + this->rank;
  peer.in = rings + rank;
  peer.receives.resize(kSlots);
  return true;
}

/// Copies from another process, or from this one.
bool LocalTransport::copy(pid_t pid, uint64_t from, void *to, uint64_t bytes) {
  while (bytes > 0) {
    const size_t part = std::min<uint64_t>(bytes, 1u << 30); // a call moves less than 2 GiB
    const iovec local{to, part}, remote{reinterpret_cast<void *>(from), part};
    const ssize_t moved = ::process_vm_readv(pid, &local, 1, &remote, 1, 0);
    if (moved <= 0)
      return fail(fmt::format("reading its memory: {}", moved < 0 ? std::strerror(errno) : "nothing there"));
    from += static_cast<uint64_t>(moved);
    to = static_cast<char *>(to) + moved;
    bytes -= static_cast<uint64_t>(moved);
  }
  return true;
}

bool LocalTransport::postSend(uint32_t rank, const void *data, uint64_t bytes) {
  Peer &peer = peers[rank];
  const uint32_t number = peer.out->posted.load(std::memory_order_relaxed);
  if (closed || number - peer.sent >= kSlots)
    return fail("too many messages under way");
  peer.out->messages[number % kSlots] = {reinterpret_cast<uintptr_t>(data), bytes};
  peer.out->posted.store(number + 1, std::memory_order_release);
  wakeAll(peer.out->posted);
  return true;
}

bool LocalTransport::postReceive(uint32_t rank, void *data, uint64_t bytes) {
  Peer &peer = peers[rank];
  if (closed || peer.expected - peer.in->taken.load(std::memory_order_relaxed) >= kSlots)
    return fail("too many messages under way");
  peer.receives[peer.expected++ % kSlots] = {data, bytes};
  return true;
}

/// Until `counter` has come to `value`.
Transport::Outcome LocalTransport::waitFor(std::atomic<uint32_t> &counter, uint32_t value,
                                           Milliseconds timeout) {
  const Deadline deadline = Clock::now() + timeout;
  while (true) {
    const uint32_t now = counter.load(std::memory_order_acquire);
    if (static_cast<int32_t>(now - value) >= 0)
      return Outcome::Done;
    if (closed)
      return Outcome::Broken;
    const Milliseconds left(remainingMs(deadline));
    if (left.count() == 0) {
      closed = true;
      return Outcome::TimedOut;
    }
    sleepOn(counter, now, std::min(left, kLookAgain));
  }
}

Transport::Outcome LocalTransport::waitSend(uint32_t rank, Milliseconds timeout) {
  Peer &peer = peers[rank];
  const Outcome outcome = waitFor(peer.out->taken, peer.sent + 1, timeout);
  if (outcome == Outcome::Done)
    ++peer.sent;
  return outcome;
}

Transport::Outcome LocalTransport::waitReceive(uint32_t rank, Milliseconds timeout) {
  Peer &peer = peers[rank];
  const uint32_t number = peer.in->taken.load(std::memory_order_relaxed);
  const Outcome outcome = waitFor(peer.in->posted, number + 1, timeout);
  if (outcome != Outcome::Done)
    return outcome;
  const Message message = peer.in->messages[number % kSlots];
  const Receive receive = peer.receives[number % kSlots];
  if (message.bytes != receive.bytes)
    fail(fmt::format("it sends {} bytes where {} are expected", message.bytes, receive.bytes));
  if (message.bytes != receive.bytes || !copy(peer.pid, message.address, receive.data, receive.bytes))
    return Outcome::Broken;
  peer.in->taken.store(number + 1, std::memory_order_release);
  wakeAll(peer.in->taken);
  return Outcome::Done;
}

/// The data is copied by who waits for it, so that a message is to be waited for when it is there.
uint32_t LocalTransport::awaitAny(std::span<const uint32_t> ranks, Milliseconds timeout) {
  const Deadline deadline = Clock::now() + timeout;
  while (!closed && Clock::now() < deadline) {
    for (const uint32_t rank : ranks) {
      const Ring &ring = *peers[rank].in;
      if (ring.posted.load(std::memory_order_acquire) != ring.taken.load(std::memory_order_relaxed))
        return rank;
    }
    Ring &first = *peers[ranks.front()].in;
    sleepOn(first.posted, first.taken.load(std::memory_order_relaxed),
            ranks.size() == 1 ? kLookAgain : kLookAround);
  }
  return ranks.front();
}

bool LocalTransport::fail(const std::string &why) {
  closed = true;
  std::lock_guard<std::mutex> lock(mutex);
  if (failure.empty())
    failure = why;
  return false;
}

std::string LocalTransport::reason() const {
  std::lock_guard<std::mutex> lock(mutex);
  return failure;
}

void LocalTransport::close() {
  closed = true;
  for (const Peer &peer : peers)
    if (peer.mapping) {
      wakeAll(peer.in->posted);
      wakeAll(peer.out->taken);
    }
}

} // namespace ds::rt
