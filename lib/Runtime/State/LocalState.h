//===- LocalState.h - What a rank holds of a state, in its memory ---------------===//
#ifndef DS_LIB_RUNTIME_STATE_LOCALSTATE_H
#define DS_LIB_RUNTIME_STATE_LOCALSTATE_H

#include "ds/Runtime/Engine/Executor.h"

namespace ds::rt {

/// What `executor`'s rank holds of a state of its program.
struct LocalState {
  std::byte *data = nullptr; ///< of the buffer's first element; on a device's memory if the executor is
  DType dtype = DType::F32;
  HeldElements held;
  ElementRuns runs; ///< through all of `held`

  LocalState(const Executor &executor, const State &state)
      : LocalState(executor, executor.program().mesh, state) {}

  uint64_t elementBytes() const { return byteSize(dtype); }
  /// Where element `at` of the buffer lies.
  std::byte *address(uint64_t at) const { return data + at * elementBytes(); }

private:
  LocalState(const Executor &executor, const Mesh &mesh, const State &state)
      : data(static_cast<std::byte *>(executor.data(state.buffer))),
        dtype(executor.program().buffers[state.buffer].dtype),
        held(heldElements(mesh, state.layout, state.logicalShape, executor.rank())),
        runs(mesh, state.layout, state.logicalShape, executor.rank()) {}
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_STATE_LOCALSTATE_H
