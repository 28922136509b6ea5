//===- Players.h - Ranks that are players, without a launcher ----------------------===//
#ifndef DS_UNITTESTS_RUNTIME_COMM_PLAYERS_H
#define DS_UNITTESTS_RUNTIME_COMM_PLAYERS_H

#include "Processes.h"
#include "Ranks.h"

namespace ds::rt::test {

inline constexpr uint32_t kWorld = 3;
/// The time-out where a rank says nothing any more: what a test sleeps.
inline constexpr int kSilence = 4;
/// Until a survivor counts as one that hangs. No test takes that long that passes.
inline constexpr std::chrono::milliseconds kLimit(120000);

/// Its output is the file "out.RANK" in `directory`.
inline Process startPlayer(const std::string &directory, uint32_t rank, std::vector<std::string> options,
                           uint32_t world = kWorld, int timeout = kSilence,
                           const std::string &transport = "memory") {
  options.insert(options.begin(), {DS_COMM_PLAYER, "--timeout", std::to_string(timeout)});
  const std::map<std::string, std::string> environment = {{"DS_RANK", std::to_string(rank)},
                                                          {"DS_WORLD", std::to_string(world)},
                                                          {"DS_RENDEZVOUS", directory},
                                                          {"DS_NONCE", "job"},
                                                          {"DS_ONE_HOST", "1"},
                                                          {"DS_TRANSPORT", transport}};
  return Process(std::move(options), environment, directory + "/out." + std::to_string(rank));
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_COMM_PLAYERS_H
