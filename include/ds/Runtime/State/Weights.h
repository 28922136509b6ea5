//===- Weights.h - How states get their values, and where they are kept --------===//
//
// States of role Parameter and Buffer have a name in weights files, and other names that mean the same
// tensor. Everything else starts from its initialisation. A master has the value that its 16-bit parameter is
// rounded from: it is initialised, read and written in the parameter's place. A rank fills its part of what
// the ranks hold together by itself, and any number of ranks starts from the same weights.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_STATE_WEIGHTS_H
#define DS_RUNTIME_STATE_WEIGHTS_H

#include "ds/Runtime/Engine/Executor.h"

namespace ds::rt {

/// Fills every state as its architecture publishes it, by `seed` and the state's name: the same seed gives
/// the same weights in any program that has the state. The generator of random ops (the scalar state "rng")
/// becomes (seed, 0). Without `alsoRequired`, a state that only a file can
/// give is refused with ExitCode::Invalid. States whose number `left` says stay as they are.
Status initializeStates(Executor &executor, uint64_t seed, bool alsoRequired,
                        const std::vector<bool> &left = {});

/// Reads parameters and buffers from `path`. A file that does not match is refused with ExitCode::Invalid and
/// the lists of missing, unknown and different tensors, before any state is touched. A tensor has the type of
/// its state; a 16-bit parameter or one with a master takes wider and narrower floats too. Names that the
/// program declares unused are passed over, and adapters may be missing, all of them: they stay as they were
/// drawn. `path` is a .safetensors file, the index of shards, or a directory with either.
Status loadWeights(Executor &executor, const std::string &path);

/// Reads the adapters, and nothing else, from the weights in `folder`, as PEFT writes it. Invalid, before any
/// state is touched: they are those of another model.
Status loadAdapter(Executor &executor, const std::string &folder);

/// Refuses, with Invalid, a program without adapters, and a folder whose adapters have other sizes or another
/// scale than the program's.
Status checkAdapter(const Program &program, const std::string &folder);

/// Writes parameters and buffers under all their names, atomically. With a `communicator` every rank calls
/// it: rank 0 writes the file and collects what others hold of a tensor, piece by piece, and all ranks return
/// the same failure if it cannot.
Status saveWeights(const Executor &executor, const std::string &path, Communicator *communicator = nullptr);

/// Refuses with ExitCode::Io a file that saveWeights could not finish, since this process may not write one
/// so large (`ulimit -f`). An empty path fits.
Status checkWeightsFit(const Program &program, const std::string &path);

} // namespace ds::rt

#endif // DS_RUNTIME_STATE_WEIGHTS_H
