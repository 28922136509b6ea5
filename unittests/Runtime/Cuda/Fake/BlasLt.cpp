//===- BlasLt.cpp - cuBLASLt on the fake device ----------------------------------------===//
//
// Products as the library documents them, by columns, one element after another in f32. Two algorithms are
// offered, of which the second splits sums, for which it needs more workspace, and wants operands that lie on
// 16 bytes; both give the same. The workspace must lie on 256 bytes. GELU is the tanh form, of the f32 sums.
// Sums of a factor, or with GELU's gradient of the result, are formed in f32, of the type of the result, and
// are not there for split ones.
// DS_FAKE_GELU, DS_FAKE_BGRAD: how many pieces of work products with GELU, or with sums, take longer; 0:
// there are none. DS_FAKE_ODD: likewise where a size above 8 is no multiple of 8. DS_FAKE_REFUSES="1 2" ("* 1
// 2"): rank 1 cannot run algorithm 2 (no rank 1 and 2); DS_FAKE_SLOW, of the same form: it takes longer.
//
//===---------------------------------------------------------------------------===//
#include "Elements.h"
#include "Fake.h"
#include "State.h"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <string>

using namespace ds::rt::fake;

namespace {

/// Attributes by number, as bytes.
struct Attributes {
  std::map<int, std::vector<std::byte>> values;

  void set(int which, const void *value, size_t bytes) {
    const auto *data = static_cast<const std::byte *>(value);
    values[which].assign(data, data + bytes);
  }
  template <class T>
  T get(int which, T otherwise) const {
    const auto found = values.find(which);
    if (found != values.end())
      std::memcpy(&otherwise, found->second.data(), std::min(sizeof(T), found->second.size()));
    return otherwise;
  }
};

struct Layout : Attributes {
  cudaDataType type;
  int64_t rows, columns, leading;

  int64_t batch() const { return get<int32_t>(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, 1); }
  int64_t stride() const { return get<int64_t>(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, 0); }
};

constexpr float kCube = 0.044715f, kSlope = 0.79788456f;

float geluGate(float x) { return std::tanh(kSlope * (x + kCube * x * x * x)); }
float geluSlope(float x) {
  const float gate = geluGate(x);
  return (1 + gate) / 2 + x / 2 * (1 - gate * gate) * kSlope * (1 + 3 * kCube * x * x);
}

/// Everything of one product, copied: the descriptions may be gone when it runs.
struct Product {
  Attributes operation;
  Layout a, b, d;
  const char *pa, *pb;
  char *pd;
  float alpha, beta;

