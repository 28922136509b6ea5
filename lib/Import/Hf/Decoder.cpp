//===- Decoder.cpp - The forward of a decoder that is described by data ----------===//

#include "Decoder.h"

using namespace mlir::ds;
using namespace ::ds::hf;
namespace hf = ::ds::hf;

Decoder::Decoder(DecoderSpec read) : spec(std::move(read)) {
  const DecoderSizes &of = spec.sizes;
  positions = of.positions, hidden = of.hidden, inner = of.inner, layers = of.layers, heads = of.heads;
  size = of.size;
  vocabulary = spec.vocabulary;
  const int64_t joined = spec.layout == QkvLayout::Separate ? 0 : (heads + 2 * of.groups) * size;
  widest = std::max({spec.names.joinedGate.empty() ? inner : 2 * inner, heads * size, joined, hidden});
  if (spec.experts.count > 0)
    whyNoProgram = "programs have no experts yet";
  weights.areDropped = spec.dropouts.attention > 0;
  basePrefix = spec.names.base.substr(0, spec.names.base.find('.')) + ".";
}

/// What the first layer reads.
Value Decoder::embed(Graph &g, Value ids) const {
  Scope scope(g, spec.names.base);
  const DecoderNames &names = spec.names;
  Value x =
      embedding(g, names.tokens, ids, vocabulary.size, spec.tokenWidth(), spec.deviation, vocabulary.padding);
  if (!names.projectIn.empty())
    x = linear(g, names.projectIn, x, hidden, /*bias=*/false, spec.deviation);
  x = g.ops().scale(x, spec.factors.embedding);
  if (!names.positions.empty())
    x = addPositions(g, names.positions, x, spec.firstPosition + positions, spec.deviation,
                     spec.firstPosition);
  if (!names.embeddingNorm.empty())
    x = norm(g, names.embeddingNorm, x, spec.norm);
  return g.dropout(x, spec.dropouts.embedding);
}

/// The slopes of ALiBi, [H].
static Value slopesOf(Graph &g, const std::vector<float> &slopes) {
  if (slopes.empty())
    return {};
  Emitter e = g.ops();
  auto type = mlir::RankedTensorType::get({static_cast<int64_t>(slopes.size())}, e.getBuilder().getF32Type());
  return e.getBuilder().create<ConstantOp>(e.getLoc(), type,
                                           mlir::DenseElementsAttr::get(type, llvm::ArrayRef(slopes)));
}

Value Decoder::forward(Graph &g, Value ids, Value labels) const {
  Value x = embed(g, ids);
  DecoderShared shared;
  {
    Scope scope(g, spec.names.base + ".rotary_emb");
    for (const Rotary &rotary : spec.rotaries)
      shared.tables.push_back(makeTables(g, rotary, tensorType(ids).getDimSize(1)));
    shared.slopes = slopesOf(g, spec.slopes);
  }
  for (size_t index = 0; index < spec.layers.size(); ++index) {
    Scope scope(g, spec.names.base + "." + spec.names.layers + "." + std::to_string(index));
    x = decoderLayer(g, spec, spec.layers[index], shared, x);
  }
  return loss(g, x, labels);
}

Value Decoder::loss(Graph &g, Value x, Value labels) const {
  const DecoderNames &names = spec.names;
  {
    Scope scope(g, names.base);
    if (!names.finalNorm.empty())
      x = norm(g, names.finalNorm, x, spec.norm);
    if (!names.projectOut.empty())
      x = linear(g, names.projectOut, x, spec.tokenWidth(), /*bias=*/false, spec.deviation);
    // The same factor of each logit, where there are fewer elements.
    x = g.ops().scale(x, spec.factors.logits);
  }
  const std::string table = names.base + "." + names.tokens;
  LanguageHead head{names.head, table, vocabulary.tied, spec.biases.head, spec.caps.logits};
  return languageLoss(g, head, x, labels, vocabulary.size, spec.deviation);
}
