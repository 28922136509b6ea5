//===- Matmul.cpp - Binds matrix products to cuBLASLt ---------------------------------===//
//
// GELU can be the library's, within the product, or a kernel's after it. Which is faster differs between
// architectures: products with GELU have been seen to take longer than both commands on Ampere and Ada
// (llm.c, pull requests 338 and 653). So both are candidates, timed as algorithms are. Likewise the sums of a
// factor, which are a bias's gradient, can be the library's, or those of the kernels that the program has for
// them: these are bound a second time here, to be timed with the product that leaves them their work. A
// product of an odd size can be multiplied in two calls (CutProduct.h).
//
//===---------------------------------------------------------------------------===//
#include "Cuda/Binding/AlgorithmChoice.h"
#include "Cuda/Binding/Choices.h"
#include "Cuda/Commands.h"
#include "CutProduct.h"
#include "Program/Execution.h"
#include "Program/MatmulOperands.h"
#include "Program/Verify.h"

#include "ds/Support/Environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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
               const Epilogue &gelu);
  /// Lets the product make the sums of a factor where that is faster than it and `kernels`, which make them
  /// as the commands `makers`.
  void addSums(std::vector<std::unique_ptr<CudaTask>> kernels, std::vector<uint32_t> makers,
               const MatmulDesc &desc, const MatmulMemory &memory, const Epilogue &sums);
  /// Lets the product be multiplied in two calls where that is possible and faster.
  void addCuts(const MatmulDesc &desc, const MatmulMemory &memory);
  /// What it waits for: an algorithm within so much workspace, timed on `stream`.
  Choice choice(CUstream stream, uint64_t workspaceBytes, const std::string &what);

  Status issue(CUstream stream) override {
    if (cut)
      return cut->issue(stream);
    if (isWhole)
      return whole->issue(stream);
    Status status = plain.issue(stream);
    return status && after ? after->issue(stream) : status;
  }
  std::vector<uint32_t> replaced() const override { return isWhole ? makers : std::vector<uint32_t>(); }

private:
  /// One way of computing the command: 0 with kernels beside the product, if there are some; 1 whole; from 2
  /// on cut.
  struct Way {
    uint64_t which;
    Product::Algorithm algorithm;
  };
  static constexpr uint64_t kApart = 0, kWhole = 1, kCut = 2;

  void noteNoSums(const Error &why);
  bool recall(const AlgorithmCache::Value &kept, uint64_t workspaceBytes);
  Result<AlgorithmCache::Value> choose(CUstream stream, uint64_t workspaceBytes, bool byTime);
  Status issueOne(CUstream stream);
  void count();
  Result<std::vector<Way>> ways(CUstream stream, uint64_t workspaceBytes, bool byTime);
  std::vector<Way> cutWays(CUstream stream, uint64_t workspaceBytes, bool byTime);
  bool hasWays() const { return whole.has_value() || !cuts.empty(); }
  void select(uint64_t which) {
    isWhole = which == kWhole;
    cut = which < kCut ? nullptr : cuts[which - kCut].get();
  }
  void take(const Way &way) {
    select(way.which);
    cut ? cut->take(way.algorithm) : (isWhole ? *whole : plain).take(way.algorithm);
  }
  std::string describe(const Way &way) const;
  AlgorithmCache::Value nameOf(const Way &way) const;

  const Driver &driver;
  BlasLt &blas;
  bool tf32;
  Product plain;
  std::unique_ptr<CudaTask> after;               ///< GELU of what `plain` gives; null without GELU
  std::vector<std::unique_ptr<CudaTask>> before; ///< sums of a factor, while ways are timed
  std::vector<uint32_t> makers;                  ///< the commands that are bound so; empty without sums
  std::optional<Product> whole;                  ///< with GELU or sums, where cuBLASLt can and may
  bool isWhole = false;
  std::vector<std::unique_ptr<CutProduct>> cuts; ///< of an odd size
  CutProduct *cut = nullptr;                     ///< the one that is taken
};

void MatmulTask::addGelu(std::unique_ptr<CudaTask> kernel, const MatmulDesc &desc, const MatmulMemory &memory,
                         const Epilogue &gelu) {
  after = std::move(kernel);
  if (!isSet("DS_CUDA_GELU", true))
    return;
  whole.emplace(blas, tf32);
  if (!whole->describe(desc, memory, gelu))
    whole.reset();
}

