//===- Probe.cpp - What a machine can do, for calibration ----------------------===//
//
// Loops that isolate one resource each: memory as generated kernels use it, in rows, in strips of columns and
// as an optimizer's update does, arithmetic on elements that stay in the nearest caches, sums of short rows,
// and multiply-adds that stay in registers.
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

/// `parts` vectors of each row, from the first row to the last, as a work unit of a generated kernel.
template <int parts>
void sumStrip(const ProbeCall &call, int64_t column) {
  Vec sums[parts] = {};
  for (int64_t at = column; at < call.elements; at += call.width)
    for (int part = 0; part < parts; ++part)
      sums[part] += load(call.a + at + part * kLanes);
  for (int part = 0; part < parts; ++part)
    store(call.out + column + part * kLanes, sums[part]);
}

void sumStrips(const ProbeCall &call, int64_t begin, int64_t end) {
  for (int64_t strip = begin; strip < end; ++strip)
    for (int64_t column = strip * call.strip, left = call.strip; left > 0;) {
      const int64_t wide = left >= 4 * kLanes ? 4 * kLanes : kLanes;
      wide == kLanes ? sumStrip<1>(call, column) : sumStrip<4>(call, column);
      column += wide;
      left -= wide;
    }
}

/// Four streams of memory, three of them written again.
void updateRange(const ProbeCall &call, int64_t begin, int64_t end) {
  const float *gradient = call.b;
  float *p = call.out, *m = p + call.elements, *v = m + call.elements;
  for (int64_t i = begin; i + kLanes <= end; i += kLanes) {
    const Vec g = load(gradient + i);
    const Vec first = load(m + i) * 0.5f + g * 0.5f, second = load(v + i) * 0.5f + g * g;
    store(m + i, first);
    store(v + i, second);
    store(p + i, load(p + i) * 0.5f + first * second);
  }
}

void expRange(const ProbeCall &call, int64_t begin, int64_t end) {
  for (int64_t i = begin; i + kLanes <= end; i += kLanes)
    store(call.out + i, vecExp(load(call.a + i)));
}

void divideRange(const ProbeCall &call, int64_t begin, int64_t end) {
  for (int64_t i = begin; i + kLanes <= end; i += kLanes)
    store(call.out + i, load(call.a + i) / load(call.b + i));
}

void rootRange(const ProbeCall &call, int64_t begin, int64_t end) {
  const float *__restrict from = call.a;
  float *__restrict to = call.out;
  for (int64_t i = begin; i < end; ++i) // compilers make vectors of it; there is no operator for them
    to[i] = __builtin_sqrtf(from[i]);
}

/// Mean and variance of rows, as norms have them: the second sum waits for the first.
void normRows(const ProbeCall &call, int64_t begin, int64_t end) {
  const float share = 1.0f / static_cast<float>(call.width);
  for (int64_t row = begin; row < end; ++row) {
    const float *from = call.a + row * call.width;
    Vec sums[4] = {}, squares[4] = {};
    for (int64_t i = 0; i < call.width; i += 4 * kLanes)
      for (int part = 0; part < 4; ++part)
        sums[part] += load(from + i + part * kLanes);
    const Vec mean = splat(sumLanes((sums[0] + sums[1]) + (sums[2] + sums[3])) * share);
    for (int64_t i = 0; i < call.width; i += 4 * kLanes)
      for (int part = 0; part < 4; ++part) {
        const Vec away = load(from + i + part * kLanes) - mean;
        squares[part] += away * away;
      }
    call.out[row] = sumLanes((squares[0] + squares[1]) + (squares[2] + squares[3])) * share;
  }
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
    case ProbeKind::Columns:
      return sumStrips(call, begin, end);
    case ProbeKind::Update:
      return updateRange(call, begin, end);
    case ProbeKind::Exp:
      return expRange(call, begin, end);
    case ProbeKind::Divide:
      return divideRange(call, begin, end);
    case ProbeKind::Root:
      return rootRange(call, begin, end);
    case ProbeKind::Rows:
      return normRows(call, begin, end);
    case ProbeKind::MultiplyAdd:
      return multiplyRange(call, begin, end);
    }
  };
  switch (call.kind) {
  case ProbeKind::Columns:
    return forRanges(call.width / call.strip, 1, call.threads, body);
  case ProbeKind::Rows:
    return forRanges(call.elements / call.width, 16, call.threads, body);
  default:
    return forRanges(call.elements, kGrain, call.threads, body);
  }
}

} // namespace ds::rt::DS_ISA
