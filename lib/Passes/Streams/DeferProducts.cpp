//===- DeferProducts.cpp - Products behind exchanges that do not need them -----------===//
#include "DeferProducts.h"

#include "ExchangeCuts.h"
#include "Support/Exchanges.h"
#include "ds/Passes/ScheduledFunction.h"

using namespace mlir;
using namespace mlir::ds;

double mlir::ds::secondsBetween(CommandCosts &costs, Operation *from, Operation *to,
                                ArrayRef<CallOp> without) {
  double seconds = 0;
  for (Operation *op = from->getNextNode(); op && op != to; op = op->getNextNode())
    if (isComputeCommand(op) && !llvm::is_contained(without, op))
      seconds += costs.seconds(cast<ScheduledOpInterface>(op));
  return seconds;
}

namespace {
class ProductDeferral {
public:
  ProductDeferral(func::FuncOp func, CommandCosts &costs);
  bool deferBehind(CommunicateOp exchange);

private:
  int64_t bytesThatEnd(CallOp product, Operation *exchange) const;

  CommandCosts &costs;
  DenseMap<Operation *, int64_t> live; ///< bytes while a command of compute runs
  int64_t peak = 0;
};
} // namespace

ProductDeferral::ProductDeferral(func::FuncOp func, CommandCosts &costs) : costs(costs) {
  for (auto [op, bytes] : llvm::zip_equal(getComputeCommands(func), getLiveBytes(func, {}))) {
    live[op] = bytes;
    peak = std::max(peak, bytes);
  }
}

/// Bytes that `product` reads and nothing behind `exchange` does.
int64_t ProductDeferral::bytesThatEnd(CallOp product, Operation *exchange) const {
  int64_t bytes = 0;
  for (Value buffer : product.getBuffers()) {
    auto alloc = rootOfBuffer(buffer).getDefiningOp<AllocOp>();
    auto isBehind = [&](Operation *user) { return exchange->isBeforeInBlock(user); };
    if (alloc && llvm::none_of(usersOf(alloc), isBehind))
      bytes += reservedBytes(alloc);
  }
  return bytes;
}

bool ProductDeferral::deferBehind(CommunicateOp exchange) {
  BufferAccess result = windowOf(exchange.getOutputs()[0]);
  result.isWrite = true;
  double exposed = costs.seconds(cast<ScheduledOpInterface>(*exchange)) -
                   secondsBetween(costs, exchange, findBehind(exchange, result));
  SmallVector<BufferAccess> accesses = accessesOf(exchange);
  int64_t ends = 0, between = 0; // bytes, and the most that are live while what stays runs
  bool isMoved = false;
  for (Operation *op = exchange->getPrevNode(), *before; op && exposed > 0; op = before) {
    before = op->getPrevNode();
    if (!isa<ScheduledOpInterface>(op))
      continue;
    if (!isComputeCommand(op))
      break;
    auto product = dyn_cast<CallOp>(op);
    const bool isFree =
        product && product.getCallee() == ::ds::rt::LibraryFn::Matmul && !conflict(accessesOf(op), accesses);
    const int64_t more = isFree ? bytesThatEnd(product, exchange) : 0;
    if (!isFree || between + ends + more > peak) {
      llvm::append_range(accesses, accessesOf(op));
      between = std::max(between, live.lookup(op));
      continue;
    }
    ends += more;
    exposed -= costs.seconds(cast<ScheduledOpInterface>(op));
    op->moveAfter(exchange); // those behind it, which have been moved, stay behind it
    isMoved = true;
  }
  return isMoved;
}

bool mlir::ds::deferProducts(func::FuncOp func, CommandCosts &costs) {
  SmallVector<CommunicateOp> sums;
  for (auto exchange : func.getOps<CommunicateOp>())
    if (exchange.getCarries() == Payload::Exchange && exchange.getReduction() && !meetsStages(exchange))
      sums.push_back(exchange);
  if (sums.empty())
    return false;
  ProductDeferral deferral(func, costs);
  bool isMoved = false;
  for (CommunicateOp exchange : sums)
    isMoved |= deferral.deferBehind(exchange);
  return isMoved;
}
