//===- CommandCost.cpp - How long commands take, as far as schedules must know ---===//
#include "ds/Passes/CommandCost.h"

#include "RuntimeCall.h"
#include "ds/Codegen/KernelClass.h"
#include "ds/Codegen/KernelStages.h"
#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Machine.h"
#include "ds/Passes/AttentionWorkspace.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Runtime/Program/Library.h"

using namespace mlir;
using namespace mlir::ds;
namespace cost = ::ds::cost;
namespace rt = ::ds::rt;

/// The element type whose arithmetic `command` does: that of its first buffer of floats.
static cost::DType arithmeticType(Operation *command) {
  for (Value operand : command->getOperands()) {
    Type element = cast<BufferType>(operand.getType()).getTensor().getElementType();
    if (element.isBF16())
      return cost::DType::BF16;
    if (element.isF16())
      return cost::DType::F16;
    if (isa<FloatType>(element))
      break;
  }
  return cost::DType::F32;
}

static double bytesOf(Value buffer) { return cast<BufferType>(buffer.getType()).getSizeInBytes(); }

/// Bytes of all operands, one that is read and written counted twice.
static double bytesOf(ValueRange buffers) {
  double bytes = 0;
  for (Value buffer : buffers)
    bytes += bytesOf(buffer);
  return bytes;
}

/// Null where the kernel is not known.
const CommandCosts::KernelFacts *CommandCosts::factsOf(LaunchOp launch) {
  auto kernel = symbols.lookup<KernelOp>(launch.getKernelAttr().getAttr());
  if (!kernel)
    return nullptr;
  auto [place, isNew] = facts.try_emplace({kernel, launch.getNumElements()});
  if (!isNew)
    return &place->second;
  KernelFacts &found = place->second;
  found.work = kernelWork(kernel, launch.getNumElements());
  const SmallVector<KernelStage, 2> stages = stagesOf(kernel.getBody().front());
  found.numParts = stages.size() > 1 ? stages.front().outputs.size() : 0;
  KernelClass of;
  if (failed(found.numParts ? classify(stages.front().ops, stages.front().outputs, of)
                            : classify(kernel.getBody().front(), of)))
    return &found;
  if (of.kind == KernelKind::Column)
    found.columnUnits = std::max<int64_t>(of.extent, 1);
  if (of.kind == KernelKind::Row)
    found.rowUnits = std::max<int64_t>(of.extent, 1);
  return &found;
}

/// 16-byte vectors of a row's narrowest operand of 16 bits or more, as a GPU's threads take them.
static double vectorsOfRow(LaunchOp launch, int64_t rows) {
  int64_t elements = 0, narrowest = 16;
  for (Value operand : launch->getOperands()) {
    RankedTensorType tensor = cast<BufferType>(operand.getType()).getTensor();
    elements = std::max(elements, tensor.getNumElements());
    if (int64_t bits = tensor.getElementTypeBitWidth(); bits >= 16 && tensor.getNumElements() >= rows)
      narrowest = std::min(narrowest, bits / 8);
  }
  return double(elements) / double(rows) * double(narrowest) / 16;
}

/// What the kernel of `launch` moves and computes.
cost::KernelLoad CommandCosts::loadOf(LaunchOp launch, ArrayRef<double> distances) {
  cost::KernelLoad load{bytesOf(launch->getOperands())};
  int64_t inPlace = 0;
  for (Value output : launch.getOutputs())
    if (llvm::is_contained(launch.getInputs(), output))
      ++inPlace;
    else
      load.freshBytes += bytesOf(output);
  load.updates = inPlace >= 3 * launch.getNumItems();
  for (auto [index, distance] : llvm::enumerate(distances)) {
    Value operand = launch->getOperand(index);
    bool isFresh = !llvm::is_contained(launch.getInputs(), operand);
    load.reuse.push_back({bytesOf(operand) * (isFresh ? 2 : 1), distance});
  }
  const KernelFacts *kernel = factsOf(launch);
  if (!kernel)
    return load;
  load.additions = kernel->work.additions, load.divisions = kernel->work.divisions;
  load.roots = kernel->work.roots, load.rows = kernel->work.rows;
  if (hasHostCores && kernel->rowUnits > 0)
    load.rowVectors = vectorsOfRow(launch, kernel->rowUnits);
  if (kernel->columnUnits == 0)
    return load;
  // Of two stages the first makes the load; the second reads the parts once more.
  ValueRange sums = launch.getOutputs();
  if (kernel->numParts) {
    sums = sums.take_front(kernel->numParts);
    load.bytes += bytesOf(sums);
  }
  load.columnSums = double(sums.size());
  // The units share the columns, which are as many as the shortest result has elements.
  auto shorter = [](Value a, Value b) { return bytesOf(a) < bytesOf(b); };
  load.stripBytes = bytesOf(*llvm::min_element(sums, shorter)) / double(kernel->columnUnits);
  return load;
}

