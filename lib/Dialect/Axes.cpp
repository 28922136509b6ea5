//===- Axes.cpp - The mesh of ranks, its axes and what is said by them -----------===//
#include "OpHelpers.h"
#include "ds/Dialect/MeshShape.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

//===----------------------------------------------------------------------===//
// #ds.axes
//===----------------------------------------------------------------------===//

static ParseResult parseName(AsmParser &parser, StringAttr &name) {
  std::string text;
  if (parser.parseKeywordOrString(&text))
    return failure();
  name = StringAttr::get(parser.getContext(), text);
  return success();
}

static void printNames(AsmPrinter &printer, ArrayRef<StringAttr> names) {
  llvm::interleaveComma(names, printer, [&](StringAttr name) { printer.printKeywordOrString(name); });
}

Attribute AxesAttr::parse(AsmParser &parser, Type) {
  SMLoc place = parser.getCurrentLocation();
  SmallVector<StringAttr> names;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     [&] { return parseName(parser, names.emplace_back()); }))
    return {};
  return AxesAttr::getChecked([&] { return parser.emitError(place); }, parser.getContext(), ArrayRef(names));
}

void AxesAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printNames(printer, getNames());
  printer << '>';
}

LogicalResult AxesAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<StringAttr> names) {
  if (names.empty())
    return emitError() << "expects at least one axis";
  llvm::StringSet<> seen;
  for (StringAttr name : names)
    if (!seen.insert(name).second)
      return emitError() << "expects each axis once, but got " << name.getValue() << " twice";
  return success();
}

ParseResult mlir::ds::parseAxes(AsmParser &parser, AxesAttr &axes) {
  SMLoc place = parser.getCurrentLocation();
  SmallVector<StringAttr> names;
  auto parseNext = [&] { return parseName(parser, names.emplace_back()); };
  if (failed(parser.parseOptionalLParen())) {
    if (parseNext())
      return failure();
  } else if (parser.parseCommaSeparatedList(parseNext) || parser.parseRParen()) {
    return failure();
  }
  axes = AxesAttr::getChecked([&] { return parser.emitError(place); }, parser.getContext(), ArrayRef(names));
  return success(axes != nullptr);
}

void mlir::ds::printAxes(AsmPrinter &printer, AxesAttr axes) {
  bool isOne = axes.getNames().size() == 1;
  printer << (isOne ? "" : "(");
  printNames(printer, axes.getNames());
  printer << (isOne ? "" : ")");
}

//===----------------------------------------------------------------------===//
// #ds.shifts
//===----------------------------------------------------------------------===//

ParseResult mlir::ds::parseNamedNumbers(AsmParser &parser, AsmParser::Delimiter delimiter,
                                        SmallVectorImpl<StringAttr> &names,
                                        SmallVectorImpl<int64_t> &numbers) {
  return parser.parseCommaSeparatedList(delimiter, [&] {
    return failure(parseName(parser, names.emplace_back()) || parser.parseEqual() ||
                   parser.parseInteger(numbers.emplace_back()));
  });
}

void mlir::ds::printNamedNumbers(AsmPrinter &printer, ArrayRef<StringAttr> names, ArrayRef<int64_t> numbers) {
  llvm::interleaveComma(llvm::zip_equal(names, numbers), printer, [&](auto entry) {
    printer.printKeywordOrString(std::get<0>(entry));
    printer << " = " << std::get<1>(entry);
  });
}

Attribute ShiftsAttr::parse(AsmParser &parser, Type) {
  SMLoc place = parser.getCurrentLocation();
  SmallVector<StringAttr> names;
  SmallVector<int64_t> strides;
  if (parseNamedNumbers(parser, AsmParser::Delimiter::LessGreater, names, strides))
    return {};
  return ShiftsAttr::getChecked([&] { return parser.emitError(place); }, parser.getContext(), ArrayRef(names),
                                ArrayRef(strides));
}

void ShiftsAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printNamedNumbers(printer, getNames(), getStrides());
  printer << '>';
}

LogicalResult ShiftsAttr::verify(function_ref<InFlightDiagnostic()> emitError, ArrayRef<StringAttr> names,
                                 ArrayRef<int64_t> strides) {
  if (failed(AxesAttr::verify(emitError, names)))
    return failure();
  if (names.size() != strides.size())
    return emitError() << "expects one stride for each of " << names.size() << " axes, but got "
                       << strides.size();
  for (int64_t stride : strides)
    if (stride < 0)
      return emitError() << "expects strides that are not negative, but got " << stride;
  return success();
}

