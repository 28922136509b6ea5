//===- IndexExpr.cpp - Integer expressions over loop dimensions ----------------===//

#include "IndexExpr.h"
#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace mlir::ds::codegen {

namespace {
using Kind = IndexAtom::Kind;

int64_t floorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
int64_t remainder(int64_t a, int64_t b) { return a - floorDivide(a, b) * b; }

/// True when `div` is `mod.inner / mod.a`, be it written as one division of what `mod.inner` itself divides.
bool isQuotientOf(const IndexAtom &div, const IndexAtom &mod) {
  if (div.kind != Kind::FloorDiv)
    return false;
  if (div.inner == mod.inner)
    return div.a == mod.a;
  const IndexSum &inner = *mod.inner;
  if (inner.terms.size() != 1 || inner.constant != 0 || inner.terms[0].coefficient != 1)
    return false;
  const IndexAtom &nested = *inner.terms[0].atom;
  return nested.kind == Kind::FloorDiv && nested.inner == div.inner && nested.a * mod.a == div.a;
}

/// Removes b * s * (x / b) + s * (x mod b) from `sum` and returns the x to add in their place, with its scale
/// s; null when there is no such pair. This is what a reshape and its inverse leave behind.
Index mergeDivMod(IndexSum &sum, int64_t &scale) {
  for (const IndexTerm &mod : sum.terms) {
    if (mod.atom->kind != Kind::Mod)
      continue;
    for (const IndexTerm &div : sum.terms) {
      if (div.coefficient != mod.coefficient * mod.atom->a || !isQuotientOf(*div.atom, *mod.atom))
        continue;
      scale = mod.coefficient;
      Index inner = mod.atom->inner;
      const IndexAtom *gone[] = {mod.atom, div.atom};
      llvm::erase_if(sum.terms, [&](const IndexTerm &t) { return t.atom == gone[0] || t.atom == gone[1]; });
      return inner;
    }
  }
  return nullptr;
}
} // namespace

unsigned IndexContext::addDim(IndexRange range) {
  assert(dimRanges.size() < 32 && "dimension sets are 32-bit masks");
  dimRanges.push_back(range);
  return dimRanges.size() - 1;
}

Index IndexContext::intern(IndexSum sum) {
  llvm::sort(sum.terms, [](const IndexTerm &a, const IndexTerm &b) { return a.atom->id < b.atom->id; });
  SumKey key;
  key.second = sum.constant;
  for (const IndexTerm &term : sum.terms) {
    key.first.emplace_back(term.atom->id, term.coefficient);
    sum.dims |= term.atom->kind == Kind::Dim ? 1u << term.atom->dim : term.atom->inner->dims;
  }
  std::unique_ptr<IndexSum> &slot = sums[std::move(key)];
  if (!slot)
    slot = std::make_unique<IndexSum>(std::move(sum));
  return slot.get();
}

const IndexAtom *IndexContext::atom(Kind kind, unsigned dim, Index inner, int64_t a, int64_t b) {
  unsigned id = atoms.size();
  std::unique_ptr<IndexAtom> &slot = atoms[{kind, dim, inner, a, b}];
  if (!slot)
    slot = std::make_unique<IndexAtom>(IndexAtom{kind, id, dim, inner, a, b});
  return slot.get();
}

Index IndexContext::ofAtom(const IndexAtom *atom) {
  IndexSum sum;
  sum.terms.push_back({atom, 1});
  return intern(std::move(sum));
}

Index IndexContext::constant(int64_t value) {
  IndexSum sum;
  sum.constant = value;
  return intern(std::move(sum));
}

Index IndexContext::dim(unsigned number) {
  IndexRange bounds = dimRanges[number];
  if (bounds.low == bounds.high)
    return constant(bounds.low);
  return ofAtom(atom(Kind::Dim, number, nullptr, 0, 0));
}

Index IndexContext::add(Index a, Index b, int64_t scale) {
  IndexSum sum;
  sum.terms = a->terms;
  sum.constant = a->constant + scale * b->constant;
  for (const IndexTerm &term : b->terms) {
    auto *it = llvm::find_if(sum.terms, [&](const IndexTerm &t) { return t.atom == term.atom; });
    if (it == sum.terms.end())
      sum.terms.push_back({term.atom, scale * term.coefficient});
    else
      it->coefficient += scale * term.coefficient;
  }
  llvm::erase_if(sum.terms, [](const IndexTerm &t) { return t.coefficient == 0; });
  int64_t factor;
  if (Index merged = mergeDivMod(sum, factor))
    return add(intern(std::move(sum)), merged, factor);
  return intern(std::move(sum));
}

Index IndexContext::scale(Index a, int64_t factor, int64_t offset) {
  return add(constant(offset), a, factor);
}

IndexRange IndexContext::range(Index a) const {
  IndexRange result{a->constant, a->constant};
  for (const IndexTerm &term : a->terms) {
    const IndexAtom &atom = *term.atom;
    IndexRange r;
    switch (atom.kind) {
    case Kind::Dim:
      r = dimRanges[atom.dim];
      break;
    case Kind::FloorDiv:
      r = range(atom.inner);
      r = {floorDivide(r.low, atom.a), floorDivide(r.high, atom.a)};
      break;
    case Kind::Mod:
      r = {0, atom.a - 1};
      break;
    case Kind::Clamp:
      r = range(atom.inner);
      r = {std::clamp(r.low, atom.a, atom.b), std::clamp(r.high, atom.a, atom.b)};
      break;
    }
    int64_t x = term.coefficient * r.low, y = term.coefficient * r.high;
    result.low += std::min(x, y);
    result.high += std::max(x, y);
  }
  return result;
}

