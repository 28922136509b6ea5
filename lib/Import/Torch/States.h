//===- States.h - Parameters and buffers of the archive -------------------------===//
//
// Every parameter and buffer of the module tree, by its name in the archive. Tensors that are one piece of
// memory (tied parameters) are one state with several names.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_STATES_H
#define DS_LIB_IMPORT_TORCH_STATES_H

#include "Value.h"

#include <torch/csrc/jit/api/module.h>

#include <deque>
#include <set>
#include <unordered_map>

namespace ds::ts {

enum class StateKind { Parameter, Buffer, Constant, Generator };

/// One declared state.
struct State {
  std::string name;                 ///< the first name in the archive
  std::vector<std::string> aliases; ///< further names of the same memory
  StateKind kind = StateKind::Parameter;
  bool trainable = false;
  bool isRead = false;    ///< a buffer whose elements the import has looked at: what was written assumes them
  bool isUpdated = false; ///< a buffer that the forward writes
  TensorRef current;      ///< what the forward has made of it so far, where it is updated
  at::Tensor value;       ///< undefined for the generator's state
  std::string argument;   ///< "%w0" once the forward uses it
};

/// How a state starts without a weights file, as `ds.init` spells it.
struct Init {
  const char *kind = "required";
  double a = 0, b = 0;
};

/// The states of a module tree.
class States {
public:
  /// `updated` are buffers that the forward is known to write, by their names.
  States(const torch::jit::Module &module, const std::set<std::string> &updated);

  /// The parameter that `tensor` is; null for buffers and everything else.
  State *findParameter(const at::Tensor &tensor);
  /// The buffer that `tensor` is all of; null where there is none.
  State *findBuffer(const at::Tensor &tensor);
  /// Lets the forward write `tensor`, where that is all of a buffer or what an attribute gave of an updated
  /// one, and returns whether it is: the object stands for the buffer from then on.
  bool updateBuffer(const TensorRef &tensor);
  /// Lets the buffer that `tensor` is have `value` from then on; false where it is none, or of another type.
  bool assignBuffer(const at::Tensor &tensor, const TensorRef &value);
  /// What the forward has made so far of the updated buffer that `tensor` is; null where it is none.
  TensorRef updatedBuffer(const at::Tensor &tensor);
  /// Fails where an updated buffer's elements decided what was written.
  void refuseAssumed() const;
  /// The names of the buffers that are updated.
  std::set<std::string> namesOfUpdated() const;
  /// The parameter that shares memory with a tensor in `value`, which is a tensor or contains some; null
  /// where there is none.
  const State *findAliased(const c10::IValue &value) const;
  /// The elements of `tensor` decided what was written. A buffer among them is from then on a constant: a
  /// weights file cannot give it other values under its name.
  void noteRead(const at::Tensor &tensor);
  /// Names the buffers that the import has looked at as what they are, before anything is declared.
  void nameConstants();
  /// True when `tensor` shares memory with a parameter or buffer: the forward must not write it.
  bool ownsMemoryOf(const at::Tensor &tensor) const;
  /// A state for a known tensor that is too large to be written out; equal tensors share one.
  State &addConstant(const at::Tensor &tensor);
  /// The state of the random number generator.
  State &generator();
  /// The module's path ("transformer.h.0") in the tree; empty for the root and for foreign objects.
  const std::string &pathOf(const c10::ivalue::Object &object) const;

  std::deque<State> &all() { return states; }

private:
  void collect(const torch::jit::Module &module, const std::string &path, int depth);
  void addTensor(const at::Tensor &tensor, const std::string &name, StateKind kind);
  void refuseOverlap() const;

  std::deque<State> states; ///< addresses stay valid
  std::unordered_map<const void *, State *> byTensor;
  std::unordered_map<const void *, std::string> paths;
  std::unordered_map<const void *, std::vector<State *>> memory; ///< by storage
  State *generatorState = nullptr;
  int64_t numConstants = 0;
};

/// Measures how the archive's values could have been drawn: zero, one constant, or a normal distribution.
Init measureInit(const State &state);

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_STATES_H
