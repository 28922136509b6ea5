//===- TrainingAttr.cpp - The module attribute that says how to train -----------===//
//
// The keys are listed once, in `visitFields`: the reader and the writer are two visitors of that list, so
// that they cannot disagree.
//
//===----------------------------------------------------------------------------===//
#include "TrainingAttr.h"

#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace mlir::ds;

using OptimizerKind = OptimizerOptions::Kind;
using ScheduleKind = ScheduleOptions::Kind;

static constexpr std::pair<StringLiteral, OptimizerKind> kOptimizers[] = {{"sgd", OptimizerKind::Sgd},
                                                                          {"adam", OptimizerKind::Adam},
                                                                          {"adagrad", OptimizerKind::Adagrad},
                                                                          {"lion", OptimizerKind::Lion},
                                                                          {"lamb", OptimizerKind::Lamb}};

static constexpr std::pair<StringLiteral, ScheduleKind> kSchedules[] = {
    {"constant", ScheduleKind::Constant},         {"LRRangeTest", ScheduleKind::RangeTest},
    {"OneCycle", ScheduleKind::OneCycle},         {"WarmupLR", ScheduleKind::Warmup},
    {"WarmupDecayLR", ScheduleKind::WarmupDecay}, {"WarmupCosineLR", ScheduleKind::WarmupCosine}};

static constexpr std::pair<StringLiteral, FloatKind> kFloats[] = {
    {"f32", FloatKind::F32}, {"bf16", FloatKind::BF16}, {"f16", FloatKind::F16}};

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

//===----------------------------------------------------------------------------===//
// The list of keys
//===----------------------------------------------------------------------------===//

template <class Visitor>
static void visitFields(Visitor &visitor, OptimizerOptions &options) {
  visitor("lr", options.rate);
  visitor("beta1", options.beta1);
  visitor("beta2", options.beta2);
  visitor("eps", options.epsilon);
  visitor("weight_decay", options.weightDecay);
  visitor("adam_w_mode", options.decoupledDecay);
  visitor("bias_correction", options.biasCorrection);
  visitor("lr_decay", options.rateDecay);
  visitor("initial_accumulator_value", options.startAccumulator);
  visitor("eps_inside_sqrt", options.epsilonInsideRoot);
  visitor("momentum", options.momentum);
  visitor("dampening", options.dampening);
  visitor("nesterov", options.nesterov);
  visitor("min_coeff", options.minTrust);
  visitor("max_coeff", options.maxTrust);
}

template <class Visitor>
static void visitFields(Visitor &visitor, ScheduleOptions &options) {
  visitor("warmup_min_lr", options.warmupMinRate);
  visitor("warmup_max_lr", options.warmupMaxRate);
  visitor("warmup_num_steps", options.warmupSteps);
  visitor("total_num_steps", options.totalSteps);
  visitor("warmup_log", options.logarithmic);
  visitor("warmup_min_ratio", options.warmupMinRatio);
  visitor("cos_min_ratio", options.cosineMinRatio);
  visitor("lr_range_test_min_lr", options.rangeMinRate);
  visitor("lr_range_test_step_rate", options.rangeRate);
  visitor("lr_range_test_step_size", options.rangeSteps);
  visitor("lr_range_test_staircase", options.rangeStaircase);
  visitor("cycle_min_lr", options.cycleMinRate);
  visitor("cycle_max_lr", options.cycleMaxRate);
  visitor("decay_lr_rate", options.decayRate);
  visitor("cycle_first_step_size", options.firstSteps);
  visitor("cycle_second_step_size", options.secondSteps);
  visitor("cycle_first_stair_count", options.firstStairs);
  visitor("cycle_second_stair_count", options.secondStairs);
  visitor("decay_step_size", options.decaySteps);
  visitor("cycle_momentum", options.cycleMomentum);
  visitor("cycle_min_mom", options.cycleMinMomentum);
  visitor("cycle_max_mom", options.cycleMaxMomentum);
  visitor("decay_mom_rate", options.decayMomentumRate);
}

template <class Visitor>
static void visitFields(Visitor &visitor, PrecisionOptions &options) {
  visitor("compute", options.compute);
  visitor("autocast", options.autocast);
  visitor("gradient", options.gradient);
  visitor("master", options.master);
  visitor("moment", options.moment);
  visitor("convert_buffers", options.convertsBuffers);
  visitor("buffer", options.buffer);
}

