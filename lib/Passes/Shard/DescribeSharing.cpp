//===- DescribeSharing.cpp - How ranks share layers, for reports ------------------===//
#include "DescribeSharing.h"

#include "ds/Dialect/Collectives.h"
#include "ds/Dialect/Emitter.h"
#include "ds/Dialect/Work.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::ds;

/// `name` with each number between dots as "*", so that layers of a stack are called alike.
static std::string withoutNumbers(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  for (StringRef &part : parts)
    if (!part.empty() && llvm::all_of(part, llvm::isDigit))
      part = "*";
  return llvm::join(parts, ".");
}

static std::string layersOf(Operation *op) {
  LayerAttr layer = LayerAttr::of(op);
  return layer ? withoutNumbers(layer.getName()) : std::string();
}

/// The element of `all` that `isSame` knows, or `one`, added.
template <class Entry, class IsSame>
static Entry &findOrAdd(std::vector<Entry> &all, Entry one, IsSame isSame) {
  auto found = llvm::find_if(all, isSame);
  return found != all.end() ? *found : all.emplace_back(std::move(one));
}

/// Whether `op` gives its operand in another shape, order or type.
static bool isView(Operation *op) {
  return isa<ReshapeOp, TransposeOp, ConvertOp>(op) && op->getNumOperands() == 1;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

static SharedFor reasonOf(Value parameter, StringAttr name, bool isCut, const TensorCuts &cuts,
                          const DenseMap<StringAttr, AllowedCuts> &allowed) {
  if (auto asked = allowed.find(name); asked != allowed.end() && asked->second.whole != isCut)
    return SharedFor::Asked;
  if (isCut)
    return SharedFor::Parts;
  return cuts.of(parameter).empty() ? SharedFor::Indivisible : SharedFor::Cost;
}

static void describeParameter(BlockArgument argument, StringAttr name, std::optional<Cut> cut,
                              SharedFor reason, int64_t ranks, std::vector<SharedStates> &all) {
  RankedTensorType type = tensorType(argument);
  const int64_t bytes =
      type.getNumElements() * std::max<int64_t>(1, type.getElementTypeBitWidth() / 8) / (cut ? ranks : 1);
  SharedStates one;
  one.names = withoutNumbers(name.getValue());
  one.reason = reason;
  if (cut) {
    one.dim = cut->dim, one.outer = cut->blocks.outer;
    one.ratio.assign(cut->blocks.ratio.begin(), cut->blocks.ratio.end());
  }
  SharedStates &entry = findOrAdd(all, one, [&](const SharedStates &other) {
    return other.names == one.names && other.dim == one.dim && other.outer == one.outer &&
           other.ratio == one.ratio && other.reason == one.reason;
  });
  ++entry.count;
  entry.bytes += bytes;
}

/// Why each rank runs `op` whole, of whose parameters `asked` are whole by the configuration.
static SharedFor reasonOf(Operation *op, const TensorCuts &cuts, const DenseSet<Value> &asked) {
  auto isAsked = [&](Value value) {
    while (value.getDefiningOp() && isView(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    return asked.contains(value);
  };
  auto isCut = [&](Value value) { return !cuts.of(value).empty(); };
  if (llvm::any_of(op->getOperands(), isAsked))
    return SharedFor::Asked;
  const bool hasCuts = llvm::any_of(op->getOperands(), isCut) || llvm::any_of(op->getResults(), isCut);
  return hasCuts ? SharedFor::Cost : SharedFor::Indivisible;
}

SharedLayers mlir::ds::describeSharing(const SegmentStates &segment, const TensorCuts &cuts,
                                       const TensorPlacement &placement, const SettledStates &settled,
                                       const DenseMap<StringAttr, AllowedCuts> &allowed, int64_t ranks) {
  SharedLayers shared;
  shared.ranks = ranks;
  DenseSet<Value> asked;
  for (BlockArgument argument : segment.getBody().getArguments()) {
    StringAttr name = segment.nameOf(argument);
    auto known = name ? settled.parameters.find(name) : settled.parameters.end();
    if (known == settled.parameters.end())
      continue;
    const SharedFor reason = reasonOf(argument, name, known->second.has_value(), cuts, allowed);
    describeParameter(argument, name, known->second, reason, ranks, shared.parameters);
    if (reason == SharedFor::Asked)
      asked.insert(argument);
  }
  for (Operation &op : segment.getBody()) {
    const bool isShared = op.getNumResults() > 0 && !placement.isFree(op.getResult(0));
    if (!isForward(&op) || !isa<LibraryOpInterface>(op) || !isShared || placement.wayOf(&op).factor >= 0)
      continue;
    SharedWork one{op.getName().stripDialect().str(), layersOf(&op), 0, reasonOf(&op, cuts, asked)};
    ++findOrAdd(shared.whole, one, [&](const SharedWork &other) {
        return other.what == one.what && other.layers == one.layers && other.reason == one.reason;
      }).count;
  }
  return shared;
}

//===----------------------------------------------------------------------===//
// Exchanges
//===----------------------------------------------------------------------===//

static Operation *makerOf(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && isView(op) && op->getOperand(0).getDefiningOp())
    op = op->getOperand(0).getDefiningOp();
  return op;
}

static Operation *readerOf(Operation *op) {
  Operation *reader = op->use_empty() ? nullptr : *op->user_begin();
  while (reader && isView(reader) && !reader->use_empty())
    reader = *reader->user_begin();
  return reader;
}

static std::string nameOf(Operation *op) {
  return op && !isa<func::ReturnOp>(op) ? op->getName().stripDialect().str() : std::string();
}

std::vector<SharedExchange> mlir::ds::describeExchanges(const SegmentStates &segment, AxesAttr axes) {
  std::vector<SharedExchange> all;
  for (Operation &op : segment.getBody()) {
    if (!isExchange(&op) || cast<CollectiveOpInterface>(op).getAxes() != axes)
      continue;
    Operation *maker = makerOf(op.getOperand(0));
    SharedExchange one;
    one.kind = cast<CollectiveOpInterface>(op).getCollectiveKind();
    one.maker = nameOf(maker);
    one.layers = layersOf(maker ? maker : &op);
    one.reader = nameOf(readerOf(&op));
    one.isForward = isForward(&op);
    SharedExchange &entry = findOrAdd(all, one, [&](const SharedExchange &other) {
      return other.kind == one.kind && other.maker == one.maker && other.layers == one.layers &&
             other.reader == one.reader && other.isForward == one.isForward;
    });
    ++entry.count;
    entry.bytes += cast<CostOpInterface>(op).getSentBytes();
  }
  return all;
}
