//===- Graph.h - The module of a model while it is being built ------------------===//
//
// Holds what every layer needs: where ops go, where they say they come from, which states exist. A layer is a
// `Scope`, whose path names its parameters and its ops at once, so that the names of the published checkpoint
// are also the places in reports.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_HF_GRAPH_H
#define DS_LIB_IMPORT_HF_GRAPH_H

#include "ds/Dialect/Emitter.h"
#include "ds/Support/Error.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"

#include <optional>
#include <string>
#include <vector>

namespace ds::hf {

using mlir::Value;
using mlir::ds::Emitter;

/// No tensor of a model or of its step has more elements: sizes in bytes and operation counts then stay
/// within 64 bits all the way to the program.
inline constexpr int64_t kMaxElements = int64_t{1} << 40;
/// No model has more parameters.
inline constexpr int64_t kMaxParameters = int64_t{1} << 45;

/// How a parameter starts without a checkpoint.
struct Init {
  mlir::ds::InitKind kind = mlir::ds::InitKind::Zero;
  double a = 0, b = 0;

  static Init zeros() { return {}; }
  static Init ones() { return {mlir::ds::InitKind::Constant, 1, 0}; }
  static Init normal(double deviation) { return {mlir::ds::InitKind::Normal, 0, deviation}; }
  /// A table of positions whose slowest columns turn by 1 / `slowest` from row to row.
  static Init sinusoid(double slowest) { return {mlir::ds::InitKind::Sinusoid, slowest, 0}; }
};

/// The states of a model by their full names, and what else checkpoints call them.
class StateTable {
public:
  struct State {
    mlir::ds::StateOp op;
    Value value;
    std::vector<std::string> aliases, readNames;
  };

  /// `basePrefix` ("transformer.") is what checkpoints of the model without its head leave out.
  explicit StateTable(std::string basePrefix) : prefix(std::move(basePrefix)) {}

  /// The state of this name; without a value until it is declared.
  State &operator[](llvm::StringRef name) { return states[name]; }
  Value valueOf(llvm::StringRef name) const { return states.lookup(name).value; }
  /// Declares the state with what `op` and `value` are.
  void declare(llvm::StringRef name, mlir::ds::StateOp op, Value value);
  /// Adds what checkpoints of the model without its head call `name`, where that is otherwise.
  void addBare(std::vector<std::string> &names, llvm::StringRef name) const;
  void ignore(llvm::StringRef name);
  /// Gives the states' ops their further names, in the order of their declaration.
  void writeNames(mlir::OpBuilder &builder);
  /// What checkpoints hold and the model has no use for; null where there is nothing.
  mlir::ArrayAttr ignoredNames(mlir::OpBuilder &builder) const;

private:
  std::string prefix;
  llvm::StringMap<State> states;
  std::vector<std::string> order; ///< of their declaration
  std::vector<std::string> ignored;
};

class Graph {
public:
  Graph(mlir::MLIRContext &context, std::string basePrefix);

  /// Emits at the end of @forward, located at the current layer.
  Emitter ops();
  /// An argument that the host fills. Before any parameter.
  Value input(llvm::StringRef name, mlir::RankedTensorType type);
  /// What else the host may tell of each token, [B, T]; null where it does not.
  struct TokenFacts {
    Value positions; ///< where it is in its document, instead of where it is in the sample
    Value documents; ///< which document it belongs to; others are not attended to
    Value decoder;   ///< what a decoder beside an encoder reads, [B, T] of a length of its own
  };
  TokenFacts tokens;
  /// The parameter of this name below the current layer; declared on first use. One that is not `trainable`
  /// is frozen: checkpoints have it, and no step changes it.
  Value parameter(llvm::StringRef name, llvm::ArrayRef<int64_t> shape, Init init, bool trainable = true);
  /// The parameter of this full name, which exists.
  Value existing(llvm::StringRef name) const { return states.valueOf(name); }
  /// Path of the current layer.
  std::string layer() const { return layers.empty() ? "" : layers.back(); }
  /// Another name of the parameter `owner` (full names), as a tied head has it.
  void tie(llvm::StringRef owner, llvm::StringRef alias);
  /// A further name (full) under which checkpoints hold the parameter `owner`; never written.
  void addReadName(llvm::StringRef owner, llvm::StringRef name);
  /// A tensor below the current layer that checkpoints may hold and the model has no use for.
  void ignoreWeight(llvm::StringRef name);
  /// Zeroes elements at random, as PyTorch's dropout in training; the tensor itself for probability 0.
  Value dropout(Value x, double probability);
  /// The (seed, counter) that everything random reads.
  Value generator();
  /// The number of the next draw, each its own.
  int64_t nextDropout() { return numDropouts++; }

  /// Ends @forward with the loss. Fails where the model is too large.
  Result<mlir::OwningOpRef<mlir::ModuleOp>> finish(Value loss);

private:
  friend class Scope;
  std::string path(llvm::StringRef name) const;
  mlir::Location here();
  /// The value of a new state, which is an argument of @forward.
  Value declare(llvm::StringRef name, mlir::ds::Role role, bool trainable, mlir::RankedTensorType type,
                Init init);
  /// A new argument of @forward.
  Value addArgument(mlir::RankedTensorType type, llvm::StringRef attribute, mlir::Attribute value);

  mlir::OpBuilder builder, stateBuilder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp forward;
  mlir::Block *block;
  std::vector<std::string> layers; ///< full paths of the open scopes
  StateTable states;
  std::vector<mlir::DictionaryAttr> argumentAttrs;
  std::optional<Error> error;
  int64_t numParameters = 0, numDropouts = 0;
};

/// Opens the layer `name` below the current one for its lifetime.
class Scope {
public:
  Scope(Graph &graph, llvm::StringRef name) : graph(graph) { graph.layers.push_back(graph.path(name)); }
  ~Scope() { graph.layers.pop_back(); }
  Scope(const Scope &) = delete;

private:
  Graph &graph;
};

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_GRAPH_H
