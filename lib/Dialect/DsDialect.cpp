//===- DsDialect.cpp - Registration, attributes and types of ds -----------------===//
//
// Custom syntax is kept to what the declarative format cannot say: the numbers of #ds.init, the strides of a
// buffer, which may be empty, and words that are refused by the words there are, not by the names of classes.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Decisions.h"
#include "ds/Dialect/DsConv.h"
#include "ds/Dialect/DsTraining.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Sharding.h"
#include "ds/Dialect/Training.h"

#include "OpHelpers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::ds;

#include "ds/Dialect/DsEnums.cpp.inc"

/// Parses `[a, b, ...]`, possibly empty.
static ParseResult parseStrides(AsmParser &parser, SmallVector<int64_t> &strides) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(strides.emplace_back()); });
}

/// Prints `[a, b, ...]`.
static void printStrides(AsmPrinter &printer, ArrayRef<int64_t> strides) {
  printer << '[';
  llvm::interleaveComma(strides, printer);
  printer << ']';
}

#include "ds/Dialect/DsDialect.cpp.inc"
#include "ds/Dialect/DsInterfaces.cpp.inc"
#include "ds/Dialect/DsTrainingInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "ds/Dialect/DsAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "ds/Dialect/DsTypes.cpp.inc"

void DsDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "ds/Dialect/DsOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ds/Dialect/DsConvOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ds/Dialect/DsTrainingOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ds/Dialect/DsAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "ds/Dialect/DsTypes.cpp.inc"
      >();
  attachShardingRules(*getContext());
}

/// Verifies attributes that any op, or any function, may have.
static LogicalResult verifyWorkAttributes(Operation *op, NamedAttribute attribute) {
  auto expect = [&](bool isRight, StringRef example) -> LogicalResult {
    if (isRight)
      return success();
    return op->emitOpError("expects ") << attribute.getName().getValue() << " to be as " << example
                                       << ", but got " << attribute.getValue();
  };
  if (attribute.getName() == DsDialect::kWorkAttr)
    return expect(isa<WorkAttr>(attribute.getValue()), "#ds.work<forward>");
  if (attribute.getName() == DsDialect::kSegmentAttr)
    return expect(isa<SegmentAttr>(attribute.getValue()), "#ds.segment<forward, backward>");
  if (attribute.getName() == DsDialect::kLayerAttr)
    return expect(isa<LayerAttr>(attribute.getValue()), "#ds.layer<\"h\", 0, \"attn\">");
  if (attribute.getName() == DsDialect::kLayersAttr) {
    auto layers = dyn_cast<ArrayAttr>(attribute.getValue());
    return expect(isa<FusedOp>(op) && layers && layers.size() == op->getNumResults() &&
                      llvm::all_of(layers, llvm::IsaPred<LayerAttr, UnitAttr>),
                  "[#ds.layer<\"h\", 0, \"attn\">, unit], one for each result of a ds.fused");
  }
  return success();
}

/// Is an array of nothing but `Attr`.
template <class Attr>
struct ArrayOfAttr : ArrayAttr {
  static bool classof(Attribute attribute) {
    auto array = llvm::dyn_cast<ArrayAttr>(attribute);
    return array && llvm::all_of(array, llvm::IsaPred<Attr>);
  }
};

/// Verifies an attribute that only modules have.
template <class Attr>
static LogicalResult verifyModuleAttribute(Operation *op, NamedAttribute attribute, StringRef example) {
  StringRef name = attribute.getName();
  if (!isa<ModuleOp>(op))
    return op->emitOpError("expects no ") << name << ": a module has it";
  if (!isa<Attr>(attribute.getValue()))
    return emitError(op->getLoc(), "expects ") // without the op, which is all there is
           << name << " to be as " << example << ", but got " << attribute.getValue();
  return success();
}

LogicalResult DsDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() == kPhaseAttr)
    return verifyModuleAttribute<PhaseAttr>(op, attribute, "#ds.phase<step>");
  if (attribute.getName() == kTrainingAttr)
    return verifyModuleAttribute<TrainingAttr>(op, attribute,
                                               "#ds.training<gradient_accumulation_steps = 2>");
  if (attribute.getName() == kDecisionsAttr)
    return verifyModuleAttribute<DecisionsAttr>(op, attribute, "#ds.decisions<>");
  if (attribute.getName() == kMachineAttr)
    return verifyModuleAttribute<MachineAttr>(op, attribute, "#ds.machine<target = \"cuda:sm_90\">");
  if (attribute.getName() == kIndicesAttr)
    return verifyModuleAttribute<ArrayOfAttr<IndicesAttr>>(op, attribute,
                                                           "[#ds.indices<\"tokens\" below 100>]");
  return verifyWorkAttributes(op, attribute);
}

