//===- ExchangeCuts.cpp - What of products and exchanges can be cut along rows ------===//
#include "ExchangeCuts.h"

#include "Buffers/StridedView.h"
#include "ds/Runtime/Program/ProductForm.h"

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

/// Exchanges of a sample each are at most as many: in place of one there would be too many latencies.
static constexpr int64_t kMostSamples = 16;

//===----------------------------------------------------------------------===//
// Windows
//===----------------------------------------------------------------------===//

static BufferType typeOf(Value buffer) { return cast<BufferType>(buffer.getType()); }
static ArrayRef<int64_t> shapeOf(Value buffer) { return typeOf(buffer).getTensor().getShape(); }

static Value createView(OpBuilder &builder, Value source, const StridedView &view) {
  const BufferType from = typeOf(source);
  auto type = BufferType::get(builder.getContext(), from.getTensor().clone(view.shape), view.strides,
                              from.getSpace());
  int64_t offset = view.offset;
  ShiftsAttr shifts;
  if (auto outer = source.getDefiningOp<ViewOp>()) {
    offset += static_cast<int64_t>(outer.getOffset());
    shifts = outer.getShiftsAttr();
    source = outer.getSource();
  }
  return builder.create<ViewOp>(source.getLoc(), type, source, offset, shifts);
}

/// Elements from `offset` on of `buffer`, which is packed, in `shape`.
static Value createWindow(OpBuilder &builder, Value buffer, int64_t offset, ArrayRef<int64_t> shape) {
  StridedView view =
      viewOf(BufferType::getContiguous(typeOf(buffer).getTensor().clone(shape), typeOf(buffer).getSpace()));
  view.offset = offset;
  return createView(builder, buffer, view);
}

static bool isSameWindow(const BufferAccess &a, const BufferAccess &b) {
  return a.root == b.root && a.begin == b.begin && a.end == b.end;
}

/// The allocation that `buffer` is, with all of its memory; null where it is a part, or none.
static AllocOp wholeAllocation(Value buffer) {
  const BufferAccess window = windowOf(buffer);
  auto alloc = window.root.getDefiningOp<AllocOp>();
  return alloc && typeOf(buffer).isContiguous() && isSameWindow(window, windowOf(window.root)) ? alloc
                                                                                               : AllocOp();
}

static void addUsers(Value buffer, llvm::SetVector<Operation *> &users) {
  for (Operation *user : buffer.getUsers())
    if (auto view = dyn_cast<ViewOp>(user))
      addUsers(view.getResult(), users);
    else
      users.insert(user);
}

llvm::SetVector<Operation *> mlir::ds::usersOf(AllocOp alloc) {
  llvm::SetVector<Operation *> users;
  addUsers(alloc.getBuffer(), users);
  return users;
}

/// The nearest command before `op` that has to do with `accesses`; null where none does.
static Operation *findBefore(Operation *op, ArrayRef<BufferAccess> accesses) {
  do
    op = op->getPrevNode();
  while (op && !(isa<ScheduledOpInterface>(op) && conflict(accessesOf(op), accesses)));
  return op;
}

