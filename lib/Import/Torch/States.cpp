//===- States.cpp - Parameters and buffers of the archive -----------------------===//

#include "States.h"
#include "Failure.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ds::ts {

/// Modules nest this deep at most: an archive may contain a module that contains itself.
static constexpr int maxDepth = 200;
/// A model has at most so many parameters and buffers; shared modules could multiply without end.
static constexpr size_t maxStates = 1'000'000;

/// Makes the buffer one whose elements are not known, as a parameter's are not.
static void beginUpdates(State &state) {
  state.isUpdated = true;
  state.current = makeNamed("", state.value.sizes().vec(), state.value.scalar_type());
  state.current->state = &state;
}

States::States(const torch::jit::Module &module, const std::set<std::string> &updated) {
  collect(module, "", 0);
  refuseOverlap();
  for (State &state : states)
    if (updated.count(state.name) > 0)
      beginUpdates(state);
}

void States::collect(const torch::jit::Module &module, const std::string &path, int depth) {
  if (depth > maxDepth || paths.size() > maxStates)
    fail("the module tree is more than " + std::to_string(maxDepth) + " levels deep or has more than " +
         std::to_string(maxStates) + " modules");
  c10::intrusive_ptr<c10::ivalue::Object> object = module._ivalue();
  paths.emplace(object.get(), path);
  auto type = object->type();
  for (size_t i = 0; i < type->numAttributes(); ++i) {
    const c10::IValue &value = object->getSlot(i);
    std::string name = path.empty() ? type->getAttributeName(i) : path + "." + type->getAttributeName(i);
    if (value.isModule())
      collect(value.toModule(), name, depth + 1);
    else if (value.isTensor() && value.toTensor().defined() && (type->is_parameter(i) || type->is_buffer(i)))
      addTensor(value.toTensor(), name, type->is_parameter(i) ? StateKind::Parameter : StateKind::Buffer);
  }
}

static const void *storageOf(const at::Tensor &tensor) { return tensor.storage().unsafeGetStorageImpl(); }

/// True when both are the same elements of the same memory in the same order.
static bool isSameMemory(const at::Tensor &a, const at::Tensor &b) {
  return a.is_alias_of(b) && a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() &&
         a.strides() == b.strides() && a.scalar_type() == b.scalar_type();
}

void States::addTensor(const at::Tensor &tensor, const std::string &name, StateKind kind) {
  if (!tensor.device().is_cpu() || tensor.layout() != at::kStrided || tensor.is_quantized() ||
      tensor.is_complex())
    fail("the tensor '" + name + "' of the archive is not a plain tensor on the CPU");
  for (State &state : states)
    if (state.kind == kind && isSameMemory(state.value, tensor)) {
      state.aliases.push_back(name);
      state.trainable |= kind == StateKind::Parameter && tensor.requires_grad();
      byTensor[tensor.unsafeGetTensorImpl()] = &state;
      return;
    }
  State state;
  state.name = name;
  state.kind = kind;
  state.trainable = kind == StateKind::Parameter && tensor.requires_grad();
  state.value = tensor;
  states.push_back(std::move(state));
  byTensor[tensor.unsafeGetTensorImpl()] = &states.back();
  memory[storageOf(tensor)].push_back(&states.back());
}

/// First and last byte that a tensor's elements can occupy.
static std::pair<const char *, const char *> extent(const at::Tensor &tensor) {
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i)
    last += (tensor.size(i) - 1) * tensor.stride(i);
  auto *begin = static_cast<const char *>(tensor.data_ptr());
  return {begin, begin + (last + 1) * static_cast<int64_t>(tensor.element_size())};
}

/// Parameters that overlap without being equal would be trained twice.
void States::refuseOverlap() const {
  std::vector<const State *> parameters;
  for (const State &state : states)
    if (state.kind == StateKind::Parameter && state.value.numel() > 0)
      parameters.push_back(&state);
  std::sort(parameters.begin(), parameters.end(),
            [](const State *a, const State *b) { return extent(a->value).first < extent(b->value).first; });
  for (size_t i = 1; i < parameters.size(); ++i)
    if (extent(parameters[i - 1]->value).second > extent(parameters[i]->value).first)
      fail("the parameters '" + parameters[i - 1]->name + "' and '" + parameters[i]->name +
               "' share memory, but are not the same tensor",
           "clone one of them before exporting the model");
}

State *States::findParameter(const at::Tensor &tensor) {
  auto found = byTensor.find(tensor.unsafeGetTensorImpl());
  return found != byTensor.end() && found->second->kind == StateKind::Parameter ? found->second : nullptr;
}

State *States::findBuffer(const at::Tensor &tensor) {
  for (State &state : states)
    if (state.kind == StateKind::Buffer && isSameMemory(state.value, tensor))
      return &state;
  return nullptr;
}

bool States::updateBuffer(const TensorRef &tensor) {
  for (State &state : states)
    if (state.isUpdated && state.current == tensor)
      return true;
  State *state = tensor->isKnown() ? findBuffer(tensor->known) : nullptr;
  if (!state || state->isUpdated) // by another object, which the import finds anew in its next run
    return state != nullptr;
  beginUpdates(*state);
  *tensor = *state->current;
  tensor->storage = std::make_shared<Storage>();
  tensor->storage->members.push_back(tensor);
  state->current = tensor;
  return true;
}

bool States::assignBuffer(const at::Tensor &tensor, const TensorRef &value) {
  State *state = findBuffer(tensor);
  if (!state || value->shape != tensor.sizes().vec() || value->type != tensor.scalar_type())
    return false;
  if (!state->isUpdated)
    beginUpdates(*state);
  state->current = value;
  return true;
}

