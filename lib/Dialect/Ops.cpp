//===- Ops.cpp - Generated definitions of all ops -------------------------------===//
#include "ds/Dialect/Ds.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::ds;

/// Parses `(keyword)`.
template <class EnumAttr>
static ParseResult parseInParens(OpAsmParser &parser, EnumAttr &attribute) {
  if (parser.parseLParen())
    return failure();
  auto parsed = FieldParser<decltype(attribute.getValue())>::parse(parser);
  if (failed(parsed) || parser.parseRParen())
    return failure();
  attribute = EnumAttr::get(parser.getContext(), *parsed);
  return success();
}

/// Prints `(keyword)`, where the declarative format would leave a space inside.
template <class EnumAttr>
static void printInParens(OpAsmPrinter &printer, Operation *, EnumAttr attribute) {
  auto spell = [](auto value) {
    if constexpr (std::is_same_v<decltype(value), Role>)
      return stringifyRole(value);
    else
      return stringifySpace(value);
  };
  printer << '(' << spell(attribute.getValue()) << ')';
}

#define GET_OP_CLASSES
#include "ds/Dialect/DsOps.cpp.inc"
