//===- Ops.cpp - Generated definitions of all ops -------------------------------===//
#include "ds/Dialect/Ds.h"

#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::ds;

/// Spelling of an enum's value, where stringify has one name per enum.
static StringRef spell(Role value) { return stringifyRole(value); }
static StringRef spell(Space value) { return stringifySpace(value); }
static StringRef spell(StreamKind value) { return stringifyStreamKind(value); }
static StringRef spell(Predicate value) { return stringifyPredicate(value); }
static StringRef spell(ReduceKind value) { return stringifyReduceKind(value); }

/// Parses `keyword`.
template <class EnumAttr>
static ParseResult parseKeyword(OpAsmParser &parser, EnumAttr &attribute) {
  auto parsed = FieldParser<decltype(attribute.getValue())>::parse(parser);
  if (failed(parsed))
    return failure();
  attribute = EnumAttr::get(parser.getContext(), *parsed);
  return success();
}

/// Prints `keyword`; the attribute's own printer would put a second space before it.
template <class EnumAttr>
static void printKeyword(OpAsmPrinter &printer, Operation *, EnumAttr attribute) {
  printer << spell(attribute.getValue());
}

/// Parses `(keyword)`.
template <class EnumAttr>
static ParseResult parseInParens(OpAsmParser &parser, EnumAttr &attribute) {
  return failure(parser.parseLParen() || parseKeyword(parser, attribute) || parser.parseRParen());
}

/// Prints `(keyword)`.
template <class EnumAttr>
static void printInParens(OpAsmPrinter &printer, Operation *, EnumAttr attribute) {
  printer << '(' << spell(attribute.getValue()) << ')';
}

#define GET_OP_CLASSES
#include "ds/Dialect/DsOps.cpp.inc"