PhaseRange mlir::ds::getLegalPhases(Operation *op) {
  auto phased = dyn_cast<PhasedOpInterface>(op);
  return phased ? phased.getLegalPhases() : PhaseRange();
}

Operation *DsDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return builder.create<ConstantOp>(loc, type, elements);
}

LogicalResult IndicesAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr, int64_t,
                                  std::optional<int64_t>, ArrayRef<int64_t> runs) {
  if (runs.size() % 2 != 0)
    return emitError() << "expects pairs of a first target and a count, but got " << runs.size()
                       << " numbers";
  int64_t end = -1; // behind the run before, and an element that parts them
  for (size_t run = 0; run < runs.size(); run += 2) {
    if (runs[run] <= end || runs[run + 1] < 1)
      return emitError() << "expects runs that ascend and do not touch, but got " << runs[run + 1]
                         << " targets from " << runs[run] << " on";
    end = runs[run] + runs[run + 1];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// #ds.init
//===----------------------------------------------------------------------===//

Attribute InitAttr::parse(AsmParser &parser, Type) {
  double a = 0, b = 0;
  std::optional<InitKind> kind;
  if (parser.parseLess() || parseWord(parser, kind) || parser.parseComma() || parser.parseFloat(a) ||
      parser.parseComma() || parser.parseFloat(b) || parser.parseGreater())
    return {};
  return InitAttr::get(parser.getContext(), *kind, a, b);
}

void InitAttr::print(AsmPrinter &printer) const {
  Type f64 = Float64Type::get(getContext());
  printer << '<' << stringifyInitKind(getKind()) << ", ";
  printer.printAttributeWithoutType(FloatAttr::get(f64, getA()));
  printer << ", ";
  printer.printAttributeWithoutType(FloatAttr::get(f64, getB()));
  printer << '>';
}

//===----------------------------------------------------------------------===//
// #ds.library
//===----------------------------------------------------------------------===//

Attribute LibraryFnAttr::parse(AsmParser &parser, Type) {
  std::optional<::ds::rt::LibraryFn> fn;
  if (parser.parseLess() || parseWord(parser, fn) || parser.parseGreater())
    return {};
  return LibraryFnAttr::get(parser.getContext(), *fn);
}

void LibraryFnAttr::print(AsmPrinter &printer) const { printer << '<' << ::ds::rt::spell(getValue()) << '>'; }

//===----------------------------------------------------------------------===//
// #ds.segment
//===----------------------------------------------------------------------===//

/// Parses `name N,`, if it is there.
static ParseResult parseNumber(AsmParser &parser, StringRef name, int64_t &number) {
  if (failed(parser.parseOptionalKeyword(name)))
    return success();
  return failure(parser.parseInteger(number) || parser.parseComma());
}

Attribute SegmentAttr::parse(AsmParser &parser, Type) {
  int64_t stage = 0, chunk = 0;
  SmallVector<Work> works;
  auto parseWork = [&]() -> ParseResult {
    std::optional<Work> work;
    if (parseWord(parser, work))
      return failure();
    works.push_back(*work);
    return success();
  };
  if (parser.parseLess() || parseNumber(parser, "stage", stage) || parseNumber(parser, "chunk", chunk) ||
      parser.parseCommaSeparatedList(parseWork) || parser.parseGreater())
    return {};
  return parser.getChecked<SegmentAttr>(parser.getContext(), stage, chunk, works);
}

void SegmentAttr::print(AsmPrinter &printer) const {
  printer << '<';
  if (getStage())
    printer << "stage " << getStage() << ", ";
  if (getChunk())
    printer << "chunk " << getChunk() << ", ";
  llvm::interleaveComma(getWorks(), printer, [&](Work work) { printer << stringifyWork(work); });
  printer << '>';
}

LogicalResult SegmentAttr::verify(function_ref<InFlightDiagnostic()> emitError, int64_t stage, int64_t chunk,
                                  ArrayRef<Work> works) {
  if (stage < 0 || chunk < 0)
    return emitError() << "expects a stage and a chunk that are not negative, but got " << stage << " and "
                       << chunk;
  if (works.empty() || llvm::is_contained(works, Work::Recompute))
    return emitError() << "expects work of a segment, which recomputing on its own is not";
  for (auto [before, after] : llvm::zip(works, works.drop_front()))
    if (before >= after)
      return emitError() << "expects work in the order in which it is done, each once, but got "
                         << stringifyWork(after) << " after " << stringifyWork(before);
  for (Work alone : {Work::Evaluation, Work::Transfer})
    if (works.size() > 1 && llvm::is_contained(works, alone))
      return emitError() << "expects " << (alone == Work::Transfer ? "a transfer" : "an evaluation")
                         << " to stand alone";
  return success();
}

SegmentAttr SegmentAttr::of(Operation *func) {
  return func->getAttrOfType<SegmentAttr>(DsDialect::kSegmentAttr);
}

//===----------------------------------------------------------------------===//
// #ds.gradient
//===----------------------------------------------------------------------===//

FlatSymbolRefAttr GradientAttr::stateOf(FunctionOpInterface func, unsigned index) {
  auto gradient = func.getResultAttrOfType<GradientAttr>(index, DsDialect::kStateAttr);
  return gradient ? gradient.getState() : FlatSymbolRefAttr();
}

//===----------------------------------------------------------------------===//
// !ds.buffer
//===----------------------------------------------------------------------===//

Type BufferType::parse(AsmParser &parser) {
  RankedTensorType tensor;
  SmallVector<int64_t> strides;
  std::optional<Space> space;
  if (parser.parseLess() || parser.parseType(tensor) || parser.parseComma() ||
      parseStrides(parser, strides) || parser.parseComma() || parseWord(parser, space) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<BufferType>(parser.getContext(), tensor, strides, *space);
}

void BufferType::print(AsmPrinter &printer) const {
  printer << '<' << getTensor() << ", ";
  printStrides(printer, getStrides());
  printer << ", " << stringifySpace(getSpace()) << '>';
}

/// Row-major strides of `shape`; sizes of 0 count as 1.
static SmallVector<int64_t> rowMajorStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = static_cast<int64_t>(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * std::max<int64_t>(shape[dim + 1], 1);
  return strides;
}

BufferType BufferType::getContiguous(RankedTensorType tensor, Space space) {
  return get(tensor.getContext(), tensor, rowMajorStrides(tensor.getShape()), space);
}

bool BufferType::isContiguous() const {
  SmallVector<int64_t> expected = rowMajorStrides(getTensor().getShape());
  for (auto [size, stride, wanted] : llvm::zip_equal(getTensor().getShape(), getStrides(), expected))
    if (size != 1 && stride != wanted)
      return false;
  return true;
}

int64_t BufferType::getSizeInBytes() const {
  unsigned bits = getTensor().getElementTypeBitWidth();
  return getTensor().getNumElements() * ((bits + 7) / 8);
}

LogicalResult BufferType::verify(function_ref<InFlightDiagnostic()> emitError, RankedTensorType tensor,
                                 ArrayRef<int64_t> strides, Space) {
  if (static_cast<int64_t>(strides.size()) != tensor.getRank())
    return emitError() << "expects one stride per dimension of " << tensor << ", but got " << strides.size();
  for (int64_t stride : strides)
    if (stride < 0)
      return emitError() << "expects strides that are not negative, but got " << stride;
  return success();
}

//===----------------------------------------------------------------------===//
// !ds.stored
//===----------------------------------------------------------------------===//

Type StoredType::parse(AsmParser &parser) {
  RankedTensorType tensor;
  std::optional<Space> space;
  if (parser.parseLess() || parser.parseType(tensor) || parser.parseComma() || parseWord(parser, space) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<StoredType>(parser.getContext(), tensor, *space);
}

void StoredType::print(AsmPrinter &printer) const {
  printer << '<' << getTensor() << ", " << stringifySpace(getSpace()) << '>';
}

LogicalResult StoredType::verify(function_ref<InFlightDiagnostic()> emitError, RankedTensorType tensor,
                                 Space space) {
  if (!tensor.hasStaticShape())
    return emitError() << "expects a tensor of static shape, but got " << tensor;
  if (space == Space::Device)
    return emitError() << "expects another space than the device's, where tensors are";
  return success();
}
