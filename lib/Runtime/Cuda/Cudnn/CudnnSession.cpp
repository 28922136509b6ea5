//===- CudnnSession.cpp - cuDNN on a device, and the engines that commands share ----===//
#include "CudnnSession.h"

#include "Cuda/Binding/AlgorithmChoice.h"

#include "ds/Support/Environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
  return {};
}

std::unique_ptr<CudnnCandidates> CudnnSession::propose(const CudnnEngine &engine, bool byTime) const {
  return std::make_unique<CudnnCandidates>(*cudnn, engine.graph.graph, properties, engine.workspaceBytes,
                                           engine.unwanted, byTime ? kCandidates : 1);
}

Result<Choice::Value> CudnnSession::choose(const Driver &driver, CUstream stream, CudnnTask &task,
                                           bool byTime) const {
  CudnnEngine &engine = task.shared();
  std::unique_ptr<CudnnCandidates> candidates = std::move(engine.candidates);
  if (!candidates)
    candidates = propose(engine, byTime);
  Result<std::vector<CudnnPlan>> found = candidates->take();
  if (!found)
    return found.error();
  const auto run = [&](size_t index) {
    std::swap(engine.plan, (*found)[index]);
    Status status = task.issueOne(stream);
    std::swap(engine.plan, (*found)[index]);
    return status;
  };
  const auto name = [&](size_t index) {
    return fmt::format("engine {}", fmt::join((*found)[index].choice(), "."));
  };
  Result<size_t> best = byTime ? fastest(driver, stream, {found->size(), run, name}) : Result<size_t>(0);
  if (!best)
    return best.error();
  engine.plan = std::move((*found)[*best]);
  return engine.plan.choice();
}

/// Commands that share the engine ask again.
Status CudnnSession::take(CudnnEngine &engine, const Choice::Value &value) const {
  if (engine.plan.get() && engine.plan.choice() == value)
    return {};
  Result<CudnnPlan> plan =
      CudnnPlan::recall(*cudnn, engine.graph.graph, properties, value, engine.workspaceBytes);
  if (!plan)
    return plan.error();
  engine.plan = std::move(*plan);
  return {};
}

Choice CudnnSession::choiceFor(const Driver &driver, CUstream stream, CudnnTask &task) const {
  return {prefix + task.shared().key,
          "",
          [=, this, &driver, &task](bool byTime) { return choose(driver, stream, task, byTime); },
          [this, &task](const Choice::Value &value) { return take(task.shared(), value); },
          [=, &driver, &task] { return runOnce(driver, stream, [&] { return task.issueOne(stream); }); },
          [](const Error &why) -> Status { return why; },
          {},
          [this, &task](const Choice::Value &value) { (void)take(task.shared(), value); },
          [this, &task](bool byTime) {
            CudnnEngine &engine = task.shared();
            engine.candidates = propose(engine, byTime);
            return engine.candidates->jobs();
          }};
}

Result<std::shared_ptr<CudnnEngine>> CudnnSession::find(const CudnnRequest &request) {
  if (const auto found = all.find(request.key); found != all.end())
    return found->second;
  if (const auto found = refused.find(request.key); found != refused.end())
    return found->second;
  Result<NamedGraph> graph = request.describe();
  if (!graph) {
    refused.emplace(request.key, graph.error());
    return graph.error();
  }
  const auto engine = std::make_shared<CudnnEngine>(
      CudnnEngine{request.key, std::move(*graph), request.workspaceBytes, request.unwanted});
  all.emplace(request.key, engine);
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

Status CudnnTask::issue(CUstream stream, size_t count) {
  const Cudnn &cudnn = session.library();
  if (Status status = cudnn.check(cudnn.setStream(session.device(), stream), "using a stream"); !status)
    return status;
  for (size_t i = 0; i < count; ++i)
    if (Status status = cudnn.check(cudnn.execute(session.device(), engine->plan.get(), runs[i].get()), what);
        !status)
      return status;
  return {};
}

} // namespace ds::rt::cuda
