//===- FreezeParameters.cpp - Parameters that are not trained -----------------------===//
//
// Whether a parameter is trained stands in its declaration alone: differentiation asks for no other
// gradients, and whatever a gradient brings with it (moments, masters, reductions, activations that are kept)
// follows from there.
//
//===---------------------------------------------------------------------------===//
#include "ParameterNames.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/TrainedParameters.h"

#include <fnmatch.h>

namespace mlir::ds {
#define GEN_PASS_DEF_FREEZEPARAMETERS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
using ::ds::Error;
using ::ds::ExitCode;

/// Whether one of the parameter's names matches.
static bool matches(StateOp parameter, const std::string &pattern) {
  return llvm::any_of(namesOf(parameter),
                      [&](StringRef name) { return ::fnmatch(pattern.c_str(), name.str().c_str(), 0) == 0; });
}

::ds::Status mlir::ds::freezeParameters(ModuleOp module, ArrayRef<std::string> patterns) {
  SmallVector<StateOp> parameters = parametersOf(module), frozen;
  for (const std::string &pattern : patterns) {
    const size_t before = frozen.size();
    llvm::copy_if(parameters, std::back_inserter(frozen),
                  [&](StateOp parameter) { return matches(parameter, pattern); });
    if (frozen.size() > before)
      continue;
    std::vector<std::string> names;
    for (StateOp parameter : parameters)
      for (StringRef name : namesOf(parameter))
        names.push_back(name.str());
    return Error{ExitCode::Invalid, "--freeze '" + pattern + "': no parameter has such a name",
                 nearestNames(pattern, names)};
  }
  const bool isAnyLeft = llvm::any_of(parameters, [&](StateOp parameter) {
    return parameter.getTrainable() && !llvm::is_contained(frozen, parameter);
  });
  if (!isAnyLeft)
    return Error{ExitCode::Invalid,
                 "--freeze: all " + std::to_string(parameters.size()) +
                     " parameters would be frozen, and nothing is left to train",
                 "leave out the pattern that matches those to train"};
  for (StateOp parameter : frozen)
    parameter.setTrainable(false);
  return {};
}

namespace {
struct FreezeParameters : mlir::ds::impl::FreezeParametersBase<FreezeParameters> {
  using FreezeParametersBase::FreezeParametersBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Model)) ||
        failed(emitStatus(
            getOperation(),
            freezeParameters(getOperation(), SmallVector<std::string>(patterns.begin(), patterns.end())))))
      signalPassFailure();
  }
};
} // namespace
