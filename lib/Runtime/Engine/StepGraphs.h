//===- StepGraphs.h - Recorded steps of an accelerator ------------------------------===//
//
// What is run again and again is recorded once and then started as one. Whether that may be, the user says
// (DS_CUDA_GRAPH), the step's length, and the device, which cannot record everything; what was refused once
// is not tried again.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_ENGINE_STEPGRAPHS_H
#define DS_LIB_RUNTIME_ENGINE_STEPGRAPHS_H

#include "ds/Runtime/Engine/Device.h"
#include "ds/Runtime/Player/Engine.h"

#include <map>

namespace ds::rt {

class StepGraphs {
public:
  /// On `recorder`, which outlives them; `allowed` is false where each command is waited for.
  StepGraphs(DeviceGraphs &recorder, bool allowed);

  /// Refuses all graphs if a step of `commands` is too long for one.
  Status limit(uint64_t commands);

  bool mayRecord() const { return allowed; }
  /// Records what `issue` issues as the graph of `key`, if that has none yet; false if something in it cannot
  /// be recorded, and from then on nothing is.
  Result<bool> record(uint64_t key, const std::function<Status()> &issue);
  /// Starts the graph of `key`, which was recorded.
  Status launch(uint64_t key);

  /// What Engine::graph says; `forget` begins a run.
  const GraphRun &last() const { return run; }
  void forget() { run.recorded = false; }

private:
  Status refuse(const std::string &why);

  DeviceGraphs &recorder;
  bool allowed = true;                ///< by the program, the device and the user
  bool required = false;              ///< DS_CUDA_GRAPH=require
  std::map<uint64_t, GraphId> graphs; ///< by key of what they run
  GraphRun run;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_ENGINE_STEPGRAPHS_H
