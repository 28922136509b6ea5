//===- sgemm.cpp - The machine's own fp32 matrix-product rate through oneDNN ------===//
//
// Prints the best GFLOP/s over the products that a GPT step is made of, in the layout oneDNN asks for. It is
// what a step's FLOPs are compared with: no program that spends its time in products can be faster.
//
//===---------------------------------------------------------------------------===//
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dnnl.hpp>

using namespace dnnl;

/// The best rate of `repeats` runs of an m x k by k x n product, in GFLOP/s.
static double rate(engine &cpu, stream &s, memory::dim m, memory::dim n, memory::dim k, int repeats) {
  auto any = memory::format_tag::any;
  memory::desc a({m, k}, memory::data_type::f32, memory::format_tag::ab);
  memory::desc b({k, n}, memory::data_type::f32, any),
      c({m, n}, memory::data_type::f32, memory::format_tag::ab);
  matmul::primitive_desc desc(matmul::desc(a, b, c), cpu);
  memory left(desc.src_desc(), cpu), right(desc.weights_desc(), cpu), out(desc.dst_desc(), cpu);
  for (memory *operand : {&left, &right}) {
    auto *values = static_cast<float *>(operand->get_data_handle());
    for (size_t i = 0; i < operand->get_desc().get_size() / sizeof(float); ++i)
      values[i] = float(i % 7) - 3.0f;
  }
  matmul product(desc);
  double best = 0;
  for (int i = 0; i < repeats; ++i) {
    auto start = std::chrono::steady_clock::now();
    product.execute(s, {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, out}});
    s.wait();
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    double gflops = 2e-9 * double(m) * double(n) * double(k) / seconds;
    best = gflops > best ? gflops : best;
  }
  return best;
}

int main() {
  engine cpu(engine::kind::cpu, 0);
  stream s(cpu);
  double best = 0;
  for (memory::dim size : {768, 1024, 1536, 2048}) {
    double gflops = rate(cpu, s, size, size, size, 12);
    std::fprintf(stderr, "%lld: %.1f GFLOP/s\n", static_cast<long long>(size), gflops);
    best = gflops > best ? gflops : best;
  }
  std::printf("%.1f\n", best);
}
