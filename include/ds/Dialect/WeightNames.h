//===- WeightNames.h - What a model's module says of its files --------------------===//
//
// Discardable attributes from a model's builder to the program: passes between need not know them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_DIALECT_WEIGHTNAMES_H
#define DS_DIALECT_WEIGHTNAMES_H

#include "llvm/ADT/StringRef.h"

namespace mlir::ds {

/// Of a state: further names under which weights files may hold it; never written (an ArrayAttr of strings).
inline constexpr llvm::StringLiteral kReadNamesAttr = "ds.read_names";
/// Of a module: tensors that weights files may hold and no state is (an ArrayAttr of strings).
inline constexpr llvm::StringLiteral kUnusedWeightsAttr = "ds.unused_weights";
/// Of a module: weights files may hold the parameters in another float type than the model's (a UnitAttr).
inline constexpr llvm::StringLiteral kConvertsWeightsAttr = "ds.converts_weights";

/// Of a module that was built from a config.json: that file's text, one JSON object (a StringAttr), to go
/// with the model into its checkpoints.
inline constexpr llvm::StringLiteral kModelConfigAttr = "ds.model_config";

/// Of a module: its ranks may keep checkpoints where other nodes do not see them (a UnitAttr).
inline constexpr llvm::StringLiteral kNodeLocalSavesAttr = "ds.node_local_saves";

} // namespace mlir::ds

#endif // DS_DIALECT_WEIGHTNAMES_H