  int epilogue() const { return epilogueOf(operation); }
  static int epilogueOf(const Attributes &operation) {
    return operation.get<int32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  }
  static bool hasGelu(int epilogue) {
    return (epilogue & CUBLASLT_EPILOGUE_GELU) != 0 || hasGeluGradient(epilogue);
  }
  static bool hasGeluGradient(int epilogue) {
    return epilogue == CUBLASLT_EPILOGUE_DGELU || epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
  }
  static bool hasSums(int epilogue) {
    return epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB ||
           epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD;
  }
  char *sums() const { return operation.get<char *>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr); }
  char *geluInput() const {
    return operation.get<char *>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, nullptr);
  }
  int64_t geluLeading() const { return operation.get<int64_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, 0); }
  /// Whether a size has no fast kernel.
  bool isOdd() const {
    return std::ranges::any_of(std::array{a.rows, a.columns, b.rows, b.columns},
                               [](int64_t size) { return size > 8 && size % 8 != 0; });
  }
  /// Whether sums and GELU's input lie as the library asks.
  bool isValid() const {
    if (hasSums(epilogue()) &&
        !(sums() && reinterpret_cast<uintptr_t>(sums()) % width(d) == 0 && d.batch() == 1 &&
          operation.get<int32_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, d.type) == d.type))
      return false;
    if (!hasGelu(epilogue()) || !(epilogue() & 128))
      return true;
    return geluInput() && geluLeading() % 8 == 0 && geluLeading() >= d.rows && d.batch() == 1 &&
           operation.get<int32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, d.type) == d.type;
  }

  static int64_t width(const Layout &layout) { return layout.type == CUDA_R_32F ? 4 : 2; }

  /// Adds up rows of A, or columns of B, over the dimension that goes.
  void addUp(const Layout &layout, const char *at, bool isFirst) const {
    const bool transposed =
        operation.get<int32_t>(isFirst ? CUBLASLT_MATMUL_DESC_TRANSA : CUBLASLT_MATMUL_DESC_TRANSB, 0) !=
        CUBLAS_OP_N;
    const bool alongRows = transposed == isFirst; // the dimension that goes is the one that lies together
    const int64_t inner = alongRows ? layout.rows : layout.columns,
                  outer = alongRows ? layout.columns : layout.rows;
    for (int64_t i = 0; i < outer; ++i) {
      float sum = 0;
      for (int64_t k = 0; k < inner; ++k)
        sum += load(at, alongRows ? k + i * layout.leading : i + k * layout.leading, layout.type);
      store(sums(), i, d.type, sum);
    }
  }

  void run() const {
    if (epilogue() == CUBLASLT_EPILOGUE_BGRADA)
      addUp(a, pa, true);
    if (epilogue() == CUBLASLT_EPILOGUE_BGRADB)
      addUp(b, pb, false);
    const bool ta = operation.get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSA, 0) != CUBLAS_OP_N;
    const bool tb = operation.get<int32_t>(CUBLASLT_MATMUL_DESC_TRANSB, 0) != CUBLAS_OP_N;
    const int64_t inner = ta ? a.rows : a.columns;
    std::vector<float> rows(static_cast<size_t>(d.rows));
    for (int64_t n = 0; n < d.batch(); ++n)
      for (int64_t j = 0; j < d.columns; ++j)
        for (int64_t i = 0; i < d.rows; ++i) {
          float sum = 0;
          for (int64_t k = 0; k < inner; ++k)
            sum += load(pa + n * a.stride() * width(a), ta ? k + i * a.leading : i + k * a.leading, a.type) *
                   load(pb + n * b.stride() * width(b), tb ? j + k * b.leading : k + j * b.leading, b.type);
          rows[static_cast<size_t>(i)] += finish(n, i, i + j * d.leading, i + j * geluLeading(), alpha * sum);
        }
    for (int64_t i = 0; i < d.rows && epilogue() == CUBLASLT_EPILOGUE_DGELU_BGRAD; ++i)
      store(sums(), i, d.type, rows[static_cast<size_t>(i)]);
  }
  /// What is stored, before it is rounded.
  float finish(int64_t n, int64_t row, int64_t index, int64_t inputIndex, float sum) const {
    char *at = pd + n * d.stride() * width(d);
    if (beta != 0)
      sum += beta * load(at, index, d.type);
    if (epilogue() & CUBLASLT_EPILOGUE_BIAS)
      sum += load(operation.get<const void *>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nullptr), row,
                  operation.get<int32_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, d.type));
    if (epilogue() & CUBLASLT_EPILOGUE_RELU)
      sum = sum <= 0 ? 0 : sum;
    if ((epilogue() & CUBLASLT_EPILOGUE_GELU_AUX) == CUBLASLT_EPILOGUE_GELU_AUX)
      store(geluInput(), inputIndex, d.type, sum);
    if (epilogue() & CUBLASLT_EPILOGUE_GELU)
      sum = sum / 2 * (1 + geluGate(sum));
    if (hasGeluGradient(epilogue()))
      sum *= geluSlope(load(geluInput(), inputIndex, d.type));
    store(at, index, d.type, sum);
    return sum;
  }
};