template <class Visitor>
static void visitFields(Visitor &visitor, LossScaleOptions &options) {
  visitor("skip", options.skips);
  visitor("scale", options.scales);
  visitor("dynamic", options.dynamic);
  visitor("initial", options.initial);
  visitor("window", options.window);
  visitor("hysteresis", options.hysteresis);
  visitor("consecutive_hysteresis", options.consecutiveHysteresis);
  visitor("minimum", options.minimum);
}

template <class Visitor>
static void visitFields(Visitor &visitor, ShardingOptions &options) {
  visitor("stage", options.stage);
  visitor("reduce_bucket_size", options.reduceBucketSize);
  visitor("allgather_bucket_size", options.gatherBucketSize);
  visitor("sub_group_size", options.subGroupSize);
  visitor("stage3_param_persistence_threshold", options.parameterThreshold);
  visitor("stage3_model_persistence_threshold", options.modelThreshold);
  visitor("reduce_each_micro_step", options.reduceEachMicroStep);
}

//===----------------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------------===//

namespace {
/// Reads fields of one dictionary; every key must be taken by some field.
class FieldReader {
public:
  FieldReader(ModuleOp module, StringRef section, DictionaryAttr dictionary)
      : module(module), section(section), dictionary(dictionary) {}

  void operator()(StringRef key, double &field) {
    take<FloatAttr>(key, "float", [&](FloatAttr value) { field = value.getValueAsDouble(); });
  }
  void operator()(StringRef key, int64_t &field) {
    take<IntegerAttr>(key, "integer", [&](IntegerAttr value) { field = value.getInt(); });
  }
  void operator()(StringRef key, bool &field) {
    take<BoolAttr>(key, "boolean", [&](BoolAttr value) { field = value.getValue(); });
  }
  void operator()(StringRef key, std::optional<bool> &field) {
    take<BoolAttr>(key, "boolean", [&](BoolAttr value) { field = value.getValue(); });
  }
  void operator()(StringRef key, FloatKind &field) {
    take<StringAttr>(key, "string", [&](StringAttr value) {
      const auto *found =
          llvm::find_if(kFloats, [&](const auto &entry) { return entry.first == value.getValue(); });
      if (found != std::end(kFloats))
        field = found->second;
      else
        fail() << "expects \"f32\", \"bf16\" or \"f16\" for " << section << "." << key << ", but got "
               << value;
    });
  }

  /// Success when all keys were known and of the right type; `type` selected the kind.
  LogicalResult finish() {
    for (NamedAttribute entry : dictionary)
      if (entry.getName() != "type" && !taken.contains(entry.getName()))
        return fail() << "has no key " << entry.getName() << " in " << section;
    return success(!failed);
  }

private:
  template <class Attr, class Set>
  void take(StringRef key, StringRef expected, Set set) {
    Attribute value = dictionary.get(key);
    taken.insert(StringAttr::get(dictionary.getContext(), key));
    if (!value)
      return;
    if (auto typed = dyn_cast<Attr>(value))
      return set(typed);
    fail() << "expects a " << expected << " for " << section << "." << key << ", but got " << value;
  }
  InFlightDiagnostic fail() {
    failed = true;
    return module.emitError() << DsDialect::kTrainingAttr << " ";
  }

  ModuleOp module;
  StringRef section;
  DictionaryAttr dictionary;
  DenseSet<StringAttr> taken;
  bool failed = false;
};
} // namespace

/// The kind that `section.type` names; the first of `kinds` without one.
template <class Kind, size_t N>
static FailureOr<Kind> readKind(ModuleOp module, StringRef section, DictionaryAttr dictionary,
                                const std::pair<StringLiteral, Kind> (&kinds)[N], Kind fallback) {
  Attribute type = dictionary.get("type");
  if (!type)
    return fallback;
  auto name = dyn_cast<StringAttr>(type);
  for (const auto &[spelling, kind] : kinds)
    if (name && name.getValue() == spelling)
      return kind;
  InFlightDiagnostic error = module.emitError()
                             << DsDialect::kTrainingAttr << " expects " << section << ".type to be one of ";
  llvm::interleaveComma(kinds, error, [&](const auto &entry) { error << '"' << entry.first << '"'; });
  return error << ", but got " << type;
}

static LogicalResult readOptimizer(ModuleOp module, DictionaryAttr dictionary, OptimizerOptions &options) {
  auto kind = readKind(module, "optimizer", dictionary, kOptimizers, OptimizerKind::Adam);
  if (failed(kind))
    return failure();
  options = OptimizerOptions::defaults(*kind);
  FieldReader reader(module, "optimizer", dictionary);
  visitFields(reader, options);
  return reader.finish();
}

