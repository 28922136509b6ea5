//===- MarkTargets.cpp - Which elements of an input are targets of losses ---------------===//
//
// Labels come to a loss folded into rows, without the first of each sample where forward shifts them, or with
// an ignored one behind the last. All of this only moves elements, so each target has a number in the input,
// or is a constant that is ignored. It is found here, while that is easily seen: later a loss is cut in
// pieces or among ranks.
//
//===----------------------------------------------------------------------------===//
#include "MarkTargets.h"

#include "ds/Passes/ScheduledFunction.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace mlir::ds;

/// More are not worth the words: labels are one run of each sample, or two.
static constexpr size_t kMostRuns = 1024;

/// What is no element of an input, and ignored.
static constexpr int64_t kNone = -1;

namespace {
/// Elements of an input by number, in the order in which a value has them.
struct MovedElements {
  BlockArgument input;
  std::vector<int64_t> numbers;
};
} // namespace

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// The elements of `all`, which has `shape`, at `offset` + index x `strides` for all indices of `result`,
/// both counted in elements.
static std::vector<int64_t> pick(const std::vector<int64_t> &all, int64_t offset, ArrayRef<int64_t> result,
                                 ArrayRef<int64_t> strides) {
  std::vector<int64_t> places = {offset};
  for (auto [size, stride] : llvm::zip_equal(result, strides)) {
    std::vector<int64_t> next;
    next.reserve(places.size() * size);
    for (int64_t place : places)
      for (int64_t index = 0; index < size; ++index)
        next.push_back(place + index * stride);
    places = std::move(next);
  }
  for (int64_t &place : places)
    place = all[place];
  return places;
}

/// Of what `op` moves, whose operand has the elements `all`, those of `result`; nothing where it does more.
static std::optional<std::vector<int64_t>> move(Operation *op, Value result, std::vector<int64_t> all) {
  if (isa<ReshapeOp>(op) || (isa<ConvertOp>(op) && getElementTypeOrSelf(op->getOperand(0)).isInteger()))
    return all;
  if (!isa<SliceOp, TransposeOp, SplitOp>(op))
    return std::nullopt;
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  SmallVector<int64_t> strides(BufferType::getContiguous(from, Space::Device).getStrides());
  int64_t offset = 0;
  if (auto slice = dyn_cast<SliceOp>(op)) {
    for (auto [stride, from, step] : llvm::zip_equal(strides, slice.getOffsets(), slice.getStrides())) {
      offset += from * stride;
      stride *= step;
    }
  } else if (auto transpose = dyn_cast<TransposeOp>(op)) {
    strides = llvm::map_to_vector(transpose.getPerm(), [&](int64_t from) { return strides[from]; });
  } else {
    auto split = cast<SplitOp>(op);
    for (Value before : split.getPieces().take_front(cast<OpResult>(result).getResultNumber()))
      offset += shapeOf(before)[split.getDim()] * strides[split.getDim()];
  }
  return pick(all, offset, shapeOf(result), strides);
}

static std::optional<MovedElements> follow(Value value, int64_t ignored);

/// What is joined along a dimension: parts of one input, and ignored constants.
static std::optional<MovedElements> followJoined(ConcatOp op, int64_t ignored) {
  auto isIgnored = [&](Value part) {
    auto constant = part.getDefiningOp<ConstantOp>();
    auto splat = constant ? dyn_cast<SplatElementsAttr>(constant.getValue()) : SplatElementsAttr();
    return splat && isa<IntegerType>(splat.getElementType()) &&
           splat.getSplatValue<APInt>().getSExtValue() == ignored;
  };
  MovedElements joined;
  const int64_t dim = op.getDim();
  int64_t inner = 1, outer = 1;
  for (auto [index, size] : llvm::enumerate(shapeOf(op.getResult())))
    (static_cast<int64_t>(index) < dim ? outer : inner) *= size;
  joined.numbers.resize(outer * inner, kNone);
  int64_t begin = 0;
  for (Value part : op.getInputs()) {
    const int64_t block = cast<RankedTensorType>(part.getType()).getNumElements() / outer;
    std::optional<MovedElements> moved = isIgnored(part) ? MovedElements() : follow(part, ignored);
    if (!moved || (moved->input && joined.input && moved->input != joined.input))
      return std::nullopt;
    joined.input = moved->input ? moved->input : joined.input;
    for (int64_t row = 0; row < outer && !moved->numbers.empty(); ++row)
      std::copy_n(moved->numbers.begin() + row * block, block, joined.numbers.begin() + row * inner + begin);
    begin += block;
  }
  return joined;
}

