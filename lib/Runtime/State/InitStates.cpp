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

/// Elements of a run on the average, below which a launch for each takes longer than the host.
constexpr uint64_t kLeastDrawn = 4096;

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

/// Writes `count` elements of what is held of `local`, from its element `first` on, to `to`, as `make` makes
/// them: through a converting buffer where they are no f32.
Status makeHeld(const LocalState &local, const MakeElements &make, uint64_t first, uint64_t count,
                std::byte *to) {
  ElementRuns runs = local.runsFrom(first);
  if (local.dtype == DType::F32) {
    makeNext(runs, make, reinterpret_cast<float *>(to), count);
    return {};
  }
  constexpr uint64_t kAtOnce = 4096; // stay in a cache
  float values[kAtOnce];
  for (uint64_t done = 0; done < count; done += kAtOnce) {
    const uint64_t next = std::min(kAtOnce, count - done);
    makeNext(runs, make, values, next);
    BadElement bad;
    if (!convertElements(FileDType::F32, values, local.dtype, to + done * local.elementBytes(), next, {},
                         bad))
      return Error{ExitCode::Invalid, fmt::format("initial value {} is outside {}", bad.value, bad.limit),
                   ""};
  }
  return {};
}

/// The distribution that `origin` starts from.
RandomCall randomOf(const State &origin, uint64_t seed) {
  const Init &init = origin.init;
  const bool normal = init.kind == Init::Kind::Normal;
  return {nullptr,
          0,
          seed,
          XXH3_64bits(origin.name.data(), origin.name.size()),
          static_cast<float>(init.a),
          static_cast<float>(normal ? init.b : init.b - init.a),
          normal,
          /*threads=*/1,
          0};
}

/// Elements [first, first + count) of the tensor that `all` is of.
RandomCall partOf(RandomCall all, uint64_t first, uint64_t count) {
  all.first = static_cast<int64_t>(first);
  all.count = static_cast<int64_t>(count);
  return all;
}

MakeElements makeRandom(const RandomCall &all) {
  return [all](uint64_t first, uint64_t count, float *to) {
    RandomCall part = partOf(all, first, count);
    part.data = to;
    fillRandom(part, bestIsa());
  };
}

MakeElements makeSinusoids(const State &origin) {
  return [table = Sinusoids(origin.logicalShape.back(), origin.init.a)](
             uint64_t first, uint64_t count, float *to) { table.make(first, count, to); };
}

/// Fills `elements` elements at `to`.
void fillConstant(DType dtype, double value, uint64_t elements, std::byte *to) {
  const auto count = static_cast<int64_t>(elements), stride = int64_t(1);
  const auto bits = std::bit_cast<int64_t>(value);
  const View view{to, &count, &stride, 1, dtype};
  libraryFunction(LibraryFn::Fill, bestIsa())({&view, &bits, 1, 1, /*threads=*/1});
}

/// Gives states their first values.
class Initializer {
public:
  Initializer(Executor &executor, uint64_t seed) : executor(executor), seed(seed), writer(executor) {}

  Status clearPadding(const State &state) { return rt::clearPadding(executor, writer, state); }
  /// Gives what this rank holds of `state` the value that `origin` starts from.
  Status fill(const State &state, const State &origin);
  Status finish() { return writer.finish(); }

private:
  Status fillRandomly(const LocalState &local, const State &origin);
  Result<bool> draw(const LocalState &local, const RandomCall &all);
  Status write(const LocalState &local, const StateWriter::Make &make) {
    return writer.write(local.address(local.held.at), local.held.count, local.elementBytes(), make);
  }

  Executor &executor;
  const uint64_t seed;
  StateWriter writer;
};

/// Whether the device has drawn all that is held, a launch for each run.
Result<bool> Initializer::draw(const LocalState &local, const RandomCall &all) {
  uint64_t count = 0;
  for (ElementRuns runs = local.runs; runs.next();)
    ++count;
  if (local.held.count < count * kLeastDrawn && count > 1)
    return false;
  for (ElementRuns runs = local.runs; const std::optional<ElementRun> run = runs.next();) {
    const Result<bool> drawn =
        writer.draw(local.address(run->at), local.dtype, partOf(all, run->first, run->count));
    if (!drawn || !*drawn)
      return drawn;
  }
  return true;
}

Status Initializer::fillRandomly(const LocalState &local, const State &origin) {
  const RandomCall all = randomOf(origin, seed);
  const Result<bool> drawn = draw(local, all);
  if (!drawn || *drawn)
    return drawn ? Status() : Status(drawn.error());
  return write(local, [&](uint64_t first, uint64_t count, std::byte *to) {
    return makeHeld(local, makeRandom(all), first, count, to);
  });
}

Status Initializer::fill(const State &state, const State &origin) {
  const LocalState local(executor, state);
  const Init &init = origin.init;
  switch (init.kind) {
  case Init::Kind::Zero:
  case Init::Kind::Required:
    return writer.clear(local.address(local.held.at), local.held.count * local.elementBytes());
  case Init::Kind::Constant:
    return write(local, [&](uint64_t, uint64_t count, std::byte *to) -> Status {
      fillConstant(local.dtype, init.a, count, to);
      return {};
    });
  case Init::Kind::Sinusoid:
    return write(local, [&, make = makeSinusoids(origin)](uint64_t first, uint64_t count, std::byte *to) {
      return makeHeld(local, make, first, count, to);
    });
  case Init::Kind::Normal:
  case Init::Kind::Uniform:
    return fillRandomly(local, origin);
  }
  return Error{ExitCode::Internal, "an unknown kind of initialisation", ""};
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
  Initializer initializer(executor, seed);
  for (size_t i = 0; i < program.states.size(); ++i) {
    const State &state = program.states[i];
    if (Status status = initializer.clearPadding(state); !status)
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
    if (Status status = initializer.fill(state, *origins[i]); !status)
      return Error{status.error().code, fmt::format("'{}': {}", state.name, status.error().message), ""};
    if (isGenerator(program.buffers[state.buffer], state))
      if (Status status = seedGenerator(executor, state, seed); !status)
        return status;
  }
  return initializer.finish();
}

} // namespace ds::rt
