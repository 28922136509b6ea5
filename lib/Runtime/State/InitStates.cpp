//===- InitStates.cpp - The values that states start from -----------------------===//
//
// Random numbers are functions of the seed, the parameter's name and the element's index in the whole tensor,
// sinusoids of the index: a rank makes what it holds alone, and any layout starts from the same weights.
// Rounding comes last, so that a master has the value that its 16-bit parameter was rounded from.
//
//===---------------------------------------------------------------------------===//
#include "LocalState.h"
#include "Program/StateNames.h"
#include "Sinusoids.h"

#include "Formats/Convert.h"
#include "ds/Runtime/State/Weights.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

namespace ds::rt {
namespace {

constexpr uint64_t kMostAtOnce = uint64_t(16) << 20; // elements: states in storage pass through memory
constexpr uint64_t kPiece = uint64_t(1) << 20; // elements that are made at once for types other than f32

/// Writes the elements [first, first + count) of a whole tensor to `to`.
using MakeElements = std::function<void(uint64_t first, uint64_t count, float *to)>;

/// Makes `count` values that follow each other in memory, of the elements that come next.
void makeNext(ElementRuns &runs, const MakeElements &make, float *to, uint64_t count) {
  while (count > 0) {
    const ElementRun run = *runs.next(UINT64_MAX, count);
    make(run.first, run.count, to);
    to += run.count;
    count -= run.count;
  }
}

/// Fills the next `elements` of what is held of `local`, at `host`, with what `make` makes: through a
/// converting buffer where they are no f32.
Status fillByElement(LocalState &local, const MakeElements &make, uint64_t elements, std::byte *host) {
  if (local.dtype == DType::F32) {
    makeNext(local.runs, make, reinterpret_cast<float *>(host), elements);
    return {};
  }
  std::vector<float> values(std::min(elements, kPiece));
  for (uint64_t done = 0; done < elements; done += kPiece) {
    const uint64_t count = std::min(kPiece, elements - done);
    makeNext(local.runs, make, values.data(), count);
    BadElement bad;
    if (!convertElements(FileDType::F32, values.data(), local.dtype, host + done * local.elementBytes(),
                         count, {}, bad))
      return Error{ExitCode::Invalid, fmt::format("initial value {} is outside {}", bad.value, bad.limit),
                   ""};
  }
  return {};
}

/// Random numbers of the distribution that `origin` starts from.
MakeElements makeRandom(const State &origin, uint64_t seed, uint32_t threads) {
  const Init &init = origin.init;
  const bool normal = init.kind == Init::Kind::Normal;
  const RandomCall spec{nullptr,
                        0,
                        seed,
                        XXH3_64bits(origin.name.data(), origin.name.size()),
                        static_cast<float>(init.a),
                        static_cast<float>(normal ? init.b : init.b - init.a),
                        normal,
                        threads,
                        0};
  return [spec](uint64_t first, uint64_t count, float *to) {
    RandomCall part = spec;
    part.data = to;
    part.first = static_cast<int64_t>(first);
    part.count = static_cast<int64_t>(count);
    fillRandom(part, bestIsa());
  };
}

MakeElements makeSinusoids(const State &origin) {
  return [table = Sinusoids(origin.logicalShape.back(), origin.init.a)](
             uint64_t first, uint64_t count, float *to) { table.make(first, count, to); };
}

Status fillConstant(const LocalState &local, double value, uint32_t threads, uint64_t elements,
                    std::byte *host) {
  const auto count = static_cast<int64_t>(elements), stride = int64_t(1);
  const auto bits = std::bit_cast<int64_t>(value);
  const View view{host, &count, &stride, 1, local.dtype};
  libraryFunction(LibraryFn::Fill, bestIsa())({&view, &bits, 1, 1, threads});
  return {};
}

/// Gives the next `elements` of what is held of `local`, at `host`, the value that `origin` starts from.
Status fillHeld(LocalState &local, const State &origin, uint64_t seed, uint32_t threads, uint64_t elements,
                std::byte *host) {
  const Init &init = origin.init;
  if (init.kind == Init::Kind::Zero || init.kind == Init::Kind::Required) {
    std::memset(host, 0, elements * local.elementBytes());
    return {};
  }
  if (init.kind == Init::Kind::Constant)
    return fillConstant(local, init.a, threads, elements, host);
  return fillByElement(
      local, init.kind == Init::Kind::Sinusoid ? makeSinusoids(origin) : makeRandom(origin, seed, threads),
      elements, host);
}

/// Gives what this rank holds of `state` the value that `origin` starts from.
Status fillState(Executor &executor, const State &state, const State &origin, uint64_t seed) {
  LocalState local(executor, state);
  for (uint64_t done = 0; done < local.held.count; done += kMostAtOnce) {
    const uint64_t count = std::min(kMostAtOnce, local.held.count - done);
    Status status = executor.change(
        local.address(local.held.at + done), count * local.elementBytes(), [&](std::byte *host) {
          return fillHeld(local, origin, seed, executor.program().threads, count, host);
        });
    if (!status)
      return status;
  }
  return {};
}

/// Sets the (seed, counter) that random ops read; the counter starts at 0.
Status seedGenerator(Executor &executor, const State &state, uint64_t seed) {
  const uint64_t value[2] = {seed, 0};
  return executor.change(static_cast<std::byte *>(executor.data(state.buffer)), sizeof value,
                         [&](std::byte *host) -> Status {
                           std::memcpy(host, value, sizeof value);
                           return {};
                         });
}

/// Whether `state` is the (seed, counter) that random ops read.
bool isGenerator(const Buffer &buffer, const State &state) {
  return state.role == Role::Scalar && state.name == "rng" && buffer.dtype == DType::I64 &&
         state.logicalShape == std::vector<int64_t>{2};
}

/// Whether numbers that are made as f32 can be converted to the state's type, where `init` makes some.
bool takesInit(const Program &program, const State &state, const Init &init) {
  const DType dtype = program.buffers[state.buffer].dtype;
  return (init.kind != Init::Kind::Normal && init.kind != Init::Kind::Uniform &&
          init.kind != Init::Kind::Sinusoid) ||
         isConvertible(FileDType::F32, dtype);
}

} // namespace

Status initializeStates(Executor &executor, uint64_t seed, bool alsoRequired, const std::vector<bool> &left) {
  const Program &program = executor.program();
  const std::vector<const State *> origins = originsOf(program);
  for (size_t i = 0; i < program.states.size(); ++i) {
    const State &state = program.states[i];
    if (Status status = clearPadding(executor, state); !status)
      return status;
    if (i < left.size() && left[i])
      continue;
    if (state.init.kind == Init::Kind::Required && !alsoRequired)
      return Error{ExitCode::Invalid,
                   fmt::format("'{}' has no initialisation: only a weights file can give it", state.name),
                   "give the model's weights with --weights FILE.safetensors"};
    if (!takesInit(program, state, origins[i]->init))
      return Error{ExitCode::Corrupt,
                   fmt::format("'{}' of {} cannot start from floating-point numbers", state.name,
                               spell(program.buffers[state.buffer].dtype)),
                   "compile the model again with ds-opt"};
    if (Status status = fillState(executor, state, *origins[i], seed); !status)
      return Error{status.error().code, fmt::format("'{}': {}", state.name, status.error().message), ""};
    if (isGenerator(program.buffers[state.buffer], state))
      if (Status status = seedGenerator(executor, state, seed); !status)
        return status;
  }
  return {};
}

} // namespace ds::rt
