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
static StringRef spell(Epilogue value) { return stringifyEpilogue(value); }
static StringRef spell(CollectiveKind value) { return stringifyCollectiveKind(value); }
static StringRef spell(Payload value) { return stringifyPayload(value); }
static StringRef spell(AllocCategory value) { return stringifyAllocCategory(value); }

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

/// Parses `[dp, (sp, tp), none]`: axes, or a unit attribute for none, per dimension.
static ParseResult parseShards(OpAsmParser &parser, ArrayAttr &shards) {
  SmallVector<Attribute> entries;
  auto parseEntry = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalKeyword("none"))) {
      entries.push_back(UnitAttr::get(parser.getContext()));
      return success();
    }
    AxesAttr axes;
    if (parseAxes(parser, axes))
      return failure();
    entries.push_back(axes);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseEntry))
    return failure();
  shards = ArrayAttr::get(parser.getContext(), entries);
  return success();
}

static void printShards(OpAsmPrinter &printer, Operation *, ArrayAttr shards) {
  printer << '[';
  llvm::interleaveComma(shards, printer, [&](Attribute entry) {
    if (auto axes = dyn_cast<AxesAttr>(entry))
      printAxes(printer, axes);
    else
      printer << "none";
  });
  printer << ']';
}

/// Parses `[dp = 512]`.
static ParseResult parseShifts(OpAsmParser &parser, ShiftsAttr &shifts) {
  SMLoc place = parser.getCurrentLocation();
  SmallVector<StringAttr> names;
  SmallVector<int64_t> strides;
  if (parseNamedNumbers(parser, AsmParser::Delimiter::Square, names, strides))
    return failure();
  shifts = ShiftsAttr::getChecked([&] { return parser.emitError(place); }, parser.getContext(),
                                  ArrayRef(names), ArrayRef(strides));
  return success(shifts != nullptr);
}

static void printShifts(OpAsmPrinter &printer, Operation *, ShiftsAttr shifts) {
  printer << '[';
  printNamedNumbers(printer, shifts.getNames(), shifts.getStrides());
  printer << ']';
}

/// Parses `[pp = 2, dp = 4]`.
static ParseResult parseAxisSizes(OpAsmParser &parser, ArrayAttr &axes, DenseI64ArrayAttr &sizes) {
  SmallVector<StringAttr> names;
  SmallVector<int64_t> values;
  if (parseNamedNumbers(parser, AsmParser::Delimiter::Square, names, values))
    return failure();
  axes = parser.getBuilder().getArrayAttr(SmallVector<Attribute>(names.begin(), names.end()));
  sizes = parser.getBuilder().getDenseI64ArrayAttr(values);
  return success();
}

static void printAxisSizes(OpAsmPrinter &printer, Operation *, ArrayAttr axes, DenseI64ArrayAttr sizes) {
  printer << '[';
  printNamedNumbers(printer, llvm::to_vector(axes.getAsRange<StringAttr>()), sizes);
  printer << ']';
}

#define GET_OP_CLASSES
#include "ds/Dialect/DsOps.cpp.inc"