/// Whether an operand of a product lies in memory by columns: its last dimension is not the contiguous one.
static bool isByColumns(BufferType type, bool isTransposed) {
  ArrayRef<int64_t> strides = type.getStrides();
  size_t last = strides.size() - 1;
  return strides[isTransposed ? last - 1 : last] != 1 && strides[isTransposed ? last : last - 1] == 1;
}

/// Whether each row of an operand begins at a multiple of 16 bytes, as tensor cores are fed best.
static bool isAligned(BufferType type) {
  ArrayRef<int64_t> strides = type.getStrides();
  if (strides.size() < 2)
    return true;
  int64_t pitch = std::max(strides[strides.size() - 1], strides[strides.size() - 2]);
  return pitch * type.getTensor().getElementTypeBitWidth() % 128 == 0;
}

/// Bytes of GELU's input, which a product reads or writes beside its own operands; 0 without it.
static double geluBytes(CallOp call) {
  double bytes = 0;
  for (Value other : call.getBuffers().drop_front(3))
    if (cast<BufferType>(other.getType()).getTensor().getRank() > 1) // no bias
      bytes += bytesOf(other);
  return bytes;
}

/// The product of a matmul call. A right-hand side without batch dimensions sees the others' as rows.
static cost::Matmul productOf(CallOp call) {
  auto type = [&](unsigned i) { return cast<BufferType>(call.getBuffers()[i].getType()); };
  auto flag = [&](unsigned i) { return cast<IntegerAttr>(call.getParams()[i]).getInt() != 0; };
  ArrayRef<int64_t> right = type(1).getTensor().getShape(), result = type(2).getTensor().getShape();
  double elements = type(2).getTensor().getNumElements(), columns = result.back();
  cost::Matmul product;
  product.k = right[right.size() - (flag(1) ? 1 : 2)];
  product.n = columns;
  product.m = right.size() == 2 ? elements / std::max(columns, 1.0) : double(result[result.size() - 2]);
  product.batch = product.m * columns > 0 ? elements / (product.m * columns) : 0;
  product.transposeA = isByColumns(type(0), flag(0));
  product.transposeB = isByColumns(type(1), flag(1));
  product.isResultUnaligned = !isAligned(type(2));
  product.isUnaligned = !isAligned(type(0)) || !isAligned(type(1)) || product.isResultUnaligned;
  product.besideBytes = geluBytes(call);
  return product;
}

/// The product of windows and filters that a convolution call is: of [windows, elements of one] and
/// [elements, filters] for each group; the gradients are products of two of these three.
static cost::Matmul convolutionOf(const rt::ConvForm &form) {
  double groups = double(form.groups);
  double windows = double(rt::outputElements(form)) / double(form.outputChannels);
  double filters = double(form.outputChannels) / groups;
  double window = double(rt::weightElements(form)) / double(form.outputChannels);
  switch (form.kind) {
  case rt::ConvKind::Forward:
    return {.m = windows, .n = filters, .k = window, .batch = groups};
  case rt::ConvKind::BackwardInput:
    return {.m = windows, .n = window, .k = filters, .batch = groups};
  case rt::ConvKind::BackwardWeight:
    return {.m = filters, .n = window, .k = windows, .batch = groups};
  }
  llvm_unreachable("all kinds are handled");
}

/// Bytes that a library function touches: of a table that it does not fill anew, the rows that it is asked
/// for, which have the size of the third operand.
static double touchedBytes(CallOp call) {
  const LibraryEntry &function = entryOf(call.getCallee());
  double bytes = bytesOf(call.getBuffers());
  bool isTable = function.indices && function.indices->dim == 0;
  bool isGradient = call.getCallee() == rt::LibraryFn::EmbeddingBackward;
  bool accumulates = isGradient && cast<IntegerAttr>(call.getParams()[0]).getInt() != 0;
  if (!isTable || (isGradient && !accumulates))
    return bytes;
  unsigned table = function.indices->table, rows = 3 - table - function.indices->ids;
  return bytes - bytesOf(call.getBuffers()[table]) + bytesOf(call.getBuffers()[rows]);
}

