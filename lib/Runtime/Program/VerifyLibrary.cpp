//===- VerifyLibrary.cpp - Operands of library commands against Library.h ------===//
//
// A library function walks its operands by the shapes it derives from the first ones, so each rule of
// Library.h is a memory-safety rule here. One function per LibraryFn; the shared checks are members of
// OperandChecker.
//
//===---------------------------------------------------------------------------===//
#include "OperandChecker.h"
#include "Shape.h"

#include "ds/Runtime/Program/ProductForm.h"

namespace ds::rt {

Status verifyWorkspace(const OperandChecker &c) {
  const auto callee = static_cast<LibraryFn>(c.command.callee);
  const uint64_t needed = c.program.target == "cpu"
                              ? libraryWorkspaceBytes(callee, c.operands(), c.program.threads)
                              : cudaWorkspaceBytes(callee, c.operands());
  const Buffer *planned =
      c.command.workspace == UINT32_MAX ? nullptr : &c.program.buffers[c.command.workspace];
  if (needed > (planned ? extentBytes(*planned) : 0))
    return refuse("{} needs {} bytes of workspace, but {} are planned", c.where(), needed,
                  planned ? extentBytes(*planned) : 0);
  if (needed != 0 && offsetBits(*planned) % alignof(float) != 0)
    return refuse("{} has its workspace at offset {}", c.where(), planned->offset);
  return {};
}

namespace {

/// The workspace shares no byte with an operand: functions keep there what they find their way by. Where
/// it is given to one of CUDA's libraries, it lies where they want it.
Status verifyOwnWorkspace(const OperandChecker &c) {
  if (c.command.workspace == UINT32_MAX)
    return {};
  const auto callee = static_cast<LibraryFn>(c.command.callee);
  const bool isLibrarys = callee != LibraryFn::EmbeddingBackward && callee != LibraryFn::SumOfSquares &&
                          callee != LibraryFn::CrossEntropyWithGradient;
  constexpr uint64_t kCudaAlignment = 256; // cuBLASLt's and cuDNN's
  const Buffer &workspace = c.program.buffers[c.command.workspace];
  if (c.program.target != "cpu" && isLibrarys && offsetBits(workspace) % kCudaAlignment != 0)
    return refuse("{} has its workspace at offset {}, but CUDA's libraries rely on multiples of {}",
                  c.where(), workspace.offset, kCudaAlignment);
  for (unsigned k = 0; k < c.numOperands(); ++k)
    if (mayOverlap(workspace, c.operand(k), c.program.mesh))
      return refuse("{} has a workspace that shares bytes with operand {}", c.where(), k);
  return {};
}

Status oneUnitStride(const OperandChecker &c, unsigned k) {
  const Buffer &b = c.operand(k);
  const size_t n = b.shape.size();
  auto unit = [&](size_t d) { return b.shape[d] <= 1 || b.strides[d] == 1; };
  if (unit(n - 1) || unit(n - 2))
    return {};
  return refuse("{} operand {} has innermost strides {} and {}, one of them must be 1", c.where(), k,
                b.strides[n - 2], b.strides[n - 1]);
}

/// What GELU adds to a product: 16 bits, packed, no accumulation, its input where the activation wants it.
Status verifyGelu(const OperandChecker &c, const MatmulExtras &extras) {
  const auto activation = static_cast<Activation>(c.param(3));
  if (activation != Activation::Gelu && activation != Activation::GeluGradient)
    return extras.input ? refuse("{} operand {} has rank {}, expected a bias", c.where(), extras.inputIndex,
                                 extras.input->shape.size())
                        : Status();
  DS_CHECK(c.dtype(0, {DType::BF16, DType::F16}));
  DS_CHECK(c.sameType(2, 0));
  DS_CHECK(c.contiguous(2));
  if (c.param(2) != 0)
    return refuse("{} accumulates, which a product with GELU does not", c.where());
  if (activation == Activation::GeluGradient && (extras.bias || !extras.input))
    return refuse("{} is GELU's gradient, which has GELU's input and no bias", c.where());
  if (!extras.input)
    return {};
  DS_CHECK(c.shape(extras.inputIndex, c.operand(2).shape));
  DS_CHECK(c.contiguous(extras.inputIndex));
  return activation == Activation::Gelu ? c.written(extras.inputIndex, {0, 1, extras.biasIndex}) : Status();
}

/// As many operands and params as a product has, and of a form one that there is, of parts with a size. What
/// the form asks of the product is checked where that is known.
Status verifyForm(const OperandChecker &c) {
  const bool hasForm = c.numParams() == kMatmulParams + kFormParams,
             hasSums = c.numParams() == kMatmulParams + 1;
  DS_CHECK(c.counts(hasSums ? 4 : 3, 5, kMatmulParams + (hasForm ? kFormParams : hasSums ? 1 : 0)));
  if (hasSums)
    return c.flag(kMatmulParams, static_cast<int64_t>(kLastSummed));
  if (!hasForm)
    return {};
  DS_CHECK(c.flag(kMatmulParams, static_cast<int64_t>(kLastProductKind)));
  for (unsigned k = kMatmulParams + 1; k < c.numParams(); ++k)
    if (c.param(k) < 0)
      return refuse("{} is made in parts of {}", c.where(), c.param(k));
  return {};
}

/// The sums of a factor, beside a product of matrices that does nothing else, or of a result with GELU's
/// gradient.
Status verifySums(const OperandChecker &c, const MatmulExtras &extras) {
  if (!extras.sums)
    return {};
  const auto summed = static_cast<Summed>(c.param(kMatmulParams));
  const bool isOfResult = summed == Summed::Result;
  if (isOfResult && static_cast<Activation>(c.param(3)) != Activation::GeluGradient)
    return refuse("{} has sums of its result, which only a product with GELU's gradient has", c.where());
  if (!isOfResult && c.param(3) != 0)
    return refuse("{} has an activation, which a product with sums of a factor does not", c.where());
  DS_CHECK(c.counts(isOfResult ? 5 : 4, isOfResult ? 5 : 4, kMatmulParams + 1));
  for (unsigned k = 0; k < 3; ++k)
    if (!isOfResult || k == 1)
      DS_CHECK(c.rank(k, 2));
  DS_CHECK(c.dtype(extras.sumsIndex, {c.operand(0).dtype, DType::F32}));
  const std::vector<int64_t> &result = c.operand(2).shape;
  DS_CHECK(c.shape(extras.sumsIndex, {summed == Summed::First ? result.front() : result.back()}));
  DS_CHECK(c.unitInnermost(extras.sumsIndex));
  return isOfResult ? c.written(extras.sumsIndex, {0, 1, 2, extras.inputIndex})
                    : c.written(extras.sumsIndex, {0, 1, 2});
}

Status verifyMatmul(const OperandChecker &c) {
  DS_CHECK(verifyForm(c));
  DS_CHECK(c.flag(0));
  DS_CHECK(c.flag(1));
  DS_CHECK(c.flag(2));
  DS_CHECK(c.flag(3, static_cast<int64_t>(kLastActivation)));
  DS_CHECK(c.isFloat(0));
  DS_CHECK(c.sameType(1, 0));
  DS_CHECK(c.dtype(2, {c.operand(0).dtype, DType::F32}));
  const MatmulExtras extras = c.extras();
  for (unsigned k = 3; k < (extras.sums ? extras.sumsIndex : c.numOperands()); ++k)
    DS_CHECK(c.sameType(k, 0));
  if (extras.count() + 3 != c.numOperands())
    return refuse("{} has two operands of one kind after its result", c.where());
  for (unsigned k = 0; k < 3; ++k) {
    if (c.operand(k).shape.size() < 2)
      return refuse("{} operand {} has rank {}, expected at least 2", c.where(), k,
                    c.operand(k).shape.size());
    DS_CHECK(oneUnitStride(c, k));
  }
  std::vector<int64_t> a = c.operand(0).shape, b = c.operand(1).shape;
  if (c.param(0))
    std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (c.param(1))
    std::swap(b[b.size() - 1], b[b.size() - 2]);
  const bool sameBatch = a.size() == b.size() && std::equal(a.begin(), a.end() - 2, b.begin());
  if (!sameBatch && (b.size() != 2 || c.param(0)))
    return refuse("{} multiplies batches [{}] by [{}]", c.where(), fmt::join(a, "x"), fmt::join(b, "x"));
  if (a.back() != b[b.size() - 2])
    return refuse("{} multiplies [{}] by [{}], inner sizes {} and {} differ", c.where(), fmt::join(a, "x"),
                  fmt::join(b, "x"), a.back(), b[b.size() - 2]);
  std::vector<int64_t> result = a;
  result.back() = b.back();
  DS_CHECK(c.shape(2, result));
  if (extras.bias) {
    DS_CHECK(c.shape(extras.biasIndex, {b.back()}));
    DS_CHECK(c.unitInnermost(extras.biasIndex));
  }
  DS_CHECK(verifyGelu(c, extras));
  DS_CHECK(verifySums(c, extras));
  return c.written(2, {0, 1, 3, 4});
}

/// table[V, C] at operand `table`, ids[...] at `ids`, rows[..., C] at `rows`.
Status verifyEmbeddingShapes(const OperandChecker &c, unsigned table, unsigned ids, unsigned rows) {
  DS_CHECK(c.isFloat(rows));
  DS_CHECK(c.dtype(ids, {DType::I64, DType::I32}));
  DS_CHECK(c.rank(table, 2));
  DS_CHECK(c.unitInnermost(table));
  DS_CHECK(c.contiguous(ids));
  DS_CHECK(c.contiguous(rows));
  std::vector<int64_t> shape = c.operand(ids).shape;
  shape.push_back(c.operand(table).shape[1]);
  return c.shape(rows, shape);
}

Status verifyEmbeddingForward(const OperandChecker &c) {
  DS_CHECK(c.counts(3, 3, c.numParams() > 0 ? 1 : 0));
  DS_CHECK(c.numParams() > 0 ? c.flag(0) : Status());
  DS_CHECK(verifyEmbeddingShapes(c, 0, 1, 2));
  DS_CHECK(c.sameType(0, 2));
  return c.written(2, {0, 1});
}

Status verifyEmbeddingBackward(const OperandChecker &c) {
  DS_CHECK(c.counts(3, 3, 1));
  DS_CHECK(c.flag(0));
  DS_CHECK(verifyEmbeddingShapes(c, 2, 0, 1));
  DS_CHECK(c.dtype(2, {c.operand(1).dtype, DType::F32}));
  DS_CHECK(c.written(2, {0, 1}));
  return verifyWorkspace(c);
}

Status verifyScalar(const OperandChecker &c, unsigned k, DType dtype = DType::F32) {
  DS_CHECK(c.dtype(k, {dtype}));
  return c.shape(k, {});
}

/// logits[N, C] and targets[N] at operands 0 and 1.
Status verifyLogits(const OperandChecker &c) {
  DS_CHECK(c.isFloat(0));
  DS_CHECK(c.rank(0, 2));
  DS_CHECK(c.unitInnermost(0));
  DS_CHECK(c.dtype(1, {DType::I64, DType::I32}));
  DS_CHECK(c.shape(1, {c.operand(0).shape[0]}));
  return c.contiguous(1);
}

/// lse[N] of the logits.
Status verifyRowSums(const OperandChecker &c, unsigned lse) {
  DS_CHECK(c.dtype(lse, {DType::F32}));
  DS_CHECK(c.shape(lse, {c.operand(0).shape[0]}));
  return c.contiguous(lse);
}

/// The gradient of the logits, at operand 5 of all functions that write it: in place, or apart from them.
Status verifyLogitsGradient(const OperandChecker &c) {
  DS_CHECK(c.sameType(5, 0));
  DS_CHECK(c.shape(5, c.operand(0).shape));
  DS_CHECK(c.unitInnermost(5));
  const Buffer &logits = c.operand(0), &grad = c.operand(5);
  const bool inPlace = logits.space == grad.space && logits.offset == grad.offset &&
                       logits.strides == grad.strides && logits.axisStrides == grad.axisStrides &&
                       haveSameSlots(logits, grad);
  if (!inPlace)
    DS_CHECK(c.written(5, {0}));
  return c.written(5, {1, 2, 3, 4});
}

/// The ignored index, and the cap of the logits where there is one.
Status verifyLossParams(const OperandChecker &c) {
  constexpr unsigned kPlain = 1;
  return c.numParams() > kPlain ? c.cap(kPlain) : Status();
}

Status verifyCrossEntropyForward(const OperandChecker &c) {
  DS_CHECK(c.counts(5, 6, c.numParams() == 2 ? 2 : 1));
  DS_CHECK(verifyLossParams(c));
  DS_CHECK(verifyLogits(c));
  DS_CHECK(verifyRowSums(c, 3));
  DS_CHECK(verifyScalar(c, 2));
  DS_CHECK(verifyScalar(c, 4));
  if (c.numOperands() > 5)
    DS_CHECK(verifyScalar(c, 5));
  DS_CHECK(c.written(2, {0, 1, 3, 4, 5}));
  DS_CHECK(c.written(3, {0, 1, 4, 5}));
  return c.written(4, {0, 1, 5});
}

Status verifyCrossEntropyBackward(const OperandChecker &c) {
  DS_CHECK(c.counts(6, 6, c.numParams() == 2 ? 2 : 1));
  DS_CHECK(verifyLossParams(c));
  DS_CHECK(verifyLogits(c));
  DS_CHECK(verifyRowSums(c, 2));
  DS_CHECK(verifyScalar(c, 3));
  DS_CHECK(verifyScalar(c, 4));
  return verifyLogitsGradient(c);
}

Status verifyCrossEntropyWithGradient(const OperandChecker &c) {
  DS_CHECK(c.counts(6, 7, c.numParams() == 2 ? 2 : 1));
  DS_CHECK(verifyLossParams(c));
  DS_CHECK(verifyLogits(c));
  for (unsigned k : {2u, 3u, 4u})
    DS_CHECK(verifyScalar(c, k));
  if (c.numOperands() > 6)
    DS_CHECK(verifyScalar(c, 6));
  DS_CHECK(c.written(3, {0, 1, 2, 4, 5, 6}));
  DS_CHECK(c.written(4, {0, 1, 2, 5, 6}));
  DS_CHECK(verifyLogitsGradient(c));
  DS_CHECK(c.written(5, {6}));
  return verifyWorkspace(c);
}

Status verifyFill(const OperandChecker &c) {
  DS_CHECK(c.counts(1, 1, 1));
  return c.written(0, {});
}

Status verifyCopy(const OperandChecker &c) {
  DS_CHECK(c.counts(2, 2, 0));
  DS_CHECK(c.shape(1, c.operand(0).shape));
  DS_CHECK(c.dtype(1, {c.operand(0).dtype}));
  return c.written(1, {0});
}

/// Sizes that `windows` give along one dimension: those of the result, or 0 where no window fits.
int64_t convSize(const OperandChecker &c, unsigned d, int64_t input, int64_t window) {
  constexpr int64_t kMost = INT32_MAX; // no product below overflows
  const int64_t stride = c.param(1 + 3 * d), padding = c.param(2 + 3 * d), dilation = c.param(3 + 3 * d);
  const auto isIn = [&](int64_t value, int64_t least) { return value >= least && value <= kMost; };
  if (!isIn(stride, 1) || !isIn(padding, 0) || !isIn(dilation, 1) || !isIn(input, 1) || !isIn(window, 1))
    return 0;
  const int64_t room = input + 2 * padding - dilation * (window - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

/// A convolution whose input, weight and result are operands x, w and y.
Status verifyConv(const OperandChecker &c, unsigned x, unsigned w, unsigned y) {
  const std::vector<int64_t> input = c.operand(x).shape, weight = c.operand(w).shape;
  const size_t rank = input.size();
  if (rank < 3 || rank > 5)
    return refuse("{} operand {} has rank {}, expected 3 to 5", c.where(), x, rank);
  DS_CHECK(c.counts(3, c.numOperands() == 4 && y == 2 ? 4 : 3, static_cast<unsigned>(3 * (rank - 2) + 1)));
  DS_CHECK(c.isFloat(0));
  for (unsigned k = 0; k < c.numOperands(); ++k) {
    DS_CHECK(c.sameType(k, 0));
    DS_CHECK(c.rank(k, k == 3 ? 1 : rank));
    DS_CHECK(c.contiguous(k));
  }
  const int64_t groups = c.param(0);
  if (groups < 1 || input[0] < 1 || input[1] < 1 || weight[0] < 1 || input[1] % groups != 0 ||
      weight[0] % groups != 0 || weight[1] != input[1] / groups)
    return refuse("{} has input [{}] and weight [{}] in {} groups", c.where(), fmt::join(input, "x"),
                  fmt::join(weight, "x"), groups);
  std::vector<int64_t> result = {input[0], weight[0]};
  for (size_t d = 2; d < rank; ++d)
    result.push_back(convSize(c, static_cast<unsigned>(d - 2), input[d], weight[d]));
  if (std::find(result.begin(), result.end(), 0) != result.end())
    return refuse("{} has windows that do not fit: input [{}], weight [{}]", c.where(), fmt::join(input, "x"),
                  fmt::join(weight, "x"));
  DS_CHECK(c.shape(y, result));
  if (c.numOperands() == 4)
    DS_CHECK(c.shape(3, {weight[0]}));
  return c.written(2, {0, 1, 3});
}

Status verifyConvForward(const OperandChecker &c) {
  DS_CHECK(c.atLeast(3));
  return verifyConv(c, 0, 1, 2);
}
Status verifyConvBackwardInput(const OperandChecker &c) {
  DS_CHECK(c.atLeast(3));
  return verifyConv(c, 2, 0, 1);
}
Status verifyConvBackwardWeight(const OperandChecker &c) {
  DS_CHECK(c.atLeast(3));
  return verifyConv(c, 0, 2, 1);
}

/// The sums of the blocks of one input.
Status verifyBlockSums(const OperandChecker &c) {
  DS_CHECK(c.counts(2, 2, 0));
  const auto count = static_cast<int64_t>(elementsOf(c.operand(0).shape)); // of a buffer within the arenas
  DS_CHECK(c.shape(1, {count / kSquaresBlock + (count % kSquaresBlock != 0)}));
  DS_CHECK(c.isFloat(0));
  DS_CHECK(c.contiguous(0));
  DS_CHECK(c.contiguous(1));
  return c.written(1, {0});
}

Status verifySumOfSquares(const OperandChecker &c) {
  const unsigned most = std::max(c.numOperands(), 2u), result = c.numOperands() - 1;
  if (c.numOperands() > 0 && c.operand(result).dtype == DType::F32 && c.operand(result).shape.size() == 1)
    return verifyBlockSums(c);
  DS_CHECK(c.counts(2, most, std::min(c.numParams(), 1u)));
  const bool areBlocks = c.numParams() > 0;
  DS_CHECK(areBlocks ? c.flag(0) : Status());
  if (areBlocks && c.program.target != "cpu" && c.program.streams[c.command.stream] != StreamKind::Host)
    return refuse("{} sums up blocks' sums, which only the host does", c.where());
  DS_CHECK(verifyScalar(c, result, DType::F64));
  for (unsigned k = 0; k < result; ++k) {
    DS_CHECK(areBlocks ? c.dtype(k, {DType::F32}) : c.isFloat(k));
    DS_CHECK(c.contiguous(k));
    DS_CHECK(c.written(result, {k}));
  }
  return verifyWorkspace(c);
}

} // namespace

Status verifyLibraryCommand(const Program &program, uint64_t command) {
  static constexpr LibraryRow<Status (*)(const OperandChecker &)> kChecks[] = {
      {LibraryFn::Matmul, verifyMatmul},
      {LibraryFn::AttentionForward, verifyAttentionForward},
      {LibraryFn::AttentionBackward, verifyAttentionBackward},
      {LibraryFn::EmbeddingForward, verifyEmbeddingForward},
      {LibraryFn::EmbeddingBackward, verifyEmbeddingBackward},
      {LibraryFn::CrossEntropyForward, verifyCrossEntropyForward},
      {LibraryFn::CrossEntropyBackward, verifyCrossEntropyBackward},
      {LibraryFn::Fill, verifyFill},
      {LibraryFn::Copy, verifyCopy},
      {LibraryFn::ConvForward, verifyConvForward},
      {LibraryFn::ConvBackwardInput, verifyConvBackwardInput},
      {LibraryFn::ConvBackwardWeight, verifyConvBackwardWeight},
      {LibraryFn::SumOfSquares, verifySumOfSquares},
      {LibraryFn::CrossEntropyWithGradient, verifyCrossEntropyWithGradient}};
  static_assert(haveOwnRows(kChecks));
  const uint32_t callee = program.commands[command].callee;
  if (callee >= std::size(kChecks))
    return refuse("{} calls library function {} of {}", describeCommand(program, command), callee,
                  std::size(kChecks));
  const OperandChecker checker(program, command);
  if (Status status = kChecks[callee].value(checker); !status)
    return status;
  return verifyOwnWorkspace(checker);
}

} // namespace ds::rt
