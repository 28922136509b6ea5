//===- Matmul.cpp - Binds matrix products to cuBLASLt ---------------------------------===//
//
// GELU can be the library's, within the product, or a kernel's after it. Which is faster differs between
// architectures: products with GELU have been seen to take longer than both commands on Ampere and Ada
// (llm.c, pull requests 338 and 653). So both are candidates, timed as algorithms are. Likewise the sums of a
// factor, which are a bias's gradient, can be the library's, or those of the kernels that the program has for
// them: these are bound a second time here, to be timed with the product that leaves them their work. A
// product with GELU's gradient can make the sums of its result as well, which are the gradient of the bias
// before GELU; the product of the weight's gradient, which follows and reads that result, then need not. A
// product of an odd size can be multiplied in two calls (CutProduct.h).
//
//===---------------------------------------------------------------------------===//
#include "Cuda/Binding/AlgorithmChoice.h"
#include "Cuda/Binding/Choices.h"
#include "Cuda/Commands.h"
#include "PackedProduct.h"
#include "Program/MatmulOperands.h"
#include "Program/Verify.h"
#include "SumMakers.h"

#include "ds/Support/Environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace ds::rt::cuda {
namespace {

class MatmulTask final : public CudaTask {
public:
  using Way = ProductWays::Way;

  MatmulTask(const Driver &driver, BlasLt &blas, bool tf32) : driver(driver), blas(blas), all(blas, tf32) {}

  Status describe(const MatmulDesc &desc, const MatmulMemory &memory) { return all.describe(desc, memory); }
  /// Lets `kernel` follow the product, unless cuBLASLt applies GELU itself, to `memory`, and is faster.
  void addGelu(std::unique_ptr<CudaTask> kernel, const MatmulDesc &desc, const MatmulMemory &memory,
               const Epilogue &gelu);
  /// Lets the product make the sums that it names where that is faster than it and `tasks`, which make them
  /// as the commands `commands`.
  void addSums(std::vector<std::unique_ptr<CudaTask>> tasks, std::vector<uint32_t> commands,
               const MatmulDesc &desc, const MatmulMemory &memory, const Epilogue &sums);
  /// Lets the product be multiplied in two calls where that is possible and faster, on copies of operands
  /// where `workspaceBytes` are enough for those that need some.
  Status addCuts(const Binding &binding, const MatmulDesc &desc, const MatmulMemory &memory,
                 uint64_t workspaceBytes);
  /// What it waits for: an algorithm within so much workspace, timed on `stream`.
  Choice choice(CUstream stream, uint64_t workspaceBytes, const std::string &what);

  Status issue(CUstream stream) override {
    Status status = all.issue(stream);
    return status && hasGeluLeft() ? after->issue(stream) : status;
  }
  std::vector<uint32_t> replaced() const override { return makesSums() ? makers : std::vector<uint32_t>(); }

private:
  void noteNoSums(const Error &why);
  bool hasGeluLeft() const { return after && all.taken() == ProductWays::kApart; }
  bool makesSums() const {
    return all.taken() == ProductWays::kBoth || (all.taken() == ProductWays::kWhole && !after);
  }
  bool areMadeElsewhere() const;
  Result<AlgorithmCache::Value> choose(CUstream stream, uint64_t workspaceBytes, bool byTime);
  Status issueOne(CUstream stream);
  void count();
  Result<std::vector<Way>> ways(CUstream stream, uint64_t workspaceBytes, bool byTime);
  std::string describe(const Way &way) const;

