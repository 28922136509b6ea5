//===- Streams.cpp - Streams, events and graphs of the fake device --------------------===//
//
// A graph is a set of queues of its own, one for each stream that took part in recording it.
//
//===---------------------------------------------------------------------------===//
#include "Cupti.h"
#include "Fake.h"
#include "State.h"

#include <chrono>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <thread>
#include <utility>

using namespace ds::rt::fake;

struct CUevent_st {
  uint64_t recorded = 0;   ///< versions that records have been asked for
  uint64_t done = 0;       ///< the last version that has happened
  CUgraph graph = nullptr; ///< in which it was recorded last
  double time = 0;
};

struct CUstream_st {
  uint64_t number; ///< in the order of making
  std::deque<Work> queue;
  CUgraph graph = nullptr; ///< recording into it
};

struct ByNumber {
  bool operator()(CUstream a, CUstream b) const { return a->number < b->number; }
};

struct CUgraph_st {
  CUstream origin = nullptr;
  std::map<CUstream, std::vector<Work>, ByNumber> queues;
  std::set<CUstream> open; ///< streams with work that nothing has joined
  CUresult broken = CUDA_SUCCESS;
};

struct CUgraphExec_st {
  CUgraph_st graph;
};

namespace ds::rt::fake {
namespace {

std::vector<CUstream> streams;

/// Runs one piece of work if it can go on now.
bool advance(Work &work, CUresult &error, std::map<CUevent, uint64_t> *local) {
  State &s = state();
  if (work.kind == Work::Kind::Wait && (local ? (*local)[work.event] : work.event->done) < work.version)
    return false;
  if (work.kind == Work::Kind::Record) {
    if (local)
      (*local)[work.event] = work.version;
    else
      work.event->done = work.version;
    work.event->time = s.clock;
  }
  if (work.kind == Work::Kind::Do) {
    s.clock += 1;
    error = s.sticky != CUDA_SUCCESS ? s.sticky : work.body();
    if (error == CUDA_ERROR_NOT_READY) { // waits for another rank
      error = CUDA_SUCCESS;
      return false;
    }
    if (error != CUDA_SUCCESS)
      s.sticky = error;
  }
  return true;
}

/// Runs queues to their ends, the last first; an error ends all.
CUresult runAll(std::vector<std::deque<Work> *> queues, std::map<CUevent, uint64_t> *local) {
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t i = queues.size(); i-- > 0 && !moved;) {
      CUresult error = CUDA_SUCCESS;
      if (queues[i]->empty() || !advance(queues[i]->front(), error, local))
        continue;
      queues[i]->pop_front();
      moved = true;
      if (error != CUDA_SUCCESS)
        return error;
    }
  }
  for (const std::deque<Work> *queue : queues)
    if (!queue->empty())
      return CUDA_ERROR_NOT_READY;
  return CUDA_SUCCESS;
}

/// A graph that runs; asked again it goes on.
struct GraphRun {
  std::vector<std::deque<Work>> queues;
  std::map<CUevent, uint64_t> events;

  explicit GraphRun(const CUgraph_st &graph) {
    for (const auto &[stream, works] : graph.queues)
      queues.emplace_back(works.begin(), works.end());
  }
  CUresult go() {
    std::vector<std::deque<Work> *> all;
    for (std::deque<Work> &queue : queues)
      all.push_back(&queue);
    return runAll(all, &events);
  }
};

CUresult put(CUstream stream, Work work) {
  const auto lock = lockDevice();
  if (!stream->graph) {
    stream->queue.push_back(std::move(work));
    return state().sticky;
  }
  stream->graph->queues[stream].push_back(std::move(work));
  if (stream != stream->graph->origin)
    stream->graph->open.insert(stream);
  return state().sticky;
}

} // namespace

CUgraph recordsInto(CUstream stream) {
  const auto lock = lockDevice();
  return stream->graph;
}

CUresult enqueue(CUstream stream, std::function<CUresult()> body) {
  const auto lock = lockDevice();
  if (const auto number = noteLaunch())
    body = [body = std::move(body), number] {
      const CUresult result = body();
      noteRun(*number);
      return result;
    };
  return put(stream, {Work::Kind::Do, std::move(body)});
}

