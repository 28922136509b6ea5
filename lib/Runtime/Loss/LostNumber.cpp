//===- LostNumber.cpp - Where a step has lost its numbers -------------------------===//
#include "LostNumber.h"

#include "Files/Text.h"
#include "Job/Team.h"
#include "Program/Elements.h"
#include "State/LocalState.h"

#include "ds/Runtime/Program/Messages.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

namespace ds::rt {

static constexpr const char *kWhat = "search for a lost number";

bool hasLostNumbers(const StepRecord &record) {
  return (record.skipped.value_or(false) && !record.spiked) ||
         (record.loss && !std::isfinite(*record.loss)) ||
         (record.gradNorm && !std::isfinite(*record.gradNorm));
}

//===----------------------------------------------------------------------===//
// One tensor
//===----------------------------------------------------------------------===//

/// Whether any of `count` elements that lie side by side is NaN or infinite, by their exponents alone: a loop
/// that the compiler makes vectors of.
template <class Word>
static bool anyFull(const std::byte *data, uint64_t count, Word exponent) {
  const auto *words = reinterpret_cast<const Word *>(data);
  bool any = false;
  for (uint64_t i = 0; i < count; ++i)
    any |= (words[i] & exponent) == exponent;
  return any;
}

static bool anyFull(const std::byte *data, uint64_t count, DType dtype) {
  switch (dtype) {
  case DType::F64:
    return anyFull<uint64_t>(data, count, uint64_t(0x7ff) << 52);
  case DType::F32:
    return anyFull<uint32_t>(data, count, 0x7f800000);
  case DType::BF16:
    return anyFull<uint16_t>(data, count, 0x7f80);
  case DType::F16:
    return anyFull<uint16_t>(data, count, 0x7c00);
  default:
    return false;
  }
}

/// The first of `count` elements at `stride` bytes that counts.
static std::optional<LostElement> findInRow(const std::byte *data, uint64_t count, uint64_t stride,
                                            DType dtype) {
  if (stride == byteSize(dtype) && !anyFull(data, count, dtype))
    return {};
  for (uint64_t i = 0; i < count; ++i) {
    const double value = loadElement(data + i * stride, dtype);
    if (std::isnan(value) || value == INFINITY)
      return LostElement{i, value};
  }
  return {};
}

static bool isFloat(DType dtype) {
  return dtype == DType::F64 || dtype == DType::F32 || dtype == DType::BF16 || dtype == DType::F16;
}

std::optional<LostElement> findLostElement(const Buffer &buffer, const std::byte *data) {
  const auto count = static_cast<uint64_t>(numElements(buffer));
  const uint64_t size = byteSize(buffer.dtype);
  if (!isFloat(buffer.dtype) || count == 0)
    return {};
  if (isContiguous(buffer))
    return findInRow(data, count, size, buffer.dtype);
  const size_t last = buffer.shape.size() - 1;
  const auto row = static_cast<uint64_t>(buffer.shape[last]);
  for (uint64_t first = 0; first < count; first += row) {
    uint64_t offset = 0, left = first / row;
    for (size_t d = last; d-- > 0; left /= static_cast<uint64_t>(buffer.shape[d]))
      offset += left % static_cast<uint64_t>(buffer.shape[d]) * static_cast<uint64_t>(buffer.strides[d]);
    if (auto found = findInRow(data + offset * size, row, static_cast<uint64_t>(buffer.strides[last]) * size,
                               buffer.dtype))
      return LostElement{first + found->element, found->value};
  }
  return {};
}

//===----------------------------------------------------------------------===//
// What a tensor is called
//===----------------------------------------------------------------------===//

static bool haveSameStart(const Buffer &a, const Buffer &b) {
  return a.space == b.space && a.offset == b.offset && a.axisStrides == b.axisStrides;
}

static bool mayBeSame(const Buffer &a, const Buffer &b) {
  return haveSameStart(a, b) && numElements(a) == numElements(b);
}

/// Whether commands of `part` may read and write gradients. Before backward other tensors lie where those
/// will be.
static bool hasGradients(Part part) { return part != Part::Forward && part != Part::Recompute; }

/// Whose gradient lies in `buffer`: that of the moment or master that a kernel reads beside it.
static const State *findOwner(const Program &program, const Buffer &buffer) {
  for (const Command &command : program.commands) {
    if (command.kind != CommandKind::Kernel)
      continue;
    const Kernel &kernel = program.kernels[command.callee];
    const auto stride =
        std::max<uint32_t>(1, kernel.items ? uint32_t(kernel.operands.size()) : command.numOperands);
    for (uint32_t first = 0; first + stride <= command.numOperands; first += stride) {
      const uint32_t *operands = program.operands.data() + command.firstOperand + first;
      if (std::none_of(operands, operands + stride,
                       [&](uint32_t each) { return mayBeSame(program.buffers[each], buffer); }))
        continue;
      for (const State &state : program.states)
        if ((state.role == Role::Moment || state.role == Role::Master) &&
            std::find(operands, operands + stride, state.buffer) != operands + stride)
          return &state;
    }
  }
  return nullptr;
}

/// What a command of `part` finds in `buffer`.
static std::string nameTensor(const Program &program, const Buffer &buffer, Part part) {
  for (const Input &input : program.inputs)
    if (haveSameStart(program.buffers[input.buffer], buffer))
      return "the input " + quote(input.name);
  for (const Output &output : program.outputs)
    if (haveSameStart(program.buffers[output.buffer], buffer))
      return quote(output.name);
  for (const State &state : program.states)
    if (haveSameStart(program.buffers[state.buffer], buffer))
      return state.role == Role::Gradient ? "the gradient of " + quote(state.owner) : quote(state.name);
  const State *owner = hasGradients(part) ? findOwner(program, buffer) : nullptr;
  return owner ? "the gradient of " + quote(owner->owner) : "a tensor";
}

static std::string describe(const LostElement &lost, DType dtype, std::span<const int64_t> shape) {
  return fmt::format("{} at element {} of {}{}", lost.value, lost.element, spell(dtype), spellShape(shape));
}

//===----------------------------------------------------------------------===//
// One rank
//===----------------------------------------------------------------------===//

/// The first parameter, master or moment that is not finite before the step.
static Result<std::string> findLostState(const Executor &executor) {
  for (const State &state : executor.program().states) {
    if (state.role == Role::Gradient || state.role == Role::Scalar)
      continue;
    const LocalState local(executor, state);
    Buffer held = executor.program().buffers[state.buffer];
    held.shape = {static_cast<int64_t>(local.held.count)};
    held.strides = {1};
    const bool isWhole = state.layout == Layout();
    std::string found;
    Status status = executor.inspect(
        local.address(local.held.at), local.held.count * local.elementBytes(), [&](const std::byte *host) {
          if (const auto lost = findLostElement(held, host))
            found = fmt::format("the {} {} has {} before the step", spell(state.role), quote(state.name),
                                describe(*lost, held.dtype, isWhole ? state.logicalShape : held.shape));
          return Status();
        });
    if (!status)
      return status.error();
    if (!found.empty())
      return found;
  }
  return std::string();
}

namespace {

/// Added to the number of a command that has got a lost number from another stage: that one knows better.
constexpr uint64_t kElsewhere = uint64_t(1) << 62;

/// Whether `command` brings `buffer` from other stages.
bool comesFromStages(const Program &program, const Command &command, uint32_t buffer) {
  if (command.kind != CommandKind::Collective)
    return false;
  const Collective &collective = program.collectives[command.callee];
  return collective.axes.hasAny(program.stageAxes) && collective.kind != CollectiveKind::Send &&
         buffer == program.operands[command.firstOperand + command.numOperands - 1];
}

/// Looks at the operands of commands until one is not finite.
class Search {
public:
  explicit Search(const Executor &executor) : executor(executor) {}

