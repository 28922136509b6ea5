//===- BodyWriterShapes.cpp - Ops that move or reduce elements ----------------===//
#include "BodyWriter.h"

#include <algorithm>
#include <numeric>

using namespace ds::test;

BodyWriter::Written BodyWriter::broadcastOf(const Shape &shape, int depth) {
  Shape inner, dims;
  for (size_t k = 0; k < shape.size(); ++k) {
    if (text.chance(0.4))
      continue;
    inner.push_back(text.chance(0.2) ? 1 : shape[k]);
    dims.push_back(k);
  }
  Written x = make(inner, depth - 1);
  return text.line("ds.broadcast " + x.name + " dims " + list(dims) + " : " + typeOf(inner, element) +
                       " -> " + typeOf(shape, element),
                   shape, element, x.bound);
}

BodyWriter::Written BodyWriter::sliceOf(const Shape &shape, int depth) {
  Shape outer, offsets, strides;
  for (int64_t size : shape) {
    bool cut = text.chance(0.5);
    offsets.push_back(cut ? text.pick(0, 5) : 0);
    strides.push_back(cut && text.chance(0.3) ? text.pick(1, 3) : 1);
    outer.push_back(offsets.back() + strides.back() * std::max<int64_t>(size - 1, 0) + (size > 0) +
                    (cut ? text.pick(0, 4) : 0));
  }
  Written x = make(outer, depth - 1);
  return text.line("ds.slice " + x.name + " offsets " + list(offsets) + " strides " + list(strides) + " : " +
                       typeOf(outer, element) + " -> " + typeOf(shape, element),
                   shape, element, x.bound);
}

BodyWriter::Written BodyWriter::padOf(const Shape &shape, int depth) {
  Shape inner, offsets, strides;
  for (int64_t size : shape) {
    int64_t stride = text.chance(0.3) ? 2 : 1,
            offset = size > 1 && text.chance(0.5) ? text.pick(0, size - 1) : 0;
    int64_t most = size == 0 ? 0 : (size - 1 - offset) / stride + 1;
    inner.push_back(text.chance(0.6) ? most : text.pick(0, most));
    offsets.push_back(offset);
    strides.push_back(stride);
  }
  Written x = make(inner, depth - 1);
  return text.line("ds.pad " + x.name + " offsets " + list(offsets) + " strides " + list(strides) + " : " +
                       typeOf(inner, element) + " -> " + typeOf(shape, element),
                   shape, element, x.bound);
}

BodyWriter::Written BodyWriter::concatOf(const Shape &shape, int depth) {
  if (shape.empty())
    return leaf(shape);
  size_t dim = text.pick(0, shape.size() - 1);
  int64_t left = shape[dim];
  std::string names, types;
  double bound = 0;
  do {
    Shape piece = shape;
    piece[dim] = text.chance(0.3) ? left : text.pick(0, left);
    left -= piece[dim];
    Written x = make(piece, depth - 2);
    names += (names.empty() ? "" : ", ") + x.name;
    types += (types.empty() ? "" : ", ") + typeOf(piece, element);
    bound = std::max(bound, x.bound);
  } while (left > 0);
  return text.line("ds.concat " + names + " dim " + std::to_string(dim) + " : " + types + " -> " +
                       typeOf(shape, element),
                   shape, element, bound);
}

BodyWriter::Written BodyWriter::reshapeOf(const Shape &shape, int depth) {
  int64_t total = 1;
  for (int64_t size : shape)
    total *= size;
  Shape inner;
  for (int64_t rest = total; rest > 1 && inner.size() < 3;) {
    int64_t factor = inner.size() == 2 ? rest : text.pick(1, rest);
    while (rest % factor)
      --factor;
    inner.push_back(factor);
    rest /= factor;
    if (inner.size() == 3 && rest > 1)
      inner.back() *= rest;
  }
  int64_t made = 1;
  for (int64_t size : inner)
    made *= size;
  if (made != total)
    inner = {total};
  Written x = make(inner, depth - 1);
  return text.line("ds.reshape " + x.name + " : " + typeOf(inner, element) + " -> " + typeOf(shape, element),
                   shape, element, x.bound);
}

BodyWriter::Written BodyWriter::transposeOf(const Shape &shape, int depth) {
  Shape perm(shape.size()), inner(shape.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::shuffle(perm.begin(), perm.end(), text.generator);
  for (size_t k = 0; k < shape.size(); ++k)
    inner[perm[k]] = shape[k];
  Written x = make(inner, depth - 1);
  return text.line("ds.transpose " + x.name + " perm " + list(perm) + " : " + typeOf(inner, element) +
                       " -> " + typeOf(shape, element),
                   shape, element, x.bound);
}

BodyWriter::Halves BodyWriter::split(const Shape &shape) const {
  Halves halves;
  for (size_t k = 0; k < shape.size(); ++k) {
    bool reduced = columns ? k < statisticDims : k + statisticDims >= shape.size();
    (reduced ? halves.reduced : halves.kept).push_back(k);
    if (reduced)
      halves.elements *= shape[k];
    else
      halves.keptShape.push_back(shape[k]);
  }
  return halves;
}

/// A statistic of each row (or column), repeated over it.
BodyWriter::Written BodyWriter::statisticOf(const Shape &shape, int depth) {
  auto [dims, kept, keptShape, elements] = split(shape);
  Written x = bounded(make(shape, depth - 1), 50);
  if (elements == 0)
    return x;
  static const char *kinds[] = {"sum", "max", "min"};
  std::string kind = kinds[text.pick(0, 2)];
  double bound = kind == "sum" ? x.bound * double(elements) : x.bound;
  Written r = text.line("ds.reduce " + kind + " " + x.name + " dims " + list(dims) + " : " +
                            typeOf(shape, element) + " -> " + typeOf(keptShape, element),
                        keptShape, element, bound);
  return text.line("ds.broadcast " + r.name + " dims " + list(kept) + " : " + typeOf(keptShape, element) +
                       " -> " + typeOf(shape, element),
                   shape, element, bound);
}

BodyWriter::Written BodyWriter::indexed(const Shape &shape, int depth) {
  switch (text.pick(0, 5)) {
  case 0:
    return broadcastOf(shape, depth);
  case 1:
    return sliceOf(shape, depth);
  case 2:
    return padOf(shape, depth);
  case 3:
    return concatOf(shape, depth);
  case 4:
    return reshapeOf(shape, depth);
  default:
    return transposeOf(shape, depth);
  }
}