static LogicalResult readSchedule(ModuleOp module, DictionaryAttr dictionary, ScheduleOptions &options) {
  auto kind = readKind(module, "scheduler", dictionary, kSchedules, ScheduleKind::Constant);
  if (failed(kind))
    return failure();
  options.kind = *kind;
  FieldReader reader(module, "scheduler", dictionary);
  visitFields(reader, options);
  if (failed(reader.finish()))
    return failure();
  bool needsTotal = *kind == ScheduleKind::WarmupDecay || *kind == ScheduleKind::WarmupCosine;
  if (needsTotal && options.totalSteps <= 0)
    return module.emitError() << DsDialect::kTrainingAttr
                              << " expects a positive scheduler.total_num_steps, but got "
                              << options.totalSteps;
  return success();
}

/// The sections without a kind.
template <class Options>
static LogicalResult readSection(ModuleOp module, StringRef name, DictionaryAttr dictionary,
                                 Options &options) {
  FieldReader reader(module, name, dictionary);
  visitFields(reader, options);
  return reader.finish();
}

/// A scaler that could never work is refused.
static LogicalResult checkLossScale(ModuleOp module, const LossScaleOptions &options) {
  auto fail = [&] { return module.emitError() << DsDialect::kTrainingAttr << " expects "; };
  if (options.scales && !(options.initial > 0))
    return fail() << "a positive loss_scale.initial, but got " << options.initial;
  if (options.dynamic && options.window < 1)
    return fail() << "at least 1 for loss_scale.window, but got " << options.window;
  if (options.scales && !options.skips)
    return fail() << "loss_scale.skip where losses are scaled, but got false";
  return success();
}

static LogicalResult readNoDecay(ModuleOp module, Attribute attribute, std::vector<std::string> &patterns) {
  auto list = dyn_cast<ArrayAttr>(attribute);
  if (!list || !llvm::all_of(list, [](Attribute entry) { return isa<StringAttr>(entry); }))
    return module.emitError() << DsDialect::kTrainingAttr
                              << " expects a list of strings for no_decay, but got " << attribute;
  for (StringAttr pattern : list.getAsRange<StringAttr>()) {
    std::string reason;
    if (!llvm::Regex(pattern.getValue()).isValid(reason))
      return module.emitError() << DsDialect::kTrainingAttr
                                << " expects a regular expression in no_decay, but got " << pattern << ": "
                                << reason;
    patterns.push_back(pattern.str());
  }
  return success();
}

static LogicalResult readSharding(ModuleOp module, DictionaryAttr dictionary, ShardingOptions &options) {
  FieldReader reader(module, "zero_optimization", dictionary);
  visitFields(reader, options);
  if (failed(reader.finish()))
    return failure();
  if (options.stage < 0 || options.stage > 3)
    return module.emitError() << DsDialect::kTrainingAttr
                              << " expects 0 to 3 for zero_optimization.stage, but got " << options.stage;
  for (int64_t size : {options.reduceBucketSize, options.gatherBucketSize, options.subGroupSize})
    if (size < 1 && size != ShardingOptions::kChosen)
      return module.emitError() << DsDialect::kTrainingAttr
                                << " expects bucket sizes of at least 1 element, but got " << size;
  return success();
}

/// Reads what ranks do with each other's gradients.
static LogicalResult readRanks(ModuleOp module, DictionaryAttr dictionary, TrainingOptions &options) {
  if (auto value = dictionary.getAs<IntegerAttr>("world"))
    options.world = value.getInt();
  if (options.world < 1)
    return module.emitError() << DsDialect::kTrainingAttr << " expects at least 1 for world, but got "
                              << options.world;
  if (Attribute value = dictionary.get("reduce_op")) {
    auto name = dyn_cast<StringAttr>(value);
    if (!name || (name.getValue() != "mean" && name.getValue() != "sum"))
      return module.emitError() << DsDialect::kTrainingAttr
                                << " expects \"mean\" or \"sum\" for reduce_op, but got " << value;
    options.averagesRanks = name.getValue() == "mean";
  }
  if (Attribute value = dictionary.get("communication_data_type")) {
    auto type = dyn_cast<TypeAttr>(value);
    if (!type || !isa<FloatType>(type.getValue()))
      return module.emitError() << DsDialect::kTrainingAttr
                                << " expects a float type for communication_data_type, but got " << value;
    options.communicationType = type.getValue();
  }
  return success();
}

