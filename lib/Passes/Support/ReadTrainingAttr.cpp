//===- ReadTrainingAttr.cpp - How to train, from the module's attribute ---------===//
//
// Whatever the attribute says that could not be done is refused here: a key that nobody knows, a value of
// another type, a size below one.
//
//===----------------------------------------------------------------------------===//
#include "TrainingFields.h"

#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace mlir::ds;

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
  void operator()(StringRef key, FloatKind &field) { takeWord(key, kFloats, field); }
  void operator()(StringRef key, OffloadOptions::Activations &field) { takeWord(key, kActivations, field); }
  void operator()(StringRef key, std::vector<int64_t> &field) {
    takeList<IntegerAttr>(key, "list of integers",
                          [&](IntegerAttr value) { field.push_back(value.getInt()); });
  }
  void operator()(StringRef key, std::vector<std::string> &field) {
    takeList<StringAttr>(key, "list of strings", [&](StringAttr value) { field.push_back(value.str()); });
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
  template <class Kind, size_t N>
  void takeWord(StringRef key, const std::pair<StringLiteral, Kind> (&words)[N], Kind &field) {
    take<StringAttr>(key, "string", [&](StringAttr value) {
      for (const auto &[word, kind] : words)
        if (word == value.getValue()) {
          field = kind;
          return;
        }
      InFlightDiagnostic error = fail() << "expects ";
      for (size_t index = 0; index < N; ++index)
        error << (index == 0 ? "" : index + 1 < N ? ", " : " or ") << '"' << words[index].first << '"';
      error << " for " << section << "." << key << ", but got " << value;
    });
  }
  template <class Attr, class Add>
  void takeList(StringRef key, StringRef expected, Add add) {
    take<ArrayAttr>(key, expected, [&](ArrayAttr list) {
      if (!llvm::all_of(list, [](Attribute entry) { return isa<Attr>(entry); }))
        fail() << "expects a " << expected << " for " << section << "." << key << ", but got " << list;
      else
        llvm::for_each(list.getAsRange<Attr>(), add);
    });
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
  if (needsTotal && options.totalSteps <= 0 && options.totalSteps != ScheduleOptions::kStepsOfRun)
    return module.emitError() << DsDialect::kTrainingAttr
                              << " expects a positive scheduler.total_num_steps, or -1 for that of the run, "
                                 "but got "
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

static LogicalResult readOffload(ModuleOp module, DictionaryAttr dictionary, OffloadOptions &options) {
  if (failed(readSection(module, "offload", dictionary, options)))
    return failure();
  if (!(options.optimizer >= 0 && options.optimizer <= 1))
    return module.emitError() << DsDialect::kTrainingAttr << " expects 0 to 1 for offload.optimizer, but got "
                              << options.optimizer;
  if (options.maxInCpu < 0)
    return module.emitError() << DsDialect::kTrainingAttr
                              << " expects at least 0 elements for offload.max_in_cpu, but got "
                              << options.maxInCpu;
  if (options.speculates && options.optimizerOnNvme)
    return module.emitError() << DsDialect::kTrainingAttr
                              << " expects offload.speculate with states on the host, but got them on NVMe";
  return success();
}

static LogicalResult readRecompute(ModuleOp module, DictionaryAttr dictionary, RecomputeOptions &options) {
  if (failed(readSection(module, "recompute", dictionary, options)))
    return failure();
  auto fail = [&] { return module.emitError() << DsDialect::kTrainingAttr << " expects "; };
  for (auto [key, value] : {std::pair("checkpoints", options.checkpoints), {"interval", options.interval}})
    if (value < 0)
      return fail() << "at least 0 for recompute." << key << ", but got " << value;
  if (options.checkpoints > 0 && options.interval > 0)
    return fail() << "one of recompute.checkpoints and recompute.interval, but got both";
  if (options.demandsLayers() && !options.ops.empty())
    return fail() << "layers or ops in recompute, but got both";
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

/// Reads what the mean of a step's loss is over, and in how many chunks the loss is taken.
static LogicalResult readLoss(ModuleOp module, DictionaryAttr dictionary, TrainingOptions &options) {
  if (auto value = dictionary.getAs<IntegerAttr>("loss_chunks"))
    options.lossChunks = value.getInt();
  if (auto value = dictionary.getAs<BoolAttr>("loss_limit"))
    options.boundsLoss = value.getValue();
  if (options.lossChunks < 0)
    return module.emitError() << DsDialect::kTrainingAttr << " expects at least 0 for loss_chunks, but got "
                              << options.lossChunks;
  Attribute value = dictionary.get("loss_normalization");
  auto name = dyn_cast_or_null<StringAttr>(value);
  if (value && (!name || (name.getValue() != "micro_batches" && name.getValue() != "tokens")))
    return module.emitError() << DsDialect::kTrainingAttr
                              << " expects \"micro_batches\" or \"tokens\" for loss_normalization, but got "
                              << value;
  options.meansOverTargets = name && name.getValue() == "tokens";
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
      failed(readOffload(module, section("offload"), options.offload)) ||
      failed(readRecompute(module, section("recompute"), options.recompute)) ||
      failed(readRanks(module, dictionary, options)) || failed(readLoss(module, dictionary, options)))
    return failure();
  if (Attribute value = dictionary.get("no_decay"))
    if (failed(readNoDecay(module, value, options.noDecay)))
      return failure();
  return options;
}
