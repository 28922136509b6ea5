//===- TensorPlacement.h - How ranks hold the values of a segment -----------------===//
//
// Turns a segment into a problem of analysis::placeValues and reads the answer. The forward is decided first,
// with the exchanges of its gradients among its costs; what follows it is decided with the forward's values
// held as they are. What no parameter has part in is outside of the problem: each rank can make what it needs
// of it.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_SHARD_TENSORPLACEMENT_H
#define DS_LIB_PASSES_SHARD_TENSORPLACEMENT_H

#include "SegmentStates.h"
#include "TensorCuts.h"
#include "TensorSpecs.h"

#include "ds/Analysis/Placement/Placement.h"
#include "ds/Cost/Rates.h"

namespace mlir::ds {

/// What is settled for all segments of a step once one of them is placed.
struct SettledStates {
  DenseMap<StringAttr, std::optional<Cut>> parameters; ///< by name: where it is cut, or that it is whole
  DenseMap<StringAttr, bool> addends; ///< of whole parameters: whether ranks make addends of the gradient
};

/// For what a step is placed.
struct PlacementSettings {
  /// What values between layers are: whole, cut along the sequence, or as costs say.
  enum class Rows { Whole, Cut, Chosen };

  int64_t ranks = 1;
  Rows rows = Rows::Chosen;
  bool sharesSequences = false;                      ///< and no layers: each rank has all parameters whole
  bool trains = false;                               ///< gradients follow
  double secondsPerByte = 0, secondsPerExchange = 0; ///< of exchanges
  double memorySecondsPerByte = 0;
  const ::ds::cost::Rates *rates = nullptr;
};

/// How an op is run: not cut, along a factor, or on addends.
struct OpWay {
  int factor = -1; ///< of its rule
  Blocks blocks = {};
  bool onAddends = false;
};

class TensorPlacement {
public:
  /// What the searches say of themselves.
  struct Outcome {
    double forwardSeconds = 0; ///< of exchanges and work, by the model; with the gradients' exchanges
    bool isExact = true;
  };

  /// `allowed` says of some parameters how they may be held.
  TensorPlacement(SegmentStates &segment, const TensorCuts &cuts, const PlacementSettings &settings,
                  const DenseMap<StringAttr, AllowedCuts> &allowed)
      : segment(segment), cuts(cuts), settings(settings), allowed(allowed) {}

  /// Places the segment, with the states that are settled as they are, and settles those that are not yet.
  /// `lookup` tells what states are. Fails, with a diagnostic, where no placement is found.
  LogicalResult solve(function_ref<StateOp(StringAttr)> lookup, SettledStates &settled);

  /// Whether `value` depends on no parameter, and so is no part of the problem.
  bool isFree(Value value) const { return !numbers.contains(value) && !forms.contains(value); }
  ::ds::analysis::Form heldForm(Value value) const { return forms.lookup(value); }
  OpWay wayOf(Operation *op) const { return ways.lookup(op); }
  /// The cut that a form of `value` which is a part means.
  Cut cutOf(Value value, ::ds::analysis::Form form) const;
  /// What `way` reads and makes of a value that has `place` of the factor.
  ::ds::analysis::Form formOf(Value value, const FactorDim &place, const ShardingFactor &factor,
                              const Blocks &blocks, bool isResult) const;
  /// Whether ranks make addends of the gradient of a parameter that they have whole.
  bool makesAddends(StringAttr parameter) const { return settled->addends.lookup(parameter); }
  /// The parameter whose gradients `state` holds; null where it is no gradient.
  StringAttr parameterOfGradient(StringAttr state) const;
  const Outcome &getOutcome() const { return outcome; }
  /// Whether parts of one kind are exchanged for those of another without being gathered.
  bool exchangesParts() const { return settings.sharesSequences; }

private:
  struct Draft;
  void findFree();
  void describe(Draft &draft, Operation *op);
  void addSource(Draft &draft, Value value);
  void addSink(Draft &draft, Value value, StringAttr state);
  uint32_t number(Draft &draft, Value value);
  LogicalResult place(Draft &draft);
  void settleParameters();
  double workSeconds(Operation *op) const;
  double parameterSeconds(StateOp state) const;

  SegmentStates &segment;
  const TensorCuts &cuts;
  const PlacementSettings &settings;
  const DenseMap<StringAttr, AllowedCuts> &allowed;
  function_ref<StateOp(StringAttr)> lookup = nullptr;
  SettledStates *settled = nullptr;
  /// Which values depend on which.
  struct Dependence {
    DenseSet<Value> bound;      ///< values that parameters have part in
    DenseSet<Value> parameters; ///< these themselves, in whatever shape and type
    DenseSet<Value> trained;    ///< of the bound ones those that trained parameters have part in
  };
  Dependence values;
  DenseMap<Value, uint32_t> numbers;           ///< in the draft at hand
  DenseMap<Value, ::ds::analysis::Form> forms; ///< how values are held
  DenseMap<Value, uint32_t> made;              ///< in which forms they are there beside
  DenseMap<Operation *, OpWay> ways;
  Outcome outcome;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_SHARD_TENSORPLACEMENT_H
