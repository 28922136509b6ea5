//===- ProgramBuilder.h - Fills one program from the modules of its stages ------===//
//
// What stages share (windows of arenas, strings, kernels, events) is in tables of the program; what is one
// stage's is added by a builder of its own. Tables in ProgramTables.cpp, states, inputs and segments in
// LowerToProgram.cpp, commands in LowerCommands.cpp.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_PASSES_LOWER_PROGRAMBUILDER_H
#define DS_LIB_PASSES_LOWER_PROGRAMBUILDER_H

#include "Support/Exchanges.h"
#include "ds/Passes/LowerToProgram.h"
#include "ds/Passes/ScheduledFunction.h"
#include "ds/Runtime/Program/Program.h"

#include <map>
#include <optional>
#include <tuple>

namespace mlir::ds {

class CommandLowering;

/// The program of all stages, and where in it they find what they share.
class ProgramTables {
public:
  /// Says what all stages do: the mesh and the machine are those of the first.
  ProgramTables(ArrayRef<ModuleOp> stages, const ProgramOptions &options);

  /// Index of the buffer of `type` at `offset` bytes; `axisStrides` as in Buffer, and so the slots of `like`.
  uint32_t addBuffer(BufferType type, uint64_t offset, std::vector<uint64_t> axisStrides = {},
                     const ::ds::rt::Buffer &like = {});
  uint32_t addString(StringRef text);
  /// The index of stream `kind`, which the program has from here on.
  uint8_t addStream(StreamKind kind);
  /// IR numbers events as it likes; the program's are as dense as its table of events. Segments and stages
  /// use the same.
  uint32_t addEvent(uint64_t event);
  LogicalResult addKernels(ModuleOp module);
  uint32_t kernelIndex(StringRef name) const { return kernelIds.lookup(name); }

  ::ds::rt::Program program;

private:
  std::map<std::tuple<uint8_t, uint8_t, uint64_t, std::vector<uint64_t>, std::vector<int64_t>,
                      std::vector<int64_t>, uint32_t, uint64_t>,
           uint32_t>
      bufferIds;
  llvm::StringMap<uint32_t> stringIds;
  llvm::StringMap<uint32_t> kernelIds;
  std::map<uint64_t, uint32_t> eventIds; ///< a module may leave numbers out
};

/// Adds one stage to a program.
class StageBuilder {
public:
  StageBuilder(ProgramTables &tables, ModuleOp module, uint32_t stage)
      : tables(tables), program(tables.program), module(module), mesh(MeshOp::lookup(module)),
        symbols(module), stage(stage) {}

  LogicalResult build();
  LogicalResult addStates();

private:
  friend CommandLowering;

  void addArenas();
  void addFiles();
  ::ds::rt::State describeState(StateOp op);
  void addState(StateOp op, uint64_t offset);
  void addBucket(StateOp op, uint64_t offset);
  bool takeForLogits(StateOp op, BufferType local, uint64_t offset);
  LogicalResult addSegment(func::FuncOp func);
  LogicalResult addCommand(ScheduledOpInterface op);
  void addInput(func::FuncOp func, unsigned argument);
  void addSchedule(uint32_t firstSegment);

  /// Index of the buffer that `value` names.
  FailureOr<uint32_t> bufferIndex(Value value);
  /// Bytes from the start of the arena to the first element of `value`.
  FailureOr<uint64_t> offsetOf(Value value);
  void addLifetime(BufferType type, uint64_t offset, uint32_t segment, uint32_t begin, uint32_t end);

  ProgramTables &tables;
  ::ds::rt::Program &program; ///< of `tables`
  ModuleOp module;
  MeshOp mesh; ///< null where there is one rank
  SymbolTable symbols;
  const uint32_t stage;
  llvm::StringMap<size_t> inputIds;
  std::optional<Exchanges> exchanges; ///< of the segment that is being added
};

} // namespace mlir::ds

#endif // DS_LIB_PASSES_LOWER_PROGRAMBUILDER_H
