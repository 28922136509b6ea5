//===- JoinBiasGrad.cpp - Gradients of biases beside those of weights ------------------===//
//
// The gradient of a weight is a product of which one factor is what reaches the layer's result, and the
// gradient of its bias is that factor's columns added up. A library can add them up while it multiplies,
// which spares reading the factor once more and a launch or two, but whether that is faster only a clock can
// say, on the device. So both ways stay in the program: the kernels that add up come right before the
// product, and the product names what they make. The runtime leaves them out where it lets the product do
// their work.
//
// Where that factor is what a product with GELU's gradient gives, that product too can add it up, before it
// leaves its registers: it names the sums as well, and the kernels stand behind it.
//
//     matmul(d, w, dy, h, db) ... 3, 3        dy = (d w) GELU'(h)
//     launch @parts ins(dy) outs(p)           db = what dy's columns add up to
//     launch @sum   ins(p)  outs(db)
//     matmul(x, dy, dw, db)   ... 2
//
// On buffers, because there a call may name what it would write without anything being made anew: memory,
// order and cost are those of the kernels.
//
//===---------------------------------------------------------------------------===//
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Work.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"
#include "ds/Runtime/Program/Library.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::ds {
#define GEN_PASS_DEF_JOINBIASGRAD
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

static RankedTensorType tensorOf(Value buffer) { return cast<BufferType>(buffer.getType()).getTensor(); }

/// The launch whose only result is `buffer`, made of one other buffer; null where there is none, or where
/// something else writes it.
static LaunchOp findMaker(Value buffer) {
  LaunchOp maker;
  for (Operation *user : buffer.getUsers()) {
    auto launch = dyn_cast<LaunchOp>(user);
    bool writes = launch ? llvm::is_contained(launch.getOutputs(), buffer) : !isa<ViewOp>(user);
    if (!writes)
      continue;
    if (!launch || maker || launch.getInputs().size() != 1 || launch.getOutputs().size() != 1 ||
        launch.getInputs().front() == buffer || launch.getPredicate())
      return {};
    maker = launch;
  }
  return maker;
}

/// Whether the kernel adds up leading dimensions of its only input, and does nothing else but convert.
static bool addsUpLeading(KernelOp kernel) {
  Block &body = kernel.getBody().front();
  if (kernel.isDynamic() || body.getNumArguments() != 1)
    return false;
  Value value = body.getTerminator()->getOperand(0);
  if (auto rounded = value.getDefiningOp<ConvertOp>())
    value = rounded.getInput();
  auto sum = value.getDefiningOp<ReduceOp>();
  if (!sum || sum.getKind() != ReduceKind::Sum ||
      sum.getDims() != ArrayRef(llvm::to_vector(llvm::seq<int64_t>(0, sum.getDims().size()))))
    return false;
  value = sum.getInput();
  if (auto widened = value.getDefiningOp<ConvertOp>())
    value = widened.getInput();
  return value == body.getArgument(0);
}

/// Whether `buffer` is all elements of `factor`, in their order.
static bool isSameMemory(Value buffer, Value factor) {
  auto type = cast<BufferType>(buffer.getType()), other = cast<BufferType>(factor.getType());
  BufferAccess window = windowOf(buffer), others = windowOf(factor);
  return window.root == others.root && window.begin == others.begin && window.end == others.end &&
         type.isContiguous() && type.getTensor().getElementType() == other.getTensor().getElementType() &&
         type.getSizeInBytes() == other.getSizeInBytes();
}

namespace {
/// One or two launches, of which the first adds up rows of its input and the last gives the sums.
using SumLaunches = SmallVector<LaunchOp, 2>;

/// Where ops stand in a block. A block numbers all its ops anew when it is asked behind a move.
class Places {
public:
  Places() = default;
  explicit Places(Block &block) {
    for (auto [index, op] : llvm::enumerate(block))
      places[&op] = 2 * int64_t(index);
  }
  bool isBefore(Operation *a, Operation *b) const { return places.at(a) < places.at(b); }
  /// Notes that `op` has come right before `other`, among others of which nobody asks.
  void moveBefore(Operation *op, Operation *other) {
    op->moveBefore(other);
    places[op] = places.at(other) - 1;
  }

private:
  DenseMap<Operation *, int64_t> places;
};

/// Finds such products, and lets them name the sums of a factor.
class Joiner {
public:
  explicit Joiner(ModuleOp module) : symbols(module) {}
  void joinIn(func::FuncOp func);

private:
  void findSums(LaunchOp last);
  bool joinIn(CallOp product, ::ds::rt::Summed summed);
  SumLaunches findLaunches(CallOp product, ::ds::rt::Summed summed) const;

