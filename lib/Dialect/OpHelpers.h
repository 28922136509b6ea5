//===- OpHelpers.h - What the verifiers of several files share -------------------===//
#ifndef DS_LIB_DIALECT_OPHELPERS_H
#define DS_LIB_DIALECT_OPHELPERS_H

#include "ds/Dialect/Emitter.h"

#include <cmath>

namespace mlir::ds {

/// Emits "expects WHAT to be EXPECTED, but got TYPE" unless they are equal.
inline LogicalResult expectType(Operation *op, StringRef what, Type expected, Type type) {
  if (expected == type)
    return success();
  return op->emitOpError("expects ") << what << " to be " << expected << ", but got " << type;
}

/// Verifies the cap of scores or logits: in f32, which it is computed in, it is positive and finite.
template <typename OpT>
LogicalResult verifyCap(OpT op) {
  auto cap = static_cast<float>(op.getCap() ? op.getCap()->convertToDouble() : 1.0);
  if (cap > 0 && std::isfinite(cap))
    return success();
  return op.emitOpError("expects a cap that is positive and finite, but got ")
         << op.getCap()->convertToDouble();
}

/// The runtime's functions by the names that enums of the dialect have; empty behind the last.
inline StringRef stringifyEnum(::ds::rt::LibraryFn fn) {
  return fn <= ::ds::rt::kLastLibraryFn ? ::ds::rt::spell(fn) : StringRef();
}
template <>
inline std::optional<::ds::rt::LibraryFn> symbolizeEnum(StringRef name) {
  for (const auto &[fn, known] : ::ds::rt::kLibraryNames)
    if (name == known)
      return fn;
  return std::nullopt;
}

/// Parses a word of the enum; the error lists the words that there are.
template <class Enum>
ParseResult parseWord(AsmParser &parser, std::optional<Enum> &word) {
  SMLoc place = parser.getCurrentLocation();
  StringRef text;
  if (succeeded(parser.parseOptionalKeyword(&text)) && (word = symbolizeEnum<Enum>(text)))
    return success();
  InFlightDiagnostic error = parser.emitError(place) << "expects one of ";
  for (unsigned k = 0; !stringifyEnum(static_cast<Enum>(k)).empty(); ++k)
    error << (k ? ", " : "") << stringifyEnum(static_cast<Enum>(k));
  if (!text.empty())
    error << ", but got " << text;
  return error;
}

/// Verifies that the module of `op` has a mesh with axes of these names, which stand for different ones.
LogicalResult verifyAxes(Operation *op, ArrayRef<StringAttr> names);

/// Parses `dp` or `(dp.node, sp)`.
ParseResult parseAxes(AsmParser &parser, AxesAttr &axes);
void printAxes(AsmPrinter &printer, AxesAttr axes);
inline void printAxes(AsmPrinter &printer, Operation *, AxesAttr axes) { printAxes(printer, axes); }

/// Parses `dp = 4, tp = 2` between delimiters.
ParseResult parseNamedNumbers(AsmParser &parser, AsmParser::Delimiter delimiter,
                              SmallVectorImpl<StringAttr> &names, SmallVectorImpl<int64_t> &numbers);
void printNamedNumbers(AsmPrinter &printer, ArrayRef<StringAttr> names, ArrayRef<int64_t> numbers);

/// Verifies what the epilogue of `op` asks for, none included: constraints (C7) and (C8).
LogicalResult verifyEpilogue(MatmulOp op);

/// Whether the call of a product with `epilogue` takes results and a bias that are not packed.
bool mayStride(Epilogue epilogue);

/// Patterns that give products what is done to their results: relu.
void populateFoldEpiloguePatterns(RewritePatternSet &patterns);

/// Parameters of a library call, in order.
inline SmallVector<Attribute> makeParams(MLIRContext *context, ArrayRef<int64_t> integers) {
  Builder builder(context);
  return llvm::map_to_vector(integers,
                             [&](int64_t value) -> Attribute { return builder.getI64IntegerAttr(value); });
}

} // namespace mlir::ds

#endif // DS_LIB_DIALECT_OPHELPERS_H
