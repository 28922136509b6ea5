//===- SetOverlay.cpp - What --set changes of a model that says how it is trained --===//
//
// A configuration of `--set` alone has a value for every key, and most are defaults that nobody asked for:
// they may not take the place of what the module says. What differs from an empty configuration was asked
// for. A key that was asked for and has its default does not differ, and is looked up by name:
//
//   ds.training = {gradient_clipping = 2.0, ...}, --set gradient_clipping=1.0   =>   gradient_clipping = 1.0
//
// Most keys have one entry of their own. Where several keys make a section together, as fp16 and bf16 do for
// precision, the entry of a default is not known, and what would be ignored is refused.
//
//===---------------------------------------------------------------------------===//
#include "SetOverlay.h"

#include "mlir/IR/OperationSupport.h"

using namespace ds;
using namespace ds::opt;
using mlir::DictionaryAttr;

namespace {
/// Keys with this beginning, and the sections of `ds.training` that they make together.
struct SharedSections {
  llvm::StringRef keys;
  std::vector<llvm::StringRef> sections;
};
} // namespace

/// `attribute` as a dictionary; null if it is none.
static DictionaryAttr dictionaryOf(mlir::Attribute attribute) {
  return mlir::dyn_cast_or_null<DictionaryAttr>(attribute);
}

/// `own` with what `asked` has otherwise than `plain`, entry by entry of nested dictionaries as well. Of
/// dictionaries that are of another type in the end nothing of `own` is left.
static DictionaryAttr overlay(DictionaryAttr own, DictionaryAttr plain, DictionaryAttr asked) {
  mlir::NamedAttrList merged(own);
  if (asked.get("type") != plain.get("type"))
    return asked;
  for (mlir::NamedAttribute entry : plain)
    if (!asked.get(entry.getName()))
      merged.erase(entry.getName());
  for (mlir::NamedAttribute entry : asked) {
    mlir::Attribute before = plain.get(entry.getName()), now = entry.getValue();
    if (before == now)
      continue;
    DictionaryAttr inOwn = dictionaryOf(own.get(entry.getName()));
    if (inOwn && dictionaryOf(before) && dictionaryOf(now))
      now = overlay(inOwn, dictionaryOf(before), dictionaryOf(now));
    merged.set(entry.getName(), now);
  }
  return merged.getDictionary(own.getContext());
}

/// Entries of the section of `ds.training` that `key` writes, beyond one that has the key's last word for its
/// name.
static std::vector<llvm::StringRef> entriesOf(llvm::StringRef key) {
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

/// `target` with the entries `names` as `asked` has them; without those that it has not.
static DictionaryAttr copyEntries(DictionaryAttr target, DictionaryAttr asked,
                                  const std::vector<llvm::StringRef> &names) {
  mlir::NamedAttrList entries(target);
  for (llvm::StringRef name : names) {
    if (mlir::Attribute value = asked.get(name))
      entries.set(name, value);
    else
      entries.erase(name);
  }
  return entries.getDictionary(target.getContext());
}

/// `merged` with the default that `key` asks for. A section of another type has its entries from `asked`.
static DictionaryAttr takeDefault(DictionaryAttr merged, DictionaryAttr asked, llvm::StringRef key) {
  llvm::StringRef section = sectionOf(key);
  if (section.empty())
    return copyEntries(merged, asked, entriesOf(key));
  DictionaryAttr from = dictionaryOf(asked.get(section)), to = dictionaryOf(merged.get(section));
  if (!from || !to)
    return merged;
  bool isOther = key == (section + ".type").str() && from.get("type") != to.get("type");
  mlir::NamedAttrList entries(merged);
  entries.set(section, isOther ? from : copyEntries(to, from, entriesOf(key)));
  return entries.getDictionary(merged.getContext());
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

Result<DictionaryAttr> ds::opt::overlaySets(const SetOverlay &what, const config::Config &config) {
  DictionaryAttr merged = overlay(what.own, what.plain, what.asked);
  for (const config::Setting &setting : config.settings) {
    if (setting.origin != config::Origin::Set)
      continue;
    std::vector<llvm::StringRef> shared = sharedSections(setting.key);
    for (llvm::StringRef section : shared) {
      mlir::Attribute own = what.own.get(section), asked = what.asked.get(section);
      if (!setting.changed && own && own != asked)
        return Error{ExitCode::Invalid,
                     "--set " + setting.key + "=" + setting.value +
                         " asks for the default, but ds.training of the model has another \"" +
                         section.str() + "\", which several keys make together",
                     "give all of them in a configuration: --config takes the place of ds.training"};
    }
    if (shared.empty())
      merged = takeDefault(merged, what.asked, setting.key);
  }
  return merged;
}