/// The part of `a` that `factor` divides, divided by it, and the rest.
static std::pair<IndexSum, IndexSum> splitTerms(Index a, int64_t factor) {
  IndexSum divisible, remaining;
  for (const IndexTerm &term : a->terms) {
    if (term.coefficient % factor == 0)
      divisible.terms.push_back({term.atom, term.coefficient / factor});
    else
      remaining.terms.push_back(term);
  }
  divisible.constant = floorDivide(a->constant, factor);
  remaining.constant = remainder(a->constant, factor);
  return {std::move(divisible), std::move(remaining)};
}

/// Writes a = factor * quotient + rest with rest in [0, factor); false when bounds do not show that this
/// holds.
bool IndexContext::splitByFactor(Index a, int64_t factor, Index &quotient, Index &rest) {
  auto [divisible, remaining] = splitTerms(a, factor);
  rest = intern(remaining);
  IndexRange bounds = range(rest);
  int64_t block = floorDivide(bounds.low, factor);
  if (floorDivide(bounds.high, factor) != block)
    return false;
  divisible.constant += block;
  remaining.constant -= block * factor;
  rest = intern(std::move(remaining));
  quotient = intern(std::move(divisible));
  return true;
}

/// Factors worth trying to split `a` by: the common divisors of its coefficients with `divisor`, largest
/// first.
static llvm::SmallVector<int64_t> candidateFactors(Index a, int64_t divisor) {
  llvm::SmallVector<int64_t> factors{divisor};
  for (const IndexTerm &term : a->terms)
    factors.push_back(std::gcd(term.coefficient, divisor));
  llvm::sort(factors, std::greater<>());
  factors.erase(std::unique(factors.begin(), factors.end()), factors.end());
  llvm::erase(factors, 1);
  return factors;
}

Index IndexContext::floorDiv(Index a, int64_t divisor) {
  assert(divisor > 0 && "division rounds down");
  if (divisor == 1 || (a->isConstant() && a->constant == 0))
    return a;
  for (int64_t factor : candidateFactors(a, divisor)) {
    Index quotient, rest;
    if (splitByFactor(a, factor, quotient, rest))
      return floorDiv(quotient, divisor / factor);
  }
  // What is divisible leaves the division even where the rest cannot.
  auto [outside, inside] = splitTerms(a, divisor);
  Index inner = intern(std::move(inside));
  if (inner->terms.size() == 1 && inner->constant == 0 && inner->terms[0].coefficient == 1 &&
      inner->terms[0].atom->kind == Kind::FloorDiv)
    return add(intern(std::move(outside)),
               floorDiv(inner->terms[0].atom->inner, inner->terms[0].atom->a * divisor));
  return add(intern(std::move(outside)), ofAtom(atom(Kind::FloorDiv, 0, inner, divisor, 0)));
}

Index IndexContext::mod(Index a, int64_t divisor) {
  assert(divisor > 0 && "remainders are of positive divisors");
  if (divisor == 1)
    return constant(0);
  for (int64_t factor : candidateFactors(a, divisor)) {
    Index quotient, rest;
    if (splitByFactor(a, factor, quotient, rest))
      return factor == divisor ? rest : add(rest, mod(quotient, divisor / factor), factor);
  }
  IndexSum inside;
  for (const IndexTerm &term : a->terms)
    if (term.coefficient % divisor != 0)
      inside.terms.push_back(term);
  inside.constant = remainder(a->constant, divisor);
  return ofAtom(atom(Kind::Mod, 0, intern(std::move(inside)), divisor, 0));
}

Index IndexContext::clamp(Index a, int64_t low, int64_t high) {
  IndexRange bounds = range(a);
  if (bounds.low >= low && bounds.high <= high)
    return a;
  if (bounds.high <= low)
    return constant(low);
  if (bounds.low >= high)
    return constant(high);
  return ofAtom(atom(Kind::Clamp, 0, a, low, high));
}

Index IndexContext::linearize(llvm::ArrayRef<Index> indices, llvm::ArrayRef<int64_t> shape) {
  Index position = constant(0);
  for (auto [index, size] : llvm::zip_equal(indices, shape))
    position = add(index, position, size);
  return position;
}

llvm::SmallVector<Index> IndexContext::delinearize(Index position, llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<Index> indices(shape.size(), constant(0));
  for (size_t k = shape.size(); k-- > 0;) {
    if (shape[k] <= 1)
      continue;
    bool outermost = llvm::all_of(shape.take_front(k), [](int64_t n) { return n == 1; });
    indices[k] = outermost ? position : mod(position, shape[k]);
    if (!outermost)
      position = floorDiv(position, shape[k]);
  }
  return indices;
}

int64_t linearCoefficient(Index a, unsigned dim) {
  for (const IndexTerm &term : a->terms)
    if (term.atom->kind == Kind::Dim && term.atom->dim == dim)
      return term.coefficient;
  return 0;
}

bool isLinearIn(Index a, unsigned dim) {
  return llvm::none_of(a->terms, [&](const IndexTerm &term) {
    return term.atom->kind != Kind::Dim && (term.atom->inner->dims & (1u << dim)) != 0;
  });
}

} // namespace mlir::ds::codegen
