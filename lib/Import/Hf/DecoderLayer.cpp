//===- DecoderLayer.cpp - One layer of a decoder that is described by data --------===//

#include "Decoder.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

namespace {
/// Query, key and value, [B, T, heads, D].
struct Qkv {
  Value query, key, value;
};
} // namespace

/// [B, T, ...] as [B, T, n, size].
static Value asHeads(Graph &g, Value x, int64_t size) {
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  int64_t elements = tensorType(x).getNumElements();
  return g.ops().reshape(x, {shape[0], shape[1], elements / (shape[0] * shape[1] * size), size});
}

/// x [B, T, n, D] times a weight [n, D] after a norm without one.
static Value normOfEachHead(Graph &g, const DecoderSpec &spec, const std::string &name, Value x,
                            const Norm &kind) {
  ArrayRef<int64_t> shape = tensorType(x).getShape();
  Value normal = plainNorm(g, x, kind), weight;
  Scope scope(g, name);
  if (spec.headNorm == HeadNorm::EachHead) {
    weight = g.parameter("weight", shape.drop_front(2), Init::ones());
  } else {
    SmallVector<Value> rows;
    for (int64_t head = 0; head < shape[2]; ++head)
      rows.push_back(g.parameter("norms." + std::to_string(head) + ".weight", shape.back(), Init::ones()));
    Emitter e = g.ops();
    auto flat = tensorType(rows[0]).clone({shape[2] * shape[3]});
    weight = e.reshape(e.getBuilder().create<ConcatOp>(e.getLoc(), flat, rows, 0), shape.drop_front(2));
  }
  Emitter e = g.ops();
  return e.mul(normal, e.repeatRows(weight, shape));
}

/// The norm of queries or keys, which are still [B, T, n * D] for a norm of all heads.
static Value headNorm(Graph &g, const DecoderSpec &spec, const std::string &name, Value x) {
  const Norm kind = spec.headNormKind.value_or(spec.norm);
  switch (spec.headNorm) {
  case HeadNorm::None:
    return asHeads(g, x, spec.sizes.size);
  case HeadNorm::Whole:
    return asHeads(g, norm(g, name, x, kind), spec.sizes.size);
  case HeadNorm::Head:
    return norm(g, name, asHeads(g, x, spec.sizes.size), kind);
  case HeadNorm::EachHead:
  case HeadNorm::OwnHead:
    return normOfEachHead(g, spec, name, asHeads(g, x, spec.sizes.size), kind);
  }
  llvm_unreachable("unknown norm of heads");
}

/// A product of a layer, with a bias as `bias` says; `writes`: into the residual stream.
static Value product(Graph &g, const DecoderSpec &spec, const std::string &name, Value x, int64_t columns,
                     bool bias, bool writes = false) {
  const double deviation = writes && spec.outputDeviation > 0 ? spec.outputDeviation : spec.deviation;
  return spec.isTransposed ? conv1d(g, name, x, columns, deviation)
                           : linear(g, name, x, columns, bias, deviation);
}

/// The projections, without heads' norms; cut into heads where no norm is of all of them.
static Qkv projectQkv(Graph &g, const DecoderSpec &spec, Value x) {
  const DecoderSizes &of = spec.sizes;
  auto columns = [&](int64_t heads) { return heads * of.size; };
  if (spec.layout == QkvLayout::Separate) {
    auto project = [&](const std::string &name, int64_t heads) {
      Value flat = product(g, spec, name, x, columns(heads), spec.biases.qkv);
      return spec.headNorm == HeadNorm::Whole ? flat : asHeads(g, flat, of.size);
    };
    Value q = project(spec.names.query, of.heads), k = project(spec.names.key, of.groups);
    return {q, k, project(spec.names.value, of.groups)};
  }
  Value joined = product(g, spec, spec.names.joined, x, columns(of.heads + 2 * of.groups), spec.biases.qkv);
  int64_t shared = of.heads, groups = of.groups;
  if (spec.layout == QkvLayout::Grouped) {
    joined = splitHeads(g, joined, columns(of.heads / of.groups + 2));
    shared = of.heads / of.groups, groups = 1;
  }
  SmallVector<Value> parts = cutColumns(g, joined, {columns(shared), columns(groups), columns(groups)});
  return {parts[0], parts[1], parts[2]};
}

