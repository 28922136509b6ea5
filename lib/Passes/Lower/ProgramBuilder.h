//===- ProgramBuilder.h - Fills one program from one module ---------------------===//
//
// States, inputs and segments in LowerToProgram.cpp, commands in LowerCommands.cpp.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_LOWER_PROGRAMBUILDER_H
#define DS_LIB_PASSES_LOWER_PROGRAMBUILDER_H

#include "ds/Dialect/Machine.h"
#include "ds/Passes/LowerToProgram.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Runtime/Program/Program.h"

#include <map>
#include <tuple>

namespace mlir::ds {

class CommandLowering;

/// Fills one program from one module.
class ProgramBuilder {
public:
  ProgramBuilder(ModuleOp module, const ProgramOptions &options)
      : module(module), mesh(MeshOp::lookup(module)), symbols(module), hostThreads(options.hostThreads) {
    program.target = "cpu";
    program.threads = static_cast<uint32_t>(getMachine(module).threads);
    program.microBatch = options.microBatch;
    program.accumulation = options.accumulation;
    program.predicted.stepSeconds = options.stepSeconds;
    program.streams = {::ds::rt::StreamKind::Compute};
    program.nodeLocalSaves = getMachine(module).hasNodeLocalSaves;
    addMesh();
  }

  FailureOr<::ds::rt::Program> build();
  /// The mesh and the states alone.
  FailureOr<::ds::rt::Program> buildStates();

private:
  friend CommandLowering;

  void addMesh();
  LogicalResult addStates();
  ::ds::rt::State describeState(StateOp op);
  void addState(StateOp op, uint64_t offset);
  void addBucket(StateOp op, uint64_t offset);
  LogicalResult addSegment(func::FuncOp func);
  LogicalResult addCommand(ScheduledOpInterface op);
  void addKernels();
  void addInput(func::FuncOp func, unsigned argument);
  void addSchedule();

  /// Index of the buffer of `type` at `offset` bytes; `axisStrides` as in Buffer.
  uint32_t addBuffer(BufferType type, uint64_t offset, std::vector<uint64_t> axisStrides = {});
  /// Index of the buffer that `value` names.
  FailureOr<uint32_t> bufferIndex(Value value);
  /// Bytes from the start of the arena to the first element of `value`.
  FailureOr<uint64_t> offsetOf(Value value);
  uint32_t addString(StringRef text);
  void addLifetime(BufferType type, uint64_t offset, uint32_t segment, uint32_t begin, uint32_t end);

  ModuleOp module;
  MeshOp mesh; ///< null where there is one rank
  SymbolTable symbols;
  uint32_t hostThreads;
  ::ds::rt::Program program;
  std::map<std::tuple<uint8_t, uint8_t, uint64_t, std::vector<uint64_t>, std::vector<int64_t>,
                      std::vector<int64_t>>,
           uint32_t>
      bufferIds;
  llvm::StringMap<uint32_t> stringIds;
  llvm::StringMap<uint32_t> kernelIds;
  llvm::StringMap<size_t> inputIds;
  std::map<uint64_t, uint32_t> eventIds; ///< the module may leave numbers out
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_LOWER_PROGRAMBUILDER_H
