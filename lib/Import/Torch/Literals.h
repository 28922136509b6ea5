//===- Literals.h - Numbers, tensors and names as MLIR spells them ----------------===//
#ifndef DS_LIB_IMPORT_TORCH_LITERALS_H
#define DS_LIB_IMPORT_TORCH_LITERALS_H

#include <ATen/ATen.h>

#include <string>

namespace ds::ts {

/// "0.125", "0x7FC00000": as a dense attribute of that type spells a number.
std::string spellNumber(const c10::Scalar &value, at::ScalarType type);
/// A double as an F64Attr spells it.
std::string spellDouble(double value);
/// The elements of a contiguous tensor, as a dense attribute spells them.
std::string spellLiteral(const at::Tensor &tensor);
/// Escapes what MLIR strings do not allow.
std::string quote(const std::string &text);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_LITERALS_H
