//===- Network.cpp - Norms, attention, embedding and dropout --------------------===//

#include "../NetworkOps.h"
#include "../Operators.h"

#include "ds/Support/HeadSize.h"

#include <cmath>

namespace ds::ts {

namespace {

/// The shape of the normalised dimensions must be the tensor's last ones.
int64_t normalizedDims(Call &call, const TensorRef &x) {
  Shape dims = call.integers("normalized_shape");
  auto count = static_cast<int64_t>(dims.size());
  if (count < 1 || count > x->rank() || Shape(x->shape.end() - count, x->shape.end()) != dims)
    fail(call.schema.name() + " over " + spellList(dims) + " of a tensor of shape " + spellList(x->shape),
         "check the shapes given by --input");
  return count;
}

Value layerNorm(Call &call) {
  TensorRef x = call.tensor("input");
  TensorRef result = emitLayerNorm(call.b, x, call.optionalTensor("weight"), call.optionalTensor("bias"),
                                   normalizedDims(call, x), call.numberOr("eps", 1e-5));
  if (call.schema.returns().size() == 1)
    return result;
  constexpr const char *moments = "the moments of aten::native_layer_norm";
  return makeTuple(
      {result, Unknown{moments}, Unknown{moments}}); // native_layer_norm: nothing reads them but backward.
}

Value rmsNorm(Call &call) {
  TensorRef x = call.tensor("input");
  double epsilon =
      call.numberOr("eps", x->type == at::kDouble ? 2.220446049250313e-16 : 1.1920928955078125e-07);
  return emitRmsNorm(call.b, x, call.optionalTensor("weight"), normalizedDims(call, x), epsilon);
}

/// What is known of the rows that are looked up is checked now: it would be a crash in every step.
void checkIds(Call &call, const TensorRef &table, const TensorRef &ids) {
  if (table->rank() != 2)
    fail("aten::embedding of a table of shape " + spellList(table->shape) + ", which is no matrix");
  if (c10::isFloatingType(ids->type) || ids->type == at::kBool)
    fail("aten::embedding expects integers, but got " + spell(ids->type), "check the types given by --input");
  if (!ids->isKnown() || ids->numel() == 0)
    return;
  call.b.states.noteRead(ids->known);
  auto least = ids->known.min().item<int64_t>(), most = ids->known.max().item<int64_t>();
  if (least < 0 || most >= table->shape[0])
    fail("row " + std::to_string(least < 0 ? least : most) + " of a table of " +
             std::to_string(table->shape[0]) + " rows is looked up",
         "check the shapes given by --input: the model may have fewer positions");
}

/// Row `row` of the table for each of the ids: its gradient is then a sum, which a lookup's adds up row by
/// row.
TensorRef repeatRow(Builder &b, const TensorRef &table, int64_t row, const Shape &ids) {
  const int64_t columns = table->shape[1], last = static_cast<int64_t>(ids.size());
  Shape shape = ids;
  shape.push_back(columns);
  TensorRef one = b.reshape(b.slice(table, {row, 0}, {1, columns}, {1, 1}), {columns});
  return b.broadcast(one, {last}, shape);
}

/// Rows of the table. Looking up the row `padding_idx` gives it no gradient; -1 stands for no such row.
Value embedding(Call &call) {
  TensorRef table = call.tensor("weight"), ids = call.tensor("indices");
  if (call.flag("scale_grad_by_freq") || call.flag("sparse"))
    throw Unsupported("aten::embedding with scale_grad_by_freq or sparse");
  checkIds(call, table, ids);
  int64_t padding = call.integerOr("padding_idx", -1);
  if (padding >= table->shape[0])
    fail("aten::embedding with padding_idx " + std::to_string(padding) + " of a table of " +
         std::to_string(table->shape[0]) + " rows");
  // As of token types, where every sample is one segment.
  if (std::optional<c10::Scalar> row = splatValue(ids); row && row->toLong() != padding)
    return repeatRow(call.b, table, row->toLong(), ids->shape);
  return emitEmbedding(call.b, table, ids, padding < 0 ? std::nullopt : std::optional(padding));
}

TensorRef dropoutOf(Builder &b, const TensorRef &x, double probability, bool training) {
  if (!training || probability == 0)
    return x;
  if (probability >= 1)
    return b.splat(0, x->shape, x->type);
  return emitDropout(b, x, probability);
}

Value dropout(Call &call) {
  return dropoutOf(call.b, call.tensor("input"), call.number("p"), call.flag("train"));
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// The mask as something to add to the scores: false becomes minus infinity.
TensorRef additiveMask(Builder &b, const TensorRef &mask, at::ScalarType type) {
  if (mask->type != at::kBool)
    return b.convert(mask, type);
  TensorRef zero = b.splat(0, mask->shape, type), hidden = b.splat(-INFINITY, mask->shape, type);
  return b.select(mask, zero, hidden);
}

/// True when the mask is known to show each position what lies up to it, and nothing else.
bool isCausal(const TensorRef &mask, int64_t rows, int64_t columns) {
  if (!mask || !mask->isKnown() || mask->rank() < 2 || mask->numel() != rows * columns || rows != columns ||
      mask->shape.back() != columns)
    return false;
  at::Tensor seen = mask->type == at::kBool ? mask->known : mask->known.eq(0);
  at::Tensor hidden = mask->type == at::kBool ? mask->known.logical_not() : mask->known.eq(-INFINITY);
  at::Tensor triangle = at::ones({rows, columns}, at::kBool).tril();
  return seen.reshape({rows, columns}).equal(triangle) &&
         hidden.reshape({rows, columns}).equal(triangle.logical_not());
}

/// Queries, keys and values as [B, H, T, D].
struct Heads {
  TensorRef query, key, value, mask;
  double scale = 1, dropout = 0;
  bool causal = false;
};

/// The ops of the definition, for what the attention op does not do.
TensorRef spellOut(Builder &b, Heads heads) {
  int64_t groups = heads.query->shape[1] / heads.key->shape[1];
  auto repeatHeads = [&](const TensorRef &x) {
    Shape wide = {x->shape[0], x->shape[1], groups, x->shape[2], x->shape[3]};
    return groups == 1 ? x
                       : b.reshape(broadcastTo(b, unsqueeze(b, x, 2), wide),
                                   {x->shape[0], x->shape[1] * groups, x->shape[2], x->shape[3]});
  };
  MatmulOptions options;
  options.transposeRhs = true;
  TensorRef scores =
      combine(b, "mul", emitMatmul(b, heads.query, repeatHeads(heads.key), options), heads.scale);
  if (heads.causal) {
    TensorRef row = b.iota(2, 0, 1, scores->shape, at::kLong),
              column = b.iota(3, 0, 1, scores->shape, at::kLong);
    scores = b.select(b.compare("ge", row, column), scores, b.splat(-INFINITY, scores->shape, scores->type));
  }
  if (heads.mask)
    scores = combine(b, "add", scores, heads.mask);
  TensorRef weights = dropoutOf(b, emitSoftmax(b, scores, 3, false), heads.dropout, true);
  return emitMatmul(b, weights, repeatHeads(heads.value), {});
}

TensorRef attend(Builder &b, const Heads &heads) {
  const Shape perm = {0, 2, 1, 3};
  bool sameWidth = heads.key->shape == heads.value->shape;
  bool fits = !heads.causal || heads.query->shape[2] == heads.key->shape[2];
  if (heads.dropout > 0 || !sameWidth || !fits || heads.query->shape[3] > kMaxHeadSize)
    return spellOut(b, heads);
  TensorRef result = emitAttention(
      b, b.transpose(heads.query, perm), b.transpose(heads.key, perm), b.transpose(heads.value, perm),
      heads.mask ? b.convert(heads.mask, at::kFloat) : nullptr, heads.causal, heads.scale);
  return b.transpose(result, perm);
}

/// Rank 3 is rank 4 with one head.
TensorRef asRankFour(Builder &b, const TensorRef &x, int64_t at) {
  if (x->rank() == 4)
    return x;
  if (x->rank() == 3)
    return unsqueeze(b, x, at);
  throw Unsupported("attention of tensors of rank " + std::to_string(x->rank()));
}

void checkHeads(const Heads &heads) {
  const Shape &q = heads.query->shape, &k = heads.key->shape, &v = heads.value->shape;
  bool agree = q[0] == k[0] && k[0] == v[0] && k[1] == v[1] && k[2] == v[2] && q[3] == k[3] && k[1] > 0 &&
               q[1] % k[1] == 0 && heads.query->type == heads.key->type &&
               heads.key->type == heads.value->type;
  if (!agree)
    fail("attention of a query of shape " + spellList(q) + ", a key of " + spellList(k) + " and a value of " +
         spellList(v));
}

TensorRef attentionResult(Call &call) {
  Builder &b = call.b;
  TensorRef query = call.tensor("query");
  Heads heads;
  heads.query = asRankFour(b, query, 1);
  heads.key = asRankFour(b, call.tensor("key"), 1);
  heads.value = asRankFour(b, call.tensor("value"), 1);
  checkHeads(heads);
  heads.scale = call.numberOr("scale", 1 / std::sqrt(static_cast<double>(heads.query->shape[3])));
  heads.dropout = call.numberOr("dropout_p", 0);
  heads.causal = call.flag("is_causal");
  TensorRef mask = call.optionalTensor("attn_mask");
  if (isCausal(mask, heads.query->shape[2], heads.key->shape[2])) {
    heads.causal = true;
  } else if (mask) {
    Shape shape = mask->shape;
    if (query->rank() == 3 && shape.size() == 3)
      shape.insert(shape.begin() + 1, 1);
    shape.insert(shape.begin(), 4 - std::min<size_t>(shape.size(), 4), 1);
    heads.mask = additiveMask(b, b.reshape(mask, shape), query->type);
  }
  TensorRef result = attend(b, heads);
  Shape shape = query->shape;
  shape.back() = result->shape.back();
  return b.reshape(result, shape);
}

Value attention(Call &call) { return attentionResult(call); }

/// PyTorch 1.13's own name of it, which also returns the weights.
Value attentionWithWeights(Call &call) {
  if (call.flag("need_attn_weights"))
    throw Unsupported(call.schema.name() + " with need_attn_weights");
  return makeTuple({attentionResult(call), Unknown{"the weights of an attention"}});
}

constexpr Operator operators[] = {
    {"aten::layer_norm", layerNorm},
    {"aten::native_layer_norm", layerNorm},
    {"aten::rms_norm", rmsNorm},
    {"aten::embedding", embedding},
    {"aten::dropout", dropout},
    {"aten::scaled_dot_product_attention", attention},
    {"aten::_scaled_dot_product_attention", attentionWithWeights},
};

} // namespace

OperatorList networkOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