Operation *mlir::ds::findBehind(Operation *op, ArrayRef<BufferAccess> accesses) {
  do
    op = op->getNextNode();
  while (op && !(isa<ScheduledOpInterface>(op) && conflict(accessesOf(op), accesses)));
  return op;
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

bool mlir::ds::isByRows(CallOp call) {
  if (!call || call.getCallee() != rt::LibraryFn::Matmul || call.getStream() != StreamKind::Compute ||
      call.getParams().size() != rt::kMatmulParams || call.getWorkspace() || call.getMeasuredSeconds() ||
      call.getSpeculative() || cast<IntegerAttr>(call.getParams()[0]).getInt() != 0)
    return false;
  const OperandRange buffers = call.getBuffers();
  return llvm::all_of(buffers.take_front(3), [](Value buffer) { return shapeOf(buffer).size() == 2; }) &&
         llvm::all_of(buffers.drop_front(3), [](Value buffer) { return shapeOf(buffer).size() <= 2; }) &&
         typeOf(buffers[2]).isContiguous();
}

int64_t mlir::ds::rowsOf(CallOp product) { return shapeOf(product.getBuffers()[2]).front(); }

/// Rows [first, first + rows) of a matrix.
static Value sliceRows(OpBuilder &builder, Value buffer, int64_t first, int64_t rows) {
  const StridedView view =
      sliceView(viewOf(typeOf(buffer)), {first, 0}, {1, 1}, {rows, shapeOf(buffer).back()});
  return createView(builder, buffer, view);
}

/// `product` on others of its operands, of which `rows` rows are made.
static CallOp createProduct(OpBuilder &builder, CallOp product, ValueRange buffers, int64_t rows) {
  auto piece = cast<CallOp>(builder.clone(*product));
  piece.getBuffersMutable().assign(buffers);
  if (std::optional<uint64_t> flops = product.getFlops())
    piece.setFlops(*flops / rowsOf(product) * rows);
  return piece;
}

CallOp mlir::ds::cutProduct(OpBuilder &builder, CallOp product, int64_t first, int64_t rows) {
  SmallVector<Value> buffers;
  for (auto [number, buffer] : llvm::enumerate(product.getBuffers())) {
    const bool hasRows = number != 1 && shapeOf(buffer).size() == 2;
    buffers.push_back(hasRows ? sliceRows(builder, buffer, first, rows) : buffer);
  }
  return createProduct(builder, product, buffers, rows);
}

SmallVector<CallOp> mlir::ds::cutProductByRanks(OpBuilder &builder, const SummedProduct &sum, int64_t piece,
                                                int64_t pieces, bool isBatched) {
  CallOp product = sum.product;
  SmallVector<Value> buffers(product.getBuffers());
  Value left = buffers[0], result = buffers[2];
  const int64_t ofRank = rowsOf(product) / sum.ranks, rows = ofRank / pieces;
  if (isBatched) {
    const StridedView all = viewOf(typeOf(left));
    buffers[0] = createView(builder, left,
                            {piece * rows * all.strides[0],
                             {sum.ranks, rows, all.shape[1]},
                             {ofRank * all.strides[0], all.strides[0], all.strides[1]}});
    const int64_t columns = shapeOf(result).back();
    buffers[2] =
        createWindow(builder, result, piece * sum.ranks * rows * columns, {sum.ranks, rows, columns});
    return {createProduct(builder, product, buffers, sum.ranks * rows)};
  }
  SmallVector<CallOp> products;
  for (int64_t rank = 0; rank < sum.ranks; ++rank) {
    buffers[0] = sliceRows(builder, left, rank * ofRank + piece * rows, rows);
    buffers[2] = sliceRows(builder, result, (piece * sum.ranks + rank) * rows, rows);
    products.push_back(createProduct(builder, product, buffers, rows));
  }
  return products;
}

void mlir::ds::makeInParts(CallOp product, int64_t rows) {
  Builder builder(product.getContext());
  SmallVector<Attribute> params(product.getParams().begin(), product.getParams().end());
  for (int64_t param : rt::paramsOf({rt::ProductKind::Plain, rows, 0, 0}))
    params.push_back(builder.getI64IntegerAttr(param));
  product.setParamsAttr(builder.getArrayAttr(params));
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Whether strides of `view` [first, second, elements] are those of a packed [second, first, elements].
static bool isTransposed(BufferType view) {
  const ArrayRef<int64_t> shape = view.getTensor().getShape(), strides = view.getStrides();
  return shape.size() == 3 && strides[0] == shape[2] && strides[1] == shape[0] * shape[2] && strides[2] == 1;
}

static bool isPlainCopy(CallOp call) {
  return call && call.getCallee() == rt::LibraryFn::Copy && call.getStream() == StreamKind::Compute &&
         !call.getSpeculative();
}

/// Whether nothing of `product` but its result lies where `exchange` writes.
static bool isApart(CallOp product, CommunicateOp exchange) {
  BufferAccess output = windowOf(exchange.getOutputs()[0]);
  output.isWrite = true;
  const BufferAccess result = windowOf(product.getBuffers()[2]);
  return llvm::all_of(product.getBuffers(), [&](Value buffer) {
    const BufferAccess window = windowOf(buffer);
    return isSameWindow(window, result) || !window.conflictsWith(output);
  });
}

/// The sum that each rank has whole: of what the product has made last.
static std::optional<SummedProduct> findWholeSum(CommunicateOp exchange) {
  auto product = dyn_cast_or_null<CallOp>(findBefore(exchange, accessesOf(exchange)));
  if (!isByRows(product) || !isApart(product, exchange) ||
      !isSameWindow(windowOf(product.getBuffers()[2]), windowOf(exchange.getInputs()[0])))
    return std::nullopt;
  return SummedProduct{exchange, product};
}

/// The sum of which each rank keeps its rows of the only sample: what the product makes, and nothing else
/// reads or has begun.
static std::optional<SummedProduct> findScatteredSample(CommunicateOp exchange) {
  AllocOp made = wholeAllocation(exchange.getInputs()[0]);
  auto product = dyn_cast_or_null<CallOp>(findBefore(exchange, accessesOf(exchange)));
  if (!made || usersOf(made).size() != 2 || !isByRows(product) || !isApart(product, exchange) ||
      !isSameWindow(windowOf(product.getBuffers()[2]), windowOf(made.getBuffer())) ||
      rootOfBuffer(exchange.getOutputs()[0]) == made.getBuffer())
    return std::nullopt;
  auto hasRows = [](Value buffer) { return shapeOf(buffer).size() == 2; };
  const int64_t ranks = typeOf(exchange.getInputs()[0]).getTensor().getNumElements() /
                        typeOf(exchange.getOutputs()[0]).getTensor().getNumElements();
  if (llvm::any_of(product.getBuffers().drop_front(3), hasRows) || rowsOf(product) % ranks != 0)
    return std::nullopt;
  return SummedProduct{exchange, product, {}, 0, ranks};
}

/// The sum of which each rank keeps its rows of each sample.
static std::optional<SummedProduct> findScatteredSum(CommunicateOp exchange) {
  AllocOp packed = wholeAllocation(exchange.getInputs()[0]);
  SmallVector<BufferAccess> accesses = accessesOf(exchange);
  auto copy = dyn_cast_or_null<CallOp>(findBefore(exchange, accesses));
  if (!packed || usersOf(packed).size() != 2 || !isPlainCopy(copy) ||
      !isSameWindow(windowOf(copy.getBuffers()[1]), windowOf(packed.getBuffer())) ||
      !isTransposed(typeOf(copy.getBuffers()[0])))
    return std::nullopt;
  const int64_t samples = shapeOf(copy.getBuffers()[0])[1];
  llvm::append_range(accesses, accessesOf(copy));
  auto product = dyn_cast_or_null<CallOp>(findBefore(copy, accesses));
  if (samples < 2 || samples > kMostSamples || !isByRows(product) || rowsOf(product) % samples != 0 ||
      !isApart(product, exchange) ||
      !isSameWindow(windowOf(product.getBuffers()[2]), windowOf(copy.getBuffers()[0])))
    return std::nullopt;
  return SummedProduct{exchange, product, copy, samples};
}

std::optional<SummedProduct> mlir::ds::findSummedProduct(CommunicateOp exchange) {
  if (exchange.getKind() == CollectiveKind::AllReduce)
    return findWholeSum(exchange);
  if (exchange.getKind() != CollectiveKind::ReduceScatter)
    return std::nullopt;
  std::optional<SummedProduct> ofSamples = findScatteredSum(exchange);
  return ofSamples ? ofSamples : findScatteredSample(exchange);
}

static CommunicateOp createPart(OpBuilder &builder, CommunicateOp exchange, Value input, Value output) {
  auto part = cast<CommunicateOp>(builder.clone(*exchange));
  part.getInputsMutable().assign(input);
  part.getOutputsMutable().assign(output);
  return part;
}

/// Part `part` of `parts` of `buffer`, as elements one after another.
static Value partOf(OpBuilder &builder, Value buffer, int64_t part, int64_t parts) {
  const int64_t size = typeOf(buffer).getTensor().getNumElements() / parts;
  return createWindow(builder, buffer, part * size, {size});
}

CommunicateOp mlir::ds::cutExchange(OpBuilder &builder, const SummedProduct &sum, int64_t part,
                                    int64_t parts) {
  CommunicateOp exchange = sum.exchange;
  CallOp product = sum.product;
  Value whole = exchange.getInputs()[0], result = exchange.getOutputs()[0];
  Value input = partOf(builder, sum.copy ? product.getBuffers()[2] : whole, part, parts);
  return createPart(builder, exchange, input, result == whole ? input : partOf(builder, result, part, parts));
}

//===----------------------------------------------------------------------===//
// Gathered rows
//===----------------------------------------------------------------------===//

/// Whether `user` copies what is gathered into memory of its own, with samples first, that nothing else
/// writes.
static bool isCopyBySamples(Operation *user, AllocOp gathered) {
  auto copy = dyn_cast<CallOp>(user);
  if (!isPlainCopy(copy) || !isTransposed(typeOf(copy.getBuffers()[0])) ||
      !isSameWindow(windowOf(copy.getBuffers()[0]), windowOf(gathered.getBuffer())))
    return false;
  AllocOp own = wholeAllocation(copy.getBuffers()[1]);
  return own && own != gathered && llvm::all_of(usersOf(own), [&](Operation *other) {
           const auto accesses = accessesOf(other);
           return other == copy || llvm::none_of(accesses, [&](const BufferAccess &access) {
                    return access.root == own.getBuffer() && access.isWrite;
                  });
         });
}

/// Whether `product` takes all rows of the copy of what is gathered.
static bool readsAllRows(CallOp product, AllocOp own, int64_t samples) {
  if (!isByRows(product) || rowsOf(product) % samples != 0)
    return false;
  const OperandRange buffers = product.getBuffers();
  return wholeAllocation(buffers[0]) == own && llvm::none_of(buffers.drop_front(1), [&](Value buffer) {
           return rootOfBuffer(buffer) == own.getBuffer();
         });
}

/// Whether `product` could stand before `first`, but for the copies.
static bool canStandBefore(CallOp product, Operation *first, ArrayRef<CallOp> copies) {
  const SmallVector<BufferAccess> accesses = accessesOf(product);
  for (Operation *op = first; op != product; op = op->getNextNode())
    if (!llvm::is_contained(copies, op) && isa<ScheduledOpInterface>(op) &&
        conflict(accessesOf(op), accesses))
      return false;
  return true;
}

std::optional<GatheredRows> mlir::ds::findGatheredRows(CommunicateOp exchange) {
  AllocOp gathered =
      exchange.getKind() == CollectiveKind::AllGather ? wholeAllocation(exchange.getOutputs()[0]) : AllocOp();
  if (!gathered)
    return std::nullopt;
  GatheredRows rows;
  rows.exchange = exchange;
  llvm::SetVector<Operation *> readers;
  for (Operation *user : usersOf(gathered)) {
    if (user == exchange)
      continue;
    if (!isCopyBySamples(user, gathered))
      return std::nullopt;
    rows.copies.push_back(cast<CallOp>(user));
    addUsers(wholeAllocation(rows.copies.back().getBuffers()[1]).getBuffer(), readers);
  }
  if (rows.copies.empty())
    return std::nullopt;
  rows.samples = shapeOf(rows.copies.front().getBuffers()[0]).front();
  readers.remove_if([&](Operation *op) { return llvm::is_contained(rows.copies, op); });
  SmallVector<Operation *> inOrder = readers.takeVector();
  llvm::sort(inOrder, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  if (rows.samples < 2 || rows.samples > kMostSamples || inOrder.empty())
    return std::nullopt;
  rows.reader = inOrder.front();
  for (Operation *op : inOrder)
    for (CallOp copy : rows.copies)
      if (auto call = dyn_cast<CallOp>(op);
          !rows.product && call && readsAllRows(call, wholeAllocation(copy.getBuffers()[1]), rows.samples) &&
          canStandBefore(call, rows.reader, rows.copies))
        rows.product = call;
  return rows.product ? std::optional(rows) : std::nullopt;
}

CommunicateOp mlir::ds::cutExchange(OpBuilder &builder, const GatheredRows &rows, int64_t sample) {
  CommunicateOp exchange = rows.exchange;
  return createPart(builder, exchange, partOf(builder, exchange.getInputs()[0], sample, rows.samples),
                    partOf(builder, exchange.getOutputs()[0], sample, rows.samples));
}

void mlir::ds::readInPlace(GatheredRows &rows) {
  Value gathered = rootOfBuffer(rows.exchange.getOutputs()[0]);
  OpBuilder builder(rows.exchange);
  for (CallOp copy : rows.copies) {
    AllocOp own = wholeAllocation(copy.getBuffers()[1]);
    eraseCommand(copy);
    if (!own->getBlock()) // nothing else read it
      continue;
    own.getBuffer().replaceUsesWithIf(gathered, [](OpOperand &use) { return isa<ViewOp>(use.getOwner()); });
    if (!own.getBuffer().use_empty())
      own.getBuffer().replaceAllUsesWith(createView(builder, gathered, viewOf(typeOf(own.getBuffer()))));
    own.erase();
  }
  rows.copies.clear();
}

void mlir::ds::eraseCommand(Operation *op) {
  const SetVector<Value> buffers(op->operand_begin(), op->operand_end()); // in place: one is named twice
  op->erase();
  for (Value buffer : buffers) {
    Operation *maker = buffer.getDefiningOp();
    if (isa_and_nonnull<ViewOp>(maker) && maker->use_empty()) {
      buffer = cast<ViewOp>(maker).getSource();
      maker->erase();
      maker = buffer.getDefiningOp();
    }
    if (isa_and_nonnull<AllocOp>(maker) && maker->use_empty())
      maker->erase();
  }
}
