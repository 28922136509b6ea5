//===- Matmul.cpp - Binds matrix products to cuBLASLt ---------------------------------===//
//
// GELU can be the library's, within the product, or a kernel's after it. Which is faster differs between
// architectures: products with GELU have been seen to take longer than both commands on Ampere and Ada
// (llm.c, pull requests 338 and 653). So both are candidates, timed as algorithms are.
//
//===---------------------------------------------------------------------------===//
#include "../MatmulOperands.h"
#include "AlgorithmChoice.h"
#include "Product.h"

#include "ds/Support/Environment.h"

#include <fmt/format.h>

#include <optional>

namespace ds::rt::cuda {
namespace {

class MatmulTask final : public CudaTask {
public:
  MatmulTask(const Driver &driver, BlasLt &blas, bool tf32)
      : driver(driver), blas(blas), tf32(tf32), plain(blas, tf32) {}

  Status describe(const MatmulDesc &desc, const MatmulMemory &memory) { return plain.describe(desc, memory); }
  /// Lets `kernel` follow the product, unless cuBLASLt applies GELU itself, to `memory`, and is faster.
  void addGelu(std::unique_ptr<CudaTask> kernel, const MatmulDesc &desc, const MatmulMemory &memory,
               const GeluEpilogue &gelu);
  Status choose(CUstream stream, uint64_t workspaceBytes);
  bool appliesGelu() const { return isWhole; }

  Status issue(CUstream stream) override {
    if (isWhole)
      return whole->issue(stream);
    Status status = plain.issue(stream);
    return status && after ? after->issue(stream) : status;
  }

private:
  /// One way of computing the command.
  struct Way {
    bool isWhole;
    Product::Algorithm algorithm;
  };

  bool recall(const AlgorithmCache::Value &kept, uint64_t workspaceBytes);
  Result<std::vector<Way>> ways(uint64_t workspaceBytes);
  void take(const Way &way) {
    isWhole = way.isWhole;
    (isWhole ? *whole : plain).take(way.algorithm);
  }
  Status time(const Way &way, CUstream stream);
  AlgorithmCache::Value nameOf(const Way &way) const;

  const Driver &driver;
  BlasLt &blas;
  bool tf32;
  Product plain;
  std::unique_ptr<CudaTask> after; ///< GELU of what `plain` gives; null without GELU
  std::optional<Product> whole;    ///< with GELU, where cuBLASLt can and may
  bool isWhole = false;
};

void MatmulTask::addGelu(std::unique_ptr<CudaTask> kernel, const MatmulDesc &desc, const MatmulMemory &memory,
                         const GeluEpilogue &gelu) {
  after = std::move(kernel);
  if (!isSet("DS_CUDA_GELU", true))
    return;
  whole.emplace(blas, tf32);
  if (!whole->describe(desc, memory, gelu))
    whole.reset();
}

/// Where there are two ways, the first word says which.
AlgorithmCache::Value MatmulTask::nameOf(const Way &way) const {
  AlgorithmCache::Value value;
  if (whole)
    value.push_back(way.isWhole);
  value.insert(value.end(), std::begin(way.algorithm.algo.data), std::end(way.algorithm.algo.data));
  return value;
}

bool MatmulTask::recall(const AlgorithmCache::Value &kept, uint64_t workspaceBytes) {
  const std::span<const uint64_t> words(kept);
  if (!whole)
    return plain.recall(words, workspaceBytes);
  if (words.empty())
    return false;
  isWhole = words[0] != 0;
  return (isWhole ? *whole : plain).recall(words.subspan(1), workspaceBytes);
}

/// Those with a kernel after the product come first: they are taken where nothing is timed.
Result<std::vector<MatmulTask::Way>> MatmulTask::ways(uint64_t workspaceBytes) {
  Result<std::vector<Product::Algorithm>> found = plain.candidates(workspaceBytes);
  if (!found)
    return found.error();
  std::vector<Way> all;
  for (const Product::Algorithm &algorithm : *found)
    all.push_back({false, algorithm});
  if (!whole)
    return all;
  if (found = whole->candidates(workspaceBytes); found)
    for (const Product::Algorithm &algorithm : *found)
      all.push_back({true, algorithm});
  return all;
}

Status MatmulTask::time(const Way &way, CUstream stream) {
  take(way);
  if (isWhole)
    return whole->issueOne(stream);
  Status status = plain.issueOne(stream);
  return status && after ? after->issue(stream) : status;
}

Status MatmulTask::choose(CUstream stream, uint64_t workspaceBytes) {
  const std::string key =
      (whole ? whole->key() + " or apart" : plain.key()) + fmt::format(" workspace {}", workspaceBytes);
  if (const auto kept = blas.cache.find(key); kept && recall(*kept, workspaceBytes))
    return {};
  const Result<std::vector<Way>> found = ways(workspaceBytes);
  if (!found)
    return found.error();
  const auto run = [&](size_t index) { return time((*found)[index], stream); };
  const auto value = [&](size_t index) { return nameOf((*found)[index]); };
  const Result<size_t> best = chooseByTime(driver, stream, blas.cache, key, {found->size(), run, value});
  if (best)
    take((*found)[*best]);
  return best ? Status() : best.error();
}

} // namespace

Result<std::unique_ptr<CudaTask>> bindMatmul(const Binding &binding, const Command &command) {
  const Program &p = binding.program;
  if (numElements(p.buffers[p.operands[command.firstOperand + 2]]) == 0)
    return std::unique_ptr<CudaTask>(std::make_unique<NoTask>());
  if (!binding.libraries.blas) {
    Result<std::unique_ptr<BlasLt>> opened = BlasLt::open(binding.hardware);
    if (!opened)
      return opened.error();
    binding.libraries.blas = std::move(*opened);
  }
  BlasLt &blas = *binding.libraries.blas;
  const MatmulOperands o = matmulOperands(p, command, binding.address);
  auto task = std::make_unique<MatmulTask>(binding.driver, blas, allowsTf32(p));
  if (Status status = task->describe(o.desc, o.sums()); !status)
    return status.error();
  if (o.hasGelu()) {
    Result<std::unique_ptr<CudaTask>> kernel = bindLibraryKernel(binding, command);
    if (!kernel)
      return kernel.error();
    task->addGelu(std::move(*kernel), o.desc, o.memory, {o.activation, o.geluInput});
  }
  if (Status status = task->choose(binding.stream, o.workspaceBytes); !status)
    return status.error();
  if (o.hasGelu())
    ++(task->appliesGelu() ? blas.gelu.within : blas.gelu.after);
  return std::unique_ptr<CudaTask>(std::move(task));
}

} // namespace ds::rt::cuda
