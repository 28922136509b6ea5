//===- Waiting.cpp - How the threads of parallel regions wait ---------------------===//
//
// libgomp's threads look for the next region for 300,000 turns, 7 to 15 ms, before they sleep: longer than
// most commands of a step take. On processors that others use as well that is time taken from whoever has
// work: a step beside one busy process took 2.07 times as long as alone, four ranks on two processors 1.47
// times as long as with threads that sleep at once. A tenth of a millisecond, which is longer than most gaps
// between regions and than waking a thread, cost nothing alone (1.044 s against 1.046 s), and 1.87 times as
// long beside others. The length of a turn differs from processor to processor and is measured.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Process/Waiting.h"

#include "Clock.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <immintrin.h>
#include <unistd.h>

namespace ds::rt {
namespace {

constexpr double kSpinNs = 100000;

/// What one turn of waiting takes here: the least of a few trials, for others may interrupt.
double measurePauseNs() {
  constexpr int kTurns = 400, kTrials = 5;
  int64_t least = INT64_MAX;
  for (int trial = 0; trial < kTrials; ++trial) {
    const int64_t begin = nowNs();
    for (int turn = 0; turn < kTurns; ++turn)
      _mm_pause();
    least = std::min(least, nowNs() - begin);
  }
  return static_cast<double>(std::max<int64_t>(least, 1)) / kTurns;
}

} // namespace

uint64_t chooseSpins(const ProcessorShare &share, double pauseNs) {
  if (processorsLeft(share) < share.mask)
    return 0;
  return static_cast<uint64_t>(std::llround(kSpinNs / std::max(pauseNs, 1.0)));
}

bool userChoseWaiting() { return std::getenv("OMP_WAIT_POLICY") || std::getenv(kSpinVariable); }

void settleWaiting(char **argv) {
  if (userChoseWaiting())
    return;
  const std::string spins = std::to_string(chooseSpins(processorShare(), measurePauseNs()));
  if (::setenv(kSpinVariable, spins.c_str(), 1) == 0)
    ::execv("/proc/self/exe", argv);
}

} // namespace ds::rt
