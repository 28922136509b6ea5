//===- InitStates.cpp - The values that states start from -----------------------===//
//
// Random numbers are functions of the seed, the parameter's name and the element's index in the whole tensor:
// a rank makes its part alone, and any number of ranks starts from the same weights. Rounding comes last, so
// that a master has the value that its 16-bit parameter was rounded from.
//
//===---------------------------------------------------------------------------===//
#include "Program/StateSlice.h"

#include "Formats/Convert.h"
#include "ds/Runtime/Weights.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace ds::rt {
namespace {

constexpr int64_t kPiece = int64_t(1) << 20; // elements that are made at once for types other than f32

/// Fills `slice` through a converting buffer.
Status fillConverted(const LocalSlice &slice, const RandomCall &spec) {
  std::vector<float> values(static_cast<size_t>(std::min(spec.count, kPiece)));
  for (int64_t done = 0; done < spec.count; done += kPiece) {
    RandomCall call = spec;
    call.data = values.data();
    call.first += done;
    call.count = std::min(kPiece, spec.count - done);
    fillRandom(call, bestIsa());
    BadElement bad;
    if (!convertElements(FileDType::F32, values.data(), slice.dtype,
                         slice.data + done * byteSize(slice.dtype), static_cast<size_t>(call.count), {}, bad))
      return Error{ExitCode::Invalid, fmt::format("random number {} is outside {}", bad.value, bad.limit),
                   ""};
  }
  return {};
}

Status fillConstant(const LocalSlice &slice, double value, uint32_t threads) {
  const auto count = static_cast<int64_t>(slice.count), stride = int64_t(1);
  const auto bits = std::bit_cast<int64_t>(value);
  const View view{slice.data, &count, &stride, 1, slice.dtype};
  libraryFunction(LibraryFn::Fill, bestIsa())({&view, &bits, 1, threads});
  return {};
}

/// Gives `slice`, in memory of the host, the value that `origin` starts from.
Status fillSlice(const LocalSlice &slice, const State &origin, uint64_t seed, uint32_t threads) {
  const Init &init = origin.init;
  if (init.kind == Init::Kind::Zero || init.kind == Init::Kind::Required) {
    std::memset(slice.data, 0, slice.count * byteSize(slice.dtype));
    return {};
  }
  if (init.kind == Init::Kind::Constant)
    return fillConstant(slice, init.a, threads);
  const bool normal = init.kind == Init::Kind::Normal;
  const RandomCall call{reinterpret_cast<float *>(slice.data),
                        static_cast<int64_t>(slice.count),
                        seed,
                        XXH3_64bits(origin.name.data(), origin.name.size()),
                        static_cast<float>(init.a),
                        static_cast<float>(normal ? init.b : init.b - init.a),
                        normal,
                        threads,
                        static_cast<int64_t>(slice.first)};
  if (slice.dtype != DType::F32)
    return fillConverted(slice, call);
  fillRandom(call, bestIsa());
  return {};
}

/// Gives this rank's part of `state` the value that `origin` starts from.
Status fillState(Executor &executor, const State &state, const State &origin, uint64_t seed) {
  LocalSlice slice = localSlice(executor, state);
  if (slice.count == 0)
    return {};
  return executor.change(slice.data, slice.count * byteSize(slice.dtype), [&](std::byte *host) {
    slice.data = host;
    return fillSlice(slice, origin, seed, executor.program().threads);
  });
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

/// Whether random numbers can be converted to the state's type.
bool takesInit(const Program &program, const State &state, const Init &init) {
  const DType dtype = program.buffers[state.buffer].dtype;
  return (init.kind != Init::Kind::Normal && init.kind != Init::Kind::Uniform) ||
         isConvertible(FileDType::F32, dtype);
}

} // namespace

Status initializeStates(Executor &executor, uint64_t seed, bool alsoRequired) {
  const Program &program = executor.program();
  const std::vector<const State *> origins = originsOf(program);
  for (size_t i = 0; i < program.states.size(); ++i) {
    const State &state = program.states[i];
    if (state.init.kind == Init::Kind::Required && !alsoRequired)
      return Error{ExitCode::Invalid,
                   fmt::format("'{}' has no initialisation: only a weights file can give it", state.name),
                   "give the model's weights with --weights FILE.safetensors"};
    if (!takesInit(program, state, origins[i]->init))
      return Error{ExitCode::Corrupt,
                   fmt::format("'{}' of {} cannot start from random numbers", state.name,
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