  const Driver &driver;
  BlasLt &blas;
  ProductWays all;
  std::unique_ptr<CudaTask> after;                ///< GELU of what the product alone gives; null without GELU
  std::vector<std::unique_ptr<CudaTask>> kernels; ///< that make sums, while ways are timed
  std::vector<uint32_t> makers;                   ///< the commands that are bound so; empty without sums
};

void MatmulTask::addGelu(std::unique_ptr<CudaTask> kernel, const MatmulDesc &desc, const MatmulMemory &memory,
                         const Epilogue &gelu) {
  after = std::move(kernel);
  if (isSet("DS_CUDA_GELU", true))
    (void)all.add(ProductWays::kWhole, desc, memory, gelu); // else the kernel does it
}

void MatmulTask::addSums(std::vector<std::unique_ptr<CudaTask>> tasks, std::vector<uint32_t> commands,
                         const MatmulDesc &desc, const MatmulMemory &memory, const Epilogue &sums) {
  kernels = std::move(tasks);
  makers = std::move(commands);
  if (!isSet("DS_CUDA_BGRAD", true) || (after && !isSet("DS_CUDA_GELU", true)))
    return;
  if (Status status = all.add(after ? ProductWays::kBoth : ProductWays::kWhole, desc, memory, sums); !status)
    noteNoSums(status.error());
}

Status MatmulTask::addCuts(const Binding &binding, const MatmulDesc &desc, const MatmulMemory &memory,
                           uint64_t workspaceBytes) {
  if (!isSet("DS_CUDA_CUT", true))
    return {};
  all.addCuts(desc, memory);
  const std::optional<PackedRows> rows = packRows(desc);
  return rows && !all.hasCuts() && rows->bytes <= workspaceBytes
             ? addPackedWays(all, binding, desc, memory, *rows)
             : Status();
}

void MatmulTask::noteNoSums(const Error &why) {
  if (!makers.empty() && blas.noBiasGradients.empty())
    blas.noBiasGradients = why.message;
}

/// Whether a product with GELU's gradient, for which a way was taken before, makes the sums of this one's
/// factor.
bool MatmulTask::areMadeElsewhere() const {
  return !after && !makers.empty() && std::ranges::all_of(makers, [&](uint32_t maker) {
    return std::ranges::find(blas.madeWithGelu, maker) != blas.madeWithGelu.end();
  });
}

std::string MatmulTask::describe(const Way &way) const {
  const char *how = way.which >= ProductWays::kCut     ? "in two calls, "
                    : way.which == ProductWays::kApart ? ""
                    : way.which == ProductWays::kBoth  ? "with GELU's gradient and sums of the result, "
                    : after                            ? "with GELU, "
                                                       : "with sums of a factor, ";
  return fmt::format("{}algorithm {:x}", how, fmt::join(way.algorithm.algo.data, "."));
}

/// The first is taken where nothing is timed: in two calls, for odd sizes have no fast kernel, unless they
/// need copies, else with kernels beside the product.
Result<std::vector<MatmulTask::Way>> MatmulTask::ways(CUstream stream, uint64_t workspaceBytes, bool byTime) {
  const std::vector<Way> cut = all.findCuts(driver, stream, workspaceBytes, byTime);
  std::vector<Way> found = all.hasCopies() ? std::vector<Way>() : cut;
  if (Status status = all.find(found, ProductWays::kApart, workspaceBytes); !status)
    return status.error();
  if (all.hasCopies())
    found.insert(found.end(), cut.begin(), cut.end());
  for (const uint64_t which : {ProductWays::kWhole, ProductWays::kBoth}) {
    if (!all.has(which) || areMadeElsewhere())
      continue;
    Status status = all.find(found, which, workspaceBytes);
    if (!status && (which == ProductWays::kBoth || !after))
      noteNoSums(status.error());
  }
  return found;
}

/// The first of the products, of which the command may have many of one kind, and the kernels beside it.
Status MatmulTask::issueOne(CUstream stream) {
  Status status = all.issueOne(stream);
  if (status && hasGeluLeft())
    status = after->issue(stream);
  if (makesSums() || areMadeElsewhere())
    return status;
  for (const std::unique_ptr<CudaTask> &kernel : kernels)
    if (status)
      status = kernel->issue(stream);
  return status;
}

Result<AlgorithmCache::Value> MatmulTask::choose(CUstream stream, uint64_t workspaceBytes, bool byTime) {
  const Result<std::vector<Way>> found = ways(stream, workspaceBytes, byTime);
  if (!found)
    return found.error();
  if (!byTime)
    return all.nameOf(found->front());
  const auto run = [&](size_t index) {
    all.take((*found)[index]);
    return issueOne(stream);
  };
  const auto name = [&](size_t index) { return describe((*found)[index]); };
  const Result<size_t> best = fastest(driver, stream, {found->size(), run, name});
  if (!best)
    return best.error();
  return all.nameOf((*found)[*best]);
}

void MatmulTask::count() {
  const auto add = [](BlasLt::Shares &shares, bool isWithin) { ++(isWithin ? shares.within : shares.apart); };
  if (after)
    add(blas.gelu, !hasGeluLeft());
  if (!makers.empty() && !areMadeElsewhere())
    add(after ? blas.geluBiasGradients : blas.biasGradients, makesSums());
  if (after && makesSums())
    blas.madeWithGelu.insert(blas.madeWithGelu.end(), makers.begin(), makers.end());
  if (all.hasCuts())
    add(blas.cut, all.taken() >= ProductWays::kCut);
  kernels.clear(); // the program's own commands from here on
}

Choice MatmulTask::choice(CUstream stream, uint64_t workspaceBytes, const std::string &what) {
  return {all.key() + fmt::format(" workspace {}", workspaceBytes),
          what,
          [=, this](bool byTime) { return choose(stream, workspaceBytes, byTime); },
          [=, this](const AlgorithmCache::Value &value) -> Status {
            if (all.recall(value, workspaceBytes))
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

/// Shows `task` the commands whose work it may do.
Status bindSums(const Binding &binding, uint32_t index, const MatmulOperands &o, MatmulTask &task) {
  std::vector<uint32_t> makers = findSumMakers(binding.program, index, o.summed);
  std::vector<std::unique_ptr<CudaTask>> kernels;
  for (uint32_t maker : makers) {
    Result<std::unique_ptr<CudaTask>> kernel = bindKernel(binding, binding.program.commands[maker]);
    if (!kernel)
      return kernel.error();
    kernels.push_back(std::move(*kernel));
  }
  if (!makers.empty())
    task.addSums(std::move(kernels), std::move(makers), o.desc, o.memory,
                 {o.activation, o.geluInput, o.summed, o.sumsOf, o.sumsType});
  return {};
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
  if (o.summed != Summed::None)
    if (Status status = bindSums(binding, index, o, *task); !status)
      return status.error();
  if (!o.hasGelu() && o.summed == Summed::None)
    if (Status status = task->addCuts(binding, o.desc, o.memory, o.workspaceBytes); !status)
      return status.error();
  binding.libraries.choices->add(
      task->choice(binding.stream, o.workspaceBytes, describeProduct(p, index, o.desc)));
  return std::unique_ptr<CudaTask>(std::move(task));
}

} // namespace ds::rt::cuda