TensorRef States::updatedBuffer(const at::Tensor &tensor) {
  State *state = findBuffer(tensor);
  return state && state->isUpdated ? state->current : nullptr;
}

void States::refuseAssumed() const {
  for (const State &state : states)
    if (state.isRead && state.isUpdated)
      fail("the forward writes the buffer '" + state.name + "', whose elements the import has looked at",
           "let nothing in the forward depend on its values but tensors");
}

std::set<std::string> States::namesOfUpdated() const {
  std::set<std::string> names;
  for (const State &state : states)
    if (state.isUpdated)
      names.insert(state.name);
  return names;
}

bool States::ownsMemoryOf(const at::Tensor &tensor) const {
  return tensor.has_storage() && memory.count(storageOf(tensor)) > 0;
}

/// True when the tensors may have elements in common.
static bool overlap(const at::Tensor &a, const at::Tensor &b) {
  if (a.numel() == 0 || b.numel() == 0)
    return false;
  auto [beginA, endA] = extent(a);
  auto [beginB, endB] = extent(b);
  return beginA < endB && beginB < endA;
}

const State *States::findAliased(const c10::IValue &value) const {
  const State *found = nullptr;
  auto search = [&](const c10::IValue &item) { found = found ? found : findAliased(item); };
  if (value.isTensor() && value.toTensor().defined() && ownsMemoryOf(value.toTensor())) {
    for (const State *state : memory.at(storageOf(value.toTensor())))
      if (state->kind == StateKind::Parameter && overlap(state->value, value.toTensor()))
        return state;
  } else if (value.isList()) {
    for (const c10::IValue &item : value.toListRef())
      search(item);
  } else if (value.isTuple()) {
    for (const c10::IValue &item : value.toTupleRef().elements())
      search(item);
  } else if (value.isGenericDict()) {
    for (const auto &item : value.toGenericDict())
      search(item.value());
  }
  return found;
}

void States::noteRead(const at::Tensor &tensor) {
  if (ownsMemoryOf(tensor))
    for (State *state : memory.at(storageOf(tensor)))
      state->isRead |= state->kind == StateKind::Buffer && overlap(state->value, tensor);
}

void States::nameConstants() {
  for (State &state : states)
    if (state.isRead && !state.isUpdated && !state.argument.empty()) {
      state.kind = StateKind::Constant;
      state.name = "constant." + std::to_string(numConstants++);
      state.aliases.clear();
    }
}

State &States::addConstant(const at::Tensor &tensor) {
  at::Tensor value = tensor.contiguous();
  for (State &state : states)
    if (state.kind == StateKind::Constant && state.value.scalar_type() == value.scalar_type() &&
        state.value.sizes() == value.sizes() &&
        std::memcmp(state.value.data_ptr(), value.data_ptr(), value.nbytes()) == 0)
      return state;
  State state;
  state.name = "constant." + std::to_string(numConstants++);
  state.kind = StateKind::Constant;
  state.value = std::move(value);
  states.push_back(std::move(state));
  return states.back();
}

State &States::generator() {
  if (!generatorState) {
    State state;
    state.name = "rng";
    state.kind = StateKind::Generator;
    states.push_back(std::move(state));
    generatorState = &states.back();
  }
  return *generatorState;
}

const std::string &States::pathOf(const c10::ivalue::Object &object) const {
  static const std::string root;
  auto found = paths.find(&object);
  return found == paths.end() ? root : found->second;
}

/// Mean and deviation of f32 values in one pass. Sums of blocks are formed in f32, 16 at a time, so that the
/// loop is vectorised; blocks add up in f64.
static std::pair<double, double> measure(const float *data, int64_t count) {
  constexpr int64_t lanes = 16, block = 4096;
  double sum = 0, squares = 0;
  for (int64_t begin = 0; begin < count; begin += block) {
    int64_t end = std::min(count, begin + block);
    float partialSum[lanes] = {}, partialSquares[lanes] = {};
    int64_t i = begin;
    for (; i + lanes <= end; i += lanes)
      for (int64_t lane = 0; lane < lanes; ++lane) {
        partialSum[lane] += data[i + lane];
        partialSquares[lane] += data[i + lane] * data[i + lane];
      }
    for (; i < end; ++i) {
      sum += data[i];
      squares += static_cast<double>(data[i]) * data[i];
    }
    for (int64_t lane = 0; lane < lanes; ++lane) {
      sum += partialSum[lane];
      squares += partialSquares[lane];
    }
  }
  double mean = sum / static_cast<double>(count);
  return {mean, std::sqrt(std::max(0.0, squares / static_cast<double>(count) - mean * mean))};
}

Init measureInit(const State &state) {
  if (state.kind == StateKind::Generator || state.value.numel() == 0)
    return {"zero", 0, 0};
  at::Tensor value = state.value.to(at::kFloat).contiguous();
  auto *data = value.data_ptr<float>();
  bool isConstant = std::memcmp(data, data + 1, (value.numel() - 1) * sizeof(float)) == 0;
  if (isConstant && std::isfinite(data[0]))
    return data[0] == 0 ? Init{"zero", 0, 0} : Init{"constant", data[0], 0};
  if (state.kind != StateKind::Parameter)
    return {"required", 0, 0};
  auto [mean, deviation] = measure(data, value.numel());
  if (!std::isfinite(mean) || !std::isfinite(deviation))
    return {"required", 0, 0};
  return {"normal", mean, deviation};
}

} // namespace ds::ts
