/* A kernel of an image that says what its code touches, as generated ones do. */
#include <stdint.h>

const char ds_interfaces[] = "ds_count: extent 0, params 1, items 0, operands 4 per unit\n";

void ds_count(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  float *counts = buffers[0];
  (void)scalars;
  for (int64_t i = begin; i < end; ++i)
    counts[i] += 1.0f;
}
