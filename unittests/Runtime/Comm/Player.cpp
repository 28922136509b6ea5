//===- Player.cpp - A rank that plays training steps and may fall out of them ------===//
//
//   comm-player [--ranks N] [--timeout SECONDS] [--steps K] [--fault PHASE:RANK:HOW] [--failing-forks
//   FIRST:COUNT]
//
// The collectives of a training step with sharded parameters: blobs compared at the start, gathers on one
// channel while gradients are reduced on the other, a norm, a pause. With --ranks it launches itself as
// ds-run does; otherwise it is the rank that the environment says, as ds-run is, and exits as ds-run does.
//
// HOW is kill (SIGKILL), stop (SIGSTOP), exit (an error of its own, exit code 5), quit (exit code 0 without
// a word) or flood (32 MiB are printed without the end of a line, and all goes on). PHASE: rendezvous (before
// anything), card (when it has left its card, and before the others come), exchange, gather, reduce (in the
// midst of a large one), between (outside of all), end (after the last word to the others).
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Launch/Launch.h"
#include "ds/Runtime/Program/Program.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <optional>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

/// Calls of fork that still succeed, and then how many fail, as where there are too many processes.
int goodForks = INT_MAX, badForks = 0;

} // namespace

/// Stands before the library's.
extern "C" pid_t fork() {
  static const auto real = reinterpret_cast<pid_t (*)()>(::dlsym(RTLD_NEXT, "fork"));
  if (goodForks-- > 0)
    return real();
  if (badForks-- <= 0)
    return real();
  errno = EAGAIN;
  return -1;
}

namespace {

using namespace ds;
using namespace ds::rt;

struct Fault {
  std::string phase, how;
  uint32_t rank = 0;
};

struct Options {
  uint32_t ranks = 1;
  std::chrono::milliseconds timeout = kDefaultTimeout;
  uint32_t steps = 5;
  bool grid = false; ///< four ranks as two by two: gathers along rows, the rest along columns
  std::optional<Fault> fault;
};

Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--ranks")
      options.ranks = static_cast<uint32_t>(std::stoul(value));
    else if (name == "--timeout")
      options.timeout = std::chrono::milliseconds(static_cast<int64_t>(1000 * std::stod(value)));
    else if (name == "--steps")
      options.steps = static_cast<uint32_t>(std::stoul(value));
    else if (name == "--grid")
      options.grid = value == "yes";
    else if (name == "--failing-forks") {
      goodForks = std::stoi(value);
      badForks = std::stoi(value.substr(value.find(':') + 1));
    } else if (name == "--fault") {
      const size_t first = value.find(':'), last = value.rfind(':');
      options.fault = Fault{value.substr(0, first), value.substr(last + 1),
                            static_cast<uint32_t>(std::stoul(value.substr(first + 1)))};
    }
  }
  return options;
}

