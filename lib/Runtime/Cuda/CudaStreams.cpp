//===- CudaStreams.cpp - Streams and events of a program ----------------------------===//
#include "CudaStreams.h"

#include "Program/Execution.h"

#include <algorithm>

namespace ds::rt::cuda {

Status CudaStreams::make(const Program &program) {
  const auto compute = std::find(program.streams.begin(), program.streams.end(), StreamKind::Compute);
  computeStream = static_cast<uint32_t>(compute - program.streams.begin());
  for (StreamKind kind : program.streams) {
    CUstream stream = nullptr;
    // What others wait for goes before what merely computes.
    const int priority = kind == StreamKind::Compute ? 0 : -1;
    if (Status status =
            context.check(context.driver.streamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority),
                          "making a stream");
        !status)
      return status;
    streams.push_back(stream);
  }
  const size_t numEvents = program.numEvents + LaneEvents(executionsOf(program)).size();
  for (size_t i = 0; i < numEvents + streams.size(); ++i) {
    Result<CUevent> event = context.makeEvent(CU_EVENT_DISABLE_TIMING);
    if (!event)
      return event.error();
    (i < numEvents ? events : meetings).push_back(*event);
  }
  return {};
}

void CudaStreams::destroy() {
  for (const std::vector<CUevent> *list : {&events, &meetings})
    for (CUevent event : *list)
      context.driver.eventDestroy(event);
  for (CUstream stream : streams)
    context.driver.streamDestroy(stream);
}

Status CudaStreams::record(uint32_t event, uint32_t stream) {
  return context.check(context.driver.eventRecord(events[event], streams[stream]), "recording an event");
}

Status CudaStreams::wait(uint32_t event, uint32_t stream) {
  return context.check(context.driver.streamWaitEvent(streams[stream], events[event], 0),
                       "waiting for an event");
}

Status CudaStreams::callHost(uint32_t stream, void (*body)(void *), void *argument) {
  return context.check(context.driver.launchHostFunc(streams[stream], body, argument), "calling the host");
}

Status CudaStreams::fork(std::span<const uint32_t> others) {
  if (others.empty())
    return {};
  CUresult result = context.driver.eventRecord(meetings[computeStream], streams[computeStream]);
  for (size_t i = 0; i < others.size() && result == CUDA_SUCCESS; ++i)
    result = context.driver.streamWaitEvent(streams[others[i]], meetings[computeStream], 0);
  return context.check(result, "starting the streams");
}

Status CudaStreams::join(std::span<const uint32_t> others) {
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < others.size() && result == CUDA_SUCCESS; ++i) {
    result = context.driver.eventRecord(meetings[others[i]], streams[others[i]]);
    if (result == CUDA_SUCCESS)
      result = context.driver.streamWaitEvent(streams[computeStream], meetings[others[i]], 0);
  }
  return context.check(result, "joining the streams");
}

Status CudaStreams::copy(std::byte *to, const std::byte *from, uint64_t bytes) {
  if (bytes == 0)
    return {};
  return context.check(context.driver.memcpyAsync(reinterpret_cast<CUdeviceptr>(to),
                                                  reinterpret_cast<CUdeviceptr>(from), bytes, compute()),
                       "copying");
}

Status CudaStreams::fill(std::byte *at, uint8_t byte, uint64_t bytes) {
  return context.check(
      context.driver.memsetD8Async(reinterpret_cast<CUdeviceptr>(at), byte, bytes, compute()), "filling");
}

Status CudaStreams::synchronize() {
  Status first;
  for (CUstream stream : streams)
    if (Status status = context.check(context.driver.streamSynchronize(stream), "the device failed");
        !status && first)
      first = status;
  return first;
}

} // namespace ds::rt::cuda
