//===- BodyGraph.h - A fused body as a graph of indexed scalars ----------------===//
//
// Index ops vanish here: every node is one element of one body value, at an index that is an expression over
// the loop dimensions. Broadcasts, slices, transposes and reshapes become expressions; pads and
// concatenations become guards, unless the bounds decide them. Equal (value, index) pairs are one node, so
// whatever a body shares is computed once, and what a body never asks for is never made.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CODEGEN_BODYGRAPH_H
#define DS_LIB_CODEGEN_BODYGRAPH_H

#include "IndexExpr.h"
#include "ds/Dialect/Ds.h"
#include <deque>
#include <string>

namespace mlir::ds::codegen {

/// `low <= expr <= high` must hold for a guarded operand to be chosen.
struct Condition {
  Index expr;
  int64_t low, high;
};

struct Node {
  enum class Kind : uint8_t {
    Load,        ///< element `index` of buffer `buffer`
    Table,       ///< element `index` of the constant `op`
    Constant,    ///< `value`
    Position,    ///< `index` itself, as a number
    Random,      ///< draw number `index`; operands: seed, counter[, what is added to the number]
    Elementwise, ///< `op` of the operands
    Guard,       ///< operand 0 where all conditions hold, else operand 1
    Reduce,      ///< `op` of operand 0 over the reduced loop dimensions
  } kind;
  unsigned id = 0;
  mlir::Operation *op = nullptr;
  mlir::Type type; ///< element type
  llvm::SmallVector<Node *, 3> operands;
  unsigned buffer = 0;
  Index index = nullptr;
  mlir::TypedAttr value;
  llvm::SmallVector<Condition, 2> conditions;
  uint32_t dims = 0;  ///< loop dimensions the value depends on
  unsigned level = 0; ///< reductions on the longest path to it, itself included
};

/// True for values that take as long as many simple operations: random numbers, and functions that become
/// polynomials.
bool isHeavy(const Node &node);

/// The ops of a fused body in order, and the values it yields. A value that no op of the body defines is a
/// leaf.
struct Body {
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::SmallVector<mlir::Value> outputs;
};

/// The loop dimensions of a kernel: the sizes of its anchor shape, and which of them the reductions run over.
struct LoopSpace {
  llvm::SmallVector<int64_t> sizes; ///< ShapedType::kDynamic: known at launch
  uint32_t reduced = 0;             ///< bit d: dimension d is reduced

  bool isReduced(unsigned dim) const { return (reduced >> dim) & 1; }
  /// Sizes of the reduced (or of the kept) dimensions.
  llvm::SmallVector<int64_t> sizesOf(bool reducedOnes) const;
};

/// Row-major strides of a tensor of `shape`.
llvm::SmallVector<int64_t> contiguousStrides(llvm::ArrayRef<int64_t> shape);

/// Builds nodes on demand. The loop dimensions are those of `space`, in order, as added to `context`.
/// A method for each kind of op that a region may hold.
class BodyGraph {
public:
  BodyGraph(IndexContext &context, const LoopSpace &space, const Body &body);

  /// Declares that leaf `value` is buffer `number`, with these strides. Leaves that are not declared get the
  /// next number and are taken to be contiguous.
  void addLeaf(mlir::Value value, unsigned number, llvm::ArrayRef<int64_t> strides);

  /// Node of element `indices` of `value`; null when the body cannot be compiled, for reason() then.
  Node *resolve(mlir::Value value, llvm::ArrayRef<Index> indices);

  /// Index of an output with `shape` at the current loop position. Null unless the output has one element per
  /// iteration (`isFull` becomes true) or one per kept iteration.
  std::optional<llvm::SmallVector<Index>> outputIndex(llvm::ArrayRef<int64_t> shape, bool &isFull);

  const std::string &reason() const { return failure; }
  const std::deque<Node> &allNodes() const { return nodes; }

private:
  struct Leaf {
    unsigned number;
    llvm::SmallVector<int64_t> strides;
  };

  Node *build(mlir::Value value, llvm::ArrayRef<Index> indices);
  Node *buildLeaf(mlir::Value value, llvm::ArrayRef<Index> indices);
  Node *buildElementwise(mlir::Operation *op, mlir::Type type, llvm::ArrayRef<Index> indices);
  Node *buildConstant(mlir::ds::ConstantOp op, llvm::ArrayRef<Index> indices);
  Node *buildReshape(mlir::ds::ReshapeOp op, llvm::ArrayRef<Index> indices);
  Node *buildRandom(mlir::ds::RandomUniformOp op, llvm::ArrayRef<Index> indices);
  Node *buildPad(mlir::ds::PadOp op, llvm::ArrayRef<Index> indices);
  Node *buildConcat(mlir::ds::ConcatOp op, llvm::ArrayRef<Index> indices);
  Node *buildReduce(mlir::ds::ReduceOp op, llvm::ArrayRef<Index> indices);
  Node *buildZero(mlir::Type type);
  Node *buildGuard(llvm::ArrayRef<Condition> conditions, Node *inside, Node *outside);
  Node *newNode(Node::Kind kind, mlir::Type type, mlir::Operation *op = nullptr);
  Node *fail(const llvm::Twine &message);
  void finish(Node &node);

  IndexContext &context;
  const LoopSpace &space;
  llvm::DenseMap<mlir::Operation *, unsigned> ops;
  llvm::DenseMap<mlir::Value, Leaf> leaves;
  std::map<std::pair<void *, std::vector<Index>>, Node *> memo;
  std::deque<Node> nodes;
  std::string failure;
};

} // namespace mlir::ds::codegen

#endif // DS_LIB_CODEGEN_BODYGRAPH_H
