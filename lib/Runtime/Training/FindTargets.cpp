//===- FindTargets.cpp - Which elements of an input are the loss's targets ------------===//
//
// A cross-entropy reads its targets where the host has put them, or in a packed copy: of labels that forward
// shifts by one, say, elements 1 to 7 of each sample of 8. A copy is the command with which the lifetime of
// what it makes begins. So each element that is read has a place in an input, or the targets are something
// that the program computes, of which the host knows nothing. A loss in chunks reads a part of them at a
// time.
//
//===---------------------------------------------------------------------------===//
#include "FindTargets.h"

#include "ds/Runtime/Program/ProgramFile.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace ds::rt {
namespace {

/// Byte offsets in the arena of a buffer's elements, in row-major order.
std::vector<uint64_t> placesOf(const Buffer &buffer) {
  std::vector<uint64_t> places = {buffer.offset};
  for (size_t d = 0; d < buffer.shape.size(); ++d) {
    const uint64_t stride = static_cast<uint64_t>(buffer.strides[d]) * byteSize(buffer.dtype);
    std::vector<uint64_t> next;
    next.reserve(places.size() * static_cast<size_t>(buffer.shape[d]));
    for (const uint64_t place : places)
      for (int64_t i = 0; i < buffer.shape[d]; ++i)
        next.push_back(place + static_cast<uint64_t>(i) * stride);
    places = std::move(next);
  }
  return places;
}

/// Elements from which targets come: [begin, begin + bytes) of a space.
bool holds(Space space, uint64_t begin, uint64_t bytes, const Buffer &part) {
  return space == part.space && part.offset >= begin && part.offset + extentBytes(part) <= begin + bytes;
}

class TargetFinder {
public:
  explicit TargetFinder(const Program &program) : program(program), marks(program.inputs.size()) {}

  /// Marks what the cross-entropy `index` of `segment` reads; false where that is not known.
  bool visit(uint32_t segment, uint32_t index);
  /// What all of them read.
  std::optional<FoundTargets> finish() const;

private:
  bool trace(uint32_t segment, uint32_t index, uint32_t buffer);
  bool markInput(uint32_t stage, const Buffer &from, const std::vector<uint64_t> &places);
  const Command *findCopy(uint32_t segment, uint32_t index, const Buffer &to) const;

  const Program &program;
  std::vector<std::vector<uint8_t>> marks; ///< by input, of each element of a micro-batch; empty: none yet
  std::optional<int64_t> ignored;
};

} // namespace

bool TargetFinder::visit(uint32_t segment, uint32_t index) {
  const Command &command = program.commands[index];
  const int64_t value = program.params[command.firstParam];
  if (ignored && *ignored != value)
    return false;
  ignored = value;
  return trace(segment, index, program.operands[command.firstOperand + 1]);
}

/// Follows copies back from what the command `index` reads.
bool TargetFinder::trace(uint32_t segment, uint32_t index, uint32_t buffer) {
  const Buffer *from = &program.buffers[buffer];
  std::vector<uint64_t> places = placesOf(*from);
  while (!markInput(program.segments[segment].stage, *from, places)) {
    const Command *copy = findCopy(segment, index, *from);
    if (!copy)
      return false;
    const Buffer &source = program.buffers[program.operands[copy->firstOperand]],
                 &result = program.buffers[program.operands[copy->firstOperand + 1]];
    const std::vector<uint64_t> sources = placesOf(source);
    for (uint64_t &place : places)
      place = sources[(place - result.offset) / byteSize(result.dtype)];
    from = &source;
    index = static_cast<uint32_t>(copy - program.commands.data());
  }
  return true;
}

/// Marks the elements at `places` if `from` lies in an input.
bool TargetFinder::markInput(uint32_t stage, const Buffer &from, const std::vector<uint64_t> &places) {
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const Buffer &input = program.buffers[program.inputs[i].buffer];
    if (program.inputs[i].stage != stage || input.dtype != from.dtype ||
        !holds(input.space, input.offset, extentBytes(input), from))
      continue;
    marks[i].resize(static_cast<size_t>(numElements(input)));
    for (const uint64_t place : places)
      marks[i][(place - input.offset) / byteSize(input.dtype)] = 1;
    return true;
  }
  return false;
}

/// The copy that has made the value in `to`, a part of a packed buffer, which command `index` reads.
const Command *TargetFinder::findCopy(uint32_t segment, uint32_t index, const Buffer &to) const {
  const uint32_t first = program.segments[segment].firstCommand;
  for (const Lifetime &lifetime : program.lifetimes) {
    if (lifetime.segment != segment || lifetime.begin >= index - first || lifetime.end <= index - first ||
        !holds(lifetime.space, lifetime.offset, lifetime.bytes, to))
      continue;
    const Command &maker = program.commands[first + lifetime.begin];
    if (maker.kind != CommandKind::Library || maker.callee != static_cast<uint32_t>(LibraryFn::Copy))
      return nullptr;
    const Buffer &result = program.buffers[program.operands[maker.firstOperand + 1]];
    const bool isPart = isContiguous(result) && result.dtype == to.dtype &&
                        holds(result.space, result.offset, extentBytes(result), to);
    return isPart ? &maker : nullptr;
  }
  return nullptr;
}

/// Where inputSpecs has the input that stands at `input` of the program: stages may have some in common.
static size_t placeOf(const Program &program, size_t input) {
  std::set<std::string_view> before;
  for (size_t i = 0; program.inputs[i].name != program.inputs[input].name; ++i)
    before.insert(program.inputs[i].name);
  return before.size();
}

std::optional<FoundTargets> TargetFinder::finish() const {
  const auto hasMarks = [](const std::vector<uint8_t> &marks) { return !marks.empty(); };
  if (std::count_if(marks.begin(), marks.end(), hasMarks) != 1)
    return std::nullopt;
  const auto found = std::find_if(marks.begin(), marks.end(), hasMarks);
  const auto input = static_cast<size_t>(found - marks.begin());
  const std::vector<int64_t> &shape = program.buffers[program.inputs[input].buffer].shape;
  const size_t samples = shape.empty() ? 1 : static_cast<size_t>(shape[0]),
               elements = found->size() / samples;
  FoundTargets targets{
      placeOf(program, input), {found->begin(), found->begin() + static_cast<ptrdiff_t>(elements)}, *ignored};
  for (size_t sample = 1; sample < samples; ++sample)
    if (!std::equal(targets.ofSample.begin(), targets.ofSample.end(),
                    found->begin() + static_cast<ptrdiff_t>(sample * elements)))
      return std::nullopt;
  return targets;
}

std::optional<FoundTargets> findTargets(const Program &program) {
  TargetFinder finder(program);
  for (uint32_t s = 0; s < program.segments.size(); ++s) {
    const Segment &segment = program.segments[s];
    for (uint32_t i = segment.firstCommand; i < segment.firstCommand + segment.numCommands; ++i) {
      const Command &command = program.commands[i];
      const bool isLoss = command.callee == static_cast<uint32_t>(LibraryFn::CrossEntropyForward) ||
                          command.callee == static_cast<uint32_t>(LibraryFn::CrossEntropyWithGradient);
      if (command.kind == CommandKind::Library && isLoss && !finder.visit(s, i))
        return std::nullopt;
    }
  }
  return finder.finish();
}

} // namespace ds::rt
