//===- Cupti.cpp - CUPTI's activity records on the fake device ---------------------------===//
//
// Every piece of work that a stream runs takes one tick of a microsecond, and gives a kernel's record if it
// was put there while collecting. With DS_FAKE_PROFILER=1 somebody else has the library; with 2 nobody says
// so, but no record comes.
//
//===---------------------------------------------------------------------------===//
#include "Cupti.h"

#include "Fake.h"
#include "State.h"

#include <cupti.h>

#include <cstring>
#include <vector>

using namespace ds::rt::fake;

namespace {

constexpr uint64_t kTick = 1000; ///< nanoseconds

CUpti_BuffersCallbackRequestFunc giveBuffer = nullptr;
CUpti_BuffersCallbackCompleteFunc takeBuffer = nullptr;
bool enabled = false;
std::vector<uint64_t> entered;
uint32_t correlations = 0;

struct Pair {
  CUpti_ActivityExternalCorrelation link;
  CUpti_ActivityKernel10 kernel;
};
std::vector<Pair> records;

} // namespace

namespace ds::rt::fake {

std::optional<ActivityNumber> noteLaunch() {
  if (!enabled)
    return std::nullopt;
  return ActivityNumber{++correlations, entered.empty() ? std::nullopt : std::optional(entered.back())};
}

void noteRun(const ActivityNumber &number) {
  Pair pair{};
  pair.link.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  pair.link.externalKind =
      number.index ? CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0 : CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1;
  pair.link.externalId = number.index.value_or(0);
  pair.link.correlationId = number.correlation;
  pair.kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  pair.kernel.correlationId = number.correlation;
  pair.kernel.end = static_cast<uint64_t>(state().clock) * kTick;
  pair.kernel.start = pair.kernel.end - kTick;
  records.push_back(pair);
}

} // namespace ds::rt::fake

CUptiResult cuptiGetVersion(uint32_t *version) {
  *version = CUPTI_API_VERSION;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiGetTimestamp(uint64_t *timestamp) {
  *timestamp = static_cast<uint64_t>(state().clock) * kTick;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc give,
                                           CUpti_BuffersCallbackCompleteFunc take) {
  giveBuffer = give;
  takeBuffer = take;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityEnable(CUpti_ActivityKind) {
  const uint64_t profiler = setting("DS_FAKE_PROFILER", 0);
  if (profiler == 1)
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  enabled = profiler == 0;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind) {
  enabled = false;
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t id) {
  entered.push_back(id);
  return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind, uint64_t *id) {
  if (entered.empty())
    return CUPTI_ERROR_QUEUE_EMPTY;
  *id = entered.back();
  entered.pop_back();
  return CUPTI_SUCCESS;
}

/// Links and kernels alternate in a buffer.
CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t filled, CUpti_Activity **record) {
  uint8_t *next = buffer;
  if (*record)
    next = reinterpret_cast<uint8_t *>(*record) + ((*record)->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
                                                       ? sizeof(Pair) - offsetof(Pair, kernel)
                                                       : offsetof(Pair, kernel));
  if (next >= buffer + filled)
    return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity *>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t) {
  for (size_t done = 0; done < records.size();) {
    uint8_t *buffer = nullptr;
    size_t bytes = 0, most = 0;
    giveBuffer(&buffer, &bytes, &most);
    const size_t count = std::min(bytes / sizeof(Pair), records.size() - done);
    std::memcpy(buffer, records.data() + done, count * sizeof(Pair));
    takeBuffer(nullptr, 0, buffer, bytes, count * sizeof(Pair));
    done += count;
  }
  records.clear();
  return CUPTI_SUCCESS;
}
