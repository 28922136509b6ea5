//===- Within.h - Layers whose names have dots ----------------------------------===//
#ifndef DS_LIB_IMPORT_HF_ENCODERS_WITHIN_H
#define DS_LIB_IMPORT_HF_ENCODERS_WITHIN_H

#include "../Graph.h"

namespace ds::hf {

/// Opens the layers that a dotted name lies in, "attention.output" of "attention.output.dense"; none for a
/// name without dots.
class Within {
public:
  Within(Graph &g, llvm::StringRef name) {
    auto [layer, leaf] = name.rsplit('.');
    last = leaf.empty() ? layer : leaf;
    if (!leaf.empty())
      scope.emplace(g, layer);
  }
  llvm::StringRef leaf() const { return last; }

private:
  std::optional<Scope> scope;
  llvm::StringRef last;
};

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_ENCODERS_WITHIN_H
