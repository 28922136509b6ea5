//===- StateSlice.h - Which elements of a state a rank holds --------------------===//
//
// A state that the ranks hold together is cut where the bucket is cut, not where its rows end: a rank has a
// run of its flat elements, often none.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_PROGRAM_STATESLICE_H
#define DS_LIB_RUNTIME_PROGRAM_STATESLICE_H

#include "ds/Runtime/Executor.h"

namespace ds::rt {

/// Elements [first, first + count) of the flat state, which begin at element `at` of its buffer.
struct StateSlice {
  uint64_t first = 0, count = 0, at = 0;
};

/// What `rank` holds of `state`: all of it unless it is sharded.
StateSlice sliceOf(const Program &program, const State &state, uint32_t rank);

/// The slice of this rank, and where it lies.
struct LocalSlice {
  uint64_t first = 0, count = 0;
  std::byte *data = nullptr;
  DType dtype = DType::F32;
};
inline LocalSlice localSlice(const Executor &executor, const State &state) {
  const StateSlice slice = sliceOf(executor.program(), state, executor.rank());
  const DType dtype = executor.program().buffers[state.buffer].dtype;
  return {slice.first, slice.count,
          static_cast<std::byte *>(executor.data(state.buffer)) + slice.at * byteSize(dtype), dtype};
}

/// By state: the one whose name and initialisation give it its value. A master's is its parameter, any other
/// state's is itself.
std::vector<const State *> originsOf(const Program &program);

/// By state: the one that has its exact value. A parameter's is its master if it has one, any other state's
/// is itself.
std::vector<const State *> mastersOf(const Program &program);

/// Whether weights files hold the state.
inline bool isInFiles(const State &state) {
  return state.role == Role::Parameter || state.role == Role::Buffer;
}

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_STATESLICE_H
