//===- StateNames.h - Which states stand for one tensor of a weights file -------===//
#ifndef DS_LIB_RUNTIME_PROGRAM_STATENAMES_H
#define DS_LIB_RUNTIME_PROGRAM_STATENAMES_H

#include "ds/Runtime/Program/Program.h"

namespace ds::rt {

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

/// The names that weights files may have for such a state, those that are written first.
std::vector<std::string> namesInFiles(const State &state);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_PROGRAM_STATENAMES_H