void MatmulTask::addSums(std::vector<std::unique_ptr<CudaTask>> kernels, std::vector<uint32_t> commands,
                         const MatmulDesc &desc, const MatmulMemory &memory, const Epilogue &sums) {
  before = std::move(kernels);
  makers = std::move(commands);
  if (!isSet("DS_CUDA_BGRAD", true))
    return;
  whole.emplace(blas, tf32);
  if (Status status = whole->describe(desc, memory, sums); !status) {
    noteNoSums(status.error());
    whole.reset();
  }
}

void MatmulTask::noteNoSums(const Error &why) {
  if (!makers.empty() && blas.noBiasGradients.empty())
    blas.noBiasGradients = why.message;
}

/// The main part of whole 16 bytes, or of whole lines of 128.
void MatmulTask::addCuts(const MatmulDesc &desc, const MatmulMemory &memory) {
  if (!isSet("DS_CUDA_CUT", true))
    return;
  for (const int64_t unit : {8, 64})
    if (std::unique_ptr<CutProduct> made = CutProduct::make(blas, tf32, desc, memory, unit))
      cuts.push_back(std::move(made));
}

/// Where there are several ways, the first word says which.
AlgorithmCache::Value MatmulTask::nameOf(const Way &way) const {
  AlgorithmCache::Value value;
  if (hasWays())
    value.push_back(way.which);
  value.insert(value.end(), std::begin(way.algorithm.algo.data), std::end(way.algorithm.algo.data));
  if (way.which >= kCut) {
    const std::span<const uint64_t> rest = cuts[way.which - kCut]->restWords();
    value.insert(value.end(), rest.begin(), rest.end());
  }
  return value;
}

std::string MatmulTask::describe(const Way &way) const {
  const char *how = way.which >= kCut     ? "in two calls, "
                    : way.which == kApart ? ""
                    : makers.empty()      ? "with GELU, "
                                          : "with sums of a factor, ";
  return fmt::format("{}algorithm {:x}", how, fmt::join(way.algorithm.algo.data, "."));
}

bool MatmulTask::recall(const AlgorithmCache::Value &kept, uint64_t workspaceBytes) {
  const std::span<const uint64_t> words(kept);
  if (!hasWays())
    return plain.recall(words, workspaceBytes);
  if (words.empty() || words[0] >= kCut + cuts.size() || (words[0] == kWhole && !whole))
    return false;
  select(words[0]);
  return cut ? cut->recall(words.subspan(1), workspaceBytes)
             : (isWhole ? *whole : plain).recall(words.subspan(1), workspaceBytes);
}

/// Those in two calls; none where one of the cuts cannot be asked for.
std::vector<MatmulTask::Way> MatmulTask::cutWays(CUstream stream, uint64_t workspaceBytes, bool byTime) {
  std::vector<Way> all;
  for (size_t i = 0; i < cuts.size(); ++i) {
    if (!cuts[i]->chooseRest(driver, stream, workspaceBytes, byTime))
      return {};
    const Result<std::vector<Product::Algorithm>> found = cuts[i]->candidates(workspaceBytes);
    if (!found)
      return {};
    for (const Product::Algorithm &algorithm : *found)
      all.push_back({kCut + i, algorithm});
  }
  return all;
}

/// The first is taken where nothing is timed: in two calls, for odd sizes have no fast kernel, else with
/// kernels beside the product.
Result<std::vector<MatmulTask::Way>> MatmulTask::ways(CUstream stream, uint64_t workspaceBytes, bool byTime) {
  Result<std::vector<Product::Algorithm>> found = plain.candidates(workspaceBytes);
  if (!found)
    return found.error();
  std::vector<Way> all = cutWays(stream, workspaceBytes, byTime);
  for (const Product::Algorithm &algorithm : *found)
    all.push_back({kApart, algorithm});
  if (!whole)
    return all;
  if (found = whole->candidates(workspaceBytes); found)
    for (const Product::Algorithm &algorithm : *found)
      all.push_back({kWhole, algorithm});
  else
    noteNoSums(found.error());
  return all;
}

/// The first of the products, of which the command may have many of one kind.
Status MatmulTask::issueOne(CUstream stream) {
  if (cut)
    return cut->issue(stream);
  if (isWhole)
    return whole->issueOne(stream);
  for (const std::unique_ptr<CudaTask> &kernel : before)
    if (Status status = kernel->issue(stream); !status)
      return status;
  Status status = plain.issueOne(stream);
  return status && after ? after->issue(stream) : status;
}

