//===- StateOps.cpp - Verifiers and effects of states, kernels and commands -----===//
#include "OpHelpers.h"
#include "ds/Runtime/Program/ProductForm.h"
#include "ds/Support/ModelConfig.h"

#include "mlir/IR/TypeUtilities.h"
#include <numeric>

using namespace mlir;
using namespace mlir::ds;

//===----------------------------------------------------------------------===//
// StateOp
//===----------------------------------------------------------------------===//

/// Gradients, moments and masters belong to a parameter.
static bool needsOwner(Role role) {
  return role == Role::Gradient || role == Role::Moment || role == Role::Master;
}

/// Whether the state can start as sines and as many cosines, of which the slowest turns by 1 / a a row.
static bool isTableOfSinusoids(StateOp op) {
  RankedTensorType type = op.getTensorType();
  const APFloat a = op.getInit().getA();
  return type.getRank() == 2 && type.getDimSize(1) >= 4 && type.getDimSize(1) % 2 == 0 &&
         isa<FloatType>(type.getElementType()) && a.isFinite() && !a.isNegative() && !a.isZero();
}

LogicalResult StateOp::verify() {
  if (!isa<RankedTensorType>(getType()) || !getTensorType().hasStaticShape())
    return emitOpError("expects a static tensor type, but got ") << getType();
  if (getBucket() ? getOwner().has_value() : needsOwner(getRole()) != getOwner().has_value()) // C1.
    return emitOpError(
               "expects an owner exactly for gradients, moments and masters without a bucket, but got role ")
           << stringifyRole(getRole()) << (getOwner() ? " with" : " without") << " one";
  if (getSlot().has_value() != needsOwner(getRole())) // C5.
    return emitOpError("expects a slot exactly for gradients, moments and masters, but got role ")
           << stringifyRole(getRole()) << (getSlot() ? " with" : " without") << " one";
  if (getTrainable() && getRole() != Role::Parameter) // C2.
    return emitOpError("expects only parameters to be trainable, but got role ") << stringifyRole(getRole());
  if (auto slots = getSlots();
      slots && (getRole() != Role::Buffer || getTensorType().getRank() != 2 ||
                getTensorType().getDimSize(0) != int64_t(*slots) || *slots < 1)) // C11.
    return emitOpError("expects a buffer that is a matrix with a row for each of ")
           << *slots << " slots, but got role " << stringifyRole(getRole()) << " of " << getType();
  if (getInit().getKind() == InitKind::Sinusoid && !isTableOfSinusoids(*this)) // C9.
    return emitOpError("expects a matrix of floats with an even number of columns, at least 4, to start as ")
           << getInit() << ", but got " << getType();
  return success();
}

//===----------------------------------------------------------------------===//
// FilesOp
//===----------------------------------------------------------------------===//

FilesOp FilesOp::lookup(ModuleOp module) {
  auto files = module.getOps<FilesOp>();
  return files.empty() ? FilesOp() : *files.begin();
}

LogicalResult FilesOp::verify() {
  if (getConfig() && !::ds::isModelConfig(*getConfig())) // C1.
    return emitOpError("expects config to be the text of one JSON object of at most ")
           << ::ds::kMaxModelConfigBytes << " bytes";
  FilesOp first = lookup(cast<ModuleOp>((*this)->getParentOp()));
  if (first == *this)
    return success();
  InFlightDiagnostic error = emitOpError("expects to be the only one of a module"); // C2.
  error.attachNote(first.getLoc()) << "the first one is here";
  return error;
}

//===----------------------------------------------------------------------===//
// FusedOp
//===----------------------------------------------------------------------===//

LogicalResult FusedOp::verify() {
  Block &body = getBody().front();
  if (!llvm::equal(body.getArgumentTypes(), getInputs().getTypes())) // C1.
    return emitOpError("expects ") << getInputs().size() << " block arguments of the operands' types";
  return success();
}

LogicalResult FusedOp::verifyRegions() {
  auto yield = dyn_cast<YieldOp>(getBody().front().back());
  if (!yield || !llvm::equal(yield.getValues().getTypes(), getOutputs().getTypes())) // C1.
    return emitOpError("expects to yield ") << getOutputs().size() << " values of the results' types";
  for (Operation &op : getBody().front().without_terminator())
    if (!isa<FusableOpInterface>(op)) { // C2.
      InFlightDiagnostic error = emitOpError("expects fusable ops in its body, but got ") << op.getName();
      error.attachNote(op.getLoc()) << "this op";
      return error;
    }
  return success();
}

//===----------------------------------------------------------------------===//
// KernelOp
//===----------------------------------------------------------------------===//