  /// Looks at what command `number` has read and written for `microBatch`.
  Status look(uint32_t number, uint32_t microBatch) {
    ++commands;
    if (!found.empty())
      return {}; // the other ranks' collectives need this one's
    const Program &program = executor.program();
    const Command &command = program.commands[number];
    if (traitsOf(command.kind).isEvent())
      return {};
    const std::string &place = program.strings[command.location];
    for (uint32_t i = 0; i < command.numOperands && found.empty(); ++i) {
      const uint32_t index = program.operands[command.firstOperand + i];
      const Buffer &buffer = program.buffers[index];
      const auto *data = static_cast<const std::byte *>(executor.data(index, microBatch));
      Status status = executor.inspect(data, extentBytes(buffer), [&](const std::byte *host) {
        if (const auto lost = findLostElement(buffer, host)) {
          at = commands + (comesFromStages(program, command, index) ? kElsewhere : 0);
          found = fmt::format("micro-step {} of {}, {}: {} has {}", microBatch + 1, program.accumulation,
                              place.empty() ? fmt::format("command {}", number) : place,
                              nameTensor(program, buffer, command.part),
                              describe(*lost, buffer.dtype, buffer.shape));
        }
        return Status();
      });
      if (!status)
        return status;
    }
    return {};
  }

  std::string found;
  uint64_t at = UINT64_MAX; ///< commands until then; behind all others what has come from another stage

private:
  const Executor &executor;
  uint64_t commands = 0;
};

/// What the scalars of a program are, to be put back.
class Scalars {
public:
  explicit Scalars(Executor &executor) : executor(executor) {}

