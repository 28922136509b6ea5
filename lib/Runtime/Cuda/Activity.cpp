//===- Activity.cpp - When kernels and copies run, as CUPTI measures it -------------===//
//
// CUPTI hands filled buffers to a thread of its own, without any word of ours: what they say is kept in one
// place of the process, under a lock.
//
//===---------------------------------------------------------------------------===//
#include "Activity.h"

#ifdef DS_HAS_CUPTI

#include "Cuda/Binding/Library.h"
#include "ds/Support/Environment.h"

#include <cupti.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

namespace ds::rt::cuda {
namespace {

/// The first whose records are laid out as cupti_activity.h of CUDA 13.0 says.
constexpr uint32_t kNeededCupti = 130000;
constexpr size_t kBufferBytes = size_t(1) << 20;

/// Driver and runtime calls are collected only because the numbers of the launching thread hang on them.
constexpr CUpti_ActivityKind kKinds[] = {
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_RUNTIME,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,    CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};

#define DS_CUPTI_FUNCTIONS(X)                                                                                \
  X(cuptiGetVersion, getVersion)                                                                             \
  X(cuptiGetTimestamp, getTimestamp)                                                                         \
  X(cuptiActivityRegisterCallbacks, registerCallbacks)                                                       \
  X(cuptiActivityEnable, enable)                                                                             \
  X(cuptiActivityDisable, disable)                                                                           \
  X(cuptiActivityFlushAll, flushAll)                                                                         \
  X(cuptiActivityGetNextRecord, getNextRecord)                                                               \
  X(cuptiActivityPushExternalCorrelationId, push)                                                            \
  X(cuptiActivityPopExternalCorrelationId, pop)

struct Cupti {
#define DS_CUPTI_DECLARE(FUNCTION, MEMBER) decltype(&::FUNCTION) MEMBER = nullptr;
  DS_CUPTI_FUNCTIONS(DS_CUPTI_DECLARE)
#undef DS_CUPTI_DECLARE
};

struct Span {
  uint64_t begin, end; ///< nanoseconds of CUPTI's clock
};

/// What the records of one collection say.
struct Collection {
  std::mutex mutex;
  std::unordered_map<uint32_t, uint64_t> indices; ///< by correlation: the launching thread's number
  std::vector<std::pair<uint32_t, Span>> work;    ///< by correlation
  uint64_t origin = 0;                            ///< nanoseconds
  bool entered = false;
};

Cupti cupti;
Collection collection;

/// Whether the library is there and new enough.
bool openCupti() {
  if (!isSet("DS_CUPTI", true))
    return false;
  const Result<void *> library = openLibrary(
      {"DS_CUPTI", {"libcupti.so.13", "/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13"}, "", ""});
  std::string missing;
  if (!library)
    return false;
#define DS_CUPTI_FIND(FUNCTION, MEMBER) find(*library, DS_SYMBOL(FUNCTION), cupti.MEMBER, missing);
  DS_CUPTI_FUNCTIONS(DS_CUPTI_FIND)
#undef DS_CUPTI_FIND
  uint32_t version = 0;
  return missing.empty() && cupti.getVersion(&version) == CUPTI_SUCCESS && version >= kNeededCupti;
}

template <class Record>
void addWork(const CUpti_Activity *activity) {
  const auto *record = reinterpret_cast<const Record *>(activity);
  collection.work.push_back({record->correlationId, {record->start, record->end}});
}

void add(const CUpti_Activity *record) {
  if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
    return addWork<CUpti_ActivityKernel10>(record);
  if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
    return addWork<CUpti_ActivityMemcpy6>(record);
  if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
    return addWork<CUpti_ActivityMemset4>(record);
  if (record->kind != CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)
    return;
  const auto *link = reinterpret_cast<const CUpti_ActivityExternalCorrelation *>(record);
  if (link->externalKind == CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
    collection.indices[link->correlationId] = link->externalId;
}

void CUPTIAPI giveBuffer(uint8_t **buffer, size_t *bytes, size_t *mostRecords) {
  *buffer = static_cast<uint8_t *>(std::aligned_alloc(8, kBufferBytes));
  *bytes = *buffer ? kBufferBytes : 0;
  *mostRecords = 0; // as many as fit
}

void CUPTIAPI takeBuffer(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t filled) {
  const std::lock_guard lock(collection.mutex);
  CUpti_Activity *record = nullptr;
  while (cupti.getNextRecord(buffer, filled, &record) == CUPTI_SUCCESS)
    add(record);
  std::free(buffer);
}

void leave() {
  uint64_t last = 0;
  if (std::exchange(collection.entered, false))
    cupti.pop(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, &last);
}

void disableAll() {
  for (CUpti_ActivityKind kind : kKinds)
    cupti.disable(kind);
}

} // namespace

bool startActivity() {
  static const bool usable = openCupti() && cupti.registerCallbacks(giveBuffer, takeBuffer) == CUPTI_SUCCESS;
  if (!usable)
    return false;
  {
    const std::lock_guard lock(collection.mutex);
    collection.indices.clear();
    collection.work.clear();
  }
  const bool enabled = std::all_of(std::begin(kKinds), std::end(kKinds), [](CUpti_ActivityKind kind) {
    return cupti.enable(kind) == CUPTI_SUCCESS;
  });
  if (enabled && cupti.getTimestamp(&collection.origin) == CUPTI_SUCCESS)
    return true;
  disableAll();
  return false;
}

void enterActivity(uint64_t index) {
  leave();
  if (index == kNoActivity)
    return;
  collection.entered = cupti.push(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, index) == CUPTI_SUCCESS;
}

std::vector<DeviceTelemetry::Observed> finishActivity() {
  leave();
  cupti.flushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  disableAll();
  const std::lock_guard lock(collection.mutex);
  std::map<uint64_t, Span> spans;
  for (const auto &[correlation, span] : collection.work) {
    const auto index = collection.indices.find(correlation);
    if (index == collection.indices.end())
      continue;
    Span &whole = spans.try_emplace(index->second, span).first->second;
    whole = {std::min(whole.begin, span.begin), std::max(whole.end, span.end)};
  }
  std::vector<DeviceTelemetry::Observed> observed;
  for (const auto &[index, span] : spans)
    observed.push_back({static_cast<uint32_t>(index), static_cast<int64_t>(span.begin - collection.origin),
                        static_cast<int64_t>(span.end - collection.origin)});
  return observed;
}

} // namespace ds::rt::cuda

#else

namespace ds::rt::cuda {

bool startActivity() { return false; }
void enterActivity(uint64_t) {}
std::vector<DeviceTelemetry::Observed> finishActivity() { return {}; }

} // namespace ds::rt::cuda

#endif // DS_HAS_CUPTI
