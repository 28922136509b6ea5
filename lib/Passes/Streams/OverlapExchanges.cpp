//===- OverlapExchanges.cpp - Exchanges beside products that are cut ----------------===//
//
// Between a product and the exchange of what it makes nothing can be computed: the exchange reads all of it,
// and what follows reads the exchange. Cut along rows, the exchange of each piece runs beside the product of
// the next:
//
//   compute    P0 P1 P2 P3 .            whole    P . . . . R
//   exchange      E0 E1 E2 E3                      E E E E
//
// More pieces hide more, and cost more: a latency each, and products of few rows use a device worse. So both
// are simulated with the times that commands are predicted to take, for each number of pieces, and the best
// is taken; what computes anyway between the exchange and its reader hides it in both. Before, products that
// an exchange does not need are put after it (DeferProducts.h).
//
// The CPU's library adds in another order where a product has other rows. So that nothing changes a bit
// there, pieces are always two, and products of the sizes of one that is cut are made in the same parts: what
// is recomputed has the bits of what was made first. So are those that could be cut where that is asked for
// or ruled out, and both have the same bits.
//
//===---------------------------------------------------------------------------===//
#include "DeferProducts.h"
#include "ExchangeCuts.h"

#include "Support/Exchanges.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Training.h"
#include "ds/Passes/CommandCost.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include <map>
#include <variant>

namespace mlir::ds {
#define GEN_PASS_DEF_OVERLAPEXCHANGES
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;

/// The share of the time of a product and its exchange that a cut saves at least, where none is asked for:
/// predictions are not better than that.
static constexpr double kLeastGain = 0.02;

namespace {

/// What can be cut, into how many products, and how long it is until what reads can begin.
struct Cut {
  std::variant<SummedProduct, GatheredRows> of;
  int64_t pieces = 0; ///< 0: none was possible
  double seconds = 0, secondsWhole = 0;
  void offer(int64_t count, double time) {
    if (pieces == 0 || time < seconds)
      pieces = count, seconds = time;
  }
  CallOp product() const {
    return std::visit([](auto &found) { return found.product; }, of);
  }
  /// Whose rows each product has some of; 1: rows in a row.
  int64_t ranks() const {
    const auto *sum = std::get_if<SummedProduct>(&of);
    return sum && sum->ranks ? sum->ranks : 1;
  }
};

class ExchangeOverlap {
public:
  ExchangeOverlap(func::FuncOp func, const ::ds::cost::Rates &rates, std::optional<bool> asked, bool remarks)
      : func(func), costs(func->getParentOfType<ModuleOp>(), rates),
        isOnCpu(!isForCuda(func->getParentOfType<ModuleOp>())), asked(asked), remarks(remarks) {}
  void run();

private:
  using Sizes = std::vector<const void *>; ///< types of operands, and params

  double secondsOf(Operation *op) { return costs.seconds(cast<ScheduledOpInterface>(op)); }
  double secondsOfPart(CallOp product, int64_t parts);
  double secondsOfPart(const SummedProduct &sum, int64_t parts);
  double secondsOfProducts(const SummedProduct &sum, int64_t pieces);
  SmallVector<int64_t> piecesFor(CallOp product, int64_t samples, int64_t ranks = 1) const;
  void choose(Cut &cut, const SummedProduct &sum);
  void choose(Cut &cut, const GatheredRows &rows);

  void find(CommunicateOp exchange);
  bool isTaken(const Cut &cut) const;
  void apply(const SummedProduct &sum, int64_t pieces);
  void apply(GatheredRows rows, int64_t pieces);
  void keepBits(CallOp product, int64_t rows);
  void keepBits();

