//===- DecoderSizes.cpp - What rules know of a decoder that is described by data ---===//
//
// The rules of lib/Cost count the parameters of common layers; what a family has beside them, or lacks, is
// the difference to what is counted here, part by part as the forward declares them.
//
//===---------------------------------------------------------------------------===//

#include "Decoder.h"

using namespace ::ds::hf;

/// Elements of a product's weight and bias.
static int64_t product(int64_t inputs, int64_t outputs, bool bias) {
  return outputs * (inputs + (bias ? 1 : 0));
}

static int64_t headNormParameters(const DecoderSpec &spec) {
  const DecoderSizes &of = spec.sizes;
  const Norm kind = spec.headNormKind.value_or(spec.norm);
  switch (spec.headNorm) {
  case HeadNorm::None:
    return 0;
  case HeadNorm::Head:
    return 2 * normParameters(kind, of.size);
  case HeadNorm::EachHead:
  case HeadNorm::OwnHead:
    return (of.heads + of.groups) * of.size;
  case HeadNorm::Whole:
    return normParameters(kind, of.heads * of.size) + normParameters(kind, of.groups * of.size);
  }
  return 0;
}

/// Parameters of the norms around a half of a layer.
static int64_t placedNorms(const DecoderSpec &spec, const NormPlaces &places) {
  int64_t count = 0;
  for (const std::string *name : {&places.before, &places.after, &places.ofSum})
    count += name->empty() ? 0 : 1;
  return count * normParameters(spec.norm, spec.sizes.hidden);
}

/// Latent attention: queries and keys by way of narrow vectors, each with a norm.
static int64_t latentParameters(const DecoderSpec &spec, const LatentSpec &latent) {
  const DecoderSizes &of = spec.sizes;
  const bool bias = spec.biases.qkv;
  const int64_t queries = of.heads * (latent.plain + latent.rotated);
  int64_t count = latent.queryRank == 0 ? product(of.hidden, queries, false)
                                        : product(of.hidden, latent.queryRank, bias) + latent.queryRank +
                                              product(latent.queryRank, queries, false);
  count += product(of.hidden, latent.keyRank + latent.rotated, bias) + latent.keyRank;
  count += product(latent.keyRank, of.heads * (latent.plain + latent.value), false);
  return count + product(of.heads * latent.value, of.hidden, spec.biases.output);
}

static int64_t attentionParameters(const DecoderSpec &spec) {
  if (spec.latent)
    return latentParameters(spec, *spec.latent);
  const DecoderSizes &of = spec.sizes;
  const int64_t queries = of.heads * of.size, keys = of.groups * of.size;
  return product(of.hidden, queries + 2 * keys, spec.biases.qkv) +
         product(queries, of.hidden, spec.biases.output) + headNormParameters(spec) +
         (spec.hasSinks ? of.heads : 0);
}

/// A feed-forward of `inner` elements.
static int64_t feedForward(const DecoderSpec &spec, int64_t inner, bool upBias, bool downBias) {
  return product(spec.sizes.hidden, (spec.gated ? 2 : 1) * inner, upBias) +
         product(inner, spec.sizes.hidden, downBias);
}

static int64_t expertParameters(const DecoderSpec &spec) {
  const ExpertSpec &of = spec.experts;
  return feedForward(spec, of.inner, of.hasBiases, of.hasBiases);
}

static bool hasExperts(const DecoderSpec &spec, size_t layer) {
  return spec.experts.count > 0 && spec.experts.layers[layer];
}

/// The router, its experts and what all tokens pass; or the feed-forward of a layer without.
static int64_t feedForwardParameters(const DecoderSpec &spec, size_t layer) {
  if (!hasExperts(spec, layer))
    return feedForward(spec, spec.sizes.inner, spec.biases.up, spec.biases.down);
  const ExpertSpec &of = spec.experts;
  return product(spec.sizes.hidden, of.count, of.hasBiases) + of.count * expertParameters(spec) +
         (of.shared > 0 ? feedForward(spec, of.shared, false, false) : 0) +
         (of.hasSharedGate ? spec.sizes.hidden : 0);
}

