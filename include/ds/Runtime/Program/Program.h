//===- Program.h - The border between compiler and runtime ---------------------===//
//
// A program is what ranks execute: where every byte lives and which command touches it when. All ranks of a
// run share one program. What depends on the rank is said by its coordinates on the mesh: its stage, the part
// of the model that it holds; within a stage the windows that `axisStrides` shift; whom its collectives meet;
// and which elements of a state it holds. The compiler's last pass fills this struct, ProgramFile writes and
// verifies it as a .dsx file, and the executor obeys it. It holds no decision that is still open. Nothing
// here includes MLIR or LLVM.
//
// Memory is described once: every command operand names an entry of `buffers`, and every buffer lies inside
// the arena of its space, on each stage that uses it. Loading re-checks all of that before anything is
// mapped. Kernels are in Kernel.h, what the configuration asks of a run in RunSettings.h.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_PROGRAM_H
#define DS_RUNTIME_PROGRAM_PROGRAM_H

#include "ds/Runtime/Program/Collective.h"
#include "ds/Runtime/Program/CommandKind.h"
#include "ds/Runtime/Program/Kernel.h"
#include "ds/Runtime/Program/Layout.h"
#include "ds/Runtime/Program/LibraryFn.h"
#include "ds/Runtime/Program/Mesh.h"
#include "ds/Runtime/Program/RunSettings.h"

#include <array>
#include <cstdint>
#include <initializer_list>
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

/// A strided window of an arena. While micro-batch m is worked on, on the rank of coordinates (c0, c1, ...),
/// element (i0, i1, ...) lies at offset + sum(c_a * axisStrides[a]) + (m % slots) * slotStride + sum(i_k *
/// strides[k]) * byteSize. Strides are in elements, non-negative, and a dimension of size 1 may have any
/// stride.
///
/// A value that one segment leaves for another has as many slots as micro-batches are between the two at any
/// time. It is the schedule's business that a slot is read before it is written again.
struct Buffer {
  Space space = Space::Device;
  DType dtype = DType::F32;
  uint64_t offset = 0; ///< bytes from the start of the arena, to element (0, ..., 0)
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
  /// By axis of the mesh: bytes from the window of one rank to that of the next one along it. Empty: it is
  /// the same on every rank; there is no other way to say so.
  std::vector<uint64_t> axisStrides = {};
  uint32_t slots = 1;
  uint64_t slotStride = 0; ///< bytes from one slot to the next, at least what a window spans; 0 with one slot
};

/// One reserved interval of an arena: [offset, offset + bytes) holds one value while the commands
/// [begin, end) of `segment` run. States, inputs and outputs have segment == kWholeStep. Two lifetimes never
/// share a byte at one time: views and in-place results belong to the lifetime of the value they alias, and
/// all slots of a value to one. Every operand and workspace of a command lies inside one lifetime that is
/// live then. What poisoning builds check against.
struct Lifetime {
  static constexpr uint32_t kWholeStep = UINT32_MAX;
  Space space = Space::Device;
  uint64_t offset = 0, bytes = 0;
  uint32_t segment = kWholeStep;
  uint32_t begin = 0, end = 0; ///< command indices, relative to the segment's first command
  uint32_t stage = 0;          ///< whose arena it is; the segment's, if it names one
};

enum class Role : uint8_t { Parameter, Buffer, Gradient, Moment, Master, Scalar };
const char *spell(Role role);

/// How a state starts when no weights file names it.
struct Init {
  enum class Kind : uint8_t { Zero, Constant, Normal, Uniform, Required, Sinusoid };
  Kind kind = Kind::Zero; ///< Required: refuse to start without a weights file that has it
  /// Constant: value a; Normal: mean a, deviation b; Uniform: [a, b); Sinusoid: a table of positions whose
  /// slowest columns turn by 1 / a from row to row (Runtime/State/Sinusoids.h).
  double a = 0, b = 0;
};