  Status save() {
    return each(
        [this](std::byte *host, uint64_t bytes, const State &) { saved.emplace_back(host, host + bytes); });
  }
  Status restore() {
    size_t number = 0;
    return each([&](std::byte *host, uint64_t bytes, const State &) {
      std::memcpy(host, saved[number++].data(), bytes);
    });
  }
  /// Turns them back to what they were before the step.
  Status turnBack(const LostStep &step) {
    return each([&](std::byte *host, uint64_t bytes, const State &state) {
      const DType dtype = executor.program().buffers[state.buffer].dtype;
      if (state.name == "loss_scale" && step.lossScale)
        storeElement(host, dtype, *step.lossScale);
      if (state.name == "rng" && step.keptGenerator && bytes == 2 * sizeof(uint64_t)) {
        uint64_t counter = 0;
        std::memcpy(&counter, host + sizeof counter, sizeof counter);
        counter -= executor.program().accumulation;
        std::memcpy(host + sizeof counter, &counter, sizeof counter);
      }
    });
  }

private:
  Status each(const std::function<void(std::byte *host, uint64_t bytes, const State &state)> &body) {
    for (const State &state : executor.program().states) {
      if (state.role != Role::Scalar)
        continue;
      const Buffer &buffer = executor.program().buffers[state.buffer];
      const uint64_t bytes = extentBytes(buffer);
      auto *data = static_cast<std::byte *>(executor.data(state.buffer));
      std::vector<std::byte> copy(bytes);
      Status status = executor.inspect(data, bytes, [&](const std::byte *host) {
        std::memcpy(copy.data(), host, bytes);
        return Status();
      });
      if (!status)
        return status;
      body(copy.data(), bytes, state);
      status = executor.change(data, bytes, [&](std::byte *host) {
        std::memcpy(host, copy.data(), bytes);
        return Status();
      });
      if (!status)
        return status;
    }
    return {};
  }

  Executor &executor;
  std::vector<std::vector<std::byte>> saved;
};

/// What a rank has found, and how far it was.
struct Finding {
  uint64_t at = UINT64_MAX;
  std::string text;
};

} // namespace

static Result<Finding> findHere(Executor &executor, const LostStep &step) {
  Result<std::string> state = findLostState(executor);
  if (!state)
    return state.error();
  Scalars scalars(executor);
  if (Status status = scalars.save(); !status)
    return status.error();
  if (Status status = scalars.turnBack(step); !status)
    return status.error();
  Search search(executor);
  if (Status status = executor.retrace(
          step.fill, [&](uint32_t command, uint32_t microBatch) { return search.look(command, microBatch); });
      !status)
    return status.error();
  if (Status status = scalars.restore(); !status)
    return status.error();
  return state->empty() ? Finding{search.at, search.found} : Finding{0, *state};
}

//===----------------------------------------------------------------------===//
// All ranks
//===----------------------------------------------------------------------===//

Result<std::string> findLostNumber(Executor &executor, const LostStep &step, Team &team) {
  Result<Finding> mine = findHere(executor, step);
  if (!mine)
    return mine.error();
  if (team.world() == 1)
    return mine->text;
  const Result<std::vector<std::string>> texts =
      team.ranks().exchange(fmt::format("{:020} {}", mine->at, mine->text), kWhat);
  if (!texts)
    return texts.error();
  size_t first = 0; // the least number, and of those the least rank
  for (size_t rank = 1; rank < texts->size(); ++rank)
    if ((*texts)[rank].substr(0, 20) < (*texts)[first].substr(0, 20))
      first = rank;
  const std::string text = (*texts)[first].size() > 21 ? (*texts)[first].substr(21) : "";
  return text.empty() ? text : fmt::format("{}, {}", team.name(static_cast<uint32_t>(first)), text);
}

} // namespace ds::rt
