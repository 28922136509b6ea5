//===- Program.h - The border between compiler and runtime ---------------------===//
//
// A program is what one rank executes: where every byte lives and which command touches it when. The
// compiler's last pass fills this struct, ProgramFile writes and verifies it as a .dsx file, and the executor
// obeys it. It holds no decision that is still open. Nothing here includes MLIR or LLVM.
//
// Memory is described once: every command operand names an entry of `buffers`, and every buffer lies inside
// the arena of its space. Loading re-checks all of that before anything is mapped.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_H
#define DS_RUNTIME_PROGRAM_H

#include <cstdint>
#include <string>
#include <vector>

namespace ds::rt {

enum class DType : uint8_t { F32, F64, F16, BF16, I64, I32, I8, U8, Bool };

/// Size of one element in bytes (Bool is one byte).
unsigned byteSize(DType dtype);

/// Spelling in diagnostics and in `--input` ("f32", "i64", "i1" for Bool).
const char *spell(DType dtype);

/// Memory spaces; each has one arena per rank. On the CPU everything that is not offloaded is Device.
enum class Space : uint8_t { Device, Host, Nvme };
const char *spell(Space space);

/// A strided window of an arena. Element (i0, i1, ...) lies at offset + sum(i_k * strides[k]) * byteSize.
/// Strides are in elements, non-negative, and a dimension of size 1 may have any stride.
struct Buffer {
  Space space = Space::Device;
  DType dtype = DType::F32;
  uint64_t offset = 0; ///< bytes from the start of the arena, to element (0, ..., 0)
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

/// One reserved interval of an arena: [offset, offset + bytes) holds one value while the commands
/// [begin, end) of `segment` run. States, inputs and outputs have segment == kWholeStep. Two lifetimes never
/// share a byte at one time: views and in-place results belong to the lifetime of the value they alias. Every
/// operand and workspace of a command lies inside one lifetime that is live then. What poisoning builds check
/// against.
struct Lifetime {
  static constexpr uint32_t kWholeStep = UINT32_MAX;
  Space space = Space::Device;
  uint64_t offset = 0, bytes = 0;
  uint32_t segment = kWholeStep;
  uint32_t begin = 0, end = 0; ///< command indices, relative to the segment's first command
};

enum class Role : uint8_t { Parameter, Buffer, Gradient, Moment, Master, Scalar };
const char *spell(Role role);

/// How a state starts when no weights file names it.
struct Init {
  enum class Kind : uint8_t { Zero, Constant, Normal, Uniform, Required };
  Kind kind = Kind::Zero; ///< Required: refuse to start without a weights file that has it
  double a = 0, b = 0;    ///< Constant: value a; Normal: mean a, deviation b; Uniform: [a, b)
};

/// A named value that lives from step to step. A scalar state "rng" of two I64 is the (seed, counter) of
/// random ops: the host sets it to (`--seed`, 0) before step 1, the program counts micro-steps.
struct State {
  std::string name;                 ///< unique; a parameter's name is its name in the weights file
  std::vector<std::string> aliases; ///< other names of the same tensor (tied parameters)
  Role role = Role::Parameter;
  std::string owner; ///< for a moment, master or gradient: the parameter's name
  std::vector<int64_t> logicalShape;
  uint32_t buffer = 0; ///< index into buffers (this rank's shard)
  Init init;
  bool trainable = false;
};

/// One argument of the model's forward, filled by the host before each micro-step. Like every state and
/// output, its buffer is packed in row-major order and lies in a lifetime of the whole step.
struct Input {
  std::string name;
  uint32_t buffer = 0;
  /// Integer inputs that index a table: every value v must satisfy 0 <= v < indexLimit, or equal ignoreIndex.
  /// 0 = not an index.
  int64_t indexLimit = 0;
  bool hasIgnoreIndex = false;
  int64_t ignoreIndex = 0;
};

/// A rank-0 value that the host reads after a step ("loss", "grad_norm", "lr", "loss_scale", "skipped",
/// "step") or after an evaluation ("eval_loss"). Absent names are not logged.
struct Output {
  std::string name;
  uint32_t buffer = 0;
};

/// Library functions: what is neither generated nor a collective. Operands and params are documented with the
/// functions themselves (include/ds/Runtime/Library.h).
enum class LibraryFn : uint16_t {
  Matmul,
  AttentionForward,
  AttentionBackward,
  EmbeddingForward,
  EmbeddingBackward,
  CrossEntropyForward,
  CrossEntropyBackward,
  Fill,
  Copy,
};
const char *spell(LibraryFn fn);

enum class CommandKind : uint8_t {
  Kernel,      ///< callee = index into kernels
  Library,     ///< callee = LibraryFn
  Copy,        ///< between spaces; operands: source, destination
  Collective,  ///< callee = index into the collective sequence
  Storage,     ///< storage I/O
  RecordEvent, ///< callee = event
  WaitEvent,   ///< callee = event
};

/// One command. Operand and parameter lists are windows of the program's flat vectors, so that a command is a
/// fixed-size struct in the file.
struct Command {
  CommandKind kind = CommandKind::Kernel;
  uint8_t stream = 0;
  uint16_t callee = 0;
  uint32_t firstOperand = 0, numOperands = 0; ///< into operands: buffer indices
  uint32_t firstParam = 0, numParams = 0;     ///< into params
  uint32_t location = 0;                      ///< into strings: op and layer, for traces and diagnostics
  uint32_t workspace = UINT32_MAX;            ///< buffer index of planned scratch memory, or UINT32_MAX
  double flops = 0;                           ///< predicted work
  double bytes = 0;                           ///< predicted memory traffic
};

/// A generated kernel: symbol `name` of the image, of the form
///   void f(void *const *buffers, const void *scalars, int64_t begin, int64_t end)
/// which computes work units [begin, end) of `extent`; units are independent. `buffers` are the operands'
/// element (0, ..., 0). A launch of fewer than `grain` units is not worth splitting. When extent is 0 the
/// launch's params[0] holds it (kernels that are shared by tensors of different size). `scalars` points to
/// the launch's params, as int64 each, params[0] included.
struct Kernel {
  std::string name;
  int64_t extent = 0;
  int64_t grain = 1;
};

enum class SegmentKind : uint8_t { First, Middle, Last, Update, Evaluation };
const char *spell(SegmentKind kind);

/// A run of commands that is executed as a whole.
struct Segment {
  std::string name;
  SegmentKind kind = SegmentKind::Last;
  uint32_t firstCommand = 0, numCommands = 0;
};

/// `count` executions of a segment, each with the next micro-batch. The schedule of a step is their sequence.
struct Slot {
  uint32_t segment = 0;
  uint32_t count = 1;
};

enum class StreamKind : uint8_t { Compute, Gather, Reduce, HostCopy, Storage };

struct ArenaBytes {
  uint64_t device = 0, host = 0, nvme = 0;
};

/// What the planner promised; printed beside what is measured.
struct Predicted {
  uint64_t peakBytes = 0; ///< device
  double stepSeconds = 0; ///< 0: not predicted
  double flopsPerStep = 0;
};

/// The whole program of one rank.
struct Program {
  std::string target;                   ///< "cpu"
  std::string targetCpu;                ///< LLVM processor name the kernel image was made for
  std::vector<std::string> cpuFeatures; ///< every feature the machine must have ("avx512f", ...)
  std::string planHash;                 ///< hex digest of everything below but the predictions
  std::string configText;               ///< resolved configuration, for `ds-run` to print
  std::string weightsFile;              ///< file name beside the program, or empty
  std::vector<std::string>
      unusedWeights;    ///< names in that file that the program has no use for (dead buffers)
  uint32_t threads = 0; ///< worker threads of the compute stream
  uint32_t world = 1, rank = 0;
  uint32_t microBatch = 1, accumulation = 1;

  ArenaBytes arenas;
  std::vector<Buffer> buffers;
  std::vector<Lifetime> lifetimes;
  std::vector<State> states;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<StreamKind> streams;
  uint32_t numEvents = 0;

  std::vector<Command> commands;
  std::vector<uint32_t> operands;
  std::vector<int64_t> params; ///< doubles are stored by bit pattern
  std::vector<std::string> strings;
  std::vector<Segment> segments;
  std::vector<Slot> schedule; ///< one training step
  int32_t evaluation = -1;    ///< segment index, or -1

  std::vector<Kernel> kernels;
  std::vector<uint8_t> image; ///< ELF shared object with the kernels
  Predicted predicted;
};

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_H