/// A named value that lives from step to step on one stage. States that share a bucket name the same buffer.
/// States of one name on several stages are copies of one value, each in memory of its own: a parameter that
/// the first and the last layer share, and scalars that every stage counts for itself. A scalar state "rng"
/// of two I64 is the (seed, counter) of random ops: the host sets it to (`--seed`, 0) before step 1, the
/// program counts micro-steps.
struct State {
  std::string name; ///< unique on its stage; a parameter's name is its name in the weights file
  std::vector<std::string> aliases; ///< other names of the same tensor (tied parameters)
  Role role = Role::Parameter;
  std::string owner;                 ///< for a moment, master or gradient: the parameter's name
  std::vector<int64_t> logicalShape; ///< without padding
  uint32_t buffer = 0; ///< the local tensor's own window; if bucketed, the rank's shard, of one dimension
  Init init;
  bool trainable = false;
  Layout layout;                           ///< of the logical shape
  std::vector<std::string> readNames = {}; ///< names that weights files may have for it, never written
  uint32_t stage = 0;
  std::string slot = {}; ///< for a moment, master or gradient: what it is of its owner ("exp_avg", "master")
};

/// One argument of the model's forward that a stage reads, filled by the host for each micro-batch. Like
/// every state and output, its buffer is packed in row-major order and lies in a lifetime of the whole step.
struct Input {
  std::string name; ///< unique on its stage
  uint32_t buffer = 0;
  /// Integer inputs that index a table: every value v must satisfy 0 <= v < indexLimit, or equal ignoreIndex.
  /// 0 = not an index.
  int64_t indexLimit = 0;
  bool hasIgnoreIndex = false;
  int64_t ignoreIndex = 0;
  uint32_t stage = 0;
  /// Elements of each sample, which is one of dimension 0, that losses have for targets; ascending runs that
  /// do not touch. None: it is no input of targets, or it is not known.
  std::vector<IndexRange> targets = {};
};

/// A rank-0 value that the host reads after a step ("loss", "grad_norm", "lr", "loss_scale", "skipped",
/// "step") or after an evaluation ("eval_loss"). Absent names are not logged. "skipped" is 1 when an overflow
/// skipped the step, 2 when the loss scale cannot fall any lower: the run then ends; and 3 when the loss was
/// beyond the scalar state "loss_limit" (F32), which the host sets before a step.
struct Output {
  std::string name; ///< unique on its stage
  uint32_t buffer = 0;
  uint32_t stage = 0;
};

/// What a command is for, as people ask for it: for tables, not for the order of anything.
enum class Part : uint8_t { None, Forward, Recompute, Backward, Update };
inline constexpr Part kLastPart = Part::Update;

/// One command. Operand and parameter lists are windows of the program's flat vectors, so that a command is a
/// fixed-size struct in the file.
struct Command {
  CommandKind kind = CommandKind::Kernel;
  uint8_t stream = 0;
  uint32_t callee = 0;
  uint32_t firstOperand = 0, numOperands = 0; ///< into operands: buffer indices
  uint32_t firstParam = 0, numParams = 0;     ///< into params
  uint32_t location = 0;                      ///< into strings: op and layer, for traces and diagnostics
  uint32_t workspace = UINT32_MAX;            ///< buffer index of planned scratch memory, or UINT32_MAX
  double flops = 0;                           ///< predicted work
  double bytes = 0;                           ///< predicted memory traffic
  Part part = Part::None;
  /// Buffer index of a truth value in the host's memory, or UINT32_MAX: the command, which is on the host's
  /// stream, does nothing where that is false when its turn comes.
  uint32_t predicate = UINT32_MAX;
};

enum class Reduction : uint8_t { None, Sum, Max, Min };
const char *spell(Reduction reduction);

/// What the ranks of a group do together: those that differ along `axes` of the mesh alone. They are numbered
/// by position in it (Mesh.h), and so are roots. Every rank issues the same collectives in the same order on
/// each stream. With W ranks in the group and n elements the operands of the command, packed buffers of
/// `dtype`, are what the kind's traits say (Collective.h):
///   AllGather      in [n], out [W * n]: rank r's part at r * n; `in` may be that part of `out`
///   ReduceScatter  in [W * n], out [n]: part r, combined over the ranks; `out` may be that part of `in`
///   AllReduce      in [n], out [n], which may be the same
///   Broadcast      data [n], params: root
///   AllToAll       in [W * n], out [W * n]: part p goes to rank p
///   Send, Recv     data [n], params: partner, behind; see Messages.h
/// Sums are formed in rank order with fp32 (f64 for f64) accumulation, so that every run and every rank gets
/// the same bits.
struct Collective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  Reduction reduction = Reduction::None;
  DType dtype = DType::F32;
  uint64_t elements = 0; ///< of one rank's part: n
  AxisSet axes;          ///< of the mesh, one at least
  std::string name;      ///< for diagnostics and the communication summary
};

