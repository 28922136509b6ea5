//===- Training.cpp - How a model is trained, as an attribute ---------------------===//
//
// Whatever the attribute says that could not be done is refused here, where it is read or made: a key that
// nobody knows, a value of another kind, a size below one.
//
//===----------------------------------------------------------------------------===//
#include "FieldText.h"
#include "ds/Dialect/Ds.h"
#include "ds/Dialect/TrainingFields.h"

#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace mlir::ds;

using EmitError = function_ref<InFlightDiagnostic()>;

FloatType mlir::ds::toFloatType(MLIRContext *context, FloatKind kind) {
  switch (kind) {
  case FloatKind::F32:
    return Float32Type::get(context);
  case FloatKind::BF16:
    return BFloat16Type::get(context);
  case FloatKind::F16:
    return Float16Type::get(context);
  }
  llvm_unreachable("all kinds are listed");
}

OptimizerOptions OptimizerOptions::defaults(Kind kind) {
  OptimizerOptions options;
  options.kind = kind;
  if (kind == Kind::Adagrad) {
    options.rate = 1e-2;
    options.epsilon = 1e-10;
  }
  return options;
}

llvm::hash_code mlir::ds::hash_value(const TrainingOptions &options) { return FieldHasher::hash(options); }

TrainingOptions mlir::ds::getTraining(ModuleOp module) {
  auto training = module->getAttrOfType<TrainingAttr>(DsDialect::kTrainingAttr);
  return training ? training.getOptions() : TrainingOptions();
}

LogicalResult mlir::ds::setTraining(ModuleOp module, const TrainingOptions &options) {
  auto training = TrainingAttr::getChecked([&] { return module.emitError(); }, module.getContext(), options);
  if (!training)
    return failure();
  module->setAttr(DsDialect::kTrainingAttr, training);
  return success();
}

//===----------------------------------------------------------------------===//
// #ds.training
//===----------------------------------------------------------------------===//

Attribute TrainingAttr::parse(AsmParser &parser, Type) {
  TrainingOptions options;
  if (FieldReader(parser, DsDialect::kTrainingAttr).parse(options, AsmParser::Delimiter::LessGreater))
    return {};
  return parser.getChecked<TrainingAttr>(parser.getContext(), options);
}

void TrainingAttr::print(AsmPrinter &printer) const {
  FieldPrinter(printer, getContext()).print(getOptions(), '<', '>');
}

/// A schedule that ends needs to know when.
static LogicalResult verifySchedule(EmitError fail, const ScheduleOptions &options) {
  const bool needsTotal = options.kind == ScheduleOptions::Kind::WarmupDecay ||
                          options.kind == ScheduleOptions::Kind::WarmupCosine;
  if (needsTotal && options.totalSteps <= 0 && options.totalSteps != ScheduleOptions::kStepsOfRun)
    return fail() << "a positive scheduler.total_num_steps, or -1 for that of the run, but got "
                  << options.totalSteps;
  return success();
}

/// A scaler that could never work is refused.
static LogicalResult verifyLossScale(EmitError fail, const LossScaleOptions &options) {
  if (options.scales && !(options.initial > 0))
    return fail() << "a positive loss_scale.initial, but got " << options.initial;
  if (options.dynamic && options.window < 1)
    return fail() << "at least 1 for loss_scale.window, but got " << options.window;
  if (options.scales && !options.skips)
    return fail() << "loss_scale.skip where losses are scaled, but got false";
  return success();
}

static LogicalResult verifySharding(EmitError fail, const ShardingOptions &options) {
  if (options.stage < 0 || options.stage > 3)
    return fail() << "0 to 3 for zero_optimization.stage, but got " << options.stage;
  for (int64_t size : {options.reduceBucketSize, options.gatherBucketSize, options.subGroupSize})
    if (size < 1 && size != ShardingOptions::kChosen)
      return fail() << "bucket sizes of at least 1 element, but got " << size;
  for (auto [key, axes] :
       {std::pair("secondary_axes", &options.secondaryAxes), {"gather_first_axes", &options.firstAxes}})
    if (!axes->empty() && options.stage != 3)
      return fail() << "stage 3 for zero_optimization." << key << ", but got stage " << options.stage;
  return success();
}

static LogicalResult verifyOffload(EmitError fail, const OffloadOptions &options) {
  if (!(options.optimizer >= 0 && options.optimizer <= 1))
    return fail() << "0 to 1 for offload.optimizer, but got " << options.optimizer;
  if (options.maxInCpu < 0)
    return fail() << "at least 0 elements for offload.max_in_cpu, but got " << options.maxInCpu;
  if (options.speculates && options.optimizerOnNvme)
    return fail() << "offload.speculate with states on the host, but got them on NVMe";
  return success();
}

static LogicalResult verifyRecompute(EmitError fail, const RecomputeOptions &options) {
  for (auto [key, value] : {std::pair("checkpoints", options.checkpoints), {"interval", options.interval}})
    if (value < 0)
      return fail() << "at least 0 for recompute." << key << ", but got " << value;
  if (options.checkpoints > 0 && options.interval > 0)
    return fail() << "one of recompute.checkpoints and recompute.interval, but got both";
  if (options.demandsLayers() && !options.ops.empty())
    return fail() << "layers or ops in recompute, but got both";
  return success();
}

static LogicalResult verifyNoDecay(EmitError fail, ArrayRef<std::string> patterns) {
  for (const std::string &pattern : patterns)
    if (std::string reason; !llvm::Regex(pattern).isValid(reason))
      return fail() << "a regular expression in no_decay, but got \"" << pattern << "\": " << reason;
  return success();
}

LogicalResult TrainingAttr::verify(EmitError emitError, TrainingOptions options) {
  auto fail = [&] { return emitError() << DsDialect::kTrainingAttr << " expects "; };
  if (options.accumulation < 1)
    return fail() << "at least 1 for gradient_accumulation_steps, but got " << options.accumulation;
  if (!(options.clipping >= 0))
    return fail() << "at least 0 for gradient_clipping, but got " << options.clipping;
  if (options.lossChunks < 0)
    return fail() << "at least 0 for loss_chunks, but got " << options.lossChunks;
  return success(
      succeeded(verifySchedule(fail, options.schedule)) &&
      succeeded(verifyLossScale(fail, options.lossScale)) &&
      succeeded(verifySharding(fail, options.sharding)) && succeeded(verifyOffload(fail, options.offload)) &&
      succeeded(verifyRecompute(fail, options.recompute)) && succeeded(verifyNoDecay(fail, options.noDecay)));
}