/// What an attention call computes, by its queries [B, T, H, D] and keys [B, S, G, D].
static rt::AttentionWork attentionOf(CallOp call, bool isGradient) {
  auto sizes = [&](unsigned i) {
    return cast<BufferType>(call.getBuffers()[i].getType()).getTensor().getShape();
  };
  ArrayRef<int64_t> queries = sizes(0), keys = sizes(1);
  SmallVector<int64_t> values = llvm::map_to_vector(call.getParams(), toRuntimeParam);
  const rt::AttentionParams params = rt::attentionParams({values.data(), values.size()});
  rt::AttentionWork work;
  work.heads = static_cast<double>(queries[0] * queries[2]);
  work.queries = static_cast<double>(queries[1]), work.keys = static_cast<double>(keys[1]);
  work.width = static_cast<double>(queries[3]);
  work.window = static_cast<double>(params.window.value_or(0));
  work.isCausal = params.isCausal;
  work.isGradient = isGradient;
  work.isFast = params.isFast;
  work.drops = params.dropout.has_value();
  return work;
}

double mlir::ds::attentionGradientSeconds(CallOp call, const cost::Rates &rates, bool isFast) {
  rt::AttentionWork work = attentionOf(call, /*isGradient=*/true);
  work.isFast = isFast;
  return rates.attentionSeconds(work, bytesOf(call.getBuffers()), arithmeticType(call));
}

/// Seconds of `product`, were its rows aligned, with the copies that make them so.
static double packedSeconds(cost::Matmul product, const rt::PackedRows &rows, const cost::Rates &rates,
                            cost::DType dtype) {
  product.isUnaligned = product.isResultUnaligned = false;
  return rates.matmulSeconds(product, dtype) +
         rates.functionSeconds(rt::spell(rt::LibraryFn::Copy), static_cast<double>(rows.copied), 0);
}

std::optional<rt::PackedRows> mlir::ds::findPackedRows(CallOp call) {
  if (call.getCallee() != rt::LibraryFn::Matmul || call.getParams().size() != rt::kMatmulParams ||
      call.getStream() != StreamKind::Compute || !isForCuda(call->getParentOfType<ModuleOp>()))
    return std::nullopt;
  if (!productOf(call).isUnaligned)
    return std::nullopt;
  const RuntimeCall described(call);
  if (described.params[3] >= static_cast<int64_t>(rt::Activation::Gelu))
    return std::nullopt;
  const rt::Buffer *bias =
      rt::matmulExtras(described.operands(), {described.params.data(), described.params.size()}).bias;
  return rt::packRows(rt::describeMatmul(described.operand(0), described.operand(1), described.operand(2),
                                         bias, described.params.data()));
}

std::optional<rt::PackedRows> mlir::ds::choosePackedRows(CallOp call, const cost::Rates &rates) {
  const std::optional<rt::PackedRows> rows = findPackedRows(call);
  const cost::Matmul product = rows ? productOf(call) : cost::Matmul();
  const cost::DType dtype = arithmeticType(call);
  return rows && packedSeconds(product, *rows, rates, dtype) < rates.matmulSeconds(product, dtype)
             ? rows
             : std::nullopt;
}

/// Seconds of a product, on copies where it is to have some: memory for them may have been lacking.
static double productSeconds(CallOp call, const cost::Rates &rates) {
  const std::optional<rt::PackedRows> rows = choosePackedRows(call, rates);
  const bool hasRoom = rows && (!call.getWorkspace() || bytesOf(call.getWorkspace()) >= double(rows->bytes));
  return hasRoom ? packedSeconds(productOf(call), *rows, rates, arithmeticType(call))
                 : rates.matmulSeconds(productOf(call), arithmeticType(call));
}

static double callSeconds(CallOp call, const cost::Rates &rates) {
  using rt::LibraryFn;
  const LibraryFn function = call.getCallee();
  cost::DType dtype = arithmeticType(call);
  double bytes = bytesOf(call.getBuffers());
  if (std::optional<APFloat> measured = call.getMeasuredSeconds())
    return measured->convertToDouble();
  if (function == LibraryFn::Matmul)
    return productSeconds(call, rates);
  if (function == LibraryFn::AttentionForward || function == LibraryFn::AttentionBackward) {
    if (isByOwnKernel(call))
      dtype = cost::DType::F32; // in which it computes
    return rates.attentionSeconds(attentionOf(call, function == LibraryFn::AttentionBackward), bytes, dtype);
  }
  if (rt::isConvolution(function))
    return rates.convolutionSeconds(convolutionOf(RuntimeCall(call).convolution()), bytes, dtype);
  double compared = 0; // indices, each with each other
  if (function == LibraryFn::EmbeddingBackward)
    compared = cast<BufferType>(call.getBuffers()[entryOf(function).indices->ids].getType())
                   .getTensor()
                   .getNumElements();
  return rates.functionSeconds(rt::spell(function), touchedBytes(call), compared);
}

/// Whether `command` is one that does nothing in the case that is costed.
bool CommandCosts::isPassedOver(ScheduledOpInterface command) const {
  if (command.getSpeculative())
    return early == EarlyUpdates::Waiting;
  auto launch = dyn_cast<LaunchOp>(*command);
  return launch && launch.getPredicate() && early == EarlyUpdates::Stand;
}