/// Reductions work on blocks of at most this many bytes of each rank's part.
inline constexpr uint64_t kReduceBlockBytes = uint64_t(1) << 20;

/// Elements of each rank's part that a reduction works on at once: the block of all ranks fills its staging
/// memory. A part is n elements for ReduceScatter and ceil(n / ranks) for AllReduce.
uint64_t reduceBlockElements(const Collective &collective, uint32_t ranks);

/// Bytes of the workspace that a collective needs in a group of `ranks`: those of one block from every rank;
/// 0 for what does not reduce and for one rank.
uint64_t collectiveStagingBytes(const Collective &collective, uint32_t ranks);

/// What commands do for a micro-batch, or for a step. A backward is done whole or in its two parts, of which
/// only the first one is waited for by others.
enum class Work : uint8_t {
  Forward,
  Backward,       ///< both parts at once
  InputGradient,  ///< of what the forward has read
  WeightGradient, ///< of the parameters
  Update,         ///< of all states of the stage, once a step
  Evaluation,     ///< the forward of held-out data; no part of a step
  Transfer,       ///< messages with other stages, beside what computes
  Move,           ///< collectives that bring parameters, beside what computes
};
inline constexpr Work kLastWork = Work::Move;
const char *spell(Work work);

/// Kinds of work that are done in one go, in the order of their enumerators. Bits that a file has beyond the
/// known ones are kept until the verifier refuses them.
class WorkSet {
public:
  constexpr WorkSet() = default;
  constexpr WorkSet(std::initializer_list<Work> works) {
    for (Work work : works)
      mask |= bit(work);
  }
  static constexpr WorkSet fromBits(uint32_t bits) {
    WorkSet set;
    set.mask = bits;
    return set;
  }
  constexpr uint32_t bits() const { return mask; }
  constexpr bool has(Work work) const { return mask & bit(work); }
  constexpr bool hasAny(WorkSet other) const { return mask & other.mask; }
  constexpr void add(Work work) { mask |= bit(work); }
  bool operator==(const WorkSet &) const = default;

private:
  static constexpr uint32_t bit(Work work) { return uint32_t(1) << static_cast<unsigned>(work); }
  uint32_t mask = 0;
};
/// "forward, backward"; "nothing" of an empty set.
std::string spell(WorkSet works);

/// A run of commands that is executed as a whole: what stage `stage` of the model does for its chunk `chunk`
/// (the layers that it holds are one chunk or several) when nothing need stand between its kinds of work.
struct Segment {
  std::string name;
  uint32_t stage = 0, chunk = 0;
  WorkSet work;
  uint32_t firstCommand = 0, numCommands = 0;
};

/// Executions that are one after another in the order of the schedule; those of other lanes run beside them.
/// Which lane runs a segment its work says.
enum class Lane : uint8_t { Compute, Transfer, Move };
inline constexpr unsigned kNumLanes = 3;
const char *spell(Lane lane);
constexpr Lane laneOf(WorkSet work) {
  return work.has(Work::Transfer) ? Lane::Transfer : work.has(Work::Move) ? Lane::Move : Lane::Compute;
}

/// A number of executions for each lane.
using LaneCounts = std::array<uint32_t, kNumLanes>;

/// What an execution does with the gradients that its chunk gathers over a step.
enum class Gradients : uint8_t {
  None, ///< makes none, or uses them up itself
  Set,  ///< the chunk's first micro-batch of a step: they start from its own
  Add,
};
const char *spell(Gradients gradients);

/// `count` executions of a segment, for micro-batches [firstMicroBatch, firstMicroBatch + count). In a step
/// every micro-batch is forwarded once in every chunk, what else is done for one is done for all, and an
/// execution that updates is the last one. The order of entries is one in which a rank can do all of them one
/// after another; lanes take order away (docs/pipelines.md).
struct ScheduleEntry {
  uint32_t segment = 0;
  uint32_t firstMicroBatch = 0, count = 1;
  Gradients gradients = Gradients::None;
  /// The gradients are complete afterwards, over micro-batches and ranks: those of the chunk, or of all
  /// chunks where it updates.
  bool reduces = false;
  /// The first execution begins once so many of each other lane are over, of those that stand before it. 0 of
  /// its own lane, which is in order anyway.
  LaneCounts after = {};
};

