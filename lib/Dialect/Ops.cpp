//===- Ops.cpp - Generated definitions of all ops -------------------------------===//
#include "ds/Dialect/Ds.h"

#include "OpHelpers.h"

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
static StringRef spell(MeshAxis value) { return stringifyMeshAxis(value); }
static StringRef spell(CollectiveKind value) { return stringifyCollectiveKind(value); }

/// `4, 8`.
static ParseResult parseNumbers(OpAsmParser &parser, DenseI64ArrayAttr &numbers) {
  SmallVector<int64_t> values;
  auto parseOne = [&] { return parser.parseInteger(values.emplace_back()); };
  if (parser.parseCommaSeparatedList(parseOne))
    return failure();
  numbers = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

static void printNumbers(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr numbers) {
  llvm::interleaveComma(numbers.asArrayRef(), printer);
}

/// Parses `keyword`.
template <class EnumAttr>
static ParseResult parseKeyword(OpAsmParser &parser, EnumAttr &attribute) {
  std::optional<decltype(attribute.getValue())> word;
  if (parseWord(parser, word))
    return failure();
  attribute = EnumAttr::get(parser.getContext(), *word);
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

/// Parses `[dp, none]`: an axis attribute, or a unit attribute for none, per dimension.
static ParseResult parseShards(OpAsmParser &parser, ArrayAttr &shards) {
  SmallVector<Attribute> entries;
  auto parseEntry = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalKeyword("none"))) {
      entries.push_back(UnitAttr::get(parser.getContext()));
      return success();
    }
    MeshAxisAttr axis;
    if (parseKeyword(parser, axis))
      return failure();
    entries.push_back(axis);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseEntry))
    return failure();
  shards = ArrayAttr::get(parser.getContext(), entries);
  return success();
}

/// Prints `[dp, none]`.
static void printShards(OpAsmPrinter &printer, Operation *, ArrayAttr shards) {
  printer << '[';
  llvm::interleaveComma(shards, printer, [&](Attribute entry) {
    auto axis = dyn_cast<MeshAxisAttr>(entry);
    printer << (axis ? spell(axis.getValue()) : "none");
  });
  printer << ']';
}

/// Parses `[dp = 4, tp = 1, pp = 1, sp = 1]`, all axes in this order.
static ParseResult parseAxisSizes(OpAsmParser &parser, DenseI64ArrayAttr &sizes) {
  SmallVector<int64_t> values;
  if (parser.parseLSquare())
    return failure();
  for (unsigned axis = 0; axis <= getMaxEnumValForMeshAxis(); ++axis)
    if ((axis > 0 && parser.parseComma()) ||
        parser.parseKeyword(stringifyMeshAxis(static_cast<MeshAxis>(axis))) || parser.parseEqual() ||
        parser.parseInteger(values.emplace_back()))
      return failure();
  sizes = DenseI64ArrayAttr::get(parser.getContext(), values);
  return parser.parseRSquare();
}

/// Prints `[dp = 4, tp = 1, pp = 1, sp = 1]`.
static void printAxisSizes(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr sizes) {
  printer << '[';
  llvm::interleaveComma(llvm::enumerate(sizes.asArrayRef()), printer, [&](auto entry) {
    printer << stringifyMeshAxis(static_cast<MeshAxis>(entry.index())) << " = " << entry.value();
  });
  printer << ']';
}

#define GET_OP_CLASSES
#include "ds/Dialect/DsOps.cpp.inc"
