//===- Solo.cpp - A group of one rank --------------------------------------------===//
#include "Solo.h"

#include "Control/Card.h"
#include "Plugins.h"

#include "ds/Runtime/Program/Program.h"

#include <cstring>
#include <deque>

namespace ds::rt {
namespace {

/// What a collective gives when nobody else takes part.
class SoloCommunicator : public Communicator {
public:
  uint32_t position() const override { return 0; }
  uint32_t size() const override { return 1; }
  Status allGather(const void *in, void *out, uint64_t bytesPerRank, const char *) override {
    return copy(in, out, bytesPerRank);
  }
  Status reduceScatter(const void *in, void *out, void *, uint64_t elements, DType dtype, Reduction,
                       const char *) override {
    return copy(in, out, elements * byteSize(dtype));
  }
  Status allReduce(const void *in, void *out, void *, uint64_t elements, DType dtype, Reduction,
                   const char *) override {
    return copy(in, out, elements * byteSize(dtype));
  }
  Status broadcast(void *, uint64_t, uint32_t, const char *) override { return {}; }
  Status allToAll(const void *in, void *out, uint64_t bytesPerRank, const char *) override {
    return copy(in, out, bytesPerRank);
  }
  Status exchange(std::span<const Message> messages) override {
    return messages.empty() ? Status() : nobody(messages.front().partner, messages.front().what);
  }
  Status barrier(const char *) override { return {}; }
  std::vector<CommStat> stats() const override { return {}; }

private:
  static Status copy(const void *in, void *out, uint64_t bytes) {
    if (in != out)
      std::memcpy(out, in, bytes);
    return {};
  }
  static Status nobody(uint32_t peer, const char *what) {
    return Error{ExitCode::Internal,
                 "message '" + std::string(what) + "' with rank " + std::to_string(peer) + " of 1 rank", ""};
  }
};

class SoloGroup : public RankGroup {
public:
  SoloGroup(bool pmix, uint32_t channels) : pmix(pmix), channels(channels) {}
  uint32_t rank() const override { return 0; }
  uint32_t world() const override { return 1; }
  const std::string &host(uint32_t) const override { return name; }
  std::string transport() const override { return "none"; }
  Communicator &channel(uint32_t index) override { return channels.at(index); }
  Communicator &subset(uint32_t index, const std::vector<uint32_t> &) override { return channels.at(index); }
  Status addChannels(uint32_t count) override {
    while (channels.size() < count)
      channels.emplace_back();
    return {};
  }
  Result<std::vector<std::string>> exchange(const std::string &mine, const char *) override {
    return std::vector<std::string>{mine};
  }
  void abort(const std::string &) override {}
  std::string failure() override { return {}; }
  Status finish() override {
    if (pmix)
      (*openPmix())->leave();
    return {};
  }

private:
  const bool pmix;
  const std::string name = hostName();
  std::deque<SoloCommunicator> channels;
};

} // namespace

std::unique_ptr<Communicator> makeSoloCommunicator() { return std::make_unique<SoloCommunicator>(); }

std::unique_ptr<RankGroup> makeSoloGroup(const RankIdentity &place, uint32_t channels) {
  return std::make_unique<SoloGroup>(place.kind == RankIdentity::Kind::Pmix, channels);
}

} // namespace ds::rt