//===----------------------------------------------------------------------===//
// MeshOp
//===----------------------------------------------------------------------===//

MeshOp MeshOp::lookup(Operation *op) {
  auto module = dyn_cast<ModuleOp>(op);
  if (!module)
    module = op->getParentOfType<ModuleOp>();
  if (module)
    for (Operation &candidate : *module.getBody())
      if (auto mesh = dyn_cast<MeshOp>(candidate))
        return mesh;
  return {};
}

/// Verifies that the sets of `mesh` are of its axes, stages and tensors each apart from all others (C4).
static LogicalResult verifySets(MeshOp mesh) {
  const rt::Mesh axes = mesh.getMesh();
  const std::pair<StringRef, AxesAttr> sets[] = {{"samples", mesh.getSamplesAttr()},
                                                 {"zero", mesh.getZeroAttr()},
                                                 {"stages", mesh.getStagesAttr()},
                                                 {"tensors", mesh.getTensorsAttr()}};
  for (auto [set, names] : sets)
    for (StringAttr name : names ? names.getNames() : ArrayRef<StringAttr>())
      if (!axes.find(name.getValue()))
        return mesh.emitOpError("expects axes of ")
               << axes.spell() << " in " << set << ", but got " << name.getValue();
  auto verifyApart = [&](AxesAttr own, rt::AxisSet others, StringRef set, StringRef from) -> LogicalResult {
    const rt::AxisSet both = mesh.find(own) & others;
    if (both.isEmpty())
      return success();
    return mesh.emitOpError("expects ")
           << set << " apart from " << from << ", but got " << axes.spell(both) << " in both";
  };
  const rt::AxisSet data = mesh.find(mesh.getSamplesAttr()) | mesh.find(mesh.getZeroAttr());
  const rt::AxisSet stages = mesh.find(mesh.getStagesAttr());
  return success(
      succeeded(verifyApart(mesh.getStagesAttr(), data, "stages", "samples and zero")) &&
      succeeded(verifyApart(mesh.getTensorsAttr(), data | stages, "tensors", "samples, zero and stages")));
}

LogicalResult MeshOp::verify() {
  if (getSizes().size() != getAxes().size()) // C1.
    return emitOpError("expects ") << getAxes().size() << " sizes, but got " << getSizes().size();
  int64_t ranks = 1;
  for (auto [name, size] : llvm::zip_equal(getAxes().getAsValueRange<StringAttr>(), getSizes())) {
    if (size < 1) // C1.
      return emitOpError("expects a size of at least 1 for axis ") << name << ", but got " << size;
    if (llvm::MulOverflow(ranks, size, ranks) || ranks > UINT32_MAX) // C1.
      return emitOpError("expects at most ") << UINT32_MAX << " ranks, but axis " << name << " has " << size;
  }
  if (getSizes().empty()) // C3.
    return emitOpError("expects an axis, but got none");
  if (std::string mistake = getMesh().findMistake(static_cast<uint32_t>(ranks)); !mistake.empty()) // C3.
    return emitOpError("expects axes that can be told apart, but ") << mistake;
  if (failed(verifySets(*this)))
    return failure();
  MeshOp first = lookup(*this);
  if (!first || first == *this) // C2.
    return success();
  InFlightDiagnostic error = emitOpError("expects to be the only mesh of its module, but got a second");
  error.attachNote(first.getLoc()) << "the first is here";
  return error;
}

rt::Mesh MeshOp::getMesh() {
  std::vector<rt::MeshAxis> axes;
  for (auto [name, size] : llvm::zip_equal(getAxes().getAsValueRange<StringAttr>(), getSizes()))
    axes.push_back({name.str(), static_cast<uint32_t>(size)});
  return rt::Mesh(std::move(axes));
}

rt::AxisSet MeshOp::find(AxesAttr axes) {
  rt::Mesh mesh = getMesh();
  rt::AxisSet found;
  for (StringAttr name : axes ? axes.getNames() : ArrayRef<StringAttr>())
    found = found | mesh.find(name.getValue()).value_or(rt::AxisSet());
  return found;
}

int64_t MeshOp::countSampleRanks(Operation *op) {
  MeshOp mesh = lookup(op);
  return mesh ? mesh.getSize(mesh.getSamplesAttr()) : 1;
}