  func::FuncOp func;
  CommandCosts costs;
  const bool isOnCpu;
  const std::optional<bool> asked; ///< to be cut where possible, or nowhere; absent: where it is faster
  const bool remarks;
  std::vector<Cut> cuts;
  DenseSet<Operation *> claimed;   ///< by a cut
  std::map<Sizes, int64_t> atOnce; ///< of products that could be cut: how many rows the CPU makes at once
};

} // namespace

//===----------------------------------------------------------------------===//
// Times
//===----------------------------------------------------------------------===//

double ExchangeOverlap::secondsOfPart(CallOp product, int64_t parts) {
  OpBuilder builder(product);
  CallOp part = cutProduct(builder, product, 0, rowsOf(product) / parts);
  const double seconds = secondsOf(part);
  eraseCommand(part);
  return seconds;
}

double ExchangeOverlap::secondsOfPart(const SummedProduct &sum, int64_t parts) {
  OpBuilder builder(sum.exchange);
  CommunicateOp part = cutExchange(builder, sum, 0, parts);
  const double seconds = secondsOf(part);
  eraseCommand(part);
  return seconds;
}

/// Of what makes one of `pieces`.
double ExchangeOverlap::secondsOfProducts(const SummedProduct &sum, int64_t pieces) {
  if (!sum.ranks)
    return secondsOfPart(sum.product, pieces);
  OpBuilder builder(sum.exchange);
  double seconds = 0;
  for (CallOp part : cutProductByRanks(builder, sum, 0, pieces, !isOnCpu)) {
    seconds += secondsOf(part);
    eraseCommand(part);
  }
  return seconds;
}

/// Whether the CPU makes `rows` rows of a product with the bits that they have as a part of all
/// (ProductForm.h and ProductBlocks.h): parts are whole 64 rows, and what is widened is made in blocks of
/// 1024.
static bool keepsBits(CallOp product, int64_t rows) {
  auto type = cast<BufferType>(product.getBuffers()[0].getType());
  const bool isWidened = type.getTensor().getElementTypeBitWidth() < 32;
  return rows % 64 == 0 && (!isWidened || rows <= 1024 || rows % 1024 == 0);
}

/// How many products can stand in place of one, for `samples` exchanges, or as many of both where that is 0;
/// each with as many rows of each of `ranks`.
SmallVector<int64_t> ExchangeOverlap::piecesFor(CallOp product, int64_t samples, int64_t ranks) const {
  const int64_t rows = rowsOf(product) / ranks;
  SmallVector<int64_t> counts = {2};
  if (!isOnCpu)
    counts.append({4, 8});
  if (!isOnCpu && samples && !llvm::is_contained(counts, samples))
    counts.push_back(samples);
  llvm::erase_if(counts, [&](int64_t count) {
    return rows % count != 0 || samples % count != 0 || (isOnCpu && !keepsBits(product, rows / count));
  });
  return counts;
}

/// Seconds from the product's start until what reads the sum can begin.
void ExchangeOverlap::choose(Cut &cut, const SummedProduct &sum) {
  CallOp product = sum.product;
  CommunicateOp exchange = sum.exchange;
  BufferAccess result = windowOf(exchange.getOutputs()[0]);
  result.isWrite = true;
  const double between = secondsBetween(costs, product, exchange, sum.copy);
  const double behind = secondsBetween(costs, exchange, findBehind(exchange, result));
  const double copy = sum.copy ? secondsOf(sum.copy) : 0;
  cut.secondsWhole = secondsOf(product) + copy + between + std::max(behind, secondsOf(exchange));
  for (int64_t pieces : piecesFor(product, sum.samples, std::max<int64_t>(sum.ranks, 1))) {
    const int64_t exchanges = sum.samples ? sum.samples : pieces;
    const double ofProduct = secondsOfProducts(sum, pieces), ofExchange = secondsOfPart(sum, exchanges);
    double computed = 0, exchanged = 0;
    for (int64_t piece = 0; piece < pieces; ++piece) {
      computed += ofProduct;
      exchanged = std::max(computed, exchanged) + ofExchange * double(exchanges / pieces);
    }
    cut.offer(pieces, std::max(computed + between + behind, exchanged));
  }
}

/// Seconds from the start of the gather until the product that is cut is over.
void ExchangeOverlap::choose(Cut &cut, const GatheredRows &rows) {
  CommunicateOp exchange = rows.exchange;
  const double between = secondsBetween(costs, exchange, rows.reader, rows.copies);
  double copies = 0;
  for (CallOp copy : rows.copies)
    copies += secondsOf(copy);
  OpBuilder builder(exchange);
  CommunicateOp part = cutExchange(builder, rows, 0);
  const double ofExchange = secondsOf(part);
  eraseCommand(part);
  cut.secondsWhole = std::max(between, secondsOf(exchange)) + copies + secondsOf(rows.product);
  for (int64_t pieces : piecesFor(rows.product, rows.samples)) {
    const double ofProduct = secondsOfPart(rows.product, pieces);
    double computed = between;
    for (int64_t piece = 1; piece <= pieces; ++piece)
      computed = std::max(computed, ofExchange * double(rows.samples / pieces * piece)) + ofProduct;
    cut.offer(pieces, computed);
  }
}

//===----------------------------------------------------------------------===//
// Cuts
//===----------------------------------------------------------------------===//

/// Notes what can be cut around `exchange`, unless a cut has part in it already: all is found before anything
/// changes.
void ExchangeOverlap::find(CommunicateOp exchange) {
  if (exchange.getCarries() != Payload::Exchange || meetsStages(exchange))
    return;
  Cut cut;
  SmallVector<Operation *> parts = {exchange};
  if (std::optional<GatheredRows> rows = findGatheredRows(exchange)) {
    choose(cut, *rows);
    parts.append({rows->product, rows->reader});
    llvm::append_range(parts, rows->copies);
    cut.of = *rows;
  } else if (std::optional<SummedProduct> sum = findSummedProduct(exchange)) {
    choose(cut, *sum);
    parts.push_back(sum->product);
    if (sum->copy)
      parts.push_back(sum->copy);
    cut.of = *sum;
  }
  if (cut.pieces == 0 || llvm::any_of(parts, [&](Operation *op) { return claimed.contains(op); }))
    return;
  claimed.insert(parts.begin(), parts.end());
  cuts.push_back(cut);
}

bool ExchangeOverlap::isTaken(const Cut &cut) const {
  return asked.value_or(cut.seconds < (1 - kLeastGain) * cut.secondsWhole);
}

static std::vector<const void *> sizesOf(CallOp product) {
  std::vector<const void *> sizes = {product.getParams().getAsOpaquePointer()};
  for (Value buffer : product.getBuffers())
    sizes.push_back(buffer.getType().getAsOpaquePointer());
  return sizes;
}

/// Has the CPU make `product`, which may be a piece, `rows` rows at once.
void ExchangeOverlap::keepBits(CallOp product, int64_t rows) {
  if (isOnCpu && rows < rowsOf(product))
    makeInParts(product, rows);
}

void ExchangeOverlap::apply(const SummedProduct &sum, int64_t pieces) {
  OpBuilder builder(sum.product);
  const int64_t rows = rowsOf(sum.product) / pieces, ofCpu = atOnce.at(sizesOf(sum.product));
  const int64_t exchanges = sum.samples ? sum.samples : pieces;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    if (sum.ranks)
      for (CallOp ofRank : cutProductByRanks(builder, sum, piece, pieces, !isOnCpu))
        keepBits(ofRank, ofCpu);
    else
      keepBits(cutProduct(builder, sum.product, piece * rows, rows), ofCpu);
    for (int64_t part = piece * exchanges / pieces; part < (piece + 1) * exchanges / pieces; ++part)
      cutExchange(builder, sum, part, exchanges);
  }
  eraseCommand(sum.exchange);
  if (sum.copy)
    eraseCommand(sum.copy);
  eraseCommand(sum.product);
}

