//===- CudaTelemetry.cpp - How far a GPU has come, and when ----------------------------===//
#include "CudaTelemetry.h"

#include "Activity.h"
#include "Nvtx.h"
#include "ds/Runtime/Program/HostNeeds.h"

namespace ds::rt::cuda {

Status CudaTelemetry::make(const Program &program) {
  void *memory = nullptr;
  if (Status status =
          context.check(context.driver.memHostAlloc(&memory, markBytes(program), CU_MEMHOSTALLOC_DEVICEMAP),
                        "allocating marks");
      !status)
    return status;
  marks = static_cast<volatile uint32_t *>(memory);
  return context.check(context.driver.memHostGetDevicePointer(&marksOnDevice, memory, 0), "mapping marks");
}

void CudaTelemetry::destroy() {
  for (CUevent event : stamps)
    context.driver.eventDestroy(event);
  if (marks)
    context.driver.memFreeHost(const_cast<uint32_t *>(marks));
}

Status CudaTelemetry::mark(uint32_t stream, uint32_t command) {
  return context.check(context.driver.streamWriteValue32(streams[stream],
                                                         marksOnDevice + stream * sizeof(uint32_t), command,
                                                         CU_STREAM_WRITE_VALUE_DEFAULT),
                       "marking progress");
}

void CudaTelemetry::resetMarks(uint32_t command) {
  for (uint32_t i = 0; i < streams.size(); ++i)
    marks[i] = command;
}

Status CudaTelemetry::stamp(uint32_t index, uint32_t stream) {
  while (stamps.size() <= index) {
    Result<CUevent> event = context.makeEvent(CU_EVENT_DEFAULT);
    if (!event)
      return event.error();
    stamps.push_back(*event);
  }
  return context.check(context.driver.eventRecord(stamps[index], streams[stream]), "taking the time");
}

Result<double> CudaTelemetry::secondsBetween(uint32_t from, uint32_t to) {
  float milliseconds = 0;
  if (Status status = context.check(context.driver.eventElapsedTime(&milliseconds, stamps[from], stamps[to]),
                                    "reading times");
      !status)
    return status.error();
  return static_cast<double>(milliseconds) * 1e-3;
}

bool CudaTelemetry::startObserving() { return startActivity(); }
void CudaTelemetry::observe(uint32_t index) { enterActivity(index == kNoIndex ? kNoActivity : index); }
std::vector<DeviceTelemetry::Observed> CudaTelemetry::takeObserved() { return finishActivity(); }

void CudaTelemetry::beginRange(const char *text) { nvtxRangePushA(text); }
void CudaTelemetry::endRange() { nvtxRangePop(); }

} // namespace ds::rt::cuda
