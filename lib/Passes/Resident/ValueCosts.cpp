//===- ValueCosts.cpp - Seconds of ops on tensors, before they are commands -------===//
#include "ValueCosts.h"

#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Runtime/Program/AttentionWork.h"

using namespace mlir;
using namespace mlir::ds;
namespace cost = ::ds::cost;

static double bytesOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? double(type.getNumElements()) * std::max(1u, type.getElementTypeBitWidth() / 8) : 0;
}

static double bytesOf(ValueRange values) {
  double bytes = 0;
  for (Value value : values)
    bytes += bytesOf(value);
  return bytes;
}

static cost::DType arithmeticType(Operation *op) {
  Type element = tensorType(op->getOperand(0)).getElementType();
  return element.isBF16() ? cost::DType::BF16 : element.isF16() ? cost::DType::F16 : cost::DType::F32;
}

/// Operations, where the op can tell them.
static double flopsOf(Operation *op) {
  auto costs = dyn_cast<CostOpInterface>(op);
  return costs ? double(costs.getFlops()) : 0;
}

/// Reads what `op` computes; returns whether it has what cuDNN is not asked for.
template <typename AttentionOpT>
static bool readForm(AttentionOpT op, ::ds::rt::AttentionWork &work) {
  work.isCausal = op.getCausal();
  work.window = static_cast<double>(op.getWindow().value_or(0));
  return hasScoreForm(op);
}

double ValueCosts::attentionSeconds(Operation *op, cost::DType dtype) const {
  // Both begin with queries [B, T, H, D] and keys [B, S, G, D].
  ArrayRef<int64_t> queries = tensorType(op->getOperand(0)).getShape(),
                    keys = tensorType(op->getOperand(1)).getShape();
  ::ds::rt::AttentionWork work;
  work.heads = double(queries[0] * queries[2]);
  work.queries = double(queries[1]), work.keys = double(keys[1]);
  work.width = double(queries[3]);
  auto gradient = dyn_cast<AttentionGradOp>(op);
  work.isGradient = gradient != nullptr;
  work.isFast = getMachine(op->getParentOfType<ModuleOp>()).hasFastAttention;
  bool hasForm = gradient ? readForm(gradient, work) || lacksGradientEngine(gradient)
                          : readForm(cast<AttentionOp>(op), work);
  if (hasForm && StringRef(rates.cluster().device.architecture).starts_with("sm_"))
    dtype = cost::DType::F32; // in which the runtime's own kernels compute
  return rates.attentionSeconds(work, bytesOf(op->getOperands()) + bytesOf(op->getResults()), dtype);
}

double ValueCosts::slowAttentionSeconds(AttentionGradOp op) const {
  return std::max(0.0, attentionSeconds(op, cost::DType::F32) - attentionSeconds(op, arithmeticType(op)));
}

double ValueCosts::callSeconds(Operation *op) const {
  return callSeconds(op, /*share=*/1, /*addsRows=*/false);
}

double ValueCosts::callSeconds(Operation *op, double share, bool addsRows) const {
  if (isExchange(op))
    return collectiveSeconds(cast<CollectiveOpInterface>(op));
  if (isa<CollectiveOpInterface>(op) || op->getNumOperands() == 0)
    return 0;
  auto product = dyn_cast<MatmulOp>(op);
  if (!product) {
    // A table is touched where it is asked for: as many rows as the call gives or takes.
    double bytes = isa<EmbeddingOp>(op) ? 2 * bytesOf(op->getResults())
                                        : bytesOf(op->getOperands()) + bytesOf(op->getResults());
    return isa<AttentionOp, AttentionGradOp>(op) ? attentionSeconds(op, arithmeticType(op))
                                                 : rates.memorySeconds(share * bytes);
  }
  RankedTensorType rhs = tensorType(product.getRhs()), result = tensorType(product.getResult());
  cost::Matmul shape;
  shape.n = double(result.getShape().back());
  shape.k = double(rhs.getShape()[rhs.getRank() - (product.getTransposeRhs() ? 1 : 2)]);
  bool isFlat = rhs.getRank() == 2;
  shape.m =
      isFlat ? double(result.getNumElements()) / shape.n : double(result.getShape()[result.getRank() - 2]);
  shape.batch = double(result.getNumElements()) / std::max(1.0, shape.m * shape.n);
  (addsRows ? shape.k : shape.m) *= share;
  shape.transposeA = product.getTransposeLhs(), shape.transposeB = product.getTransposeRhs();
  return rates.matmulSeconds(shape, arithmeticType(op));
}

double ValueCosts::collectiveSeconds(CollectiveOpInterface op) const {
  return mlir::ds::collectiveSeconds(op, rates);
}

double ValueCosts::hostCopySeconds(double bytes) const {
  return mlir::ds::hostCopySeconds(bytes, rates, sharing);
}

double ValueCosts::movingSeconds(double bytes) const {
  return rates.memorySeconds(bytes) - rates.memorySeconds(0);
}

double ValueCosts::ridingSeconds(Operation *op) const {
  double bytes = bytesOf(op->getResults());
  return rates.kernelSeconds({.bytes = bytes, .additions = flopsOf(op)}) -
         rates.kernelSeconds({.bytes = bytes});
}

double ValueCosts::kernelSeconds(Operation *op, double readBytes) const {
  double written = bytesOf(op->getResults());
  return rates.kernelSeconds({.bytes = readBytes + written, .freshBytes = written, .additions = flopsOf(op)});
}
