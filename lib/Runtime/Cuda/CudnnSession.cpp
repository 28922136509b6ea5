//===- CudnnSession.cpp - cuDNN on a device, and the engines that commands share ----===//
#include "CudnnSession.h"

#include "AlgorithmChoice.h"

#include "ds/Support/Environment.h"

namespace ds::rt::cuda {

/// Engines that are compiled and timed for each request.
static constexpr size_t kCandidates = 4;

Result<std::unique_ptr<CudnnSession>> CudnnSession::open(const Hardware &hardware) {
  std::unique_ptr<CudnnSession> session(new CudnnSession);
  Status status = session->start(hardware);
  return status ? Result<std::unique_ptr<CudnnSession>>(std::move(session)) : status.error();
}

CudnnSession::~CudnnSession() {
  all.clear();
  properties = {};
  if (handle)
    cudnn->destroyHandle(handle);
}

Status CudnnSession::start(const Hardware &hardware) {
  if (!isSet("DS_CUDNN", true))
    return Error{ExitCode::Device, "DS_CUDNN is 0", ""};
  Result<std::unique_ptr<Cudnn>> opened = Cudnn::open();
  if (!opened)
    return opened.error();
  cudnn = std::move(*opened);
  if (Status status = cudnn->check(cudnn->createHandle(&handle), "making a handle"); !status) {
    handle = nullptr;
    return status;
  }
  Result<Descriptor> found = deviceProperties(*cudnn, handle);
  if (!found)
    return found.error();
  properties = std::move(*found);
  prefix = keyPrefix(hardware, "cudnn", cudnn->getVersion()) + " ";
  cache = AlgorithmCache::open();
  return {};
}

/// Gives `engine` the fastest plan for its graph.
Status CudnnSession::choose(const Binding &binding, const CudnnRequest &request, const std::string &key,
                            const std::shared_ptr<CudnnEngine> &engine) {
  Result<std::vector<CudnnPlan>> found =
      CudnnPlan::candidates(*cudnn, engine->graph.graph, properties, request.workspaceBytes, request.unwanted,
                            cache.keeps() ? kCandidates : 1);
  if (!found)
    return found.error();
  CudnnTask trial(*this, engine, "timing an engine");
  if (Status status = trial.add(request.place, request.workspace); !status)
    return status;
  const auto run = [&](size_t index) {
    std::swap(engine->plan, (*found)[index]);
    Status status = trial.issue(binding.stream);
    std::swap(engine->plan, (*found)[index]);
    return status;
  };
  const auto value = [&](size_t index) { return (*found)[index].choice(); };
  Result<size_t> best = chooseByTime(binding.driver, binding.stream, cache, key, {found->size(), run, value});
  if (!best)
    return best.error();
  engine->plan = std::move((*found)[*best]);
  return {};
}

Result<std::shared_ptr<CudnnEngine>> CudnnSession::make(const Binding &binding, const CudnnRequest &request) {
  Result<NamedGraph> graph = request.describe();
  if (!graph)
    return graph.error();
  const auto engine = std::make_shared<CudnnEngine>(CudnnEngine{std::move(*graph), {}});
  const std::string key = prefix + request.key;
  if (const auto kept = cache.find(key))
    if (Result<CudnnPlan> plan =
            CudnnPlan::recall(*cudnn, engine->graph.graph, properties, *kept, request.workspaceBytes)) {
      engine->plan = std::move(*plan);
      return engine;
    }
  if (Status status = choose(binding, request, key, engine); !status)
    return status.error();
  return engine;
}

Result<std::shared_ptr<CudnnEngine>> CudnnSession::find(const Binding &binding, const CudnnRequest &request) {
  if (const auto found = all.find(request.key); found != all.end())
    return found->second;
  if (const auto found = refused.find(request.key); found != refused.end())
    return found->second;
  Result<std::shared_ptr<CudnnEngine>> engine = make(binding, request);
  if (engine)
    all.emplace(request.key, *engine);
  else
    refused.emplace(request.key, engine.error());
  return engine;
}

Status CudnnTask::add(const std::function<void *(int name)> &place, void *workspace) {
  std::vector<int64_t> ids;
  std::vector<void *> pointers;
  for (const auto &[name, id] : engine->graph.tensors) {
    ids.push_back(id);
    pointers.push_back(place(name));
  }
  const auto count = static_cast<int64_t>(ids.size());
  Descriptor run(session.library(), CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  run.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data())
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data())
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
  Status status = run.finalize("placing operands");
  runs.push_back(std::move(run));
  return status;
}

Status CudnnTask::issue(CUstream stream) {
  const Cudnn &cudnn = session.library();
  if (Status status = cudnn.check(cudnn.setStream(session.device(), stream), "using a stream"); !status)
    return status;
  for (const Descriptor &run : runs)
    if (Status status = cudnn.check(cudnn.execute(session.device(), engine->plan.get(), run.get()), what);
        !status)
      return status;
  return {};
}

} // namespace ds::rt::cuda
