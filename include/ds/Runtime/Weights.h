//===- Weights.h - How states get their values, and where they are kept --------===//
//
// States of role Parameter and Buffer have a name in weights files, and other names that mean the same
// tensor. Everything else starts from its initialisation, masters from their parameter.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_WEIGHTS_H
#define DS_RUNTIME_WEIGHTS_H

#include "ds/Runtime/Executor.h"

namespace ds::rt {

/// Fills every state as its architecture publishes it, by `seed` and the state's name: the same seed gives
/// the same weights in any program that has the state. The generator of random ops (the scalar state "rng")
/// becomes (seed, 0). Without `alsoRequired`, a state that only a file can
/// give is refused with ExitCode::Invalid.
Status initializeStates(Executor &executor, uint64_t seed, bool alsoRequired);

/// Reads parameters and buffers from `path`. A file that does not match is refused with ExitCode::Invalid and
/// the lists of missing, unknown and different tensors, before any state is touched. Names that the program
/// declares unused are passed over.
Status loadWeights(Executor &executor, const std::string &path);

/// Writes parameters and buffers under all their names, atomically.
Status saveWeights(const Executor &executor, const std::string &path);

/// Sets each fp32 (or other) master copy to the value of its parameter. Call after parameters have changed.
Status syncMasters(Executor &executor);

} // namespace ds::rt

#endif // DS_RUNTIME_WEIGHTS_H
