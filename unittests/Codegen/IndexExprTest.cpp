//===- IndexExprTest.cpp - Simplification under bounds -------------------------===//

#include "../../lib/Codegen/IndexExpr.h"
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace mlir::ds::codegen;

namespace {

int64_t floorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

int64_t evaluate(Index index, const std::vector<int64_t> &dims) {
  int64_t sum = index->constant;
  for (const IndexTerm &term : index->terms) {
    const IndexAtom &atom = *term.atom;
    int64_t inner = atom.inner ? evaluate(atom.inner, dims) : 0;
    switch (atom.kind) {
    case IndexAtom::Kind::Dim:
      sum += term.coefficient * dims[atom.dim];
      break;
    case IndexAtom::Kind::FloorDiv:
      sum += term.coefficient * floorDivide(inner, atom.a);
      break;
    case IndexAtom::Kind::Mod:
      sum += term.coefficient * (inner - floorDivide(inner, atom.a) * atom.a);
      break;
    case IndexAtom::Kind::Clamp:
      sum += term.coefficient * std::clamp(inner, atom.a, atom.b);
      break;
    }
  }
  return sum;
}

TEST(IndexExpr, ReshapeAndBackIsNothing) {
  IndexContext context;
  context.addDim({0, 5});
  context.addDim({0, 6});
  context.addDim({0, 7});
  Index dims[] = {context.dim(0), context.dim(1), context.dim(2)};
  Index position = context.linearize(dims, {6, 7, 8});
  std::vector<std::vector<int64_t>> shapes{{42, 8}, {6, 56}, {336}, {2, 3, 7, 2, 4}, {3, 112}};
  for (const std::vector<int64_t> &shape : shapes) {
    auto other = context.delinearize(position, shape);
    EXPECT_EQ(context.linearize(other, shape), position);
    auto back = context.delinearize(context.linearize(other, shape), {6, 7, 8});
    for (int k = 0; k < 3; ++k)
      EXPECT_EQ(back[k], dims[k]);
  }
}

/// One joined dimension that is split in three and put together again, as joining of loops asks for.
TEST(IndexExpr, SplitsOfOneDimensionRejoin) {
  IndexContext context;
  context.addDim({0, 335});
  Index x = context.dim(0);
  auto parts = context.delinearize(x, {6, 7, 8});
  EXPECT_EQ(context.linearize(parts, {6, 7, 8}), x);
  // 6 x 7 rows of 8 in a buffer whose rows are 24 apart: only the row and the column remain.
  Index address = context.constant(0);
  for (auto [part, stride] : llvm::zip(parts, llvm::ArrayRef<int64_t>{168, 24, 1}))
    address = context.add(address, part, stride);
  EXPECT_EQ(address->terms.size(), 2u);
}

TEST(IndexExpr, BoundsDecide) {
  IndexContext context;
  context.addDim({0, 3});
  context.addDim({0, 63});
  Index x = context.add(context.dim(1), context.dim(0), 64);
  EXPECT_EQ(context.floorDiv(x, 64), context.dim(0));
  EXPECT_EQ(context.mod(x, 64), context.dim(1));
  EXPECT_EQ(context.floorDiv(x, 128), context.floorDiv(context.dim(0), 2)) << "64 x + y with y < 64";
  EXPECT_EQ(context.clamp(context.dim(1), -1, 63), context.dim(1));
  EXPECT_EQ(context.clamp(context.dim(1), 70, 90), context.constant(70));
}

/// Random expressions keep their value through simplification, and their bounds hold.
TEST(IndexExpr, SimplificationKeepsValues) {
  std::mt19937 generator(7);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(generator);
  };
  using Evaluate = std::function<int64_t(const std::vector<int64_t> &)>;
  for (int round = 0; round < 3000; ++round) {
    IndexContext context;
    std::vector<int64_t> sizes;
    std::vector<std::pair<Index, Evaluate>> pool;
    for (unsigned d = 0; d < 3; ++d) {
      sizes.push_back(pick(1, 12));
      context.addDim({0, sizes.back() - 1});
      pool.emplace_back(context.dim(d), [d](const std::vector<int64_t> &x) { return x[d]; });
    }
    for (int step = 0; step < 6; ++step) {
      auto [a, fa] = pool[pick(0, pool.size() - 1)];
      auto [b, fb] = pool[pick(0, pool.size() - 1)];
      int64_t c = pick(1, 12), k = pick(-6, 12);
      switch (pick(0, 4)) {
      case 0:
        pool.emplace_back(context.add(a, b, k), [=, fa = fa, fb = fb](auto &x) { return fa(x) + k * fb(x); });
        break;
      case 1:
        pool.emplace_back(context.scale(a, c, k), [=, fa = fa](auto &x) { return fa(x) * c + k; });
        break;
      case 2:
        pool.emplace_back(context.floorDiv(a, c), [=, fa = fa](auto &x) { return floorDivide(fa(x), c); });
        break;
      case 3:
        pool.emplace_back(context.mod(a, c),
                          [=, fa = fa](auto &x) { return fa(x) - floorDivide(fa(x), c) * c; });
        break;
      default:
        pool.emplace_back(context.clamp(a, k, k + c),
                          [=, fa = fa](auto &x) { return std::clamp(fa(x), k, k + c); });
      }
    }
    for (auto &[index, meaning] : pool) {
      IndexRange range = context.range(index);
      for (int sample = 0; sample < 20; ++sample) {
        std::vector<int64_t> x;
        for (int64_t size : sizes)
          x.push_back(pick(0, size - 1));
        int64_t value = evaluate(index, x);
        ASSERT_EQ(value, meaning(x));
        ASSERT_LE(range.low, value);
        ASSERT_GE(range.high, value);
      }
    }
  }
}

} // namespace
