//===- Cudnn.cpp - cuDNN's graph API on the fake device ---------------------------------===//
//
// Descriptors are bags of attributes. Five engines are proposed for every graph: one that is not supported,
// one that is noted to vary from run to run, one that needs a terabyte, one that takes twice as long, and the
// last. It
// computes a graph operation by operation (CudnnGraph.cpp) and spoils the workspace that it asked for.
//
//===---------------------------------------------------------------------------===//
#include "CudnnNode.h"
#include "Fake.h"
#include "State.h"

#include <cstdio>
#include <cstring>

using namespace ds::rt::fake;

namespace {

constexpr int64_t kVaries = 0, kHuge = 1, kWorks = 2, kSlow = 3; ///< engines
constexpr int64_t kProposed[] = {kVaries, kHuge, kSlow, kWorks}; ///< behind one that is not supported
constexpr int64_t kNumProposals = 1 + std::size(kProposed);
constexpr int64_t kKnobValue = 7;

thread_local std::string lastError; // as the library has it
CUstream stream = nullptr;

cudnnStatus_t refuse(const std::string &why, cudnnStatus_t status = CUDNN_STATUS_BAD_PARAM) {
  lastError = why;
  return status;
}

std::shared_ptr<Node> &nodeOf(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<std::shared_ptr<Node> *>(descriptor);
}

/// An engine for a graph.
std::shared_ptr<Node> makeEngine(const std::shared_ptr<Node> &graph, int64_t number) {
  auto engine = std::make_shared<Node>(Node{CUDNN_BACKEND_ENGINE_DESCRIPTOR});
  engine->children[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] = {graph};
  engine->setNumber(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, number);
  engine->finalized = true;
  return engine;
}

/// What an engine needs: for gradients that add to no memory 16 bits for each score, and always a little.
int64_t workspaceOf(const Node &engine) {
  if (engine.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) == kHuge)
    return int64_t(1) << 40;
  const Node &graph = *engine.child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
  int64_t products = 0, scores = 0;
  bool adds = false;
  for (const auto &operation : graph.children.at(CUDNN_ATTR_OPERATIONGRAPH_OPS))
    if (operation->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) {
      const Node &result = *operation->child(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
      const std::vector<int64_t> sizes = result.numbers(CUDNN_ATTR_TENSOR_DIMENSIONS);
      if (products++ == 0)
        scores = sizes[0] * sizes[1] * sizes[2] * sizes[3];
      adds |= result.number(CUDNN_ATTR_TENSOR_REORDERING_MODE) == CUDNN_TENSOR_REORDERING_F16x16;
    }
  return 128 + (products == 5 && !adds ? 2 * scores : 0);
}

/// Makes the proposals of a heuristic, into descriptors that the caller has made.
void propose(const Node &heuristics, int64_t count, void *descriptors) {
  auto **raw = static_cast<cudnnBackendDescriptor_t *>(descriptors);
  const std::shared_ptr<Node> graph = heuristics.child(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  for (int64_t i = 1; i < count; ++i) { // the first remains as it is: not finalised
    Node &configuration = *nodeOf(raw[i]);
    configuration.children[CUDNN_ATTR_ENGINECFG_ENGINE] = {makeEngine(graph, kProposed[i - 1])};
    auto knob = std::make_shared<Node>(Node{CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR});
    knob->setNumber(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_KNOB_TYPE_KERNEL_CFG);
    knob->setNumber(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, kKnobValue);
    knob->finalized = true;
    configuration.children[CUDNN_ATTR_ENGINECFG_KNOB_CHOICES] = {knob};
    configuration.finalized = true;
  }
}

/// Attributes that are computed; -1 for the others.
int64_t derived(const Node &node, cudnnBackendAttributeName_t name) {
  if (name == CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE)
    return workspaceOf(*node.child(CUDNN_ATTR_ENGINECFG_ENGINE));
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
    return workspaceOf(
        *node.child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->child(CUDNN_ATTR_ENGINECFG_ENGINE));
  return -1;
}

} // namespace

size_t cudnnGetVersion() { return setting("DS_FAKE_CUDNN", 91900); }
const char *cudnnGetErrorString(cudnnStatus_t) { return "a status of the fake library"; }
void cudnnGetLastErrorString(char *message, size_t size) {
  std::snprintf(message, size, "%s", lastError.c_str());
}
cudnnStatus_t cudnnCreate(cudnnHandle_t *handle) {
  call("cudnnCreate");
  *handle = reinterpret_cast<cudnnHandle_t>(&state());
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) {
  call("cudnnDestroy");
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t now) {
  stream = reinterpret_cast<CUstream>(now);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t *descriptor) {
  *descriptor = new std::shared_ptr<Node>(std::make_shared<Node>(Node{type}));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete static_cast<std::shared_ptr<Node> *>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void *values) {
  Node &node = *nodeOf(descriptor);
  if (node.finalized)
    return refuse("an attribute of what is finalised");
  if (type != CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    node.set(name, type, count, values);
    return CUDNN_STATUS_SUCCESS;
  }
  std::vector<std::shared_ptr<Node>> &children = node.children[name];
  children.clear();
  for (int64_t i = 0; i < count; ++i) {
    children.push_back(nodeOf(static_cast<const cudnnBackendDescriptor_t *>(values)[i]));
    if (!children.back()->finalized)
      return refuse("a descriptor that is not finalised", CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Node &node = *nodeOf(descriptor);
  if (node.type == CUDNN_BACKEND_ENGINE_DESCRIPTOR && node.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) < kWorks)
    return refuse("no such engine");
  if (node.type == CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR &&
      node.number(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE) != kKnobValue)
    return refuse("no such setting");
  if (node.type == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
    call("cudnn heuristics");
  if (node.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    call("cudnn compiles");
  node.finalized = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, int64_t *found,
                                       void *values) {
  const Node &node = *nodeOf(descriptor);
  if (!node.finalized)
    return refuse("an attribute of what is not finalised", CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS) {
    *found = kNumProposals;
    if (count > 0)
      propose(node, std::min(count, kNumProposals), values);
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE) {
    *found = node.number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) == kVaries;
    if (*found > 0)
      *static_cast<cudnnBackendNumericalNote_t *>(values) = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    return CUDNN_STATUS_SUCCESS;
  }
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto children = node.children.find(name);
    *found = children == node.children.end() ? 0 : static_cast<int64_t>(children->second.size());
    for (int64_t i = 0; i < std::min(count, *found); ++i)
      nodeOf(static_cast<cudnnBackendDescriptor_t *>(values)[i]) = children->second[static_cast<size_t>(i)];
    return CUDNN_STATUS_SUCCESS;
  }
  const int64_t value = derived(node, name) >= 0 ? derived(node, name) : node.number(name);
  *found = 1;
  std::memcpy(values, &value, type == CUDNN_TYPE_INT64 ? 8 : 4);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const Node &configuration = *nodeOf(plan)->child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const std::shared_ptr<Node> engine = configuration.child(CUDNN_ATTR_ENGINECFG_ENGINE);
  call("cudnnBackendExecute engine " + std::to_string(engine->number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX)));
  if (setting("DS_FAKE_ENGINES", 1) == 0)
    return refuse("no engine runs");
  const Node &places = *nodeOf(pack);
  const std::vector<int64_t> ids = places.numbers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS),
                             addresses = places.numbers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  auto *workspace = reinterpret_cast<void *>(places.number(CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
  const auto bytes = static_cast<size_t>(workspaceOf(*engine));
  if (!workspace || reinterpret_cast<uintptr_t>(workspace) % 256 != 0)
    return refuse("a workspace that does not lie on 256 bytes");
  CudnnRun run{engine->child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH), {}, {}, {}};
  for (size_t i = 0; i < ids.size(); ++i)
    run.places[ids[i]] = reinterpret_cast<void *>(addresses[i]);
  if (!run.readScalars())
    return refuse("an operand that is missing or does not lie on 16 bytes");
  if (engine->number(CUDNN_ATTR_ENGINE_GLOBAL_INDEX) == kSlow)
    enqueue(stream, [] { return CUDA_SUCCESS; });
  const CUresult result = enqueue(stream, [run, workspace, bytes] {
    std::memset(workspace, 0xff, bytes);
    return CudnnRun(run).compute() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
  return result == CUDA_SUCCESS ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
