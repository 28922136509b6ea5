//===- CommandList.cpp - A program of single library commands --------------------===//
#include "CommandList.h"

#include "ds/Runtime/Program/ProgramFile.h"
#include "ds/Support/Align.h"

namespace ds::rt {

uint32_t CommandList::buffer(DType dtype, std::vector<int64_t> shape, int64_t idLimit) {
  Buffer buffer;
  buffer.dtype = dtype;
  buffer.offset = used;
  buffer.strides.assign(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    buffer.strides[d - 1] = buffer.strides[d] * shape[d];
  buffer.shape = std::move(shape);
  used += alignTo(extentBytes(buffer), alignment);
  program.buffers.push_back(std::move(buffer));
  const auto index = static_cast<uint32_t>(program.buffers.size() - 1);
  if (idLimit > 0)
    ids.emplace_back(index, idLimit);
  return index;
}

uint32_t CommandList::alias(uint32_t other, std::vector<int64_t> shape) {
  const uint64_t before = used;
  const uint32_t index = buffer(program.buffers[other].dtype, std::move(shape));
  program.buffers[index].offset = program.buffers[other].offset;
  used = before;
  return index;
}

uint32_t CommandList::window(uint32_t other, std::vector<int64_t> shape, std::vector<int64_t> strides) {
  const uint32_t index = alias(other, std::move(shape));
  program.buffers[index].strides = std::move(strides);
  return index;
}

uint32_t CommandList::call(LibraryFn fn, std::vector<uint32_t> operands, std::vector<int64_t> params) {
  Command command;
  command.kind = CommandKind::Library;
  command.callee = static_cast<uint32_t>(fn);
  command.firstOperand = static_cast<uint32_t>(program.operands.size());
  command.numOperands = static_cast<uint32_t>(operands.size());
  command.firstParam = static_cast<uint32_t>(program.params.size());
  command.numParams = static_cast<uint32_t>(params.size());
  program.operands.insert(program.operands.end(), operands.begin(), operands.end());
  program.params.insert(program.params.end(), params.begin(), params.end());
  program.commands.push_back(command);
  return static_cast<uint32_t>(program.commands.size() - 1);
}

std::vector<const Buffer *> CommandList::operandsOf(const Command &command) const {
  std::vector<const Buffer *> operands;
  for (uint32_t k = 0; k < command.numOperands; ++k)
    operands.push_back(&program.buffers[program.operands[command.firstOperand + k]]);
  return operands;
}

uint64_t CommandList::bytes(uint32_t command) const {
  uint64_t sum = 0;
  for (const Buffer *buffer : operandsOf(program.commands[command]))
    sum += static_cast<uint64_t>(numElements(*buffer)) * byteSize(buffer->dtype);
  return sum;
}

} // namespace ds::rt
