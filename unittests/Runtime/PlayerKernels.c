/* The kernels of TwoLayers for program-player. They say what they touch, as generated ones do, and touch nothing
 * else whatever they are given: a program that was changed is then held to it. */
#include <stdint.h>

const char ds_interfaces[] = "ds_descend: extent 0, params 2, items 0, operands 4 per unit 4 per unit\n"
                             "ds_subtract: extent 24, params 0, items 0, operands 96 96 96\n"
                             "ds_mean_square: extent 1, params 1, items 0, operands 96 4\n";

/* d[i] = y[i] - t[i] */
void ds_subtract(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  const float *y = buffers[0], *t = buffers[1];
  float *d = buffers[2];
  (void)scalars;
  for (int64_t i = begin; i < end; ++i)
    d[i] = y[i] - t[i];
}

/* loss = mean of d[i]^2 of the 24 there are. */
void ds_mean_square(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  const float *d = buffers[0];
  float sum = 0;
  (void)scalars;
  (void)begin;
  (void)end;
  for (int64_t i = 0; i < 24; ++i)
    sum += d[i] * d[i];
  *(float *)buffers[1] = sum / 24;
}

/* w[i] -= params[1] / 1000 * g[i]; params[0] is the extent. */
void ds_descend(void *const *buffers, const void *scalars, int64_t begin, int64_t end) {
  float *w = buffers[0];
  const float *g = buffers[1];
  const float rate = (float)((const int64_t *)scalars)[1] / 1000.0f;
  for (int64_t i = begin; i < end; ++i)
    w[i] -= rate * g[i];
}