/// What runs its commands in order, beside other streams.
enum class StreamKind : uint8_t {
  Compute,
  Gather,
  Reduce,
  ToHost,   ///< copies from the device's memory to the host's
  ToDevice, ///< and back: a link carries both ways at once
  Storage,
  Host,     ///< kernels and library functions on the host's cores, on what lies in its memory
  Exchange, ///< parts of values that ranks cut among them
  Transfer, ///< what one stage of a pipeline makes and another reads
};
inline constexpr StreamKind kLastStreamKind = StreamKind::Transfer;
/// Whether collectives and messages may run on it.
constexpr bool communicates(StreamKind kind) {
  return kind == StreamKind::Compute || kind == StreamKind::Gather || kind == StreamKind::Reduce ||
         kind == StreamKind::Exchange || kind == StreamKind::Transfer;
}
/// The word that the dialect has for it.
const char *spell(StreamKind kind);

struct ArenaBytes {
  uint64_t device = 0, host = 0, nvme = 0;
};

/// An entry beside the step: the logits of one position of each sample of a micro-batch, of text that is to
/// be continued. Its buffers are no states, inputs or outputs, so that no checkpoint, no data and no log know
/// them; they live through the whole step.
struct LogitsEntry {
  int32_t segment = -1; ///< of evaluation work, or -1: the program has no such entry
  uint32_t rows = 0;    ///< buffer I64 [M], set by the host: sample * length + position, in [0, M * length)
  uint32_t logits = 0;  ///< buffer F32 [M, V]: what the model gives behind each of these tokens
};

/// What the ranks of one stage have and do.
struct Stage {
  ArenaBytes arenas;
  std::vector<ScheduleEntry> schedule; ///< one training step, of segments of the stage
  int32_t evaluation = -1;             ///< a segment of the stage, or -1
  LogitsEntry logits = {};             ///< of programs of one stage
};

/// What the planner promised; printed beside what is measured.
struct Predicted {
  uint64_t peakBytes = 0;        ///< device
  double stepSeconds = 0;        ///< 0: not predicted
  double flopsPerStep = 0;       ///< of one rank
  double recomputeFlops = 0;     ///< those of them that a backward pass recomputes
  double peakFlopsPerSecond = 0; ///< of one rank's device by its description; 0: not known
};

/// The whole program, the same for every rank.
struct Program {
  std::string target;                   ///< "cpu", "cuda:sm_80" or "cuda:sm_90"
  std::string targetCpu;                ///< LLVM processor name that code for the CPU was made for; or empty
  std::vector<std::string> cpuFeatures; ///< every feature the machine must have ("avx512f", ...)
  std::string planHash;                 ///< hex digest of everything below but the predictions
  std::string configText;               ///< resolved configuration, for `ds-run` to print
  std::string modelConfig;              ///< config.json that the model was made of; empty: of something else
  std::string weightsFile;              ///< file name beside the program, or empty
  std::vector<std::string>
      unusedWeights;            ///< names in weights files that the program has no use for (dead buffers)
  bool convertsWeights = false; ///< weights files may hold parameters in another float type
  bool tf32 = false;            ///< f32 factors of products may be rounded to tf32, where a device has it
  uint32_t threads = 0;         ///< worker threads of the compute stream
  uint32_t hostThreads = 0;     ///< and of the host stream; 0 where there is none
  WatchSettings watch;          ///< not in planHash
  bool nodeLocalSaves = false;  ///< the directory of checkpoints may be one of each node
  uint32_t world = 1;           ///< ranks; the size of the mesh
  Mesh mesh;
  /// Along which axes ranks read different samples; a rank's position in its group along them says which. All
  /// ranks of a group together read microBatch * accumulation samples each in a step.
  AxisSet dataAxes;
  /// Along which axes ranks run different stages; a rank's position in its group along them says which.
  AxisSet stageAxes;
  uint32_t microBatch = 1, accumulation = 1;

  std::vector<Stage> stages = std::vector<Stage>(1); ///< as many as the mesh has ranks along stageAxes
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

  std::vector<Collective> collectives;
  std::vector<Kernel> kernels;
  std::vector<uint8_t> image; ///< the kernels: an ELF shared object; for CUDA PTX text that ends in a 0
  std::vector<uint8_t> cubin; ///< CUDA: `image` assembled for the target, where ptxas was there; else empty
  std::vector<uint8_t> hostImage; ///< CUDA: the kernels of the host stream, an ELF shared object; or empty
  StorageSettings storage;        ///< looked at where a stage has an arena of storage
  Predicted predicted;
};

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_PROGRAM_H
