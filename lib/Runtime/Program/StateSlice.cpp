//===- StateSlice.cpp - Which elements of a state a rank holds ------------------===//
//
// Relies on what verifyProgram has established: sharded states lie inside their bucket, owners exist.
//
//===---------------------------------------------------------------------------===//
#include "StateSlice.h"

#include <algorithm>
#include <unordered_map>

namespace ds::rt {

StateSlice sliceOf(const Program &program, const State &state, uint32_t rank) {
  uint64_t elements = 1;
  for (int64_t size : state.logicalShape)
    elements *= static_cast<uint64_t>(size);
  const Partition &part = state.partition;
  if (!part.sharded)
    return {0, elements, 0};
  const uint64_t begin = rank * part.shardElements, end = begin + part.shardElements;
  const uint64_t from = std::max(begin, part.offset), to = std::min(end, part.offset + elements);
  if (from >= to)
    return {};
  return {from - part.offset, to - from, from - begin};
}

/// State numbers by name.
static std::unordered_map<std::string_view, size_t> numberStates(const Program &program) {
  std::unordered_map<std::string_view, size_t> numbers;
  for (size_t i = 0; i < program.states.size(); ++i)
    numbers.emplace(program.states[i].name, i);
  return numbers;
}

std::vector<const State *> originsOf(const Program &program) {
  const auto numbers = numberStates(program);
  std::vector<const State *> origins;
  for (const State &state : program.states)
    origins.push_back(state.role == Role::Master ? &program.states[numbers.at(state.owner)] : &state);
  return origins;
}

std::vector<const State *> mastersOf(const Program &program) {
  const auto numbers = numberStates(program);
  std::vector<const State *> masters;
  for (const State &state : program.states)
    masters.push_back(&state);
  for (const State &state : program.states)
    if (state.role == Role::Master)
      masters[numbers.at(state.owner)] = &state;
  return masters;
}

} // namespace ds::rt
