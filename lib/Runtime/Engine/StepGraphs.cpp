//===- StepGraphs.cpp - Recorded steps of an accelerator ----------------------------===//
#include "StepGraphs.h"

#include "ds/Support/Environment.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace ds::rt {

constexpr uint64_t kMaxNodes = 1u << 18; ///< of one graph; longer steps are started command by command

StepGraphs::StepGraphs(DeviceGraphs &recorder, bool allowed)
    : recorder(recorder), allowed(isSet("DS_CUDA_GRAPH", true) && allowed) {
  const char *wish = std::getenv("DS_CUDA_GRAPH");
  required = this->allowed && wish && std::strcmp(wish, "require") == 0;
}

Status StepGraphs::limit(uint64_t commands) {
  if (!allowed || commands <= kMaxNodes)
    return {};
  return refuse(fmt::format("the step has {} commands, a graph has at most {}", commands, kMaxNodes));
}

Result<bool> StepGraphs::record(uint64_t key, const std::function<Status()> &issue) {
  const auto refused = [this](const Error &why) -> Result<bool> {
    Status status = refuse(why.message);
    return status ? Result<bool>(false) : status.error();
  };
  if (graphs.contains(key))
    return true;
  if (Status status = recorder.begin(); !status)
    return status.error();
  if (Status issuing = issue(); !issuing) {
    recorder.abandon();
    return issuing.error().code == ExitCode::Peer ? issuing.error() : refused(issuing.error());
  }
  Result<GraphId> graph = recorder.end();
  if (!graph)
    return graph.error().code == ExitCode::Invalid ? refused(graph.error()) : graph.error();
  graphs.emplace(key, *graph);
  return true;
}

Status StepGraphs::launch(uint64_t key) {
  run.recorded = true;
  return recorder.launch(graphs.at(key));
}

/// From now on commands are started one by one; an error where the user wants graphs.
Status StepGraphs::refuse(const std::string &why) {
  allowed = false;
  run.refusal = why;
  if (!required)
    return {};
  return Error{ExitCode::Device, "DS_CUDA_GRAPH=require, but no graph can be recorded: " + why,
               "DS_CUDA_GRAPH=1 runs such steps command by command"};
}

} // namespace ds::rt
