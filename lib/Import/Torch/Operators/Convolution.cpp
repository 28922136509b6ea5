//===- Convolution.cpp - Convolutions over one to three dimensions --------------===//

#include "../NetworkOps.h"
#include "../Operators.h"

namespace ds::ts {

namespace {

void checkTypes(const std::string &name, const TensorRef &x, const TensorRef &weight) {
  if (x->type != weight->type)
    fail(name + " of element type " + spell(x->type) + " with a weight of " + spell(weight->type),
         "check the types given by --input");
  if (x->type != at::kFloat && x->type != at::kHalf && x->type != at::kBFloat16)
    throw Unsupported(name + " of element type " + spell(x->type));
}

/// Ranks, channels and types fit together.
void checkOperands(Call &call, const TensorRef &x, const TensorRef &weight, int64_t groups) {
  const std::string name = call.schema.name(), hint = "check the shapes given by --input";
  if (x->rank() != weight->rank() || groups < 1 || x->shape[1] != weight->shape[1] * groups ||
      weight->shape[0] % groups != 0)
    fail(name + " of shape " + spellList(x->shape) + " with a weight of shape " + spellList(weight->shape) +
             " in " + std::to_string(groups) + " groups",
         hint);
  checkTypes(name, x, weight);
}

/// The sizes that the windows give; fails where one does not fit.
Shape resultShape(const std::string &name, const TensorRef &x, const TensorRef &weight,
                  const ConvWindows &windows) {
  Shape shape = {x->shape[0], weight->shape[0]};
  for (size_t d = 0; d < windows.stride.size(); ++d) {
    int64_t stride = windows.stride[d], padding = windows.padding[d], dilation = windows.dilation[d];
    if (stride < 1 || padding < 0 || dilation < 1)
      fail(name + " with stride " + spellList(windows.stride) + ", padding " + spellList(windows.padding) +
           " and dilation " + spellList(windows.dilation));
    int64_t room = x->shape[d + 2] + 2 * padding - dilation * (weight->shape[d + 2] - 1) - 1;
    if (room < 0)
      fail(name + " of shape " + spellList(x->shape) + ": a window of the weight " +
               spellList(weight->shape) + " is larger than the padded input",
           "check the shapes given by --input");
    shape.push_back(room / stride + 1);
  }
  return shape;
}

/// As many zeros as keep the sizes; where they cannot be the same on both sides, one more goes to the end,
/// and `x` is padded by it.
TensorRef padSame(Call &call, TensorRef x, const TensorRef &weight, ConvWindows &windows) {
  Shape shape = x->shape;
  for (size_t d = 0; d < windows.stride.size(); ++d) {
    if (windows.stride[d] != 1)
      fail(call.schema.name() + " with padding 'same' and stride " + spellList(windows.stride));
    int64_t total = windows.dilation[d] * (weight->shape[d + 2] - 1);
    windows.padding.push_back(total / 2);
    shape[d + 2] += total % 2;
  }
  return shape == x->shape ? x : call.b.pad(x, Shape(shape.size(), 0), shape);
}

/// Padding is numbers, or 'same' or 'valid' in a schema of its own.
bool isPaddingText(Call &call) {
  for (const c10::Argument &argument : call.schema.arguments())
    if (argument.name() == "padding")
      return argument.type()->kind() == c10::TypeKind::StringType;
  return false;
}

TensorRef convolve(Call &call, TensorRef x, const TensorRef &weight) {
  const size_t numDims = weight->shape.size() - 2;
  ConvWindows windows{
      perDim(call, "stride", numDims), {}, perDim(call, "dilation", numDims), call.integer("groups")};
  checkOperands(call, x, weight, windows.groups);
  if (!isPaddingText(call))
    windows.padding = perDim(call, "padding", numDims);
  else if (call.text("padding") == "same")
    x = padSame(call, x, weight, windows);
  else if (call.text("padding") == "valid")
    windows.padding.assign(numDims, 0);
  else
    fail(call.schema.name() + " with padding '" + call.text("padding") + "'");
  TensorRef bias = call.optionalTensor("bias");
  if (bias && (bias->type != x->type || bias->shape != Shape{weight->shape[0]}))
    fail(call.schema.name() + " with a bias of shape " + spellList(bias->shape) + " of " + spell(bias->type) +
         " for " + std::to_string(weight->shape[0]) + " filters of " + spell(x->type));
  return emitConv(call.b, x, weight, bias, windows, resultShape(call.schema.name(), x, weight, windows));
}

/// The gradient by the input of a convolution with these windows, for the weight [I, O / groups, K...].
TensorRef convolveTransposed(Call &call, TensorRef x, const TensorRef &weight) {
  Builder &b = call.b;
  const std::string name = call.schema.name();
  const size_t numDims = weight->shape.size() - 2;
  ConvWindows windows{perDim(call, "stride", numDims), perDim(call, "padding", numDims),
                      perDim(call, "dilation", numDims), call.integer("groups")};
  checkTypes(name, x, weight);
  if (x->rank() != weight->rank() || windows.groups < 1 || x->shape[1] != weight->shape[0] ||
      weight->shape[0] % windows.groups != 0)
    fail(name + " of shape " + spellList(x->shape) + " with a weight of shape " + spellList(weight->shape) +
             " in " + std::to_string(windows.groups) + " groups",
         "check the shapes given by --input");
  Shape extra = perDim(call, "output_padding", numDims);
  Shape shape = {x->shape[0], weight->shape[1] * windows.groups};
  for (size_t d = 0; d < numDims; ++d) {
    int64_t size = (x->shape[d + 2] - 1) * windows.stride[d] - 2 * windows.padding[d] +
                   windows.dilation[d] * (weight->shape[d + 2] - 1) + 1 + extra[d];
    if (windows.stride[d] < 1 || windows.padding[d] < 0 || windows.dilation[d] < 1 || size < 1 ||
        extra[d] < 0)
      fail(name + " of shape " + spellList(x->shape) + " with stride " + spellList(windows.stride) +
           ", padding " + spellList(windows.padding) + ", dilation " + spellList(windows.dilation) +
           " and output_padding " + spellList(extra));
    if (extra[d] >= windows.stride[d])
      throw Unsupported(name + " with an output_padding of a stride or more");
    shape.push_back(size);
  }
  TensorRef result = emitTransposedConv(b, x, weight, windows, shape);
  TensorRef bias = call.optionalTensor("bias");
  return bias ? b.binary("add", result, b.broadcast(bias, {1}, shape)) : result;
}

template <bool transposed>
Value convolution(Call &call) {
  auto *compute = transposed || call.flag("transposed") ? convolveTransposed : convolve;
  TensorRef x = call.tensor("input"), weight = call.tensor("weight");
  if (weight->rank() < 3 || weight->rank() > 5)
    throw Unsupported(call.schema.name() + " with a weight of rank " + std::to_string(weight->rank()));
  if (x->rank() != weight->rank() - 1)
    return compute(call, x, weight);
  TensorRef result = compute(call, unsqueeze(call.b, x, 0), weight); // one sample without a batch
  return call.b.reshape(result, Shape(result->shape.begin() + 1, result->shape.end()));
}

constexpr Operator operators[] = {
    {"aten::_convolution", convolution<false>},    {"aten::_convolution_mode", convolution<false>},
    {"aten::convolution", convolution<false>},     {"aten::conv1d", convolution<false>},
    {"aten::conv2d", convolution<false>},          {"aten::conv3d", convolution<false>},
    {"aten::conv_transpose1d", convolution<true>}, {"aten::conv_transpose2d", convolution<true>},
    {"aten::conv_transpose3d", convolution<true>},
};

} // namespace

OperatorList convolutionOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