CUresult poll() {
  const auto lock = lockDevice();
  if (state().sticky != CUDA_SUCCESS)
    return state().sticky;
  std::vector<std::deque<Work> *> queues;
  for (CUstream stream : streams)
    queues.push_back(&stream->queue);
  return runAll(queues, nullptr);
}

CUresult drain() {
  CUresult result;
  while ((result = poll()) == CUDA_ERROR_NOT_READY)
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  return result;
}

} // namespace ds::rt::fake

//===----------------------------------------------------------------------===//
// The driver's functions
//===----------------------------------------------------------------------===//

CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned, int) {
  const auto lock = lockDevice();
  call("cuStreamCreate");
  static uint64_t number = 0;
  streams.push_back(*stream = new CUstream_st{number++, {}, nullptr});
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  const auto lock = lockDevice();
  std::erase(streams, stream);
  delete stream;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  call("cuStreamSynchronize");
  if (const CUgraph graph = recordsInto(stream))
    return graph->broken = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return drain();
}
CUresult cuStreamQuery(CUstream) {
  const auto lock = lockDevice();
  call("cuStreamQuery");
  return poll();
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  const auto lock = lockDevice();
  call("cuStreamWaitEvent");
  if (event->graph && !stream->graph)
    stream->graph = event->graph;
  if (stream->graph && event->graph)
    for (auto &[other, works] : stream->graph->queues)
      if (!works.empty() && works.back().kind == Work::Kind::Record && works.back().event == event)
        stream->graph->open.erase(other);
  return put(stream, {Work::Kind::Wait, {}, event, event->recorded});
}

CUresult cuEventCreate(CUevent *event, unsigned) {
  const auto lock = lockDevice();
  *event = new CUevent_st;
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  const auto lock = lockDevice();
  delete event;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  const auto lock = lockDevice();
  call("cuEventRecord");
  event->graph = stream->graph;
  return put(stream, {Work::Kind::Record, {}, event, ++event->recorded});
}
CUresult cuEventElapsedTime(float *milliseconds, CUevent begin, CUevent end) {
  const auto lock = lockDevice();
  *milliseconds = static_cast<float>(end->time - begin->time) * 1e-3f;
  return state().sticky;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode) {
  const auto lock = lockDevice();
  call("cuStreamBeginCapture");
  stream->graph = new CUgraph_st;
  stream->graph->origin = stream;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  const auto lock = lockDevice();
  call("cuStreamEndCapture");
  *graph = std::exchange(stream->graph, nullptr);
  for (CUstream other : streams)
    if (other->graph == *graph)
      other->graph = nullptr;
  const CUresult result = (*graph)->broken != CUDA_SUCCESS ? (*graph)->broken
                          : (*graph)->open.empty()         ? CUDA_SUCCESS
                                                           : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  if (result != CUDA_SUCCESS)
    delete std::exchange(*graph, nullptr);
  return result;
}
CUresult cuGraphInstantiate(CUgraphExec *executable, CUgraph graph, unsigned long long) {
  const auto lock = lockDevice();
  call("cuGraphInstantiate");
  *executable = new CUgraphExec_st{*graph};
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph graph) {
  const auto lock = lockDevice();
  delete graph;
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec executable) {
  const auto lock = lockDevice();
  delete executable;
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream) {
  const auto lock = lockDevice();
  call("cuGraphLaunch");
  return enqueue(stream, [run = std::make_shared<GraphRun>(executable->graph)] { return run->go(); });
}
CUresult cuLaunchHostFunc(CUstream stream, CUhostFn body, void *argument) {
  call("cuLaunchHostFunc");
  return enqueue(stream, [=] {
    body(argument);
    return CUDA_SUCCESS;
  });
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr at, cuuint32_t value, unsigned) {
  const auto lock = lockDevice();
  return enqueue(stream, [at, value] {
    *reinterpret_cast<volatile uint32_t *>(at) = value;
    return CUDA_SUCCESS;
  });
}
