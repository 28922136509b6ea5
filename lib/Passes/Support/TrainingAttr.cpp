//===- TrainingAttr.cpp - The module attribute that says how to train -----------===//
#include "TrainingFields.h"

using namespace mlir;
using namespace mlir::ds;

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

/// Spelling of `kind` in the attribute.
template <class Kind, size_t N>
static StringRef spell(Kind kind, const std::pair<StringLiteral, Kind> (&kinds)[N]) {
  return llvm::find_if(kinds, [&](const auto &entry) { return entry.second == kind; })->first;
}

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
  void operator()(StringRef key, FloatKind &field) { add(key, builder.getStringAttr(spell(field, kFloats))); }
  void operator()(StringRef key, OffloadOptions::Activations &field) {
    add(key, builder.getStringAttr(spell(field, kActivations)));
  }
  void operator()(StringRef key, std::vector<int64_t> &field) { add(key, builder.getI64ArrayAttr(field)); }
  void operator()(StringRef key, std::vector<std::string> &field) {
    SmallVector<StringRef> words(field.begin(), field.end());
    add(key, builder.getStrArrayAttr(words));
  }
  void add(StringRef key, Attribute value) { entries.push_back(builder.getNamedAttr(key, value)); }
  DictionaryAttr finish() { return builder.getDictionaryAttr(entries); }

  Builder builder;
  SmallVector<NamedAttribute> entries;
};
} // namespace

DictionaryAttr mlir::ds::makeTrainingAttr(MLIRContext *context, const TrainingOptions &constOptions) {
  TrainingOptions options = constOptions; // visitors take fields by reference
  FieldWriter optimizer(context), schedule(context), precision(context), lossScale(context),
      sharding(context), offload(context), recompute(context), training(context);
  Builder &builder = training.builder;
  optimizer.add("type", builder.getStringAttr(spell(options.optimizer.kind, kOptimizers)));
  visitFields(optimizer, options.optimizer);
  schedule.add("type", builder.getStringAttr(spell(options.schedule.kind, kSchedules)));
  visitFields(schedule, options.schedule);
  visitFields(precision, options.precision);
  visitFields(lossScale, options.lossScale);
  visitFields(sharding, options.sharding);
  visitFields(offload, options.offload);
  visitFields(recompute, options.recompute);
  training("gradient_accumulation_steps", options.accumulation);
  training("gradient_clipping", options.clipping);
  training("loss_chunks", options.lossChunks);
  if (options.meansOverTargets)
    training.add("loss_normalization", builder.getStringAttr("tokens"));
  if (options.boundsLoss)
    training("loss_limit", options.boundsLoss);
  training("no_decay", options.noDecay);
  training.add("optimizer", optimizer.finish());
  training.add("scheduler", schedule.finish());
  training.add("precision", precision.finish());
  training.add("loss_scale", lossScale.finish());
  training("world", options.world);
  training.add("reduce_op", builder.getStringAttr(options.averagesRanks ? "mean" : "sum"));
  if (options.communicationType)
    training.add("communication_data_type", TypeAttr::get(options.communicationType));
  training.add("zero_optimization", sharding.finish());
  if (!options.offload.isNone())
    training.add("offload", offload.finish());
  if (!options.recompute.isOpen())
    training.add("recompute", recompute.finish());
  return training.finish();
}
