//===- FakeRanks.h - Ranks that are threads of one process ---------------------===//
//
// Communicators without a network, for tests of what uses them: ranks lay down copies of what they send, wait
// until all members have, and take what they need. A call can be made to fail; then, as the real one does,
// every other rank's calls fail too, those that already wait first.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_FAKERANKS_H
#define DS_UNITTESTS_RUNTIME_FAKERANKS_H

#include "ds/Runtime/Comm/Communicator.h"
#include "ds/Runtime/Program/Program.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ds::rt::test {

class FakeRanks {
public:
  explicit FakeRanks(uint32_t world) : world(world) {}

  /// All ranks on a channel, or some.
  Communicator &channel(uint32_t rank, uint32_t index) {
    std::vector<uint32_t> all(world);
    std::iota(all.begin(), all.end(), 0);
    return subset(rank, index, all);
  }
  Communicator &subset(uint32_t rank, uint32_t index, const std::vector<uint32_t> &members) {
    const std::lock_guard lock(mutex);
    Meeting &meeting = meetings.try_emplace({index, members}, members).first->second;
    std::unique_ptr<Member> &member = meeting.members[rank];
    if (!member)
      member = std::make_unique<Member>(*this, meeting, rank, index);
    return *member;
  }
  /// For ExecutorOptions: streams are channels.
  CommunicatorOf communicators(uint32_t rank, const Mesh &mesh) {
    return [this, rank, mesh](uint32_t stream, AxisSet axes) {
      return &subset(rank, stream, mesh.group(rank, axes));
    };
  }

  /// Call number `call` (from 0) of `rank` on channel `index`, whoever takes part, fails with `error`. With
  /// ExitCode::Peer the other ranks are told, as the real one does when it loses a rank.
  void failAt(uint32_t rank, uint32_t index, uint32_t call, Error error) {
    failures[{rank, index, call}] = std::move(error);
  }
  /// Every call, now or later, fails with ExitCode::Peer and this reason.
  void abort(const std::string &reason) {
    {
      const std::lock_guard lock(mutex);
      if (!broken)
        broken = Error{ExitCode::Peer, reason, ""};
    }
    changed.notify_all();
  }
  /// Calls body(rank) on a thread for each rank and waits for all.
  void forEachRank(const std::function<void(uint32_t)> &body) {
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < world; ++r)
      threads.emplace_back(body, r);
    for (std::thread &thread : threads)
      thread.join();
  }
  /// From now on a call that is to fail first waits until some rank waits in another.
  void failOnceSomeoneWaits() { patient = true; }
  /// The longest message or part that a call had, in bytes.
  uint64_t longestMessage() const { return longest; }

  const uint32_t world;