double CommandCosts::computeSeconds(ScheduledOpInterface command, ArrayRef<double> distances) {
  if (isPassedOver(command))
    return 0;
  if (hasHostCores && command.getStream() == StreamKind::Host)
    return rates.hostKernelSeconds(bytesOf(command->getOperands()), sharing);
  if (auto launch = dyn_cast<LaunchOp>(*command))
    return rates.kernelSeconds(loadOf(launch, distances));
  return callSeconds(cast<CallOp>(*command), rates);
}

double CommandCosts::seconds(ScheduledOpInterface command, ArrayRef<double> distances) {
  switch (command.getCommandKind()) {
  case rt::CommandKind::Kernel:
  case rt::CommandKind::Library:
    return computeSeconds(command, distances);
  case rt::CommandKind::Collective:
    return collectiveSeconds(cast<CommunicateOp>(*command));
  case rt::CommandKind::Copy:
  case rt::CommandKind::Storage:
    return transferSeconds(cast<TransferOp>(*command));
  case rt::CommandKind::RecordEvent:
  case rt::CommandKind::WaitEvent:
    return 0;
  }
  llvm_unreachable("all kinds are handled");
}

/// The ranks that run a collective along `axes` together, and how many of them a node has.
static cost::Group groupOf(Operation *op, AxesAttr axes, const cost::Rates &rates) {
  MeshOp mesh = MeshOp::lookup(op);
  if (!mesh)
    return {1, 1};
  ::ds::rt::Mesh all = mesh.getMesh();
  ::ds::rt::AxisSet along = mesh.find(axes);
  int64_t perNode = std::clamp<int64_t>(rates.cluster().devicesPerNode, 1, all.size());
  return {all.size(along), all.groupBelow(static_cast<uint32_t>(perNode), along)};
}

double CommandCosts::collectiveSeconds(CommunicateOp op) const {
  Value part = isOutputPart(op.getKind()) ? op.getOutputs()[0] : op.getInputs()[0];
  return rates.collectiveSeconds(toRuntimeKind(op.getKind()),
                                 static_cast<double>(cast<BufferType>(part.getType()).getSizeInBytes()),
                                 groupOf(op, op.getAxes(), rates));
}

double mlir::ds::collectiveSeconds(CollectiveOpInterface op, const cost::Rates &rates) {
  CollectiveKind kind = op.getCollectiveKind();
  auto part =
      cast<RankedTensorType>((isOutputPart(kind) ? Value(op->getResult(0)) : op->getOperand(0)).getType());
  double bytes = double(part.getNumElements()) * std::max(1u, part.getElementTypeBitWidth() / 8);
  return rates.collectiveSeconds(toRuntimeKind(kind), bytes, groupOf(op, op.getAxes(), rates));
}

CommandCosts::CommandCosts(ModuleOp module, const cost::Rates &rates, EarlyUpdates early)
    : symbols(module), rates(rates.ofProgram()), hasHostCores(isForCuda(module)), early(early),
      sharing(ranksOnNode(module, rates)) {}

CommandCosts::CommandCosts(ModuleOp module, const cost::Rates &rates)
    : CommandCosts(module, rates, EarlyUpdates::Stand) {}

int64_t mlir::ds::ranksOnNode(ModuleOp module, const cost::Rates &rates) {
  MeshOp mesh = MeshOp::lookup(module);
  return std::min<int64_t>(mesh ? mesh.getNumRanks() : 1,
                           std::max<int64_t>(rates.cluster().devicesPerNode, 1));
}

double mlir::ds::hostCopySeconds(double bytes, const cost::Rates &rates, int64_t sharing) {
  if (rates.cluster().host.toDeviceBytesPerSecond > 0)
    return rates.hostCopySeconds(bytes, sharing) - rates.memorySeconds(0); // the launch is its stream's
  // Without a link host and device are one memory, which is read once and written once.
  const ::ds::config::DeviceSpec &device = rates.cluster().device;
  return 2 * bytes / (device.memoryBytesPerSecond * device.memoryEfficiency);
}

double CommandCosts::transferSeconds(TransferOp op) const {
  double bytes = static_cast<double>(op.getSource().getType().getSizeInBytes());
  if (op.getStream() == StreamKind::Storage) {
    constexpr double kUnknownRate = 1e9; // of a slow disk: a cluster without figures says nothing better
    if (rates.cluster().nvme.bytes <= 0)
      return bytes / kUnknownRate;
    return op.getSource().getType().getSpace() == Space::Nvme ? rates.storageReadSeconds(bytes, sharing)
                                                              : rates.storageWriteSeconds(bytes, sharing);
  }
  return hostCopySeconds(bytes, rates, hasHostCores ? sharing : 1); // a CPU's copies share no link
}
