//===- TensorSpecs.cpp - What a configuration says of parameters by their names ---===//
#include "TensorSpecs.h"

#include "ds/Dialect/Emitter.h"

#include <regex>

using namespace mlir;
using namespace mlir::ds;

using LayerSpec = TensorOptions::LayerSpec;

/// The dimension of `parameter` that a layer makes its results from (columns), or reads its input along
/// (rows): of the first op that adds up along a dimension of it.
static std::optional<int64_t> findDimension(Value parameter, const TensorCuts &cuts, LayerSpec::Cut wanted) {
  const FactorKind kind = wanted == LayerSpec::Cut::Row ? FactorKind::Sum : FactorKind::Parallel;
  for (Operation *user : parameter.getUsers()) {
    const ShardingRule &rule = cuts.ruleOf(user);
    auto placeOf = [&](FactorKind of) -> std::optional<int64_t> {
      for (const ShardingFactor &factor : rule.factors)
        for (auto [operand, place] : llvm::zip_equal(user->getOperands(), factor.operands))
          if (operand == parameter && place.has() && factor.kind == of)
            return place.dim;
      return std::nullopt;
    };
    if (placeOf(FactorKind::Sum) || tensorType(parameter).getRank() == 1)
      return placeOf(kind);
  }
  return std::nullopt;
}

/// Which pieces lie one behind the other: a number of equal ones, or their sizes.
static Blocks piecesOf(const LayerSpec &spec) {
  if (spec.shape.empty() || spec.shape.front().empty())
    return {};
  const std::vector<int64_t> &pieces = spec.shape.front();
  if (pieces.size() == 1)
    return {std::max<int64_t>(pieces.front(), 1)};
  return Blocks::ofSizes(pieces);
}

/// As DeepSpeed's `re.match`: from the name's beginning on.
static bool matches(const std::string &name, const std::string &pattern) {
  return std::regex_search(name, std::regex(pattern), std::regex_constants::match_continuous);
}

/// The entry that counts for `name`; null for none. An entry for some models alone is a hint for layers that
/// are found without it.
static const LayerSpec *findSpec(StringRef name, const TensorOptions &options) {
  for (const LayerSpec &spec : options.layerSpecs)
    for (const std::string &pattern : spec.patterns)
      if (spec.modelTypes.empty() && matches(name.str(), pattern))
        return &spec;
  return nullptr;
}

/// Whether `name` is a parameter that another stage of a pipeline has as well.
static bool isTied(SegmentStates &segment, StringAttr name) {
  auto state = name ? SymbolTable::lookupNearestSymbolFrom<StateOp>(segment.getFunction(), name) : StateOp();
  return state && state.getTied();
}

DenseMap<StringAttr, AllowedCuts> mlir::ds::readSpecs(SegmentStates &segment, const TensorCuts &cuts,
                                                      const TensorOptions &options) {
  DenseMap<StringAttr, AllowedCuts> allowed;
  for (BlockArgument argument : segment.getBody().getArguments()) {
    StringAttr name = segment.nameOf(argument);
    const LayerSpec *spec = name ? findSpec(name, options) : nullptr;
    if (isTied(segment, name)) {
      allowed[name].whole = true; // both stages need the same part, and each sees its own reader alone
      continue;
    }
    if (!spec)
      continue;
    AllowedCuts own;
    if (spec->cut != LayerSpec::Cut::Skip) {
      const std::optional<int64_t> dim =
          spec->dimension ? spec->dimension : findDimension(argument, cuts, spec->cut);
      const Blocks pieces = piecesOf(*spec);
      for (const Cut &cut : cuts.of(argument))
        if (dim == cut.dim && (spec->shape.empty() || pieces == cut.blocks))
          own.cuts.push_back(cut);
      own.whole = own.cuts.empty() && tensorType(argument).getRank() < 2;
      if (own.cuts.empty() && !own.whole) {
        segment.getFunction().emitWarning("layer_specs asks for a cut of ")
            << name.getValue() << " by " << (spec->cut == LayerSpec::Cut::Row ? "rows" : "columns")
            << ", which nothing that reads it can be cut by: it is placed as costs say";
        continue;
      }
    }
    allowed[name] = std::move(own);
  }
  return allowed;
}
