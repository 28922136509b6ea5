//===- ProgramTables.cpp - What the stages of a program share ---------------------===//
#include "ProgramBuilder.h"
#include "Support/RuntimeBuffer.h"
#include "ds/Codegen/CompileKernels.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/Stages.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::ds;
namespace rt = ::ds::rt;

ProgramTables::ProgramTables(ArrayRef<ModuleOp> stages, const ProgramOptions &options) {
  const Machine machine = getMachine(stages.front());
  program.target = "cpu";
  program.threads = static_cast<uint32_t>(machine.threads);
  program.microBatch = options.microBatch;
  program.accumulation = options.accumulation;
  program.predicted.stepSeconds = options.stepSeconds;
  program.streams = {rt::StreamKind::Compute};
  program.nodeLocalSaves = machine.hasNodeLocalSaves;
  program.stages.resize(stages.size());
  MeshOp mesh = MeshOp::lookup(stages.front());
  if (!mesh)
    return;
  program.mesh = mesh.getMesh();
  program.world = program.mesh.size();
  program.dataAxes = mesh.find(mesh.getSamplesAttr());
  program.stageAxes = mesh.find(mesh.getStagesAttr());
}

// One entry for each window, however many commands use it: the verifier and the runtime's set-up cost as much
// as the table is long.
uint32_t ProgramTables::addBuffer(BufferType type, uint64_t offset, std::vector<uint64_t> axisStrides,
                                  const rt::Buffer &like) {
  rt::Buffer buffer = toRuntimeBuffer(type, offset);
  buffer.slots = like.slots;
  buffer.slotStride = like.slotStride;
  if (llvm::any_of(axisStrides, [](uint64_t stride) { return stride != 0; }))
    buffer.axisStrides = std::move(axisStrides);
  auto key = std::tuple(static_cast<uint8_t>(buffer.space), static_cast<uint8_t>(buffer.dtype), buffer.offset,
                        buffer.axisStrides, buffer.shape, buffer.strides, buffer.slots, buffer.slotStride);
  auto [it, isNew] = bufferIds.try_emplace(std::move(key), program.buffers.size());
  if (isNew)
    program.buffers.push_back(std::move(buffer));
  return it->second;
}

uint32_t ProgramTables::addString(StringRef text) {
  auto [it, isNew] = stringIds.try_emplace(text, program.strings.size());
  if (isNew)
    program.strings.push_back(text.str());
  return it->second;
}

uint8_t ProgramTables::addStream(StreamKind kind) {
  auto stream = llvm::find(program.streams, static_cast<rt::StreamKind>(kind));
  if (stream == program.streams.end())
    stream = program.streams.insert(stream, static_cast<rt::StreamKind>(kind));
  return stream - program.streams.begin();
}

uint32_t ProgramTables::addEvent(uint64_t event) {
  const uint32_t index = eventIds.try_emplace(event, program.numEvents).first->second;
  program.numEvents = eventIds.size();
  return index;
}

SmallVector<KernelOp> mlir::ds::getKernels(ModuleOp module) {
  SmallVector<KernelOp> kernels;
  llvm::StringSet<> seen;
  for (ModuleOp stage : getStages(module))
    for (KernelOp kernel : stage.getOps<KernelOp>())
      if (seen.insert(kernel.getSymName()).second)
        kernels.push_back(kernel);
  return kernels;
}

LogicalResult ProgramTables::addKernels(ModuleOp module) {
  SmallVector<KernelOp> kernels = getKernels(module);
  for (KernelOp kernel : kernels) {
    kernelIds[kernel.getSymName()] = program.kernels.size();
    rt::Kernel entry;
    entry.name = kernel.getSymName().str();
    entry.items = kernel.getItems().value_or(0);
    entry.operands = findOperandNeeds(kernel);
    entry.params = kernel.isDynamic() ? 1 : 0;
    program.kernels.push_back(entry);
  }
  for (ModuleOp stage : getStages(module))
    for (KernelOp kernel : stage.getOps<KernelOp>()) {
      KernelOp first = kernels[kernelIndex(kernel.getSymName())];
      if (first == kernel ||
          OperationEquivalence::isEquivalentTo(first, kernel, OperationEquivalence::IgnoreLocations))
        continue;
      InFlightDiagnostic error = kernel.emitOpError("expects to be the same on all stages that have it");
      error.attachNote(first.getLoc()) << "run --ds-share-kernels first: another stage has this one";
      return error;
    }
  return success();
}
