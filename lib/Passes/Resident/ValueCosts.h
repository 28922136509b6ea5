//===- ValueCosts.h - Seconds of ops on tensors, before they are commands ---------===//
#ifndef DS_LIB_PASSES_RESIDENT_VALUECOSTS_H
#define DS_LIB_PASSES_RESIDENT_VALUECOSTS_H

#include "ds/Cost/Rates.h"
#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// The cost model's figures for what is known of an op before fusion: products by their shape, other calls by
/// operations and bytes, kernels by what they must move.
class ValueCosts {
public:
  /// `sharing` ranks copy to their hosts over the same links at once.
  explicit ValueCosts(const ::ds::cost::Rates &rates, int64_t sharing = 1)
      : rates(rates.ofProgram()), sharing(sharing) {}

  /// A call of a library; 0 of a collective, which is no compute.
  double callSeconds(Operation *op) const;
  /// The same call on a share of its rows: those of its result, or, of a product that adds up over rows,
  /// those that it adds up.
  double callSeconds(Operation *op, double share, bool addsRows) const;
  double collectiveSeconds(CollectiveOpInterface op) const;
  /// A copy between the host and the device.
  double hostCopySeconds(double bytes) const;
  /// What a gradient of attention takes more without cuDNN's workspace, by the runtime's own kernels in f32.
  double slowAttentionSeconds(AttentionGradOp op) const;
  /// To start a kernel or a call that does nothing.
  double launchSeconds() const { return rates.memorySeconds(0); }
  /// What it adds to a kernel to read or write so many bytes more.
  double movingSeconds(double bytes) const;
  /// What it adds to a kernel that has the operands of `op` anyway to compute `op` as well.
  double ridingSeconds(Operation *op) const;
  /// A kernel of its own that reads `readBytes` and writes the result of `op`.
  double kernelSeconds(Operation *op, double readBytes) const;

private:
  double attentionSeconds(Operation *op, ::ds::cost::DType dtype) const;

  const ::ds::cost::Rates rates;
  const int64_t sharing;
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_RESIDENT_VALUECOSTS_H
