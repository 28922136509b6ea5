//===- ProductWays.cpp - The ways of a product that cuBLASLt has -----------------------===//
#include "ProductWays.h"

namespace ds::rt::cuda {

Status InTwo::issue(CUstream stream) {
  Status status;
  for (size_t i = 0; status && i < before.size(); ++i)
    status = before[i]->issue(stream);
  if (status)
    status = product->issue(stream);
  for (size_t i = 0; status && i < after.size(); ++i)
    status = after[i]->issue(stream);
  return status;
}

Status ProductWays::add(uint64_t which, const MatmulDesc &desc, const MatmulMemory &memory,
                        const Epilogue &beside) {
  std::optional<Product> &product = which == kBoth ? both : whole;
  product.emplace(blas, tf32);
  Status status = product->describe(desc, memory, beside);
  if (!status)
    product.reset();
  return status;
}

void ProductWays::addCuts(const MatmulDesc &desc, const MatmulMemory &memory) {
  for (const int64_t unit : kCutUnits)
    if (std::unique_ptr<CutProduct> made = cut(desc, memory, unit))
      addCut({std::move(made)});
}

bool ProductWays::has(uint64_t way) const {
  return way == kApart || (way == kWhole && whole) || (way == kBoth && both) ||
         (way >= kCut && way - kCut < cuts.size());
}

Status ProductWays::find(std::vector<Way> &all, uint64_t way, uint64_t workspaceBytes) {
  Product &product = way == kWhole ? *whole : way == kBoth ? *both : plain;
  const Result<std::vector<Product::Algorithm>> found = product.candidates(workspaceBytes);
  if (!found)
    return found.error();
  for (const Product::Algorithm &algorithm : *found)
    all.push_back({way, algorithm});
  return {};
}

std::vector<ProductWays::Way> ProductWays::findCuts(const Driver &driver, CUstream stream,
                                                    uint64_t workspaceBytes, bool byTime) {
  std::vector<Way> all;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const uint64_t bytes = workspaceBytes - cuts[i].copies;
    if (!cuts[i].product->chooseRest(driver, stream, bytes, byTime))
      return {};
    const Result<std::vector<Product::Algorithm>> found = cuts[i].product->candidates(bytes);
    if (!found)
      return {};
    for (const Product::Algorithm &algorithm : *found)
      all.push_back({kCut + i, algorithm});
  }
  return all;
}

void ProductWays::take(const Way &way) {
  which = way.which;
  isCut() ? cuts[which - kCut].product->take(way.algorithm) : inOne().take(way.algorithm);
}

bool ProductWays::recall(const AlgorithmCache::Value &kept, uint64_t workspaceBytes) {
  std::span<const uint64_t> words(kept);
  uint64_t named = kApart;
  if (whole || both || hasCuts()) {
    if (words.empty() || !has(words[0]))
      return false;
    named = words[0];
    words = words.subspan(1);
  }
  which = named;
  if (!isCut())
    return inOne().recall(words, workspaceBytes);
  const InTwo &cut = cuts[which - kCut];
  return cut.product->recall(words, workspaceBytes - cut.copies);
}

AlgorithmCache::Value ProductWays::nameOf(const Way &way) const {
  AlgorithmCache::Value value;
  if (whole || both || hasCuts())
    value.push_back(way.which);
  value.insert(value.end(), std::begin(way.algorithm.algo.data), std::end(way.algorithm.algo.data));
  if (way.which >= kCut) {
    const std::span<const uint64_t> rest = cuts[way.which - kCut].product->restWords();
    value.insert(value.end(), rest.begin(), rest.end());
  }
  return value;
}

/// What a value says depends on which ways there are, so that each set has a key of its own.
std::string ProductWays::key() const {
  std::string text = whole ? whole->key() + " or apart" : plain.key();
  if (both)
    text += " or with sums";
  if (hasCuts())
    text += hasCopies() ? " or copies in two" : " or in two";
  return text;
}

} // namespace ds::rt::cuda
