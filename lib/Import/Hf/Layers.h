//===- Layers.h - The layers that the architectures share -----------------------===//
//
// Each function opens the layer of its name, so that parameters and ops are called after it, and writes what
// the TorchScript importer writes for the same layer.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_HF_LAYERS_H
#define DS_LIB_IMPORT_HF_LAYERS_H

#include "ConfigFile.h"
#include "Graph.h"

namespace ds::hf {

/// Last dimension of a tensor.
int64_t width(Value x);

/// x W^T + b for W of [columns, width(x)], as nn.Linear has it.
Value linear(Graph &g, llvm::StringRef name, Value x, int64_t columns, bool bias, double deviation);
/// x W + b for W of [width(x), columns], as GPT-2's Conv1D has it.
Value conv1d(Graph &g, llvm::StringRef name, Value x, int64_t columns, double deviation);
Value layerNorm(Graph &g, llvm::StringRef name, Value x, double epsilon);
Value rmsNorm(Graph &g, llvm::StringRef name, Value x, double epsilon);

/// What a norm does with its weight, and whether it has a bias. With AddOne the factor is 1 + weight, and the
/// weight starts as 0.
enum class NormKind : uint8_t { Rms, RmsAddOne, Layer, LayerAddOne, LayerNoBias, LayerPlain };
struct Norm {
  NormKind kind = NormKind::Rms;
  double epsilon = 1e-6;
};
/// Elements of the parameters of a norm of rows of `width`.
int64_t normParameters(const Norm &norm, int64_t width);
/// The norm of the last dimension of x.
Value norm(Graph &g, llvm::StringRef name, Value x, const Norm &norm);
/// The same without parameters.
Value plainNorm(Graph &g, Value x, const Norm &norm);

/// Rows of the table `name` of `rows` rows; looking up the row `padding` gives it no gradient.
Value embedding(Graph &g, llvm::StringRef name, Value ids, int64_t rows, int64_t columns, double deviation,
                std::optional<int64_t> padding = std::nullopt);
/// Row `ids` of the matrix `table`, of a parameter or not.
Value lookUp(Emitter e, Value table, Value ids, std::optional<int64_t> padding = std::nullopt);
/// Rows first ... first + T - 1 of the table for each sample of x [B, T, C], or those that position_ids says,
/// counted from `first`: added to x.
Value addPositions(Graph &g, llvm::StringRef name, Value x, int64_t rows, double deviation,
                   int64_t first = 0);
/// x W^T for a matrix [columns, width(x)] that is there already: a tied head.
Value project(Graph &g, Value x, Value matrix, Value bias = {});

/// The activation that `key` names. Unknown ones are refused with the list.
std::string readActivation(const Section &config, std::string_view key, const std::string &fallback);
/// Whether activations have this name.
bool isActivation(llvm::StringRef name);
/// One that readActivation gave.
Value activate(Graph &g, llvm::StringRef activation, Value x);

/// x cut along its last dimension into parts of `widths`.
llvm::SmallVector<Value> cutColumns(Graph &g, Value x, llvm::ArrayRef<int64_t> widths);
/// x [B, T, n * size] as [B, T, n, size].
Value splitHeads(Graph &g, Value x, int64_t size);
/// x [B, T, n, size] as [B, T, n * size].
Value joinHeads(Graph &g, Value x);

struct AttentionOptions {
  double scale = 1;
  bool causal = true;
  int64_t window = 0; ///< positions that a position sees to either side, itself included; 0: all
  double cap = 0;     ///< c * tanh(s / c) takes the place of a score s; 0: none
  Value slopes;       ///< f32 [H]: a score gains slopes[h] * (s - t); null: nothing
  double dropout = 0; ///< of the attention weights
  Value bias;         ///< [H, T, S], which scores gain and which is trained; null: none
};

/// softmax(scale * q k^T + mask) v for q [B, T, H, D], k and v [B, S, G, D]; [B, T, H, D]. S is T where it is
/// causal. With document_ids a position sees its own document alone. One op where weights are not dropped and
/// there is no bias; else spelled out, for weights or the gradients of scores must then be kept.
Value attention(Graph &g, Value query, Value key, Value value, const AttentionOptions &options);

/// Mean negative log-likelihood of `labels` [B, T] in `logits` [B, T, V]; -100 does not count. With a `cap`
/// c, c * tanh(x / c) takes the place of a logit x.
Value tokenLoss(Graph &g, Value logits, Value labels, double cap = 0);

/// The matrix that makes logits of a language model's last hidden state.
struct LanguageHead {
  llvm::StringRef name;  ///< its layer: "lm_head"
  llvm::StringRef table; ///< the layer of the token embedding: "transformer.wte"
  bool tied = false;     ///< it is that embedding's table, and has no weight of its own
  bool bias = false;     ///< it has a bias of its own, tied or not
  double cap = 0;        ///< of the logits
};

/// tokenLoss of the logits of x [B, T, C] over `vocabulary` tokens; a head of its own starts as a normal
/// distribution.
Value languageLoss(Graph &g, const LanguageHead &head, Value x, Value labels, int64_t vocabulary,
                   double deviation);

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_LAYERS_H
