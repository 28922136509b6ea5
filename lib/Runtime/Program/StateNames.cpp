//===- StateNames.cpp - Which states stand for one tensor of a weights file -----===//
//
// Relies on what verifyProgram has established: owners exist, on the stage of what they own.
//
//===---------------------------------------------------------------------------===//
#include "StateNames.h"

#include <map>
#include <string_view>

namespace ds::rt {

/// State numbers by stage and name.
static std::map<std::pair<uint32_t, std::string_view>, size_t> numberStates(const Program &program) {
  std::map<std::pair<uint32_t, std::string_view>, size_t> numbers;
  for (size_t i = 0; i < program.states.size(); ++i)
    numbers.emplace(std::pair(program.states[i].stage, std::string_view(program.states[i].name)), i);
  return numbers;
}

std::vector<const State *> originsOf(const Program &program) {
  const auto numbers = numberStates(program);
  std::vector<const State *> origins;
  for (const State &state : program.states)
    origins.push_back(state.role == Role::Master ? &program.states[numbers.at({state.stage, state.owner})]
                                                 : &state);
  return origins;
}

std::vector<const State *> mastersOf(const Program &program) {
  const auto numbers = numberStates(program);
  std::vector<const State *> masters;
  for (const State &state : program.states)
    masters.push_back(&state);
  for (const State &state : program.states)
    if (state.role == Role::Master)
      masters[numbers.at({state.stage, state.owner})] = &state;
  return masters;
}

std::vector<std::string> namesInFiles(const State &state) {
  std::vector<std::string> names = {state.name};
  names.insert(names.end(), state.aliases.begin(), state.aliases.end());
  names.insert(names.end(), state.readNames.begin(), state.readNames.end());
  return names;
}

} // namespace ds::rt
