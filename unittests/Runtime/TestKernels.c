/* Kernels of the form that the compiler generates, for programs made by hand. */
#include <stdint.h>
#include <time.h>

/* w[i] -= params[1] / 1000 * g[i]; params[0] is the extent. */
void ds_descend(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  float *w = buffers[0];
  const float *g = buffers[1];
  const float rate = (float)((const int64_t *)scalars)[1] / 1000.0f;
  for (int64_t i = begin; i < end; ++i)
    w[i] -= rate * g[i];
}

/* d[i] = y[i] - t[i] */
void ds_subtract(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  const float *y = buffers[0], *t = buffers[1];
  float *d = buffers[2];
  (void)scalars;
  for (int64_t i = begin; i < end; ++i)
    d[i] = y[i] - t[i];
}

/* loss = mean of d[i]^2; one unit, params[0] is the number of elements. */
void ds_mean_square(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  const float *d = buffers[0];
  const int64_t count = ((const int64_t *)scalars)[0];
  float sum = 0;
  (void)begin;
  (void)end;
  for (int64_t i = 0; i < count; ++i)
    sum += d[i] * d[i];
  *(float *)buffers[1] = sum / (float)count;
}

/* x[0] /= params[1]; params[0] is the extent. */
void ds_divide(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  (void)begin;
  (void)end;
  *(float *)buffers[0] /= (float)((const int64_t *)scalars)[1];
}

/* counts[i] += 1: every unit must run once. */
void ds_count(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  float *counts = buffers[0];
  (void)scalars;
  for (int64_t i = begin; i < end; ++i)
    counts[i] += 1.0f;
}

/* counts[begin] += 1: where the parts begin that a launch is cut into. */
void ds_begin(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  float *counts = buffers[0];
  (void)scalars;
  if (begin < end)
    counts[begin] += 1.0f;
}

/* sums[j] = sum of x[k * params[0] + j] over params[1] rows k; params[0] is the extent. */
void ds_add_rows(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  const float *x = buffers[0];
  float *sums = buffers[1];
  const int64_t columns = ((const int64_t *)scalars)[0], rows = ((const int64_t *)scalars)[1];
  for (int64_t j = begin; j < end; ++j) {
    float sum = 0;
    for (int64_t k = 0; k < rows; ++k)
      sum += x[k * columns + j];
    sums[j] = sum;
  }
}

/* As ds_add_rows, in params[2] parts of params[1] rows each: their sums, [parts, columns], and what these add up to. */
void ds_add_parts(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  const float *x = buffers[0];
  float *parts = buffers[1], *sums = buffers[2];
  const int64_t columns = ((const int64_t *)scalars)[0], rows = ((const int64_t *)scalars)[1];
  const int64_t count = ((const int64_t *)scalars)[2];
  for (int64_t j = begin; j < end; ++j) {
    sums[j] = 0;
    for (int64_t p = 0; p < count; ++p) {
      float sum = 0;
      for (int64_t k = 0; k < rows; ++k)
        sum += x[(k * count + p) * columns + j];
      parts[p * columns + j] = sum;
      sums[j] += sum;
    }
  }
}

static float from_bf16(uint16_t bits) {
  union {
    uint32_t word;
    float value;
  } u = {(uint32_t)bits << 16};
  return u.value;
}

/* As ds_add_rows, of bf16. */
void ds_add_narrow_rows(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  const uint16_t *x = buffers[0];
  float *sums = buffers[1];
  const int64_t columns = ((const int64_t *)scalars)[0], rows = ((const int64_t *)scalars)[1];
  for (int64_t j = begin; j < end; ++j) {
    float sum = 0;
    for (int64_t k = 0; k < rows; ++k)
      sum += from_bf16(x[k * columns + j]);
    sums[j] = sum;
  }
}

/* As ds_add_rows, into bf16, for sums that it has. */
void ds_add_rows_narrowly(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  uint16_t *sums = buffers[1];
  for (int64_t j = begin; j < end; ++j) {
    union {
      float value;
      uint32_t word;
    } sum = {0};
    const int64_t columns = ((const int64_t *)scalars)[0], rows = ((const int64_t *)scalars)[1];
    for (int64_t k = 0; k < rows; ++k)
      sum.value += ((const float *)buffers[0])[k * columns + j];
    sums[j] = (uint16_t)(sum.word >> 16);
  }
}

/* Takes params[0] milliseconds. */
void ds_sleep(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  const int64_t ms = ((const int64_t *)scalars)[0];
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  (void)buffers;
  (void)begin;
  (void)end;
  while (nanosleep(&left, &left) != 0) {
  }
}
