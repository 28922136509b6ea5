//===- Interrupt.h - Ends a run when its user asks -----------------------------===//
//
// The first of kEndSignals lets the step finish; the second ends the process at once, as the signal would
// have.
//
// A request may come twice: who signals every process of a job (Slurm, systemd) reaches a rank directly, and
// through its launcher, which passes on what it gets. So signals that come by the launcher and others are
// counted apart, and the second that came the same way is the second request.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_INTERRUPT_H
#define DS_LIB_RUNTIME_TRAINING_INTERRUPT_H

#include <string>

namespace ds::rt {

/// Installs the handlers and releases what was held back. A SIGHUP that was ignored at the start (`nohup`)
/// stays ignored. Also ignores SIGPIPE and SIGXFSZ: a reader that goes away never ends a run, and a file that
/// may not grow is an error of the write. `parentPassesOn`: the parent process (mpirun, srun) passes signals
/// on.
void watchInterrupts(bool parentPassesOn = false);

/// Whether a signal has asked for the end of the run.
bool interrupted();

/// Its name, "SIGTERM"; empty if none has come to this process.
std::string interruptName();

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_INTERRUPT_H