Result<AlgorithmCache::Value> MatmulTask::choose(CUstream stream, uint64_t workspaceBytes, bool byTime) {
  const Result<std::vector<Way>> found = ways(stream, workspaceBytes, byTime);
  if (!found)
    return found.error();
  if (!byTime)
    return nameOf(found->front());
  const auto run = [&](size_t index) {
    take((*found)[index]);
    return issueOne(stream);
  };
  const auto name = [&](size_t index) { return describe((*found)[index]); };
  const Result<size_t> best = fastest(driver, stream, {found->size(), run, name});
  if (!best)
    return best.error();
  return nameOf((*found)[*best]);
}

void MatmulTask::count() {
  if (after)
    ++(isWhole ? blas.gelu.within : blas.gelu.apart);
  if (!makers.empty())
    ++(isWhole ? blas.biasGradients.within : blas.biasGradients.apart);
  if (!cuts.empty())
    ++(cut ? blas.cut.within : blas.cut.apart);
  before.clear(); // the program's own commands from here on
}

Choice MatmulTask::choice(CUstream stream, uint64_t workspaceBytes, const std::string &what) {
  return {(whole ? whole->key() + " or apart" : plain.key()) +
              fmt::format("{} workspace {}", cuts.empty() ? "" : " or cut", workspaceBytes),
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

/// Whether both are all elements of one piece of memory, whatever their dimensions.
bool isSameMemory(const Buffer &x, const Buffer &y) {
  const auto isPacked = [](const Buffer &buffer) {
    return extentBytes(buffer) == static_cast<uint64_t>(numElements(buffer)) * byteSize(buffer.dtype);
  };
  return x.space == y.space && x.offset == y.offset && x.dtype == y.dtype && x.slots == y.slots &&
         x.axisStrides == y.axisStrides && numElements(x) == numElements(y) && isPacked(x) && isPacked(y);
}

/// The kernel among commands [begin, end) that alone touches `buffer`, as the second of its two operands.
std::optional<uint32_t> findMaker(const Program &p, uint32_t begin, uint32_t end, uint32_t buffer) {
  for (uint32_t index = end; index-- > begin;) {
    const Command &command = p.commands[index];
    const uint32_t *ids = p.operands.data() + command.firstOperand;
    if (std::find(ids, ids + command.numOperands, buffer) == ids + command.numOperands)
      continue;
    const bool isMaker = command.kind == CommandKind::Kernel && command.numOperands == 2 &&
                         ids[0] != buffer && command.predicate == UINT32_MAX;
    return isMaker ? std::optional(index) : std::nullopt;
  }
  return std::nullopt;
}

/// The one or two kernels of commands[index]'s segment that make its sums of the factor that it reads, in
/// their order; empty where others do, or where micro-batches have them in places of their own.
std::vector<uint32_t> findMakers(const Program &p, uint32_t index, Summed summed) {
  const Command &command = p.commands[index];
  const uint32_t *ids = p.operands.data() + command.firstOperand;
  const auto segment = std::find_if(p.segments.begin(), p.segments.end(), [&](const Segment &each) {
    return each.firstCommand <= index && index - each.firstCommand < each.numCommands;
  });
  if (segment == p.segments.end() || numBindings(p, index) != 1)
    return {};
  const Buffer &factor = p.buffers[ids[summed == Summed::First ? 0 : 1]];
  std::vector<uint32_t> makers;
  uint32_t made = ids[command.numOperands - 1], end = index;
  while (makers.size() < 2) {
    const std::optional<uint32_t> maker = findMaker(p, segment->firstCommand, end, made);
    if (!maker)
      return {};
    makers.insert(makers.begin(), *maker);
    made = p.operands[p.commands[*maker].firstOperand];
    end = *maker;
    if (isSameMemory(p.buffers[made], factor))
      return makers;
  }
  return {};
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
  std::vector<uint32_t> makers = findMakers(binding.program, index, o.summed);
  std::vector<std::unique_ptr<CudaTask>> kernels;
  for (uint32_t maker : makers) {
    Result<std::unique_ptr<CudaTask>> kernel = bindKernel(binding, binding.program.commands[maker]);
    if (!kernel)
      return kernel.error();
    kernels.push_back(std::move(*kernel));
  }
  if (!makers.empty())
    task.addSums(std::move(kernels), std::move(makers), o.desc, o.memory,
                 {.summed = o.summed, .sums = o.factorSums, .sumsType = o.factorSumsType});
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
    task->addCuts(o.desc, o.memory);
  binding.libraries.choices->add(
      task->choice(binding.stream, o.workspaceBytes, describeProduct(p, index, o.desc)));
  return std::unique_ptr<CudaTask>(std::move(task));
}

} // namespace ds::rt::cuda