  SymbolTable symbols;
  /// Memory -> those that add up something in it, in block order: each product asks for its own alone.
  DenseMap<Value, SmallVector<SumLaunches, 1>> sums;
  Places places;
};
} // namespace

/// A product of two matrices of 16 bits that does nothing but multiply.
static bool isPlainProduct(CallOp call) {
  if (call.getCallee() != rt::LibraryFn::Matmul || call.getStream() != StreamKind::Compute ||
      call.getBuffers().size() != 3 || call.getParams().size() != rt::kMatmulParams ||
      cast<IntegerAttr>(call.getParams()[3]).getInt() != 0)
    return false;
  return llvm::all_of(call.getBuffers(), [](Value buffer) { return tensorOf(buffer).getRank() == 2; }) &&
         tensorOf(call.getBuffers()[0]).getElementTypeBitWidth() == 16;
}

/// A product by a matrix that takes GELU's gradient of what it gives.
static bool hasGeluGradient(CallOp call) {
  constexpr unsigned kBuffers = 4; // factors, result and GELU's input
  return call.getCallee() == rt::LibraryFn::Matmul && call.getStream() == StreamKind::Compute &&
         call.getBuffers().size() == kBuffers && call.getParams().size() == rt::kMatmulParams &&
         cast<IntegerAttr>(call.getParams()[3]).getInt() ==
             static_cast<int64_t>(rt::Activation::GeluGradient) &&
         tensorOf(call.getBuffers()[1]).getRank() == 2;
}

/// Whether rows of memory of what is summed go: the dimension that is added up comes first in memory, and the
/// other one lies together. A result with GELU's gradient is packed.
static bool goesByRows(CallOp product, rt::Summed summed) {
  if (summed == rt::Summed::Result)
    return true;
  const bool isFirst = summed == rt::Summed::First;
  auto type = cast<BufferType>(product.getBuffers()[isFirst ? 0 : 1].getType());
  bool isTransposed = cast<IntegerAttr>(product.getParams()[isFirst ? 0 : 1]).getInt() != 0;
  unsigned kept = isFirst == isTransposed ? 1 : 0, gone = 1 - kept; // of the factor as it is stored
  return type.getStrides()[kept] == 1 && type.getStrides()[gone] == type.getTensor().getDimSize(kept);
}

/// Notes the launches that end in `last`.
void Joiner::findSums(LaunchOp last) {
  SumLaunches launches;
  for (LaunchOp launch = last; launch && launches.size() < 2;) {
    if (launch.getOutputs().size() != 1 || launch.getInputs().size() != 1)
      return;
    auto kernel = symbols.lookup<KernelOp>(launch.getKernel());
    if (!kernel || !addsUpLeading(kernel) || launch.getStream() != StreamKind::Compute ||
        launch->getBlock() != last->getBlock() || getWork(launch) != getWork(last))
      return;
    launches.insert(launches.begin(), launch);
    Value input = launch.getInputs().front();
    sums[windowOf(input).root].push_back(launches);
    // Partial sums, which nobody else has.
    if (!input.getDefiningOp<AllocOp>() || !llvm::hasNItems(input.getUses(), 2))
      return;
    launch = findMaker(input);
  }
}

/// Whether `launch` can come right before `product`, which stands before it: it has to wait for nothing in
/// between but others of `launches`.
static bool canComeBefore(CallOp product, LaunchOp launch, ArrayRef<LaunchOp> launches) {
  const SmallVector<BufferAccess> accesses = accessesOf(launch);
  for (Operation *op = product; op != launch; op = op->getNextNode())
    if (isa<ScheduledOpInterface>(op) && !llvm::is_contained(launches, op) &&
        conflict(accessesOf(op), accesses))
      return false;
  return true;
}

/// Whether what the launches have read and made, before `product`, is still there at it and nobody has looked
/// at it. A buffer holds one value after another: gradients of a residual stream are made in place.
static bool isUntouchedUntil(CallOp product, Value factor, ArrayRef<LaunchOp> launches) {
  BufferAccess read = windowOf(factor), sums = windowOf(LaunchOp(launches.back()).getOutputs().front());
  read.isRead = sums.isWrite = true;
  for (Operation *op = launches.front(); op != product; op = op->getNextNode())
    if (isa<ScheduledOpInterface>(op) && !llvm::is_contained(launches, op) &&
        conflict(accessesOf(op), {read, sums}))
      return false;
  return true;
}