int report(const Error &error) {
  std::fprintf(stderr, "player: error: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

/// One rank.
class Player {
public:
  Player(const Options &options, const RankIdentity &place) : options(options), place(place) {}

  int play() {
    fallOut("rendezvous");
    if (options.fault && options.fault->phase == "card")
      fallOutWithCard();
    ConnectOptions how;
    how.timeout = options.timeout;
    Result<std::unique_ptr<RankGroup>> connected = connect(place, how);
    if (!connected)
      return report(connected.error());
    group = std::move(*connected);
    fallOut("exchange");
    Result<std::vector<std::string>> hashes = group->exchange("hash", "plan hashes");
    if (!hashes)
      return report(hashes.error());
    for (uint32_t step = 0; step < options.steps; ++step)
      if (Status status = this->step(step); !status)
        return report(status.error());
    if (Status status = group->finish(); !status)
      return report(status.error());
    fallOut("end");
    if (place.rank == 0)
      std::printf("done: %g\n", static_cast<double>(norm));
    return 0;
  }

private:
  static constexpr uint64_t kElements = 400000; ///< of one rank: several blocks

  bool falls(const char *phase) const {
    return options.fault && options.fault->phase == phase && options.fault->rank == place.rank;
  }

  void fallOut(const char *phase) {
    if (falls(phase))
      fall();
  }

  /// The rank in question falls when its card lies there; the others come later.
  void fallOutWithCard() {
    if (!falls("card"))
      return std::this_thread::sleep_for(std::chrono::seconds(1));
    std::thread([this] {
      const std::string card = place.directory + "/" + place.nonce + "." + std::to_string(place.rank);
      while (::access(card.c_str(), F_OK) != 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      fall();
    }).detach();
  }

  void fall() {
    const std::string &how = options.fault->how;
    if (how == "kill" || how == "stop")
      ::kill(::getpid(), how == "kill" ? SIGKILL : SIGSTOP);
    if (how == "exit") {
      if (group)
        group->abort("data.bin: corrupt");
      std::_Exit(5);
    }
    if (how == "quit")
      std::_Exit(0);
    if (how == "nap")
      std::this_thread::sleep_for(std::chrono::seconds(4));
    if (how == "hang")
      while (true)
        std::this_thread::sleep_for(std::chrono::seconds(1));
    if (how == "deafen") // nobody reads what follows
      ::kill(::getppid(), SIGSTOP);
    if (how == "flood" || how == "deafen") {
      const std::string part(size_t(1) << 20, 'x');
      for (int i = 0; i < 32; ++i)
        std::fwrite(part.data(), 1, part.size(), stderr);
    }
  }

  /// Falls out while `body` runs, at a moment that nobody chose.
  template <class Body>
  Status during(const char *phase, bool now, Body &&body) {
    std::thread fate;
    if (now && falls(phase))
      fate = std::thread([this] {
        std::this_thread::sleep_for(std::chrono::microseconds(::getpid() * 37 % 1000));
        fall();
      });
    Status status = body();
    if (fate.joinable())
      fate.join();
    return status;
  }

  /// Whether somebody still writes to memory that is about to be freed.
  template <class Memory>
  static bool isWrittenTo(const Memory &memory) {
    const Memory before = memory;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return before != memory;
  }

  /// Who takes part on a channel.
  Communicator &members(uint32_t channel) {
    const Mesh mesh = {{"column", 2}, {"row", 2}};
    return options.grid ? group->subset(channel, mesh.group(place.rank, {channel == 0 ? 1u : 0u}))
                        : group->channel(channel);
  }

  Status step(uint32_t index) {
    const bool now = index == 2;
    Communicator &gathers = members(0), &reduces = members(1);
    std::vector<float> full(kElements * gathers.size(), 1), shard(kElements, 1);
    std::vector<std::byte> staging(collectiveStagingBytes(
        Collective{CollectiveKind::ReduceScatter, Reduction::Sum, DType::F32, kElements, {}, ""},
        reduces.size()));
    Status gathered;
    std::thread gathering([&] {
      gathered = during("gather", now, [&] {
        return gathers.allGather(shard.data(), full.data(), kElements * 4, "bucket_0.parameter");
      });
    });
    std::vector<float> gradient(kElements * reduces.size(), 2), mine(kElements);
    Status reduced = during("reduce", now, [&] {
      return reduces.reduceScatter(gradient.data(), mine.data(), staging.data(), kElements, DType::F32,
                                   Reduction::Sum, "bucket_0.grad");
    });
    gathering.join();
    if ((!gathered || !reduced) && (isWrittenTo(full) || isWrittenTo(staging)))
      return Error{ExitCode::Internal, "memory is written to after its collective has ended", ""};
    if (!gathered)
      return gathered;
    if (!reduced)
      return reduced;
    if (now)
      fallOut("between");
    norm = mine[0];
    return reduces.allReduce(&norm, &norm, staging.data(), 1, DType::F32, Reduction::Sum, "norm");
  }

  const Options &options;
  const RankIdentity place;
  std::unique_ptr<RankGroup> group;
  float norm = 0;
};

} // namespace

int main(int argc, char **argv) {
  const Options options = parse(argc, argv);
  const Result<RankIdentity> place = findRankIdentity();
  if (!place)
    return report(place.error());
  if (place->kind == RankIdentity::Kind::Alone && options.ranks > 1) {
    LaunchOptions launch;
    launch.ranks = options.ranks;
    launch.timeout = options.timeout;
    return launchRanks(launch, argv).code;
  }
  return Player(options, *place).play();
}
