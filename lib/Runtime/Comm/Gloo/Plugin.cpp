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
//===---------------------------------------------------------------------------===//
#include "GlooPlugin.h"

#include <gloo/transport/context.h>
#include <gloo/transport/tcp/device.h>

#include <atomic>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>

namespace ds::rt {
namespace {

using gloo::transport::UnboundBuffer;

class GlooTransport : public Transport {
public:
  explicit GlooTransport(const GlooOptions &options) : rank(options.rank), world(options.world) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = options.hostname;
    device = gloo::transport::tcp::CreateDevice(attributes);
    context = device->createContext(static_cast<int>(rank), static_cast<int>(world));
    // A pair waits five times its time-out for its connection; waits for messages bring their own.
    context->setTimeout(std::max(options.connectTimeout / 5, Milliseconds(1)));
    for (uint32_t peer = 0; peer < world; ++peer)
      listenFor(peer);
  }

  ~GlooTransport() override {
    sends.clear();
    receives.clear();
  }

  const std::string &address() const override { return own; }

  bool connect(uint32_t peer, const std::string &address) override {
    return guarded([&] { context->getPair(static_cast<int>(peer))->connect(addressFor(address)); });
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

  void listenFor(uint32_t peer) {
    sends.emplace_back();
    receives.emplace_back();
    std::vector<char> bytes(gloo::transport::Address::kMaxByteSize);
    if (peer != rank) {
      auto &pair = context->createPair(static_cast<int>(peer));
      const std::vector<char> address = pair->address().bytes();
      std::memcpy(bytes.data(), address.data(), std::min(address.size(), bytes.size()));
      addressBytes = address.size();
      constexpr size_t kAll = std::numeric_limits<size_t>::max();
      sends.back() = context->createUnboundBuffer(nullptr, kAll);
      receives.back() = context->createUnboundBuffer(nullptr, kAll);
    }
    own.append(bytes.begin(), bytes.end());
  }

  /// The entry for this rank in a peer's address.
  std::vector<char> addressFor(const std::string &addresses) const {
    constexpr size_t kBytes = gloo::transport::Address::kMaxByteSize;
    const std::string entry = addresses.substr(rank * kBytes, addressBytes);
    if (entry.size() != addressBytes || addresses.size() != world * kBytes)
      throw std::runtime_error("an address that this build of Gloo did not make");
    return {entry.begin(), entry.end()};
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
  std::shared_ptr<gloo::transport::Device> device;
  std::shared_ptr<gloo::transport::Context> context;
  std::vector<std::unique_ptr<UnboundBuffer>> sends, receives; ///< by peer; null for this rank
  std::string own;         ///< for each rank kMaxByteSize bytes: where it connects to
  size_t addressBytes = 0; ///< of them in use
  std::atomic<bool> closed{false};
  mutable std::mutex mutex; ///< guards failure
  std::string failure;
};

Transport *create(const GlooOptions &options, std::string &error) {
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