void ExchangeOverlap::apply(GatheredRows rows, int64_t pieces) {
  readInPlace(rows);
  OpBuilder builder(rows.exchange);
  for (int64_t sample = 0; sample < rows.samples; ++sample)
    cutExchange(builder, rows, sample);
  builder.setInsertionPoint(rows.reader);
  const int64_t ofPiece = rowsOf(rows.product) / pieces, ofCpu = atOnce.at(sizesOf(rows.product));
  for (int64_t piece = 0; piece < pieces; ++piece)
    keepBits(cutProduct(builder, rows.product, piece * ofPiece, ofPiece), ofCpu);
  eraseCommand(rows.exchange);
  eraseCommand(rows.product);
}

/// Has the CPU make all products of sizes that could be cut in the parts that they would be cut into.
void ExchangeOverlap::keepBits() {
  for (auto product : func.getOps<CallOp>())
    if (isByRows(product))
      if (auto rows = atOnce.find(sizesOf(product)); rows != atOnce.end())
        keepBits(product, rows->second);
}

void ExchangeOverlap::run() {
  const bool isMoved = asked.value_or(true) && deferProducts(func, costs);
  for (auto exchange : llvm::to_vector(func.getOps<CommunicateOp>()))
    find(exchange);
  for (Cut &cut : cuts) {
    if (!asked && !isTaken(cut))
      continue;
    const int64_t rows = rowsOf(cut.product()) / (2 * cut.ranks());
    int64_t &known = atOnce.try_emplace(sizesOf(cut.product()), rows).first->second;
    known = std::min(known, rows);
  }
  for (Cut &cut : cuts) {
    if (!isTaken(cut))
      continue;
    if (remarks)
      cut.product()->emitRemark() << cut.pieces << " pieces: " << cut.seconds * 1e6 << " us in place of "
                                  << cut.secondsWhole * 1e6;
    std::visit([&](auto &found) { apply(found, cut.pieces); }, cut.of);
  }
  if (isMoved || !cuts.empty())
    placeBuffers(func);
  keepBits();
}

namespace {
struct OverlapExchanges : mlir::ds::impl::OverlapExchangesBase<OverlapExchanges> {
  using OverlapExchangesBase::OverlapExchangesBase;

  void runOnOperation() override {
    if (failed(requirePhase(getOperation(), getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    FailureOr<::ds::cost::Rates> rates = readRates(getOperation());
    if (failed(rates))
      return signalPassFailure();
    const std::optional<bool> asked =
        getTraining(getOperation()->getParentOfType<ModuleOp>()).tensors.overlapsExchanges;
    ExchangeOverlap(getOperation(), *rates, asked, remarks).run();
  }
};
} // namespace