LogicalResult KernelOp::verifyRegions() {
  Block &body = getBody().front();
  auto yield = dyn_cast<YieldOp>(body.back());
  size_t inputs = getNumInputs();
  if (!yield || body.getNumArguments() != inputs ||
      inputs + yield.getValues().size() != getBuffers().size()) // C1.
    return emitOpError("expects ") << inputs << " arguments and a yielded value for each other of "
                                   << getBuffers().size() << " buffers, but got " << body.getNumArguments()
                                   << " and " << (yield ? yield.getValues().size() : 0);
  SmallVector<Type> types(body.getArgumentTypes());
  llvm::append_range(types, yield.getValues().getTypes());
  for (auto [index, type, attribute] : llvm::enumerate(types, getBuffers())) { // C2.
    auto buffer = dyn_cast<BufferType>(cast<TypeAttr>(attribute).getValue());
    if (!buffer || buffer.getTensor() != type)
      return emitOpError("expects buffer ") << index << " to hold " << type << ", but got " << attribute;
  }
  if (getItems() && !isDynamic()) // C3.
    return emitOpError("expects items only where it serves any size");
  return success();
}

bool KernelOp::isDynamic() {
  return llvm::any_of(getBuffers().getAsValueRange<TypeAttr>(), [](Type type) {
    auto buffer = dyn_cast<BufferType>(type);
    return buffer && !buffer.getTensor().hasStaticShape();
  });
}

bool KernelOp::runsOnHost() {
  return llvm::all_of(getBuffers().getAsValueRange<TypeAttr>(), [](Type type) {
    auto buffer = dyn_cast<BufferType>(type);
    return buffer && buffer.getSpace() == Space::Host;
  });
}

//===----------------------------------------------------------------------===//
// AllocOp, ViewOp
//===----------------------------------------------------------------------===//

LogicalResult AllocOp::verify() {
  if (!getBuffer().getType().isContiguous()) // C1.
    return emitOpError("expects a contiguous buffer, but got ") << getBuffer().getType();
  return success();
}

/// Elements from a buffer's first to its last, inclusive; 0 for an empty buffer.
static int64_t span(BufferType type) {
  int64_t last = 0;
  for (auto [size, stride] : llvm::zip_equal(type.getTensor().getShape(), type.getStrides())) {
    if (size == 0)
      return 0;
    last += (size - 1) * stride;
  }
  return last + 1;
}

int64_t ViewOp::getLargestShift() {
  if (!getShifts())
    return 0;
  MeshOp mesh = MeshOp::lookup(*this);
  int64_t elements = 0;
  for (auto [size, stride] : llvm::zip_equal(mesh.getSizes(), mesh.resolve(*getShifts())))
    elements += (size - 1) * stride;
  return elements;
}

LogicalResult ViewOp::verify() {
  BufferType source = getSource().getType(), result = getResult().getType();
  if (source.getTensor().getElementType() != result.getTensor().getElementType() ||
      source.getSpace() != result.getSpace()) // C1.
    return emitOpError("expects the element type and space of ") << source << ", but got " << result;
  if (getShifts() && failed(verifyAxes(*this, getShifts()->getNames()))) // C3.
    return failure();
  int64_t last = static_cast<int64_t>(getOffset()) + getLargestShift();
  int64_t end = last + span(result);
  if (span(result) && end > span(source)) // C2.
    return emitOpError("expects to end within ") << span(source) << " elements, but got " << end;
  return success();
}

//===----------------------------------------------------------------------===//
// LaunchOp, CallOp
//===----------------------------------------------------------------------===//

/// True when `actual` may stand where a kernel asks for `formal`: equal, or a contiguous buffer for a `?`.
static bool fits(BufferType formal, BufferType actual) {
  if (formal == actual)
    return true;
  return !formal.getTensor().hasStaticShape() && actual.isContiguous() &&
         formal.getSpace() == actual.getSpace() &&
         formal.getTensor().getElementType() == actual.getTensor().getElementType();
}

int64_t mlir::ds::sizeOfBuffers(ValueRange buffers) {
  int64_t bytes = 0;
  for (Value buffer : buffers)
    if (auto type = dyn_cast<BufferType>(buffer.getType()))
      bytes += type.getSizeInBytes();
  return bytes;
}

::ds::rt::CommandKind LaunchOp::getCommandKind() { return ::ds::rt::CommandKind::Kernel; }

std::string LaunchOp::getLabel(SymbolTable &symbols) {
  auto kernel = symbols.lookup<KernelOp>(getKernel());
  // A reduction says more than the arithmetic around it; otherwise the last op is what the kernel is for.
  StringRef name;
  for (Operation &op : kernel.getBody().front().without_terminator())
    if (isa<ReduceOp>(op) || !name.starts_with("reduce"))
      name = op.getName().stripDialect();
  return name.str();
}

OperandRange LaunchOp::getItemInputs(int64_t item) {
  size_t count = getInputs().size() / getNumItems();
  return getInputs().slice(item * count, count);
}

OperandRange LaunchOp::getItemOutputs(int64_t item) {
  size_t count = getOutputs().size() / getNumItems();
  return getOutputs().slice(item * count, count);
}

int64_t LaunchOp::getNumElements() {
  ArrayRef<int64_t> extents = getExtents().value_or(ArrayRef<int64_t>{1});
  return std::accumulate(extents.begin(), extents.end(), int64_t(0));
}