/// Width of the feed-forward that a token passes.
static int64_t activeWidth(const DecoderSpec &spec, size_t layer) {
  const ExpertSpec &of = spec.experts;
  return hasExperts(spec, layer) ? of.perToken * of.inner + of.shared : spec.sizes.inner;
}

namespace {
/// Sums over all layers.
struct LayerSums {
  int64_t parameters = 0, idle = 0, width = 0;
};
} // namespace

static LayerSums sumLayers(const DecoderSpec &spec) {
  LayerSums sums;
  const int64_t alike =
      attentionParameters(spec) + placedNorms(spec, spec.aroundAttention) + placedNorms(spec, spec.aroundMlp);
  for (size_t layer = 0; layer < spec.layers.size(); ++layer) {
    sums.parameters += alike + feedForwardParameters(spec, layer);
    sums.width += activeWidth(spec, layer);
    if (hasExperts(spec, layer))
      sums.idle += (spec.experts.count - spec.experts.perToken) * expertParameters(spec);
  }
  return sums;
}

/// All that lies outside of the layers, a head of its own included.
static int64_t outerParameters(const DecoderSpec &spec) {
  const DecoderSizes &of = spec.sizes;
  const int64_t width = spec.tokenWidth(), table = spec.vocabulary.size * width;
  int64_t count = table + (spec.vocabulary.tied ? 0 : table);
  count += spec.names.positions.empty() ? 0 : (spec.firstPosition + of.positions) * of.hidden;
  count += spec.names.projectIn.empty() ? 0 : width * of.hidden;
  count += spec.names.projectOut.empty() ? 0 : width * of.hidden;
  count += spec.names.embeddingNorm.empty() ? 0 : normParameters(spec.norm, of.hidden);
  count += spec.names.finalNorm.empty() ? 0 : normParameters(spec.norm, of.hidden);
  return count + (spec.biases.head ? spec.vocabulary.size : 0);
}

/// Heads of latent attention: of those for scores and those of values the mean, which gives the work and the
/// memory of both.
static void describeLatent(const DecoderSpec &spec, ::ds::cost::ModelShape &shape) {
  const LatentSpec &latent = *spec.latent;
  shape.headSize = (latent.plain + latent.rotated + latent.value) / 2;
  shape.attentionWeights = latentParameters(spec, latent);
}

::ds::Result<::ds::cost::ModelShape> Decoder::sizes() const {
  ::ds::cost::ModelShape shape = commonShape();
  shape.kvHeads = spec.sizes.groups;
  shape.headSize = spec.sizes.size;
  if (spec.latent)
    describeLatent(spec, shape);
  shape.gated = spec.gated;
  shape.rmsNorm = spec.norm.kind != NormKind::Layer && spec.norm.kind != NormKind::LayerAddOne;
  const DecoderBiases &biases = spec.biases;
  shape.biases = biases.qkv && biases.output && biases.up && biases.down;
  shape.learnedPositions = !spec.names.positions.empty();
  shape.positions = spec.firstPosition + spec.sizes.positions;
  const DecoderDropouts &drops = spec.dropouts;
  shape.dropout = std::max({drops.embedding, drops.attention, drops.output, drops.mlp}) > 0;
  for (const LayerSpec &layer : spec.layers)
    if (layer.window > 0)
      shape.window = layer.window, ++shape.windowLayers;
  // Layers count as alike: each has the mean of what all have, and what does not divide is counted outside.
  const LayerSums sums = sumLayers(spec);
  shape.ffn = sums.width / spec.sizes.layers;
  shape.idleLayerParameters = sums.idle / spec.sizes.layers;
  shape.moreLayerParameters = sums.parameters / spec.sizes.layers - shape.layerParameters();
  shape.moreEmbeddingParameters = sums.parameters + outerParameters(spec) - shape.parameters();
  return shape;
}