/// Whether the launches add up what the product gives, and nothing writes that before them or has to do with
/// what they make.
static bool addUpResult(CallOp product, Value result, ArrayRef<LaunchOp> launches, const Places &places) {
  BufferAccess given = windowOf(result), sums = windowOf(LaunchOp(launches.back()).getOutputs().front());
  given.isRead = sums.isWrite = true;
  if (!places.isBefore(product, launches.front()))
    return false;
  for (Operation *op = product->getNextNode(); op != launches.back(); op = op->getNextNode())
    if (isa<ScheduledOpInterface>(op) && !llvm::is_contained(launches, op) &&
        conflict(accessesOf(op), {given, sums}))
      return false;
  return !conflict(accessesOf(product), {sums});
}

/// Whether the launches, which add up `factor`, are before the product or can come there.
static bool canPair(CallOp product, Value factor, ArrayRef<LaunchOp> launches, const Places &places) {
  if (places.isBefore(launches.back(), product))
    return isUntouchedUntil(product, factor, launches);
  // Both read one value then: nothing that writes it may be passed.
  return llvm::all_of(launches, [&](LaunchOp launch) {
    return places.isBefore(product, launch) && canComeBefore(product, launch, launches);
  });
}

/// The launches that add up a factor of `product`, along the dimension that goes, and can come before it, or
/// that add up its result; empty where there are none.
SumLaunches Joiner::findLaunches(CallOp product, rt::Summed summed) const {
  const bool isFirst = summed == rt::Summed::First, isOfResult = summed == rt::Summed::Result;
  if (!goesByRows(product, summed))
    return {};
  Value factor = product.getBuffers()[static_cast<unsigned>(summed) - 1];
  RankedTensorType result = tensorOf(product.getBuffers()[2]);
  auto known = sums.find(windowOf(factor).root);
  if (known == sums.end())
    return {};
  for (const SumLaunches &launches : known->second) {
    LaunchOp last = launches.back();
    Value given = last.getOutputs().front();
    if (getWork(last) == getWork(product) && cast<BufferType>(given.getType()).isContiguous() &&
        tensorOf(given).getShape() ==
            ArrayRef(isFirst ? result.getShape().front() : result.getShape().back()) &&
        isSameMemory(LaunchOp(launches.front()).getInputs().front(), factor) &&
        (isOfResult ? addUpResult(product, factor, launches, places)
                    : canPair(product, factor, launches, places)))
      return launches;
  }
  return {};
}

/// Lets the product name the sums, as the last of its operands.
static void nameSums(CallOp product, rt::Summed summed, Value sums) {
  Builder builder(product.getContext());
  SmallVector<Attribute> params(product.getParams().begin(), product.getParams().end());
  params.push_back(builder.getI64IntegerAttr(static_cast<int64_t>(summed)));
  SmallVector<int64_t> writes(product.getWrites());
  writes.push_back(product.getBuffers().size());
  product.getBuffersMutable().append(sums);
  product.setWrites(writes);
  product.setParamsAttr(builder.getArrayAttr(params));
}

/// Whether the product names sums now, which launches make that stand where they can.
bool Joiner::joinIn(CallOp product, rt::Summed summed) {
  SumLaunches launches = findLaunches(product, summed);
  if (launches.empty())
    return false;
  for (LaunchOp launch : launches)
    if (summed != rt::Summed::Result && places.isBefore(product, launch))
      places.moveBefore(launch, product);
  nameSums(product, summed, launches.back().getOutputs().front());
  return true;
}

/// Factors come first, for that moves launches, and a result's name would stand in their way.
void Joiner::joinIn(func::FuncOp func) {
  sums.clear();
  places = Places(func.getBody().front());
  for (LaunchOp launch : func.getOps<LaunchOp>())
    findSums(launch);
  bool named = false;
  for (CallOp product : llvm::to_vector(func.getOps<CallOp>()))
    if (isPlainProduct(product))
      named |= joinIn(product, rt::Summed::First) || joinIn(product, rt::Summed::Second);
  for (CallOp product : llvm::to_vector(func.getOps<CallOp>()))
    if (hasGeluGradient(product))
      named |= joinIn(product, rt::Summed::Result);
  if (named)
    placeBuffers(func);
}

namespace {
struct JoinBiasGrad : mlir::ds::impl::JoinBiasGradBase<JoinBiasGrad> {
  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    if (!isForCuda(getOperation()))
      return;
    Joiner joiner(getOperation());
    for (func::FuncOp func : getOperation().getOps<func::FuncOp>())
      if (!func.isExternal())
        joiner.joinIn(func);
  }
};
} // namespace