/// Whether a variable's list names this rank and an algorithm.
bool names(const char *variable, uint64_t algorithm) {
  const char *list = std::getenv(variable), *rank = std::getenv("DS_RANK");
  std::istringstream words(list ? list : "");
  std::string who, which;
  if (!(words >> who) || (who != "*" && who != (rank ? rank : "0")))
    return false;
  while (words >> which)
    if (which == std::to_string(algorithm))
      return true;
  return false;
}

} // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(&state());
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) { return CUBLAS_STATUS_SUCCESS; }
size_t cublasLtGetVersion() { return setting("DS_FAKE_CUBLASLT", 130100); }
const char *cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "a status of the fake library";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, cublasComputeType_t compute,
                                        cudaDataType_t) {
  call(compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? "cublasLt describes tf32" : "cublasLt describes f32");
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(new Attributes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete reinterpret_cast<Attributes *>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t which,
                                              const void *value, size_t bytes) {
  reinterpret_cast<Attributes *>(desc)->set(which, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Attributes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Attributes *>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t which,
                                                    const void *value, size_t bytes) {
  reinterpret_cast<Attributes *>(preference)->set(which, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t leading) {
  if (leading < static_cast<int64_t>(rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{{}, type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete reinterpret_cast<Layout *>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t which, const void *value,
                                                size_t bytes) {
  reinterpret_cast<Layout *>(layout)->set(which, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t preference, int requested,
                                              cublasLtMatmulHeuristicResult_t results[], int *count) {
  call("cublasLtMatmulAlgoGetHeuristic");
  const auto &wishes = *reinterpret_cast<Attributes *>(preference);
  const auto limit = wishes.get<uint64_t>(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 0);
  uint32_t aligned = 256; // what the library takes for granted
  for (auto which : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                     CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    aligned = std::min(aligned, wishes.get<uint32_t>(which, 256));
  *count = 0;
  if (Product::hasGelu(Product::epilogueOf(*reinterpret_cast<Attributes *>(operation))) &&
      setting("DS_FAKE_GELU", 1) == 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool hasSums = Product::hasSums(Product::epilogueOf(*reinterpret_cast<Attributes *>(operation)));
  if (hasSums && setting("DS_FAKE_BGRAD", 1) == 0)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const bool splits =
      wishes.get<uint32_t>(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_MASK) != 0;
  for (uint64_t i = 0; i < 2 && *count < requested; ++i)
    if (i * 4096 <= limit && (i == 0 || (aligned >= 16 && splits))) {
      results[*count] = {};
      results[*count].algo.data[0] = i + 1;
      results[(*count)++].workspaceSize = i * 4096;
    }
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t *algorithm,
                                       cublasLtMatmulHeuristicResult_t *result) {
  call("cublasLtMatmulAlgoCheck");
  if (algorithm->data[0] < 1 || algorithm->data[0] > 2)
    return CUBLAS_STATUS_INVALID_VALUE;
  result->workspaceSize = (algorithm->data[0] - 1) * 4096;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta, const void *,
                              cublasLtMatrixLayout_t, void *d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace, size_t workspaceBytes,
                              cudaStream_t stream) {
  const int epilogue = Product::epilogueOf(*reinterpret_cast<Attributes *>(operation));
  call("cublasLtMatmul " + std::to_string(algorithm->data[0]) +
       (Product::hasGelu(epilogue) || Product::hasSums(epilogue) ? " epilogue " + std::to_string(epilogue)
                                                                 : ""));
  const auto misaligned = [](const void *address, uintptr_t bytes) {
    return reinterpret_cast<uintptr_t>(address) % bytes != 0;
  };
  if (names("DS_FAKE_REFUSES", algorithm->data[0]))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if ((workspaceBytes > 0 && !workspace) || misaligned(workspace, 256))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (algorithm->data[0] == 2 && (misaligned(a, 16) || misaligned(b, 16) || misaligned(d, 16)))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const Product product{*reinterpret_cast<Attributes *>(operation),
                        *reinterpret_cast<Layout *>(la),
                        *reinterpret_cast<Layout *>(lb),
                        *reinterpret_cast<Layout *>(ld),
                        static_cast<const char *>(a),
                        static_cast<const char *>(b),
                        static_cast<char *>(d),
                        *static_cast<const float *>(alpha),
                        *static_cast<const float *>(beta)};
  if (!product.isValid() || (Product::hasSums(epilogue) && algorithm->data[0] == 2))
    return CUBLAS_STATUS_INVALID_VALUE;
  const uint64_t delay = (Product::hasGelu(epilogue) ? setting("DS_FAKE_GELU", 0) : 0) +
                         (Product::hasSums(epilogue) ? setting("DS_FAKE_BGRAD", 0) : 0) +
                         (product.isOdd() ? setting("DS_FAKE_ODD", 0) : 0) +
                         (names("DS_FAKE_SLOW", algorithm->data[0]) ? 2 : 0);
  const CUresult result = enqueue(reinterpret_cast<CUstream>(stream), [product, delay] {
    state().clock += static_cast<double>(delay);
    product.run();
    return CUDA_SUCCESS;
  });
  return result == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
