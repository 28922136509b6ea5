//===- Linear.cpp - Matrix products ---------------------------------------------===//

#include "../NetworkOps.h"
#include "../Operators.h"

#include <algorithm>
#include <set>

namespace ds::ts {

/// A product whose operands' last two dimensions may have been swapped just before: the product reads the
/// tensor as it was.
static TensorRef multiply(Builder &b, TensorRef x, TensorRef y, MatmulOptions options = {}) {
  if (x->shape.back() != y->shape[y->rank() - 2])
    fail("a matrix product of shapes " + spellList(x->shape) + " and " + spellList(y->shape) +
             " contracts sizes that differ",
         "check the shapes given by --input");
  if (!c10::isFloatingType(x->type))
    throw Unsupported("a matrix product of integers");
  if (x->type != y->type)
    fail("a matrix product of element types " + spell(x->type) + " and " + spell(y->type));
  if (y->transposed) {
    options.transposeRhs = true;
    y = y->transposed;
  }
  if (x->transposed && (y->rank() > 2 || x->rank() == 2)) {
    options.transposeLhs = true;
    x = x->transposed;
  }
  return emitMatmul(b, x, y, options);
}

TensorRef multiplyMatrices(Builder &b, TensorRef x, TensorRef y) {
  if (x->rank() == 0 || y->rank() == 0)
    fail("a matrix product of shapes " + spellList(x->shape) + " and " + spellList(y->shape));
  bool isRow = x->rank() == 1, isColumn = y->rank() == 1;
  if (isRow)
    x = b.reshape(x, {1, x->shape[0]});
  if (isColumn)
    y = b.reshape(y, {y->shape[0], 1});
  if (y->rank() > 2) {
    auto outer = [](const TensorRef &t) {
      return makeNamed("", Shape(t->shape.begin(), t->shape.end() - 2), t->type);
    };
    Shape batch = broadcastShapes({outer(x), outer(y)});
    auto widen = [&](const TensorRef &t) {
      Shape shape = batch;
      shape.insert(shape.end(), t->shape.end() - 2, t->shape.end());
      return broadcastTo(b, t, shape);
    };
    x = widen(x);
    y = widen(y);
  }
  TensorRef result = multiply(b, x, y);
  Shape shape = result->shape;
  if (isColumn)
    shape.pop_back();
  if (isRow)
    shape.erase(shape.end() - (isColumn ? 1 : 2));
  return b.reshape(result, shape);
}

namespace {

Value matmul(Call &call) {
  TensorRef x = call.tensor("self");
  const char *other = call.has("other")  ? "other"
                      : call.has("mat2") ? "mat2"
                      : call.has("vec")  ? "vec"
                                         : "tensor";
  return multiplyMatrices(call.b, x, call.tensor(other));
}

/// x * weight^T + bias, for x of any rank.
Value linear(Call &call) {
  Builder &b = call.b;
  TensorRef x = call.tensor("input"), weight = call.tensor("weight"), bias = call.optionalTensor("bias");
  if (weight->rank() != 2 || x->rank() < 1)
    throw Unsupported("aten::linear with a weight of rank " + std::to_string(weight->rank()));
  bool isRow = x->rank() == 1;
  if (isRow)
    x = b.reshape(x, {1, x->shape[0]});
  if (x->shape.back() != weight->shape[1])
    fail("aten::linear of shape " + spellList(x->shape) + " with a weight of shape " +
             spellList(weight->shape),
         "check the shapes given by --input");
  if (x->type != weight->type)
    fail("aten::linear of element type " + spell(x->type) + " with a weight of " + spell(weight->type),
         "check the types given by --input");
  MatmulOptions options;
  options.bias = bias;
  options.transposeRhs = !weight->transposed;
  TensorRef result = emitMatmul(b, x, weight->transposed ? weight->transposed : weight, options);
  return isRow ? b.reshape(result, {weight->shape[0]}) : result;
}

/// beta * self + alpha * (x * y): a bias where self is a row, an accumulator where it has the result's shape
/// and is computed. A known one, as a mask of scores, is no sum that is there already.
TensorRef addProduct(Call &call, const TensorRef &x, const TensorRef &y) {
  Builder &b = call.b;
  TensorRef self = call.tensor("self");
  double beta = call.numberOr("beta", 1), alpha = call.numberOr("alpha", 1);
  Shape shape = x->shape;
  shape.back() = y->shape.back();
  bool isPlain = beta == 1 && alpha == 1 && self->type == x->type;
  bool isRow = y->rank() == 2 && self->numel() == shape.back() && self->shape.back() == shape.back();
  MatmulOptions options;
  if (isPlain && isRow)
    options.bias = b.reshape(self, {shape.back()});
  else if (isPlain && self->shape == shape && !self->isKnown())
    options.accumulator = self;
  TensorRef product = multiply(b, x, y, options);
  if (options.bias || options.accumulator)
    return product;
  if (alpha != 1)
    product = combine(b, "mul", product, alpha);
  if (beta == 0)
    return product;
  return combine(b, "add", product, beta == 1 ? self : combine(b, "mul", self, beta));
}

Value addmm(Call &call) { return addProduct(call, call.tensor("mat1"), call.tensor("mat2")); }
Value baddbmm(Call &call) { return addProduct(call, call.tensor("batch1"), call.tensor("batch2")); }

Value outer(Call &call) {
  TensorRef x = call.tensor("self"), y = call.tensor(call.has("vec2") ? "vec2" : "other");
  return combine(call.b, "mul", call.b.reshape(x, {x->numel(), 1}), call.b.reshape(y, {1, y->numel()}));
}

//===----------------------------------------------------------------------===//
// einsum
//===----------------------------------------------------------------------===//

/// A tensor with a letter for each dimension.
struct Labelled {
  TensorRef tensor;
  std::string labels;
};

bool has(const std::string &labels, char label) { return labels.find(label) != std::string::npos; }

/// The tensor with its dimensions in the order of `labels`.
TensorRef arrange(Builder &b, const Labelled &x, const std::string &labels) {
  Shape perm;
  for (char label : labels)
    perm.push_back(static_cast<int64_t>(x.labels.find(label)));
  return b.transpose(x.tensor, perm);
}

/// Sums over the labels that nothing else needs.
Labelled dropLabels(Builder &b, const Labelled &x, const std::string &needed) {
  Shape dims;
  std::string kept;
  for (size_t i = 0; i < x.labels.size(); ++i)
    if (has(needed, x.labels[i]))
      kept += x.labels[i];
    else
      dims.push_back(static_cast<int64_t>(i));
  return {b.reduce("sum", x.tensor, dims), kept};
}

/// The sizes of `labels`, one after the other.
Shape sizesOf(const Labelled &x, const std::string &labels) {
  Shape sizes;
  for (char label : labels)
    sizes.push_back(x.tensor->shape[x.labels.find(label)]);
  return sizes;
}

int64_t product(const Shape &sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

/// x and y contracted over the labels that only they have: one matrix product over [batch..., rows,
/// contracted].
Labelled contract(Builder &b, const Labelled &x, const Labelled &y, const std::string &needed) {
  std::string batch, rows, columns, inner;
  for (char label : x.labels)
    (has(y.labels, label) ? (has(needed, label) ? batch : inner) : rows) += label;
  for (char label : y.labels)
    if (!has(x.labels, label))
      columns += label;
  auto matrix = [&](const Labelled &t, const std::string &first, const std::string &second) {
    Shape shape = sizesOf(t, batch);
    shape.push_back(product(sizesOf(t, first)));
    shape.push_back(product(sizesOf(t, second)));
    return b.reshape(arrange(b, t, batch + first + second), shape);
  };
  MatmulOptions options;
  options.transposeRhs = y.labels == batch + columns + inner;
  TensorRef lhs = matrix(x, rows, inner);
  TensorRef rhs = options.transposeRhs ? matrix(y, columns, inner) : matrix(y, inner, columns);
  TensorRef result = emitMatmul(b, lhs, rhs, options);
  Shape shape = sizesOf(x, batch), rowSizes = sizesOf(x, rows), columnSizes = sizesOf(y, columns);
  shape.insert(shape.end(), rowSizes.begin(), rowSizes.end());
  shape.insert(shape.end(), columnSizes.begin(), columnSizes.end());
  return {b.reshape(result, shape), batch + rows + columns};
}

/// Splits "bij,bjk->bik"; an ellipsis becomes capital letters from the end of the alphabet.
std::vector<std::string> parseEquation(std::string equation, const std::vector<TensorRef> &operands) {
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  size_t arrow = equation.find("->");
  std::string inputs = equation.substr(0, arrow);
  std::vector<std::string> terms(1);
  for (char c : inputs)
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  if (terms.size() != operands.size())
    fail("aten::einsum '" + equation + "' has " + std::to_string(terms.size()) + " terms for " +
         std::to_string(operands.size()) + " tensors");
  std::string ellipsis;
  for (size_t i = 0; i < terms.size(); ++i)
    if (size_t dots = terms[i].find("..."); dots != std::string::npos) {
      auto count = operands[i]->rank() - static_cast<int64_t>(terms[i].size() - 3);
      if (count < 0 || count > 8)
        fail("aten::einsum '" + equation + "' does not fit a tensor of rank " +
             std::to_string(operands[i]->rank()));
      std::string labels = std::string("\1\2\3\4\5\6\7\10").substr(8 - count);
      terms[i].replace(dots, 3, labels);
      ellipsis = labels.size() > ellipsis.size() ? labels : ellipsis;
    }
  std::string result;
  if (arrow != std::string::npos) {
    result = equation.substr(arrow + 2);
    if (size_t dots = result.find("..."); dots != std::string::npos)
      result.replace(dots, 3, ellipsis);
  } else { // Labels that occur once, in alphabetical order.
    std::multiset<char> letters(inputs.begin(), inputs.end());
    for (char c : std::set<char>(letters.begin(), letters.end()))
      if (std::isalpha(static_cast<unsigned char>(c)) && letters.count(c) == 1)
        result += c;
    result = ellipsis + result;
  }
  terms.push_back(result);
  return terms;
}

void checkTerm(const Labelled &x, const std::string &equation) {
  if (static_cast<int64_t>(x.labels.size()) != x.tensor->rank())
    fail("aten::einsum '" + equation + "' does not fit a tensor of shape " + spellList(x.tensor->shape));
  if (std::set<char>(x.labels.begin(), x.labels.end()).size() != x.labels.size())
    throw Unsupported("aten::einsum with a diagonal ('" + equation + "')");
}

Value einsum(Call &call) {
  Builder &b = call.b;
  std::string equation = call.text("equation");
  if (call.schema.is_vararg())
    throw Unsupported("aten::einsum with lists of dimensions in place of an equation");
  std::vector<TensorRef> operands = call.tensors("tensors");
  std::vector<std::string> terms = parseEquation(equation, operands);
  std::string result = terms.back();
  terms.pop_back();
  Labelled left{operands[0], terms[0]};
  checkTerm(left, equation);
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string later = result;
    for (size_t j = i + 1; j < terms.size(); ++j)
      later += terms[j];
    if (i > 0) {
      Labelled right{operands[i], terms[i]};
      checkTerm(right, equation);
      for (size_t k = 0; k < right.labels.size(); ++k)
        if (size_t at = left.labels.find(right.labels[k]);
            at != std::string::npos && left.tensor->shape[at] != right.tensor->shape[k])
          fail("aten::einsum '" + equation + "' of shapes " + spellList(left.tensor->shape) + " and " +
               spellList(right.tensor->shape));
      left = dropLabels(b, left, later + right.labels);
      right = dropLabels(b, right, later + left.labels);
      left = contract(b, left, right, later);
    }
    if (i + 1 == operands.size())
      left = dropLabels(b, left, later);
  }
  if (left.labels.size() != result.size())
    fail("aten::einsum '" + equation + "' names a result dimension that no operand has");
  return arrange(b, left, result);
}

constexpr Operator operators[] = {
    {"aten::matmul", matmul}, {"aten::mm", matmul},     {"aten::bmm", matmul},  {"aten::mv", matmul},
    {"aten::dot", matmul},    {"aten::linear", linear}, {"aten::addmm", addmm}, {"aten::baddbmm", baddbmm},
    {"aten::outer", outer},   {"aten::einsum", einsum},
};

} // namespace

OperatorList linearOperators() { return {operators, std::size(operators)}; }

} // namespace ds::ts
