//===- CudnnSession.cpp - cuDNN on a device, and the engines that commands share ----===//
#include "CudnnSession.h"

#include "ds/Support/Environment.h"

namespace ds::rt::cuda {

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

Result<std::shared_ptr<CudnnEngine>> CudnnSession::make(const CudnnRequest &request) {
  Result<NamedGraph> named = request.describe();
  if (!named)
    return named.error();
  const CudnnGraph &graph = named->graph;
  const auto keep = [&](CudnnPlan plan) {
    return std::make_shared<CudnnEngine>(CudnnEngine{std::move(*named), std::move(plan)});
  };
  const std::string key = prefix + request.key;
  if (const auto kept = cache.find(key))
    if (Result<CudnnPlan> plan = CudnnPlan::recall(*cudnn, graph, properties, *kept, request.workspaceBytes))
      return keep(std::move(*plan));
  Result<CudnnPlan> plan =
      CudnnPlan::choose(*cudnn, graph, properties, request.workspaceBytes, request.unwanted);
  if (!plan)
    return plan.error();
  if (cache.keeps())
    cache.add(key, plan->choice());
  return keep(std::move(*plan));
}

Result<std::shared_ptr<CudnnEngine>> CudnnSession::find(const CudnnRequest &request) {
  if (const auto found = all.find(request.key); found != all.end())
    return found->second;
  if (const auto found = refused.find(request.key); found != refused.end())
    return found->second;
  Result<std::shared_ptr<CudnnEngine>> engine = make(request);
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