private:
  class Member;
  struct Meeting {
    explicit Meeting(const std::vector<uint32_t> &ranks) : ranks(ranks), sent(ranks.size()) {}
    const std::vector<uint32_t> ranks;                   ///< by position
    std::map<uint32_t, std::unique_ptr<Member>> members; ///< by rank
    std::vector<std::vector<std::byte>> sent;            ///< by position
    /// By sender and receiver.
    std::map<std::pair<uint32_t, uint32_t>, std::deque<std::vector<std::byte>>> mail;
    uint32_t arrived = 0;
    uint64_t round = 0;
  };

  /// Adds, or takes the greater or lesser, in rank order, as doubles of exact small test values.
  template <class T>
  static void reduce(const Meeting &meeting, uint64_t first, uint64_t count, Reduction reduction, void *out) {
    std::vector<T> result(count);
    for (size_t r = 0; r < meeting.sent.size(); ++r) {
      const T *from = reinterpret_cast<const T *>(meeting.sent[r].data()) + first;
      for (uint64_t i = 0; i < count; ++i)
        result[i] = r == 0                        ? from[i]
                    : reduction == Reduction::Sum ? T(result[i] + from[i])
                    : reduction == Reduction::Max ? std::max(result[i], from[i])
                                                  : std::min(result[i], from[i]);
    }
    std::memcpy(out, result.data(), count * sizeof(T));
  }

  class Member final : public Communicator {
  public:
    Member(FakeRanks &ranks, Meeting &meeting, uint32_t rank, uint32_t channel)
        : ranks(ranks), meeting(meeting), rank(rank), index(channel),
          self(static_cast<uint32_t>(std::find(meeting.ranks.begin(), meeting.ranks.end(), rank) -
                                     meeting.ranks.begin())) {}
    uint32_t position() const override { return self; }
    uint32_t size() const override { return static_cast<uint32_t>(meeting.ranks.size()); }

    Status allGather(const void *in, void *out, uint64_t bytes, const char *) override {
      return meet(in, bytes, [&] {
        for (uint32_t r = 0; r < size(); ++r)
          std::memcpy(static_cast<std::byte *>(out) + r * bytes, meeting.sent[r].data(), bytes);
      });
    }
    Status reduceScatter(const void *in, void *out, void *, uint64_t elements, DType dtype,
                         Reduction reduction, const char *) override {
      return meet(in, elements * size() * byteSize(dtype),
                  [&] { combine(self * elements, elements, dtype, reduction, out); });
    }
    Status allReduce(const void *in, void *out, void *, uint64_t elements, DType dtype, Reduction reduction,
                     const char *) override {
      return meet(in, elements * byteSize(dtype), [&] { combine(0, elements, dtype, reduction, out); });
    }
    Status broadcast(void *data, uint64_t bytes, uint32_t root, const char *) override {
      return meet(data, bytes, [&] { std::memcpy(data, meeting.sent[root].data(), bytes); });
    }
    Status allToAll(const void *in, void *out, uint64_t bytes, const char *) override {
      return meet(in, bytes * size(), [&] {
        for (uint32_t r = 0; r < size(); ++r)
          std::memcpy(static_cast<std::byte *>(out) + r * bytes, meeting.sent[r].data() + self * bytes,
                      bytes);
      });
    }
    /// Returns when others have taken what this rank sends, as the real one may.
    Status exchange(std::span<const Message> messages) override {
      std::unique_lock lock(ranks.mutex);
      for (const Message &message : messages) {
        ranks.longest = std::max(ranks.longest, message.bytes);
        const auto *from = static_cast<const std::byte *>(message.data);
        if (message.isSend)
          meeting.mail[{self, message.partner}].emplace_back(from, from + message.bytes);
      }
      ranks.changed.notify_all();
      if (Status status = takeAll(lock, messages); !status)
        return status;
      ranks.changed.wait(lock, [&] {
        return ranks.broken || std::all_of(messages.begin(), messages.end(), [&](const Message &message) {
                 return !message.isSend || meeting.mail[{self, message.partner}].empty();
               });
      });
      return ranks.broken ? Status(*ranks.broken) : Status();
    }
    Status barrier(const char *) override {
      return meet(nullptr, 0, [] {});
    }
    std::vector<CommStat> stats() const override { return {}; }

  private:
    /// Receives messages as they come.
    Status takeAll(std::unique_lock<std::mutex> &lock, std::span<const Message> messages) {
      std::list<Message> open;
      std::copy_if(messages.begin(), messages.end(), std::back_inserter(open),
                   [](const Message &message) { return !message.isSend; });
      const auto boxOf = [&](const Message &m) -> auto & { return meeting.mail[{m.partner, self}]; };
      while (!open.empty()) {
        auto next = open.end();
        ranks.changed.wait(lock, [&] {
          next = std::find_if(open.begin(), open.end(), [&](const Message &m) { return !boxOf(m).empty(); });
          return ranks.broken || next != open.end();
        });
        if (ranks.broken)
          return *ranks.broken;
        auto &box = boxOf(*next);
        if (box.front().size() != next->bytes)
          return Error{ExitCode::Internal, "message of another length", ""};
        std::memcpy(next->data, box.front().data(), next->bytes);
        box.pop_front();
        open.erase(next);
        ranks.changed.notify_all();
      }
      return {};
    }
    void combine(uint64_t first, uint64_t count, DType dtype, Reduction reduction, void *out) {
      if (dtype == DType::I32)
        return reduce<int32_t>(meeting, first, count, reduction, out);
      reduce<float>(meeting, first, count, reduction, out);
    }
    /// Lays down a copy, waits for all ranks, takes, and waits again, so that nobody overwrites too early.
    template <class Take>
    Status meet(const void *in, uint64_t bytes, Take take) {
      const auto failure = ranks.failures.find({rank, index, ranks.countCall(rank, index)});
      if (failure != ranks.failures.end()) {
        if (ranks.patient)
          ranks.awaitArrival();
        if (failure->second.code == ExitCode::Peer)
          ranks.abort("told by rank " + std::to_string(rank) + ": " + failure->second.message);
        return failure->second;
      }
      const auto *from = static_cast<const std::byte *>(in);
      meeting.sent[self].assign(from, from + bytes);
      if (Status status = arrive(bytes); !status)
        return status;
      take();
      return arrive(0);
    }
    Status arrive(uint64_t bytes) {
      std::unique_lock lock(ranks.mutex);
      ranks.longest = std::max(ranks.longest, bytes);
      const uint64_t round = meeting.round;
      if (++meeting.arrived == size()) {
        meeting.arrived = 0;
        ++meeting.round;
      }
      ranks.changed.notify_all();
      ranks.changed.wait(lock, [&] { return ranks.broken || meeting.round != round; });
      return meeting.round != round ? Status() : Status(*ranks.broken);
    }

    FakeRanks &ranks;
    Meeting &meeting;
    const uint32_t rank, index, self; ///< self: the position
  };

  /// How many calls `rank` has made before on a channel.
  uint32_t countCall(uint32_t rank, uint32_t index) {
    const std::lock_guard lock(mutex);
    return calls[{rank, index}]++;
  }
  void awaitArrival() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] {
      return std::any_of(meetings.begin(), meetings.end(),
                         [](const auto &m) { return m.second.arrived > 0; });
    });
  }

  bool patient = false;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, Error> failures;
  std::mutex mutex;                                                       ///< guards what follows
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, Meeting> meetings; ///< by channel and members
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> calls;                ///< by rank and channel
  std::condition_variable changed;
  std::optional<Error> broken;
  uint64_t longest = 0;
};

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_FAKERANKS_H
