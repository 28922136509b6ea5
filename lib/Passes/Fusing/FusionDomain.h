//===- FusionDomain.h - What may share a generated kernel ------------------------===//
//
// Which ops a kernel may hold, which of them every kernel may repeat, and the iteration space of ops that
// share one.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_FUSING_FUSIONDOMAIN_H
#define DS_LIB_PASSES_FUSING_FUSIONDOMAIN_H

#include "ds/Dialect/Ds.h"

namespace mlir::ds {

/// The iteration space of a group of ops.
struct FusionDomain {
  enum class Kind {
    Pointwise, ///< every value has `shape`
    Rows,      ///< values have `shape`, or its first `split` dimensions; reductions remove the others
    Columns,   ///< reductions remove the first `split` dimensions; only their results leave the group, or
               ///< what these are rounded to
  };
  Kind kind = Kind::Pointwise;
  SmallVector<int64_t> shape;
  int64_t split = 0;
  bool rounds = false; ///< pointwise, and nothing but a conversion to a narrower type
};

/// How `op` may take part in fusion; nullopt when it may not.
std::optional<FusionKind> fusionKind(Operation *op);

/// True for a conversion to a wider type: whoever reads the narrow value instead moves fewer bytes.
bool widens(Operation *op);

/// The ops of a block that every user may copy: constants, iotas, broadcasts, conversions to wider types, and
/// what is computed from constants and iotas alone, such as a causal mask, in a few ops. What a longer chain
/// of ops makes is computed once. Knows the block as it was when it was looked at.
class FreeOps {
public:
  explicit FreeOps(Block &block);
  bool contains(Operation *op) const { return depths.contains(op); }

private:
  /// The number of free ops on the longest way to `op`, itself included; 0 where it is not free.
  unsigned findDepth(Operation *op) const;

  DenseMap<Operation *, unsigned> depths;
};

/// True for ops that may belong to a group.
bool isFusionCandidate(Operation *op);

/// The domain that the candidate `op` iterates over on its own.
FusionDomain ownDomain(Operation *op);

/// The domain of a group that holds both; nullopt when no kernel class has it.
std::optional<FusionDomain> unite(const FusionDomain &a, const FusionDomain &b);

} // namespace mlir::ds

#endif // DS_LIB_PASSES_FUSING_FUSIONDOMAIN_H
