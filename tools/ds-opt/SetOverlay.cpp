//===- SetOverlay.cpp - What --set changes of a model that says how it is trained --===//
//
// A configuration of `--set` alone has a value for every key, and most are defaults that nobody asked for:
// they may not take the place of what the module says. What differs from an empty configuration was asked
// for. A key that was asked for and has its default does not differ, and is looked up by name:
//
//   #ds.training<gradient_clipping = 2.0, ...>, --set gradient_clipping=1.0   =>   gradient_clipping = 1.0
//
// Most keys have one entry of their own. Where several keys make a section together, as fp16 and bf16 do for
// precision, the entry of a default is not known, and what would be ignored is refused.
//
//===---------------------------------------------------------------------------===//
#include "SetOverlay.h"

#include "ds/Dialect/TrainingFields.h"

#include <variant>

using namespace ds;
using namespace ds::opt;
using namespace mlir::ds;

namespace {
/// Keys with this beginning, and the sections of `ds.training` that they make together.
struct SharedSections {
  llvm::StringRef keys;
  std::vector<llvm::StringRef> sections;
};
} // namespace

namespace {
/// A field of `ds.training`, and the section that it is in; empty for none.
struct Entry {
  using Field = std::variant<double *, int64_t *, bool *, std::optional<bool> *, std::optional<FloatKind> *,
                             FloatKind *, OffloadOptions::Activations *, OptimizerKind *, ScheduleKind *,
                             RankReduction *, LossMean *, std::vector<int64_t> *, std::vector<std::string> *,
                             std::vector<TensorOptions::LayerSpec> *>;

  bool operator==(const Entry &other) const {
    return std::visit(
        []<class A, class B>(A *a, B *b) {
          if constexpr (std::is_same_v<A, B>)
            return *a == *b;
          return false;
        },
        field, other.field);
  }
  void take(const Entry &other) const {
    std::visit(
        []<class A, class B>(A *a, B *b) {
          if constexpr (std::is_same_v<A, B>)
            *a = *b;
        },
        field, other.field);
  }

  llvm::StringRef section, key;
  Field field;
};

/// Visitor: lists the fields of a struct and of those in it.
struct Lister {
  template <class Field>
  void operator()(llvm::StringRef key, Field &field) {
    if constexpr (requires(Lister & inner) { visitFields(inner, field); }) {
      Lister inner{key, {}};
      visitFields(inner, field);
      entries.insert(entries.end(), inner.entries.begin(), inner.entries.end());
    } else {
      entries.push_back({section, key, &field});
    }
  }

  llvm::StringRef section;
  std::vector<Entry> entries;
};
} // namespace

/// All fields of `options`, always in the same order; in a section its type comes first.
static std::vector<Entry> entriesOf(TrainingOptions &options) {
  Lister lister;
  visitFields(lister, options);
  return std::move(lister.entries);
}

std::set<std::string> ds::opt::differingKeys(const TrainingOptions &a, const TrainingOptions &b) {
  TrainingOptions ofA = a, ofB = b; // visitors take fields by reference
  std::set<std::string> keys;
  const std::vector<Entry> entriesOfA = entriesOf(ofA), entriesOfB = entriesOf(ofB);
  for (size_t index = 0; index < entriesOfA.size(); ++index)
    if (const Entry &entry = entriesOfA[index]; !(entry == entriesOfB[index]))
      keys.insert((entry.section.empty() ? entry.key : entry.section).str());
  return keys;
}

/// The own options with what was asked for otherwise than it is in a plain configuration. Of sections that
/// are of another type in the end nothing of their own is left.
static TrainingOptions overlay(SetOverlay what) {
  const std::vector<Entry> own = entriesOf(what.own), plain = entriesOf(what.plain),
                           asked = entriesOf(what.asked);
  llvm::StringRef other; // the last section that is of another type
  for (size_t index = 0; index < own.size(); ++index) {
    const bool differs = !(asked[index] == plain[index]);
    if (differs && own[index].key == "type")
      other = own[index].section;
    if (differs || (!other.empty() && own[index].section == other))
      own[index].take(asked[index]);
  }
  return what.own;
}

/// Entries of the section of `ds.training` that `key` writes, beyond one that has the key's last word for its
/// name.
static std::vector<llvm::StringRef> namesOf(llvm::StringRef key) {
  if (key == "optimizer.type")
    return {"type", "adam_w_mode"};
  if (key == "optimizer.params.betas")
    return {"beta1", "beta2"};
  if (key == "scheduler.params.warmup_type")
    return {"warmup_log"};
  if (key == "gradient_reduction")
    return {"reduce_each_micro_step"};
  return {key.rsplit('.').second.empty() ? key : key.rsplit('.').second};
}

/// The section that `key` writes into; empty: `ds.training` itself.
static llvm::StringRef sectionOf(llvm::StringRef key) {
  if (key == "gradient_reduction")
    return "zero_optimization";
  llvm::StringRef first = key.split('.').first;
  return first == key ? "" : first;
}

/// Gives `merged` the default that `key` asks for. A section of another type has its entries from `asked`.
static void takeDefault(TrainingOptions &merged, TrainingOptions asked, llvm::StringRef key) {
  const llvm::StringRef section = sectionOf(key);
  const std::vector<llvm::StringRef> names = namesOf(key);
  const std::vector<Entry> to = entriesOf(merged), from = entriesOf(asked);
  bool isOther = false;
  for (size_t index = 0; index < to.size(); ++index) {
    if (to[index].section != section)
      continue;
    isOther |= to[index].key == "type" && key == (section + ".type").str() && !(to[index] == from[index]);
    if (isOther || llvm::is_contained(names, to[index].key))
      to[index].take(from[index]);
  }
}

/// The sections that `key` and others make together; none where it has an entry of its own, or none at all.
static std::vector<llvm::StringRef> sharedSections(llvm::StringRef key) {
  static const SharedSections kShared[] = {{"fp16.", {"precision", "loss_scale"}},
                                           {"bf16.", {"precision", "loss_scale"}},
                                           {"torch_autocast.", {"precision", "loss_scale"}},
                                           {"data_types.", {"precision"}},
                                           {"communication_data_type", {"communication_data_type"}},
                                           {"activation_checkpointing.", {"recompute", "offload"}},
                                           {"pipeline.activation_checkpoint_interval", {"recompute"}},
                                           {"zero_optimization.offload_", {"offload"}},
                                           {"compile.offload_", {"offload"}}};
  for (const SharedSections &shared : kShared)
    if (key.starts_with(shared.keys))
      return shared.sections;
  return {};
}

Result<TrainingOptions> ds::opt::overlaySets(const SetOverlay &what, const config::Config &config) {
  TrainingOptions merged = overlay(what);
  const std::set<std::string> differing = differingKeys(what.own, what.asked);
  for (const config::Setting &setting : config.settings) {
    if (setting.origin != config::Origin::Set)
      continue;
    std::vector<llvm::StringRef> shared = sharedSections(setting.key);
    for (llvm::StringRef section : shared)
      if (!setting.changed && differing.contains(section.str()))
        return Error{ExitCode::Invalid,
                     "--set " + setting.key + "=" + setting.value +
                         " asks for the default, but ds.training of the model has another \"" +
                         section.str() + "\", which several keys make together",
                     "give all of them in a configuration: --config takes the place of ds.training"};
    if (shared.empty())
      takeDefault(merged, what.asked, setting.key);
  }
  return merged;
}