/// The elements of an input that `value` has; nothing where it has others.
static std::optional<MovedElements> follow(Value value, int64_t ignored) {
  Operation *op = value.getDefiningOp();
  if (!op) {
    auto argument = cast<BlockArgument>(value);
    auto func = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    if (!func || !getInputOf(func, argument.getArgNumber()))
      return std::nullopt;
    std::vector<int64_t> numbers(cast<RankedTensorType>(value.getType()).getNumElements());
    std::iota(numbers.begin(), numbers.end(), int64_t(0));
    return MovedElements{argument, std::move(numbers)};
  }
  if (auto joined = dyn_cast<ConcatOp>(op))
    return followJoined(joined, ignored);
  if (op->getNumOperands() == 0)
    return std::nullopt;
  std::optional<MovedElements> moved = follow(op->getOperand(0), ignored);
  std::optional<std::vector<int64_t>> numbers;
  if (moved)
    numbers = move(op, value, std::move(moved->numbers));
  if (!numbers)
    return std::nullopt;
  return MovedElements{moved->input, std::move(*numbers)};
}

/// The runs [first, count] of `marks` that are the same in each of `samples`; nothing where there are none.
static SmallVector<int64_t> runsOf(const std::vector<bool> &marks, int64_t samples) {
  const auto size = static_cast<int64_t>(marks.size()) / samples;
  SmallVector<int64_t> runs;
  for (int64_t sample = 1; sample < samples; ++sample)
    if (!std::equal(marks.begin(), marks.begin() + size, marks.begin() + sample * size))
      return {};
  for (int64_t at = 0; at < size; ++at) {
    if (!marks[at])
      continue;
    if (at == 0 || !marks[at - 1])
      runs.append({at, 0});
    ++runs.back();
  }
  return runs.size() / 2 > kMostRuns ? SmallVector<int64_t>() : runs;
}

void mlir::ds::markTargets(ModuleOp module) {
  BlockArgument input;
  std::optional<int64_t> ignored;
  std::vector<bool> marks;
  int64_t classes = std::numeric_limits<int64_t>::max();
  const WalkResult all = module.walk([&](CrossEntropyOp loss) {
    const auto own = static_cast<int64_t>(loss.getIgnoreIndex());
    std::optional<MovedElements> moved = follow(loss.getTargets(), own);
    if (!moved || !moved->input || (input && moved->input != input) || own != ignored.value_or(own))
      return WalkResult::interrupt();
    input = moved->input, ignored = own;
    classes = std::min(classes, shapeOf(loss.getLogits()).back());
    marks.resize(cast<RankedTensorType>(input.getType()).getNumElements());
    for (int64_t number : moved->numbers)
      if (number != kNone)
        marks[number] = true;
    return WalkResult::advance();
  });
  if (all.wasInterrupted() || !input)
    return;
  const ArrayRef<int64_t> shape = shapeOf(input);
  const SmallVector<int64_t> runs = runsOf(marks, shape.empty() ? 1 : shape[0]);
  StringAttr name = getInputOf(cast<func::FuncOp>(input.getOwner()->getParentOp()), input.getArgNumber());
  if (runs.empty())
    return;
  Attribute indices = IndicesAttr::get(module.getContext(), name, classes, ignored, runs);
  module->setAttr(DsDialect::kIndicesAttr, ArrayAttr::get(module.getContext(), indices));
}
