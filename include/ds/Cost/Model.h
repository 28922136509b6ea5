//===- Model.h - A transformer's shape, and how it is spread over devices ------------===//
//
// The planner's view of a model before there is a program: sizes of a decoder-only transformer, and the
// degrees of parallelism and what is recomputed, sharded and offloaded.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_COST_MODEL_H
#define DS_COST_MODEL_H

#include "ds/Config/Config.h"

namespace ds::cost {

using config::DType;
using config::Home;

/// A decoder-only transformer. The defaults are GPT's: MLP of 4h, biases, LayerNorm, learned positions, the
/// output projection tied to the embedding.
struct ModelShape {
  int64_t layers = 0, hidden = 0, heads = 0;
  int64_t kvHeads = 0;  ///< 0: as heads
  int64_t headSize = 0; ///< 0: hidden / heads
  int64_t ffn = 0;      ///< 0: 4 * hidden
  int64_t vocab = 0, seq = 0;
  bool gated = false;           ///< three products in the MLP (llama) in place of two
  bool biases = true;           ///< of linear layers
  bool rmsNorm = false;         ///< norms have a weight and no bias
  bool learnedPositions = true; ///< a table of them
  bool tied = true;             ///< the output projection is the embedding
  bool dropout = true;
  bool dropsAttention = false;         ///< of the probabilities too
  int64_t window = 0;                  ///< positions that a position of some layers sees, itself included
  int64_t windowLayers = 0;            ///< how many layers those are
  int64_t positions = 0;               ///< rows of the table of positions; 0: `seq`
  int64_t moreLayerParameters = 0;     ///< of a layer, beside the above: biases of some products alone
  int64_t attentionWeights = 0;        ///< elements of attention's products in a layer; 0: as sizes say
  int64_t idleLayerParameters = 0;     ///< of a layer, in the mean, those that a token does not meet: experts
  int64_t moreEmbeddingParameters = 0; ///< outside of layers, beside the above: a norm or a bias more

  /// Layers with a window, as a share of all.
  double windowShare() const {
    return layers > 0 && window > 0 ? static_cast<double>(windowLayers) / static_cast<double>(layers) : 0;
  }
  int64_t headWidth() const { return headSize == 0 ? hidden / heads : headSize; }
  int64_t queryWidth() const { return headWidth() * heads; }
  int64_t kvWidth() const { return headWidth() * (kvHeads == 0 ? heads : kvHeads); }
  int64_t ffnWidth() const { return ffn == 0 ? 4 * hidden : ffn; }

  /// Elements of the weights that make queries, keys, values and the output of a layer's attention.
  int64_t attentionProducts() const;
  /// Those of `parameters()` that a token meets.
  int64_t activeParameters() const { return parameters() - layers * idleLayerParameters; }

  /// Parameters of one layer; of the embeddings (without the output projection); of everything.
  int64_t layerParameters() const;
  int64_t embeddingParameters() const;
  int64_t parameters() const;
};

/// What the backward pass computes again.
enum class Recompute : uint8_t {
  None,
  Selective, ///< the attention core: scores, softmax, dropout
  Full,      ///< every layer from its input
};

/// How a step is spread over dp * tp * pp * sp devices.
struct ParallelPlan {
  int64_t dp = 1, tp = 1, pp = 1;
  int64_t sp = 1;             ///< ranks that share one sample's sequence (all-to-all around attention)
  bool shardSequence = false; ///< tensor-parallel ranks also split what lies between products by the sequence
  int64_t interleave = 1;     ///< chunks of layers per pipeline stage, v
  int64_t microBatch = 1;     ///< samples
  int64_t accumulation = 1;   ///< micro-batches per step, m
  int64_t zeroStage = 0;
  int64_t lossChunks = 1; ///< parts in which logits and their loss are made, one after the other
  Recompute recompute = Recompute::None;
  bool partitionCheckpoints = false; ///< tensor-parallel ranks share out what recomputation starts from
  Home checkpointHome = Home::Device;
  Home optimizerHome = Home::Device, parameterHome = Home::Device;
  DType dtype = DType::BF16;         ///< of parameters and activations
  DType gradientDtype = DType::BF16; ///< of what is reduced
  bool overlapReduce = true;         ///< gradients are reduced, and parameters gathered, beside compute
  bool overlapTensor = false;        ///< the backward's tensor-parallel exchange runs beside products
  bool flashAttention = false;       ///< attention stores no scores
  bool fastAttention = false;        ///< on a GPU, its gradient is added up in any order
  bool joinsLoss = false;            ///< the loss and its gradient are one pass over the logits, in place

  int64_t ranks() const { return dp * tp * pp * sp; }
  /// Tensor-parallel ranks that have a part each of the layers' inputs which recomputation starts from: where
  /// they split what lies between products, inputs are split as they are.
  int64_t checkpointRanks() const { return shardSequence || partitionCheckpoints ? tp : 1; }
  int64_t globalBatch() const { return microBatch * accumulation * dp; }
};

/// Layers of a pipeline stage, counted from 0: where they do not divide, the first stages have one more.
int64_t layersOfStage(const ModelShape &shape, const ParallelPlan &plan, int64_t stage);

/// Refuses shapes and plans that do not divide: heads by tp, chunks of layers by pp * interleave, and so on.
/// The error names the key with its value and limit.
Status checkPlan(const ModelShape &shape, const ParallelPlan &plan);

} // namespace ds::cost

#endif // DS_COST_MODEL_H
