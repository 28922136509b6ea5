//===- TrainedPart.cpp - --freeze and --lora: which part of a model is trained ------===//
#include "TrainedPart.h"

#include "CommandLine/AdapterOptions.h"
#include "ds/Passes/Phases.h"
#include "ds/Passes/TrainedParameters.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace ds;
using namespace ds::opt;

Status ds::opt::chooseTrained(mlir::ModuleOp module, const Options &options) {
  if (options.partOption().empty())
    return {};
  const mlir::FailureOr<mlir::ds::Phase> phase = mlir::ds::phaseOf(module);
  if (failed(phase) || *phase != mlir::ds::Phase::Model)
    return Error{ExitCode::Invalid,
                 options.partOption() + ": " + options.input +
                     " is past phase model, and its step trains what it was built for",
                 "start from the model"};
  if (!options.freeze.empty())
    return mlir::ds::freezeParameters(module, options.freeze);
  const Result<std::optional<AdapterRequest>> request = adapterRequest(options);
  if (!request)
    return request.error();
  mlir::PassManager manager(module.getContext());
  manager.addPass(mlir::createCanonicalizerPass()); // transpositions of weights become the products' own
  if (failed(manager.run(module)))
    return Error{ExitCode::Internal, options.input + ": cannot be simplified", ""};
  return mlir::ds::addAdapters(module, **request);
}
