//===- Matmul.cpp - Binds matrix products to cuBLASLt ---------------------------------===//
//
// GELU can be the library's, within the product, or a kernel's after it. Which is faster differs between
// architectures: products with GELU have been seen to take longer than both commands on Ampere and Ada
// (llm.c, pull requests 338 and 653). So both are candidates, timed as algorithms are.
//
//===---------------------------------------------------------------------------===//
#include "Commands.h"
#include "Cuda/Binding/AlgorithmChoice.h"
#include "Cuda/Binding/Choices.h"
#include "Product.h"
#include "Program/MatmulOperands.h"
#include "Program/Verify.h"

#include "ds/Support/Environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  /// What it waits for: an algorithm within so much workspace, timed on `stream`.
  Choice choice(CUstream stream, uint64_t workspaceBytes, const std::string &what);

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
  Result<AlgorithmCache::Value> choose(CUstream stream, uint64_t workspaceBytes, bool byTime);
  Status issueOne(CUstream stream);
  void count();
  Result<std::vector<Way>> ways(uint64_t workspaceBytes);
  void take(const Way &way) {
    isWhole = way.isWhole;
    (isWhole ? *whole : plain).take(way.algorithm);
  }
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

/// The first of the products, of which the command may have many of one kind.
Status MatmulTask::issueOne(CUstream stream) {
  if (isWhole)
    return whole->issueOne(stream);
  Status status = plain.issueOne(stream);
  return status && after ? after->issue(stream) : status;
}

Result<AlgorithmCache::Value> MatmulTask::choose(CUstream stream, uint64_t workspaceBytes, bool byTime) {
  const Result<std::vector<Way>> found = ways(workspaceBytes);
  if (!found)
    return found.error();
  if (!byTime)
    return nameOf(found->front());
  const auto run = [&](size_t index) {
    take((*found)[index]);
    return issueOne(stream);
  };
  const auto name = [&](size_t index) {
    const Way &way = (*found)[index];
    return fmt::format("{}algorithm {:x}", way.isWhole ? "with GELU, " : "",
                       fmt::join(way.algorithm.algo.data, "."));
  };
  const Result<size_t> best = fastest(driver, stream, {found->size(), run, name});
  if (!best)
    return best.error();
  return nameOf((*found)[*best]);
}

void MatmulTask::count() {
  if (after)
    ++(isWhole ? blas.gelu.within : blas.gelu.after);
}

Choice MatmulTask::choice(CUstream stream, uint64_t workspaceBytes, const std::string &what) {
  return {(whole ? whole->key() + " or apart" : plain.key()) + fmt::format(" workspace {}", workspaceBytes),
          what,
          [=, this](bool byTime) { return choose(stream, workspaceBytes, byTime); },
          [=, this](const AlgorithmCache::Value &value) -> Status {
            if (recall(value, workspaceBytes))
              return {};
            return Error{ExitCode::Device,
                         fmt::format("cuBLASLt refuses algorithm {:x} within {} bytes of workspace",
                                     fmt::join(value, "."), workspaceBytes),
                         ""};
          },
          [=, this] { return runOnce(driver, stream, [&] { return issueOne(stream); }); },
          [](const Error &why) -> Status { return why; },
          [this] { count(); }};
}

/// "commands[3] (mlp of layer 0): product of 4x6 and 6x5".
std::string describeProduct(const Program &program, uint32_t index, const MatmulDesc &desc) {
  const auto shape = [&](const MatmulOperand &operand) {
    return fmt::format("{}", fmt::join(operand.shape, operand.shape + desc.rank, "x"));
  };
  return fmt::format("{}: product of {} and {}", describeCommand(program, index), shape(desc.a),
                     shape(desc.b));
}

} // namespace

Result<std::unique_ptr<CudaTask>> bindMatmul(const Binding &binding, uint32_t index) {
  const Program &p = binding.program;
  const Command &command = p.commands[index];
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
  binding.libraries.choices->add(
      task->choice(binding.stream, o.workspaceBytes, describeProduct(p, index, o.desc)));
  return std::unique_ptr<CudaTask>(std::move(task));
}

} // namespace ds::rt::cuda
