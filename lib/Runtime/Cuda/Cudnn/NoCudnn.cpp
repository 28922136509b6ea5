//===- NoCudnn.cpp - A runtime that was built without cuDNN's headers ---------------===//
#include "CudnnEngines.h"

namespace ds::rt::cuda {

struct CudnnEngines::State {};

CudnnEngines::CudnnEngines(const Hardware &) {}
CudnnEngines::~CudnnEngines() = default;

Result<EngineWork> CudnnEngines::bind(const Binding &, const Command &, const LaunchBinder &) {
  return Error{ExitCode::Device, "this build has no cuDNN", ""};
}

std::string CudnnEngines::version() const { return ""; }

} // namespace ds::rt::cuda
