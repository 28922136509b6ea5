//===- Probe.cpp - What a machine can do, for calibration ----------------------===//
//
// Three loops that isolate one resource each: memory as generated kernels use it, the arithmetic of a
// transcendental function on elements that stay in the first cache, and multiply-adds that stay in registers.
//
//===---------------------------------------------------------------------------===//
#include "Kernel.h"

namespace ds::rt::DS_ISA {
namespace {

constexpr int64_t kGrain = 4096; // elements: as many as a generated kernel gives a thread at least

void addRange(const ProbeCall &call, int64_t begin, int64_t end) {
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes)
    store(call.out + i, load(call.a + i) + load(call.b + i));
  for (; i < end; ++i)
    call.out[i] = call.a[i] + call.b[i];
}

void expRange(const ProbeCall &call, int64_t begin, int64_t end) {
  for (int64_t i = begin; i + kLanes <= end; i += kLanes)
    store(call.out + i, vecExp(load(call.a + i)));
}

/// Sixteen independent sums hide the latency of the multiply-adds.
void multiplyRange(const ProbeCall &call, int64_t begin, int64_t end) {
  constexpr int kSums = 16;
  Vec sums[kSums];
  for (int s = 0; s < kSums; ++s)
    sums[s] = load(call.a + s);
  const Vec factor = splat(0.5f), term = load(call.b);
  for (int64_t i = begin; i < end; i += kLanes * kSums)
    for (int s = 0; s < kSums; ++s)
      sums[s] = sums[s] * factor + term;
  Vec sum = sums[0];
  for (int s = 1; s < kSums; ++s)
    sum += sums[s];
  call.out[begin / kGrain] = sumLanes(sum); // so that it is not dropped
}

} // namespace

void probe(const ProbeCall &call) {
  auto body = [&](int64_t begin, int64_t end) {
    switch (call.kind) {
    case ProbeKind::Add:
      return addRange(call, begin, end);
    case ProbeKind::Exp:
      return expRange(call, begin, end);
    case ProbeKind::MultiplyAdd:
      return multiplyRange(call, begin, end);
    }
  };
  forRanges(call.elements, kGrain, call.threads, body);
}

} // namespace ds::rt::DS_ISA
