//===- TuneProducts.cpp - Finds the fastest form of each product of a program ----===//
//
// Forms take turns, and the fastest run of each counts: whoever else uses the machine can only make a run
// slower, and hits all forms alike. A form must be clearly faster than the usual one to be taken.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Calibrate/Tune.h"

#include "Context.h"
#include "Process/Clock.h"
#include "Program/MatmulOperands.h"

#include "ds/Runtime/Files/AtomicFile.h"
#include "ds/Runtime/Onednn/ProductBlocks.h"
#include "ds/Runtime/Onednn/ProductTuning.h"
#include "ds/Runtime/Program/ProgramFile.h"
#include "ds/Support/Align.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <limits>
#include <memory>

namespace ds::rt {
namespace {

constexpr double kClearly = 0.97;
constexpr uint32_t kLeastRuns = 3, kMostRuns = 40;

/// One form of a product under the clock.
struct Contestant {
  ProductForm form;
  std::unique_ptr<Workbench> bench;
  uint32_t command = 0;
  double seconds = std::numeric_limits<double>::infinity();
};

/// The product of a command.
MatmulDesc describe(const Program &program, const Command &command) {
  return matmulOperands(program, command, [](uint32_t) -> void * { return nullptr; }).desc;
}

/// A buffer like `other`, its gaps included.
uint32_t place(Workbench &bench, const Buffer &other) {
  const auto bytes = static_cast<int64_t>(extentBytes(other));
  const uint32_t whole = bench.buffer(other.dtype, {bytes / static_cast<int64_t>(byteSize(other.dtype))});
  return bench.window(whole, other.shape, other.strides);
}

/// Adds the command to a workbench of its own, to be made in `form`.
Contestant enter(const Program &program, const Command &command, const ProductForm &form, Pool &pool) {
  Contestant contestant{form, std::make_unique<Workbench>(pool, program.threads)};
  std::vector<uint32_t> operands;
  for (uint32_t k = 0; k < command.numOperands; ++k)
    operands.push_back(place(*contestant.bench, program.buffers[program.operands[command.firstOperand + k]]));
  const int64_t *params = program.params.data() + command.firstParam;
  std::vector<int64_t> all(params, params + kMatmulParams);
  const auto more = paramsOf(form);
  all.insert(all.end(), more.begin(), more.end());
  contestant.command = contestant.bench->call(LibraryFn::Matmul, std::move(operands), std::move(all));
  return contestant;
}

/// The forms that this machine can make, the usual one first, and the largest workspace among them.
Result<std::vector<ProductForm>> findForms(const MatmulDesc &desc, uint32_t threads, uint64_t &workspace) {
  const Result<bool> widened = needsBlocks(desc);
  if (!widened)
    return widened.error();
  std::vector<ProductForm> forms;
  workspace = 0;
  for (const ProductForm &form : candidateForms(desc, *widened)) {
    const Result<uint64_t> bytes = productWorkspaceBytes(desc, threads, form);
    if (!bytes && forms.empty())
      return bytes.error();
    if (!bytes) // the library has no such product for this processor
      continue;
    workspace = std::max(workspace, *bytes);
    forms.push_back(form);
  }
  return forms;
}

/// Bytes that the operands and a workspace take, with room for some places.
uint64_t poolBytes(const Program &program, const Command &command, uint64_t workspace) {
  constexpr uint64_t kPlaces = uint64_t(32) << 20, kUnit = 64;
  uint64_t operands = 0;
  for (uint32_t k = 0; k < command.numOperands; ++k)
    operands += alignTo(extentBytes(program.buffers[program.operands[command.firstOperand + k]]), kUnit);
  return operands + workspace + kPlaces;
}

/// Lets all run once, in turn.
Status runRound(std::vector<Contestant> &contestants, uint32_t round) {
  for (Contestant &each : contestants) {
    const int64_t begin = nowNs();
    if (Status status = each.bench->run(each.command, round); !status)
      return status;
    each.seconds = std::min(each.seconds, static_cast<double>(nowNs() - begin) * 1e-9);
  }
  return {};
}

/// The fastest form of one product.
Result<TunedProduct> measure(const Program &program, const Command &command, const TuneOptions &options) {
  uint64_t workspace = 0;
  const Result<std::vector<ProductForm>> forms =
      findForms(describe(program, command), program.threads, workspace);
  if (!forms)
    return forms.error();
  Result<Pool> pool = Pool::create(poolBytes(program, command, workspace));
  if (!pool)
    return pool.error();
  std::vector<Contestant> contestants;
  for (const ProductForm &form : *forms) {
    contestants.push_back(enter(program, command, form, *pool));
    if (Status status = contestants.back().bench->bind(); !status)
      return status.error();
  }
  const int64_t begin = nowNs();
  if (Status status = runRound(contestants, 0); !status) // memory is mapped, and code made
    return status.error();
  for (Contestant &each : contestants)
    each.seconds = std::numeric_limits<double>::infinity();
  for (uint32_t round = 1; round <= kMostRuns; ++round) {
    if (Status status = runRound(contestants, round); !status)
      return status.error();
    if (round >= kLeastRuns && static_cast<double>(nowNs() - begin) * 1e-9 > options.productSeconds)
      break;
  }
  const Contestant &plain = contestants.front();
  const Contestant &fastest = *std::min_element(
      contestants.begin(), contestants.end(),
      [](const Contestant &one, const Contestant &other) { return one.seconds < other.seconds; });
  const Contestant &taken = fastest.seconds < kClearly * plain.seconds ? fastest : plain;
  return TunedProduct{taken.form, taken.seconds, plain.seconds};
}

bool isProduct(const Program &program, const Command &command) {
  return command.kind == CommandKind::Library && command.callee == static_cast<uint32_t>(LibraryFn::Matmul) &&
         program.streams[command.stream] == StreamKind::Compute &&
         numElements(program.buffers[program.operands[command.firstOperand + 2]]) != 0;
}

Status write(const std::string &text, const std::string &path) {
  if (path.empty())
    return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0
               ? Status()
               : Status(Error{ExitCode::Io, "cannot write to standard output", "name a file with -o"});
  return writeFileAtomically(path, text);
}

} // namespace

Status tuneProducts(const TuneOptions &options) {
  Result<Program> program = readProgram(options.program);
  if (!program)
    return program.error();
  if (program->target != "cpu")
    return Error{ExitCode::Usage, fmt::format("{} is for {}", options.program, program->target),
                 "on GPUs the libraries choose among their algorithms themselves"};
  ProductTuning tuning{
      processorName(), fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr))), program->threads, {}};
  for (const Command &command : program->commands) {
    if (!isProduct(*program, command))
      continue;
    const std::string key = productKey(describe(*program, command));
    if (tuning.products.contains(key))
      continue;
    Result<TunedProduct> product = measure(*program, command, options);
    if (!product)
      return product.error();
    std::fprintf(stderr, "tune: %s: %s, %.3g ms (plain %.3g ms)\n", key.c_str(), spell(product->form).c_str(),
                 product->seconds * 1e3, product->plainSeconds * 1e3);
    tuning.products.emplace(key, *product);
  }
  return write(printTuning(tuning), options.output);
}

} // namespace ds::rt