FailureOr<TrainingOptions> mlir::ds::readTrainingAttr(ModuleOp module) {
  TrainingOptions options;
  auto dictionary = module->getAttrOfType<DictionaryAttr>(DsDialect::kTrainingAttr);
  if (!dictionary)
    return options;
  auto section = [&](StringRef name) {
    auto entry = dictionary.getAs<DictionaryAttr>(name);
    return entry ? entry : DictionaryAttr::get(module.getContext());
  };
  if (auto value = dictionary.getAs<IntegerAttr>("gradient_accumulation_steps"))
    options.accumulation = value.getInt();
  if (auto value = dictionary.getAs<FloatAttr>("gradient_clipping"))
    options.clipping = value.getValueAsDouble();
  if (options.accumulation < 1)
    return module.emitError() << DsDialect::kTrainingAttr
                              << " expects at least 1 for gradient_accumulation_steps, but got "
                              << options.accumulation;
  if (!(options.clipping >= 0))
    return module.emitError() << DsDialect::kTrainingAttr
                              << " expects at least 0 for gradient_clipping, but got " << options.clipping;
  if (failed(readOptimizer(module, section("optimizer"), options.optimizer)) ||
      failed(readSchedule(module, section("scheduler"), options.schedule)) ||
      failed(readSection(module, "precision", section("precision"), options.precision)) ||
      failed(readSection(module, "loss_scale", section("loss_scale"), options.lossScale)) ||
      failed(checkLossScale(module, options.lossScale)) ||
      failed(readSharding(module, section("zero_optimization"), options.sharding)) ||
      failed(readRanks(module, dictionary, options)))
    return failure();
  if (Attribute value = dictionary.get("no_decay"))
    if (failed(readNoDecay(module, value, options.noDecay)))
      return failure();
  return options;
}

//===----------------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------------===//

namespace {
/// Collects fields as attributes.
struct FieldWriter {
  explicit FieldWriter(MLIRContext *context) : builder(context) {}
  void operator()(StringRef key, double &field) { add(key, builder.getF64FloatAttr(field)); }
  void operator()(StringRef key, int64_t &field) { add(key, builder.getI64IntegerAttr(field)); }
  void operator()(StringRef key, bool &field) { add(key, builder.getBoolAttr(field)); }
  void operator()(StringRef key, std::optional<bool> &field) {
    if (field)
      add(key, builder.getBoolAttr(*field));
  }
  void operator()(StringRef key, FloatKind &field) {
    const auto *found = llvm::find_if(kFloats, [&](const auto &entry) { return entry.second == field; });
    add(key, builder.getStringAttr(found->first));
  }
  void add(StringRef key, Attribute value) { entries.push_back(builder.getNamedAttr(key, value)); }
  DictionaryAttr finish() { return builder.getDictionaryAttr(entries); }

  Builder builder;
  SmallVector<NamedAttribute> entries;
};
} // namespace

/// Spelling of `kind` in the attribute.
template <class Kind, size_t N>
static StringRef spell(Kind kind, const std::pair<StringLiteral, Kind> (&kinds)[N]) {
  return llvm::find_if(kinds, [&](const auto &entry) { return entry.second == kind; })->first;
}

DictionaryAttr mlir::ds::makeTrainingAttr(MLIRContext *context, const TrainingOptions &constOptions) {
  TrainingOptions options = constOptions; // visitors take fields by reference
  FieldWriter optimizer(context), schedule(context), precision(context), lossScale(context),
      sharding(context), training(context);
  Builder &builder = training.builder;
  optimizer.add("type", builder.getStringAttr(spell(options.optimizer.kind, kOptimizers)));
  visitFields(optimizer, options.optimizer);
  schedule.add("type", builder.getStringAttr(spell(options.schedule.kind, kSchedules)));
  visitFields(schedule, options.schedule);
  visitFields(precision, options.precision);
  visitFields(lossScale, options.lossScale);
  visitFields(sharding, options.sharding);
  SmallVector<StringRef> noDecay(options.noDecay.begin(), options.noDecay.end());
  training("gradient_accumulation_steps", options.accumulation);
  training("gradient_clipping", options.clipping);
  training.add("no_decay", builder.getStrArrayAttr(noDecay));
  training.add("optimizer", optimizer.finish());
  training.add("scheduler", schedule.finish());
  training.add("precision", precision.finish());
  training.add("loss_scale", lossScale.finish());
  training("world", options.world);
  training.add("reduce_op", builder.getStringAttr(options.averagesRanks ? "mean" : "sum"));
  if (options.communicationType)
    training.add("communication_data_type", TypeAttr::get(options.communicationType));
  training.add("zero_optimization", sharding.finish());
  return training.finish();
}