static Value attend(Graph &g, const DecoderSpec &spec, const LayerSpec &layer, const DecoderShared &shared,
                    Value x) {
  Scope scope(g, spec.names.attention);
  Qkv parts = projectQkv(g, spec, x);
  Value q = headNorm(g, spec, spec.names.queryNorm, parts.query);
  Value k = headNorm(g, spec, spec.names.keyNorm, parts.key);
  Value v = asHeads(g, parts.value, spec.sizes.size);
  if (layer.rotary < shared.tables.size()) {
    q = rotate(g, q, shared.tables[layer.rotary]);
    k = rotate(g, k, shared.tables[layer.rotary]);
  }
  AttentionOptions options;
  options.scale = spec.factors.scores / layer.divisor;
  options.window = layer.window;
  options.cap = spec.caps.scores;
  options.slopes = shared.slopes;
  options.dropout = spec.dropouts.attention;
  Value mixed = joinHeads(g, attention(g, q, k, v, options));
  return g.dropout(
      product(g, spec, spec.names.output, mixed, spec.sizes.hidden, spec.biases.output, /*writes=*/true),
      spec.dropouts.output);
}

/// What the last product of the feed-forward reads.
static Value widen(Graph &g, const DecoderSpec &spec, Value x) {
  const DecoderNames &names = spec.names;
  const int64_t inner = spec.sizes.inner;
  if (!names.joinedGate.empty()) {
    Value joined = product(g, spec, names.joinedGate, x, 2 * inner, spec.biases.up);
    SmallVector<Value> parts = cutColumns(g, joined, {inner, inner});
    Value gate = activate(g, spec.activation, parts[0]);
    return g.ops().mul(gate, parts[1]);
  }
  if (!spec.gated)
    return activate(g, spec.activation, product(g, spec, names.up, x, inner, spec.biases.up));
  Value gate = activate(g, spec.activation, product(g, spec, names.gate, x, inner, spec.biases.up));
  return g.ops().mul(gate, product(g, spec, names.up, x, inner, spec.biases.up));
}

static Value feedForward(Graph &g, const DecoderSpec &spec, Value x) {
  std::optional<Scope> scope;
  if (!spec.names.mlp.empty())
    scope.emplace(g, spec.names.mlp);
  Value fed = product(g, spec, spec.names.down, widen(g, spec, x), spec.sizes.hidden, spec.biases.down,
                      /*writes=*/true);
  return g.dropout(fed, spec.dropouts.ofSum ? 0 : spec.dropouts.mlp);
}

/// The norm of that name, if it has one.
static Value normIfNamed(Graph &g, const DecoderSpec &spec, const std::string &name, Value x) {
  return name.empty() ? x : norm(g, name, x, spec.norm);
}

/// Adds what a half of the layer gives to the residual stream.
static Value addTo(Graph &g, const DecoderSpec &spec, const NormPlaces &places, Value x, Value given) {
  Value scaled = g.ops().scale(normIfNamed(g, spec, places.after, given), spec.factors.residual);
  Value sum = places.isFirst ? g.ops().add(scaled, x) : g.ops().add(x, scaled);
  return normIfNamed(g, spec, places.ofSum, sum);
}

static Value parallelLayer(Graph &g, const DecoderSpec &spec, const LayerSpec &layer,
                           const DecoderShared &shared, Value x) {
  Value normal = normIfNamed(g, spec, spec.aroundAttention.before, x);
  Value attended = attend(g, spec, layer, shared, normal);
  const std::string &own = spec.aroundMlp.before;
  Value fed = feedForward(g, spec, own.empty() ? normal : norm(g, own, x, spec.norm));
  if (!spec.addsHalves)
    return g.ops().add(g.ops().add(x, attended), fed);
  Value sum = g.ops().add(fed, attended);
  return g.ops().add(g.dropout(sum, spec.dropouts.ofSum ? spec.dropouts.mlp : 0), x);
}

Value hf::decoderLayer(Graph &g, const DecoderSpec &spec, const LayerSpec &layer, const DecoderShared &shared,
                       Value x) {
  for (const std::string &name : spec.names.unused)
    g.ignoreWeight(name);
  if (spec.parallel)
    return parallelLayer(g, spec, layer, shared, x);
  const NormPlaces &first = spec.aroundAttention, &second = spec.aroundMlp;
  x = addTo(g, spec, first, x, attend(g, spec, layer, shared, normIfNamed(g, spec, first.before, x)));
  return addTo(g, spec, second, x, feedForward(g, spec, normIfNamed(g, spec, second.before, x)));
}
