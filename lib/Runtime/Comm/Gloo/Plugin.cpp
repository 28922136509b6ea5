//===- Plugin.cpp - A transport on Gloo's TCP transport -------------------------------===//
//
// Gloo's own collectives are not used: its reduce-scatter is halving-doubling, whose order of sums depends on
// the number of ranks, and knows no bf16. Its pairs are: ordered, with time-outs, and they fail when a peer
// dies. A pair sends nothing before the other side has posted its receive, so Gloo buffers nothing.
//
// Gloo wants memory registered as an "unbound buffer". On TCP that is a pointer, a size and two counters of
// finished operations; one buffer per peer and direction that spans the whole address space serves every
// message, and none is made after connecting.
//
// A pair of Gloo's listens at a port of its own and takes whoever calls first. So the first to call each is
// its maker (GivenPair.h), and the pair is given a connection between ranks that know each other in the place
// of that call.
//
//===---------------------------------------------------------------------------===//
#include "Comm/GlooPlugin.h"
#include "GivenPair.h"

#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <unistd.h>

namespace ds::rt {
namespace {

namespace tcp = gloo::transport::tcp;
using gloo::transport::UnboundBuffer;

class GlooTransport : public SocketTransport {
public:
  explicit GlooTransport(const GlooOptions &options) : rank(options.rank), world(options.world) {
    tcp::attr attributes;
    attributes.hostname = "127.0.0.1"; // where pairs listen for microseconds
    device = std::dynamic_pointer_cast<tcp::Device>(tcp::CreateDevice(attributes));
    if (!device)
      throw std::runtime_error("a device of Gloo's that is not TCP's");
    context = device->createContext(static_cast<int>(rank), static_cast<int>(world));
    // Of the maker's call, times five; waits for messages bring their own.
    context->setTimeout(Milliseconds(1000));
    for (uint32_t peer = 0; peer < world; ++peer)
      prepareFor(peer);
  }

  ~GlooTransport() override {
    sends.clear();
    receives.clear();
  }

  bool connect(uint32_t peer, int socket) override {
    const std::lock_guard<std::mutex> lock(connecting);
    if (!closed.load())
      return guarded([&] { pairs[peer]->take(socket); });
    ::close(socket);
    fail("it has been closed");
    return false;
  }

  bool postSend(uint32_t peer, const void *data, uint64_t bytes) override {
    return guarded(
        [&] { sends[peer]->send(static_cast<int>(peer), kSlot, reinterpret_cast<uintptr_t>(data), bytes); });
  }

  bool postReceive(uint32_t peer, void *data, uint64_t bytes) override {
    return guarded([&] {
      receives[peer]->recv(static_cast<int>(peer), kSlot, reinterpret_cast<uintptr_t>(data), bytes);
    });
  }

  Outcome waitSend(uint32_t peer, Milliseconds timeout) override {
    return wait(timeout, [&] { return sends[peer]->waitSend(nullptr, timeout); });
  }

  Outcome waitReceive(uint32_t peer, Milliseconds timeout) override {
    return wait(timeout, [&] { return receives[peer]->waitRecv(nullptr, timeout); });
  }

  std::string reason() const override {
    std::lock_guard<std::mutex> lock(mutex);
    return failure;
  }

  void close() override {
    const std::lock_guard<std::mutex> lock(connecting);
    closed.store(true);
    for (uint32_t peer = 0; peer < world; ++peer) {
      if (peer == rank)
        continue;
      // Closing a pair wakes nobody who waits for a message of it.
      sends[peer]->abortWaitSend();
      receives[peer]->abortWaitRecv();
      guarded([&] { context->getPair(static_cast<int>(peer))->close(); });
    }
  }

private:
  static constexpr uint64_t kSlot = 0; ///< messages of a slot arrive in order

  void prepareFor(uint32_t peer) {
    sends.emplace_back();
    receives.emplace_back();
    pairs.emplace_back();
    if (peer == rank)
      return;
    pairs.back() = std::make_unique<GivenPair>(*device, *context, peer);
    constexpr size_t kAll = std::numeric_limits<size_t>::max();
    sends.back() = context->createUnboundBuffer(nullptr, kAll);
    receives.back() = context->createUnboundBuffer(nullptr, kAll);
  }

  /// Runs `body`; keeps the message of what it throws.
  template <class Body>
  bool guarded(Body &&body) {
    try {
      body();
      return true;
    } catch (const std::exception &error) {
      fail(error.what());
    } catch (...) {
      fail("unknown failure");
    }
    return false;
  }

  /// Gloo throws the same exception when time is up and when the connection breaks: the clock tells.
  template <class Body>
  Outcome wait(Milliseconds timeout, Body &&body) {
    const auto begin = std::chrono::steady_clock::now();
    bool done = false;
    if (closed.load())
      return Outcome::Broken;
    if (guarded([&] { done = body(); }))
      return done ? Outcome::Done : Outcome::Broken;
    return std::chrono::steady_clock::now() - begin >= timeout ? Outcome::TimedOut : Outcome::Broken;
  }

  void fail(const char *message) {
    std::lock_guard<std::mutex> lock(mutex);
    if (failure.empty())
      failure = message;
  }

  const uint32_t rank, world;
  std::shared_ptr<tcp::Device> device;
  std::shared_ptr<gloo::transport::Context> context;
  std::vector<std::unique_ptr<GivenPair>> pairs;               ///< by peer; null for this rank
  std::vector<std::unique_ptr<UnboundBuffer>> sends, receives; ///< by peer; null for this rank
  std::atomic<bool> closed{false};
  std::mutex connecting;    ///< a pair is either given a connection or closed
  mutable std::mutex mutex; ///< guards failure
  std::string failure;
};

SocketTransport *create(const GlooOptions &options, std::string &error) {
  constexpr int kAttempts = 5; // each is spoilt by a call to a port that is open for microseconds
  for (int i = 0; i < kAttempts; ++i)
    try {
      return new GlooTransport(options);
    } catch (const std::exception &exception) {
      error = exception.what();
    } catch (...) {
      error = "unknown failure";
    }
  return nullptr;
}

constexpr GlooApi kApi{kGlooAbi, create};

} // namespace
} // namespace ds::rt

/// The plugin's one symbol.
extern "C" __attribute__((visibility("default"))) const ds::rt::GlooApi *dsGloo() { return &ds::rt::kApi; }
