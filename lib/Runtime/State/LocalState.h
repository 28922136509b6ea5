//===- LocalState.h - What a rank holds of a state, in its memory ---------------===//
#ifndef DS_LIB_RUNTIME_STATE_LOCALSTATE_H
#define DS_LIB_RUNTIME_STATE_LOCALSTATE_H

#include "Engine/StateWriter.h"

#include "ds/Runtime/Engine/Executor.h"

namespace ds::rt {

/// Whether a state of `executor.whole()` is on the stage that was loaded.
inline bool isLoaded(const Executor &executor, const State &state) {
  return executor.whole().stages.size() == 1 || state.stage == executor.stageNumber();
}

/// What `executor`'s rank holds of a state of its program, which may be said as that of the whole program:
/// buffers have the same numbers.
struct LocalState {
  std::byte *data = nullptr; ///< of the buffer's first element; on a device's memory if the executor is
  DType dtype = DType::F32;
  HeldElements held;    ///< without padding
  HeldElements padding; ///< see clearPadding
  ElementRuns runs;     ///< through all of `held`

  LocalState(const Executor &executor, const State &state)
      : LocalState(executor, executor.program().mesh, state) {}

  uint64_t elementBytes() const { return byteSize(dtype); }
  /// Where element `at` of the buffer lies.
  std::byte *address(uint64_t at) const { return data + at * elementBytes(); }
  /// Through `held` from its element `first` on, which there is, or its end.
  ElementRuns runsFrom(uint64_t first) const {
    ElementRuns rest = runs;
    while (first > 0)
      first -= rest.next(UINT64_MAX, first)->count;
    return rest;
  }

private:
  LocalState(const Executor &executor, const Mesh &mesh, const State &state)
      : data(static_cast<std::byte *>(executor.data(state.buffer))),
        dtype(executor.program().buffers[state.buffer].dtype),
        held(heldElements(mesh, state.layout, state.logicalShape, executor.rank())),
        padding(heldPadding(mesh, state.layout, state.logicalShape, executor.rank())),
        runs(mesh, state.layout, state.logicalShape, executor.rank()) {}
};

/// Makes what `executor`'s rank holds of padding zero. No file has it, and no step changes it.
inline Status clearPadding(Executor &executor, StateWriter &writer, const State &state) {
  const LocalState local(executor, state);
  return writer.clear(local.address(local.padding.at), local.padding.count * local.elementBytes());
}

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_STATE_LOCALSTATE_H