/// Verifies the types of one item's buffers (C1), and that it shares the first one's scalars (C3).
static LogicalResult verifyItem(LaunchOp launch, KernelOp kernel, int64_t item) {
  SmallVector<Value> actual(launch.getItemInputs(item));
  for (auto [own, first] : llvm::zip_equal(actual, launch.getItemInputs(0)))
    if (cast<BufferType>(own.getType()).getTensor().getRank() == 0 && own != first) // C3.
      return launch.emitOpError("expects all items to share their inputs of rank 0");
  llvm::append_range(actual, launch.getItemOutputs(item));
  for (auto [index, formal, buffer] :
       llvm::enumerate(kernel.getBuffers().getAsValueRange<TypeAttr>(), actual)) {
    if (fits(cast<BufferType>(formal), cast<BufferType>(buffer.getType())))
      continue;
    InFlightDiagnostic error = launch.emitOpError("expects buffer ")
                               << index << " to be " << formal << ", but got " << buffer.getType();
    error.attachNote(kernel.getLoc()) << "kernel " << launch.getKernelAttr() << " is defined here";
    return error;
  }
  return success();
}

LogicalResult LaunchOp::verifySymbolUses(SymbolTableCollection &symbolTable) {
  auto kernel = symbolTable.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel) // C1.
    return emitOpError("expects a kernel, but got ") << getKernelAttr();
  if (kernel.isDynamic() != getExtents().has_value() || getNumItems() == 0) // C2.
    return emitOpError("expects an extent exactly where the kernel serves any size");
  if (getNumItems() > std::max<int64_t>(kernel.getItems().value_or(1), 1)) // C3.
    return emitOpError("expects at most ")
           << kernel.getItems().value_or(1) << " items, but got " << getNumItems();
  size_t inputs = kernel.getNumInputs() * getNumItems(), buffers = kernel.getBuffers().size() * getNumItems();
  if (getInputs().size() + getOutputs().size() != buffers || getInputs().size() != inputs)
    return emitOpError("expects ") << buffers << " buffers, " << inputs << " of them inputs, but got "
                                   << getInputs().size() + getOutputs().size() << " and "
                                   << getInputs().size();
  for (int64_t item = 0; item < getNumItems(); ++item)
    if (failed(verifyItem(*this, kernel, item)))
      return failure();
  return success();
}

/// Whether `buffer` is one element in the host's memory.
static bool isHostScalar(Value buffer) {
  auto type = cast<BufferType>(buffer.getType());
  return type.getTensor().getRank() == 0 && type.getSpace() == Space::Host;
}

/// The same of a truth value.
static bool isHostTruth(Value buffer) {
  return isHostScalar(buffer) && cast<BufferType>(buffer.getType()).getTensor().getElementType().isInteger(1);
}

LogicalResult LaunchOp::verify() {
  if (!getPredicate())
    return success();
  if (getStream() != StreamKind::Host) // C5.
    return emitOpError("expects stream host where it has a predicate, but got ")
           << stringifyStreamKind(getStream());
  if (!isHostTruth(getPredicate())) // C5.
    return emitOpError("expects a truth value in the host's memory as predicate, but got ")
           << getPredicate().getType();
  return success();
}

LogicalResult PresumedOp::verify() {
  if (!isHostScalar(getTruth())) // C1.
    return emitOpError("expects scalars in the host's memory, but got ") << getTruth().getType();
  if (!isHostTruth(getWrong())) // C1.
    return emitOpError("expects a truth value in the host's memory, but got ") << getWrong().getType();
  return success();
}

using Effects = SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>;

void LaunchOp::getEffects(Effects &effects) {
  for (OpOperand &operand : getInputsMutable())
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
  for (OpOperand &operand : getOutputsMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &operand);
  for (OpOperand &operand : getPredicateMutable())
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
}

::ds::rt::CommandKind CallOp::getCommandKind() { return ::ds::rt::CommandKind::Library; }
std::string CallOp::getLabel(SymbolTable &) { return ::ds::rt::spell(getCallee()); }
int64_t CallOp::getCountedFlops() { return getFlops().value_or(0); }
/// The sums of a product's factor count with the launches that make them.
int64_t CallOp::getTraffic() {
  bool namesSums =
      getCallee() == ::ds::rt::LibraryFn::Matmul && getParams().size() == ::ds::rt::kMatmulParams + 1;
  return sizeOfBuffers(namesSums ? getBuffers().drop_back() : getBuffers());
}

LogicalResult CallOp::verify() {
  for (int64_t position : getWrites())
    if (position < 0 || position >= static_cast<int64_t>(getBuffers().size())) // C1.
      return emitOpError("expects to write operands below ")
             << getBuffers().size() << ", but got " << position;
  return success();
}

void CallOp::getEffects(Effects &effects) {
  for (auto [index, operand] : llvm::enumerate(getBuffersMutable())) {
    effects.emplace_back(MemoryEffects::Read::get(), &operand);
    if (llvm::is_contained(getWrites(), static_cast<int64_t>(index)))
      effects.emplace_back(MemoryEffects::Write::get(), &operand);
  }
  for (OpOperand &operand : getWorkspaceMutable())
    effects.emplace_back(MemoryEffects::Write::get(), &operand);
}