int64_t MeshOp::getSize(AxesAttr axes) { return getMesh().size(find(axes)); }

int64_t MeshOp::getSize(StringRef name) { return getSize(AxesAttr::get(getContext(), name)); }

SmallVector<int64_t> MeshOp::resolve(ShiftsAttr shifts) {
  SmallVector<int64_t> strides(getSizes().size(), 0);
  if (!shifts)
    return strides;
  rt::Mesh mesh = getMesh();
  for (auto [name, stride] : llvm::zip_equal(shifts.getNames(), shifts.getStrides())) {
    rt::AxisSet axes = mesh.find(name.getValue()).value_or(rt::AxisSet());
    for (unsigned axis = 0; axis < strides.size(); ++axis)
      if (axes.has(axis))
        strides[axis] += stride * mesh.stride(axis, axes);
  }
  return strides;
}

ShiftsAttr MeshOp::getShiftsOfParts(AxesAttr axes, int64_t stride) {
  if (axes.getNames().size() == 1)
    return ShiftsAttr::get(getContext(), axes.getNames(), stride);
  // Between parts of one axis, another's may stand.
  SmallVector<StringAttr> names;
  SmallVector<int64_t> strides;
  rt::Mesh mesh = getMesh();
  rt::AxisSet found = find(axes);
  for (unsigned axis = 0; axis < getSizes().size(); ++axis)
    if (found.has(axis)) {
      names.push_back(cast<StringAttr>(getAxes()[axis]));
      strides.push_back(stride * mesh.stride(axis, found));
    }
  return ShiftsAttr::get(getContext(), names, strides);
}

//===----------------------------------------------------------------------===//
// MeshShape
//===----------------------------------------------------------------------===//

AxesAttr mlir::ds::nameAxes(MLIRContext *context, const rt::Mesh &mesh, rt::AxisSet axes) {
  SmallVector<StringAttr> names;
  for (const std::string &name : mesh.names(axes))
    names.push_back(StringAttr::get(context, name));
  return names.empty() ? AxesAttr() : AxesAttr::get(context, names);
}

MeshShape mlir::ds::getMeshShape(ModuleOp module) {
  MeshOp op = MeshOp::lookup(module);
  if (!op)
    return {};
  return {op.getMesh(), op.find(op.getSamplesAttr()), op.find(op.getZeroAttr()), op.find(op.getStagesAttr()),
          op.find(op.getTensorsAttr())};
}

void mlir::ds::declareMesh(ModuleOp module, const MeshShape &shape) {
  if (MeshOp old = MeshOp::lookup(module))
    old.erase();
  if (shape.mesh.numAxes() == 0)
    return;
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  SmallVector<Attribute> names;
  SmallVector<int64_t> sizes;
  for (const rt::MeshAxis &axis : shape.mesh.axes()) {
    names.push_back(builder.getStringAttr(axis.name));
    sizes.push_back(axis.size);
  }
  auto name = [&](rt::AxisSet axes) { return nameAxes(module.getContext(), shape.mesh, axes); };
  auto mesh =
      builder.create<MeshOp>(module.getLoc(), "mesh", builder.getArrayAttr(names), sizes, name(shape.samples),
                             name(shape.zero), name(shape.stages), name(shape.tensors));
  SymbolTable(module).insert(mesh, module.getBody()->begin());
}

LogicalResult mlir::ds::verifyAxes(Operation *op, ArrayRef<StringAttr> names) {
  MeshOp declared = MeshOp::lookup(op);
  if (!declared) {
    InFlightDiagnostic error = op->emitOpError("expects a mesh in its module, but got none");
    error.attachNote() << "declare one, as ds.mesh @mesh axes [dp = 2]";
    return error;
  }
  rt::Mesh mesh = declared.getMesh();
  rt::AxisSet seen;
  for (StringAttr name : names) {
    std::optional<rt::AxisSet> axes = mesh.find(name.getValue());
    if (!axes) {
      InFlightDiagnostic error = op->emitOpError("expects axes of the mesh, but got ") << name.getValue();
      error.attachNote(declared.getLoc()) << "the mesh is " << mesh.spell();
      return error;
    }
    if (seen.hasAny(*axes))
      return op->emitOpError("expects each axis once, but got ") << mesh.spell(seen & *axes) << " twice";
    seen = seen | *axes;
  }
  return success();
}
