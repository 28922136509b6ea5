//===- Waiting.h - How the threads of parallel regions wait -----------------------===//
#ifndef DS_RUNTIME_PROCESS_WAITING_H
#define DS_RUNTIME_PROCESS_WAITING_H

#include "ds/Support/Processors.h"

#include <string>

namespace ds::rt {

/// The variable by which libgomp takes how often a thread looks before it sleeps.
inline constexpr const char *kSpinVariable = "GOMP_SPINCOUNT";

/// How often threads look for work before they sleep: none where others have a right to the processors of
/// this rank, else as many times as fit a tenth of a millisecond. `pauseNs`: what one look takes.
uint64_t chooseSpins(const ProcessorShare &share, double pauseNs);

/// Whether the user has said how OpenMP waits.
bool userChoseWaiting();

/// Starts this program once more, in the same process, with the choice in its environment: libgomp reads it
/// before main. Returns where that has happened already, the user has chosen or the system does not let it:
/// waiting then costs processor time, and nothing else. Nothing may have been opened that a new start loses.
void settleWaiting(char **argv);

} // namespace ds::rt

#endif // DS_RUNTIME_PROCESS_WAITING_H
