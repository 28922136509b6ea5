//===- Interrupt.h - Ends a run when its user asks -----------------------------===//
//
// The first SIGINT or SIGTERM lets the step finish; the second ends the process at once, as the signal would
// have.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_INTERRUPT_H
#define DS_RUNTIME_INTERRUPT_H

namespace ds::rt {

/// Installs the handlers, and ignores SIGPIPE: a reader that goes away never ends a training run.
void watchInterrupts();

/// Whether a signal has asked for the end of the run.
bool interrupted();

} // namespace ds::rt

#endif // DS_RUNTIME_INTERRUPT_H
