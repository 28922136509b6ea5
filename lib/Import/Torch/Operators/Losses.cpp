//===- Losses.cpp - Loss functions ----------------------------------------------===//

#include "../Losses.h"
#include "../NetworkOps.h"
#include "../Operators.h"

#include <algorithm>

namespace ds::ts {

namespace {

enum Reduction { None = 0, Mean = 1, Sum = 2 };

TensorRef reduceLoss(Builder &b, const TensorRef &loss, int64_t reduction) {
  Shape dims;
  for (int64_t i = 0; i < loss->rank(); ++i)
    dims.push_back(i);
  if (reduction == None)
    return loss;
  return reduction == Mean ? meanDims(b, loss, dims, false) : reduceDims(b, "sum", loss, dims, false);
}

/// Class scores as rows: [N, C, d...] becomes [N * d..., C]; [C] one row.
TensorRef asRows(Builder &b, const TensorRef &x) {
  if (x->rank() == 1)
    return b.reshape(x, {1, x->shape[0]});
  Shape perm = {0};
  for (int64_t i = 2; i < x->rank(); ++i)
    perm.push_back(i);
  perm.push_back(1);
  int64_t classes = x->shape[1];
  return b.reshape(b.transpose(x, perm), {classes ? x->numel() / classes : 0, classes});
}

TensorRef asTargets(Builder &b, const TensorRef &target, int64_t rows) {
  if (c10::isFloatingType(target->type) || target->type == at::kBool)
    fail("the targets of a cross-entropy are " + spell(target->type) + ", not integers",
         "check the types given by --input");
  if (target->numel() != rows)
    fail("a cross-entropy has " + std::to_string(rows) + " rows of scores, but " +
         std::to_string(target->numel()) + " targets");
  return b.convert(b.reshape(target, {rows}), at::kLong);
}

/// What decides how the rows of a cross-entropy add up.
struct Weighting {
  TensorRef classWeights;
  int64_t reduction = Mean, ignoreIndex = -100;
  double smoothing = 0;
};

/// The loss of log-probabilities [N, C], one value a row, spelled out; and the rows' weights.
std::pair<TensorRef, TensorRef> rowLosses(Builder &b, const TensorRef &logs, const TensorRef &targets,
                                          const Weighting &how) {
  Shape rows = targets->shape;
  TensorRef counts = b.compare("ne", targets, b.splat(how.ignoreIndex, rows, at::kLong));
  TensorRef safe = b.select(counts, targets, b.splat(0, rows, at::kLong)), index = unsqueeze(b, safe, 1);
  TensorRef zero = b.splat(0, rows, logs->type), weight = b.convert(counts, logs->type);
  if (how.classWeights) {
    TensorRef table = b.broadcast(how.classWeights, {1}, logs->shape);
    weight = b.select(counts, b.reshape(pickLast(b, table, index), rows), zero);
  }
  TensorRef picked = b.reshape(pickLast(b, logs, index), rows);
  TensorRef loss = b.binary("mul", b.unary("neg", picked), weight);
  if (how.smoothing > 0) {
    TensorRef weighted =
        how.classWeights ? b.binary("mul", logs, b.broadcast(how.classWeights, {1}, logs->shape)) : logs;
    TensorRef smooth = b.select(counts, b.unary("neg", b.reduce("sum", weighted, {1})), zero);
    double share = how.smoothing / static_cast<double>(logs->shape[1]);
    loss = b.binary("add", combine(b, "mul", loss, 1 - how.smoothing), combine(b, "mul", smooth, share));
  }
  return {loss, weight};
}

TensorRef negativeLogLikelihood(Builder &b, const TensorRef &logs, const TensorRef &targets,
                                const Shape &shape, const Weighting &how) {
  auto [loss, weight] = rowLosses(b, logs, targets, how);
  if (how.reduction == None)
    return b.reshape(loss, shape);
  TensorRef total = b.reduce("sum", loss, {0});
  if (how.reduction == Sum)
    return total;
  // Rows of which none counts, or none has a weight, add up to 0 and are divided by 1: as ds.cross_entropy.
  TensorRef weights = b.reduce("sum", weight, {0});
  TensorRef some = b.compare("ne", weights, b.splat(0, {}, weights->type));
  return b.binary("div", total, b.select(some, weights, b.splat(1, {}, weights->type)));
}

/// Cross-entropy of scores [N, C] with N targets.
TensorRef crossEntropyRows(Builder &b, const TensorRef &rows, const TensorRef &targets, const Shape &shape,
                           const Weighting &how) {
  if (how.reduction == None || how.classWeights || how.smoothing > 0)
    return negativeLogLikelihood(b, emitSoftmax(b, rows, 1, /*log=*/true), targets, shape, how);
  TensorRef denominator = how.reduction == Sum ? b.splat(1, {}, at::kFloat) : nullptr;
  return b.convert(emitCrossEntropy(b, rows, targets, how.ignoreIndex, denominator), rows->type);
}

/// Targets that are probabilities: -sum(p * log q).
TensorRef softCrossEntropy(Call &call, const TensorRef &logits, TensorRef target, const Weighting &how) {
  Builder &b = call.b;
  if (how.classWeights)
    throw Unsupported("aten::cross_entropy_loss of probabilities with class weights");
  int64_t dim = logits->rank() == 1 ? 0 : 1;
  auto classes = static_cast<double>(logits->shape[dim]);
  if (how.smoothing > 0)
    target = combine(b, "add", combine(b, "mul", target, 1 - how.smoothing), how.smoothing / classes);
  TensorRef product =
      b.binary("mul", emitSoftmax(b, logits, dim, /*log=*/true), b.convert(target, logits->type));
  TensorRef loss = b.unary("neg", b.reduce("sum", product, {dim}));
  return how.reduction == Mean
             ? combine(b, "mul", reduceLoss(b, loss, Sum), 1 / std::max<double>(1, loss->numel()))
             : reduceLoss(b, loss, how.reduction);
}

Weighting weightingOf(Call &call) {
  Weighting how;
  how.classWeights = call.optionalTensor("weight");
  how.reduction = call.integerOr("reduction", Mean);
  how.ignoreIndex = call.integerOr("ignore_index", -100);
  how.smoothing = call.numberOr("label_smoothing", 0);
  return how;
}

Value crossEntropyLoss(Call &call) {
  TensorRef logits = call.tensor("self"), target = call.tensor("target");
  Weighting how = weightingOf(call);
  if (!c10::isFloatingType(logits->type) || logits->rank() < 1)
    fail("aten::cross_entropy_loss of shape " + spellList(logits->shape) + " and type " +
         spell(logits->type));
  if (c10::isFloatingType(target->type) && target->shape == logits->shape)
    return softCrossEntropy(call, logits, target, how);
  TensorRef rows = asRows(call.b, logits);
  return crossEntropyRows(call.b, rows, asTargets(call.b, target, rows->shape[0]), target->shape, how);
}

/// nll_loss of a log_softmax is a cross-entropy.
Value nllLoss(Call &call) {
  Builder &b = call.b;
  TensorRef logs = call.tensor("self"), target = call.tensor("target"), result;
  Weighting how = weightingOf(call);
  int64_t classDim = logs->rank() == 1 ? 0 : 1;
  if (logs->logSoftmaxOf && logs->logSoftmaxDim == classDim) {
    TensorRef rows = asRows(b, logs->logSoftmaxOf);
    result = crossEntropyRows(b, rows, asTargets(b, target, rows->shape[0]), target->shape, how);
  } else {
    TensorRef rows = asRows(b, logs);
    result = negativeLogLikelihood(b, rows, asTargets(b, target, rows->shape[0]), target->shape, how);
  }
  if (call.schema.returns().size() == 1)
    return result;
  return makeTuple({result, Unknown{"the total weight of aten::nll_loss_forward"}});
}

//===----------------------------------------------------------------------===//
// Losses of two tensors of one shape
//===----------------------------------------------------------------------===//

/// input - target
TensorRef difference(Call &call) {
  return combine(call.b, "sub", call.tensor("self"), call.tensor("target"));
}

Value mseLoss(Call &call) {
  TensorRef d = difference(call);
  return reduceLoss(call.b, call.b.binary("mul", d, d), call.integerOr("reduction", Mean));
}

Value l1Loss(Call &call) {
  return reduceLoss(call.b, call.b.unary("abs", difference(call)), call.integerOr("reduction", Mean));
}

/// Quadratic up to `bound`, linear beyond it.
TensorRef huber(Builder &b, const TensorRef &d, double bound) {
  TensorRef size = b.unary("abs", d);
  TensorRef quadratic = combine(b, "mul", b.binary("mul", d, d), 0.5);
  TensorRef line = combine(b, "mul", combine(b, "sub", size, 0.5 * bound), bound);
  return b.select(b.compare("lt", size, b.splat(bound, size->shape, size->type)), quadratic, line);
}

Value huberLoss(Call &call) {
  return reduceLoss(call.b, huber(call.b, difference(call), call.numberOr("delta", 1)),
                    call.integerOr("reduction", Mean));
}

Value smoothL1Loss(Call &call) {
  double beta = call.numberOr("beta", 1);
  TensorRef d = difference(call), loss;
  if (beta == 0) { // |d|, but with the gradient -1 where d is 0
    TensorRef isNegative = call.b.compare("le", d, call.b.splat(0, d->shape, d->type));
    loss = call.b.select(isNegative, call.b.unary("neg", d), d);
  } else {
    loss = combine(call.b, "mul", huber(call.b, d, beta), 1 / beta);
  }
  return reduceLoss(call.b, loss, call.integerOr("reduction", Mean));
}

/// max(x, 0) - x * y + log(1 + exp(-|x|)), with the positive class weighted where asked.
Value bceWithLogits(Call &call) {
  Builder &b = call.b;
  TensorRef x = call.tensor("self"), y = b.convert(call.tensor("target"), x->type);
  TensorRef decay = b.unary("exp", b.unary("neg", b.unary("abs", x)));
  TensorRef low = b.unary("neg", b.binary("min", x, b.splat(0, x->shape, x->type)));
  TensorRef soft = b.binary("add", b.unary("log", combine(b, "add", decay, 1)), low);
  TensorRef rest = b.binary("mul", b.binary("sub", b.splat(1, x->shape, x->type), y), x);
  if (call.has("pos_weight")) {
    TensorRef extra = combine(b, "sub", call.tensor("pos_weight"), makeScalar(1));
    soft = b.binary("mul", soft, combine(b, "add", combine(b, "mul", y, extra), 1));
  }
  TensorRef loss = b.binary("add", rest, soft);
  if (call.has("weight"))
    loss = combine(b, "mul", loss, call.tensor("weight"));
  return reduceLoss(b, loss, call.integerOr("reduction", Mean));
}

/// x without its gradient: there is no op that stops one, but floor has none. x must be a multiple of
/// 1 / `perUnit`.
TensorRef withoutGradient(Builder &b, const TensorRef &x, double perUnit) {
  return combine(b, "mul", b.unary("floor", combine(b, "mul", x, perUnit)), 1 / perUnit);
}

/// Probabilities nearer than this to 0 or 1 have PyTorch's own gradient.
constexpr double nearEdge = 1e-12;

/// -share * max(log(distance), -100) with the gradient (distance - share) / nearEdge by the distance, which
/// lies between 0 and nearEdge. The logarithm of such a number is below 32 in steps of 2^-19, or coarser
/// ones; what carries the gradient is less than 2^-24, beside a loss of at least 27 nothing.
TensorRef edgeLoss(Builder &b, const TensorRef &distance, const TensorRef &share) {
  constexpr double perLog = 1 << 19, perShare = 1 << 24;
  TensorRef least = b.splat(-100, distance->shape, distance->type);
  TensorRef logs = withoutGradient(b, b.binary("max", b.unary("log", distance), least), perLog);
  TensorRef steep = combine(b, "mul", distance, 1 / nearEdge);
  TensorRef slope = b.binary("sub", steep, withoutGradient(b, steep, perShare));
  return b.binary("sub", b.binary("mul", slope, b.binary("sub", distance, share)),
                  b.binary("mul", share, logs));
}

/// -(y * log(x) + (1 - y) * log(1 - x)), the logarithms bounded by -100. PyTorch's gradient of it by x is not
/// its derivative where x is all but 0 or 1: (x - y) / max(x * (1 - x), 1e-12).
Value bce(Call &call) {
  Builder &b = call.b;
  at::ScalarType type = call.tensor("self")->type;
  bool isNarrow = type == at::kHalf || type == at::kBFloat16; // in which neither edge has a number
  TensorRef x = b.convert(call.tensor("self"), isNarrow ? at::kFloat : type);
  TensorRef y = b.convert(call.tensor("target"), x->type);
  auto number = [&](double value) { return b.splat(value, x->shape, x->type); };
  TensorRef one = number(1), otherX = b.binary("sub", one, x), otherY = b.binary("sub", one, y);
  TensorRef isLow = b.compare("lt", x, number(nearEdge)), isHigh = b.compare("lt", otherX, number(nearEdge));
  TensorRef isEdge = b.binary("or", isLow, isHigh), inner = b.select(isEdge, number(0.5), x);
  TensorRef hit = b.binary("mul", y, b.unary("log", inner));
  TensorRef miss = b.binary("mul", otherY, b.unary("log", b.binary("sub", one, inner)));
  TensorRef distance = b.select(isLow, x, b.select(isHigh, otherX, number(0)));
  TensorRef loss = b.select(isEdge, edgeLoss(b, distance, b.select(isHigh, otherY, y)),
                            b.unary("neg", b.binary("add", hit, miss)));
  loss = b.convert(loss, type);
  if (call.has("weight"))
    loss = combine(b, "mul", loss, call.tensor("weight"));
  return reduceLoss(b, loss, call.integerOr("reduction", Mean));
}

/// target * (log(target) - input), or exp(target) * (target - input) where the target is a logarithm.
Value klDiv(Call &call) {
  Builder &b = call.b;
  TensorRef x = call.tensor("self"), y = b.convert(call.tensor("target"), x->type), loss;
  if (call.flag("log_target")) {
    loss = b.binary("mul", b.unary("exp", y), b.binary("sub", y, x));
  } else {
    TensorRef zero = b.splat(0, x->shape, x->type), one = b.splat(1, x->shape, x->type);
    TensorRef isPositive = b.compare("gt", y, zero);
    TensorRef logs = b.unary("log", b.select(isPositive, y, one));
    loss = b.binary("mul", y, b.binary("sub", logs, x));
    loss = b.select(isPositive, loss, zero);
  }
  return reduceLoss(b, loss, call.integerOr("reduction", Mean));
}

constexpr Operator operators[] = {
    {"aten::cross_entropy_loss", crossEntropyLoss},
    {"aten::nll_loss", nllLoss},
    {"aten::nll_loss_nd", nllLoss},
    {"aten::nll_loss2d", nllLoss},
    {"aten::nll_loss_forward", nllLoss},
    {"aten::mse_loss", mseLoss},
    {"aten::l1_loss", l1Loss},
    {"aten::huber_loss", huberLoss},
    {"aten::smooth_l1_loss", smoothL1Loss},
    {"aten::binary_cross_entropy", bce},
    {"aten::binary_cross_entropy_with_logits", bceWithLogits},
    {"aten::kl_div", klDiv},
};

} // namespace

OperatorList lossOperators() { return {operators, std::size(operators)}; }

TensorRef addLoss(Builder &b, const std::string &kind, const TensorRef &output, const TensorRef &label) {
  if (kind == "mse") {
    if (output->shape != label->shape)
      fail("--loss mse compares the model's output of shape " + spellList(output->shape) +
           " with a label of shape " + spellList(label->shape));
    TensorRef d = combine(b, "sub", output, label);
    return reduceLoss(b, b.binary("mul", d, d), Mean);
  }
  if (output->rank() < 2)
    fail("--loss cross_entropy expects an output [..., classes], but got shape " + spellList(output->shape));
  int64_t classes = output->shape.back(), rows = classes ? output->numel() / classes : 0;
  return crossEntropyRows(b, b.reshape(output, {rows, classes}), asTargets(b, label, rows), {rows},
                          Weighting());
}

} // namespace ds::ts
