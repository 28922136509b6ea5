//===- Product.cpp - One way of a product by cuBLASLt ---------------------------------===//
//
// cuBLASLt counts by columns, the program by rows: the same memory is the transposed matrix, so that
// result = a b is asked for as result^T = b^T a^T. A bias, one element for each column of the result, then
// runs along the library's rows, as its epilogue wants it. A result whose rows are contiguous the other way
// is asked for as it stands.
//
//===---------------------------------------------------------------------------===//
#include "Product.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

namespace ds::rt::cuda {
namespace {

constexpr int kCandidates = 8;

/// A strided [rows, columns] matrix, of which one stride is 1.
struct Plane {
  int64_t rows, columns, rowStride, columnStride;
};

Plane planeOf(const MatmulOperand &operand, int rank) {
  return {operand.shape[rank - 2], operand.shape[rank - 1], operand.strides[rank - 2],
          operand.strides[rank - 1]};
}
Plane flip(const Plane &p) { return {p.columns, p.rows, p.columnStride, p.rowStride}; }

/// A single row is contiguous whatever its stride.
Matrix byColumns(const Plane &p) {
  if (p.rowStride == 1 || p.rows == 1)
    return {p.rows, p.columns, std::max(p.columnStride, p.rows), false};
  return {p.columns, p.rows, std::max(p.rowStride, p.columns), true};
}

/// The batch dimensions: one that the library walks, and the starts of what it cannot.
struct Batch {
  int64_t count = 1;
  int64_t strides[3] = {0, 0, 0};                           ///< elements, of a, b and result
  std::vector<std::array<int64_t, 3>> starts = {{0, 0, 0}}; ///< elements
};

Batch collapse(const MatmulDesc &desc) {
  const MatmulOperand *operands[3] = {&desc.a, &desc.b, &desc.result};
  Batch batch;
  int d = desc.rank - 3;
  for (; d >= 0; --d) {
    const int64_t size = desc.result.shape[d];
    bool joins = true;
    for (int k = 0; k < 3; ++k)
      joins = joins &&
              (batch.count == 1 || size == 1 || operands[k]->strides[d] == batch.count * batch.strides[k]);
    if (!joins)
      break;
    for (int k = 0; k < 3 && batch.count == 1 && size > 1; ++k)
      batch.strides[k] = operands[k]->strides[d];
    batch.count *= size;
  }
  for (; d >= 0; --d) {
    std::vector<std::array<int64_t, 3>> all;
    for (int64_t i = 0; i < desc.result.shape[d]; ++i)
      for (const auto &start : batch.starts)
        all.push_back({start[0] + i * desc.a.strides[d], start[1] + i * desc.b.strides[d],
                       start[2] + i * desc.result.strides[d]});
    batch.starts = std::move(all);
  }
  return batch;
}

std::optional<cudaDataType_t> dataType(int32_t dtype) {
  switch (static_cast<DType>(dtype)) {
  case DType::F32:
    return CUDA_R_32F;
  case DType::F16:
    return CUDA_R_16F;
  case DType::BF16:
    return CUDA_R_16BF;
  default:
    return std::nullopt;
  }
}

/// Products of f32 lose 13 bits of their factors in tf32.
cublasComputeType_t computeType(int32_t dtype, bool tf32) {
  return static_cast<DType>(dtype) == DType::F32 && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/// The largest power of two, up to what cuBLASLt distinguishes, of which `address` is a multiple.
uint32_t alignmentOf(const void *address) {
  const uintptr_t bits = reinterpret_cast<uintptr_t>(address) | 256;
  return static_cast<uint32_t>(bits & -bits);
}

/// `flips`: whether the library's first factor is the second.
cublasLtEpilogue_t epilogueOf(const MatmulDesc &desc, const Epilogue &beside, bool flips) {
  const bool bias = desc.bias >= 0;
  if (beside.summed == Summed::Result)
    return CUBLASLT_EPILOGUE_DGELU_BGRAD;
  if (beside.summed != Summed::None)
    return (beside.summed == Summed::Second) == flips ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_BGRADB;
  if (beside.activation == Activation::GeluGradient)
    return CUBLASLT_EPILOGUE_DGELU;
  if (beside.activation == Activation::Gelu && beside.input)
    return bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
  if (beside.activation == Activation::Gelu)
    return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  if (desc.activation == 1)
    return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
  return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

} // namespace

Product::~Product() {
  for (cublasLtMatrixLayout_t layout : layouts)
    if (layout)
      blas.layoutDestroy(layout);
  if (operation)
    blas.descDestroy(operation);
}

Status Product::run(const Call &call, CUstream stream) {
  const float alpha = 1;
  return blas.check(blas.matmul(blas.handle, operation, &alpha, call.first, layouts[0], call.second,
                                layouts[1], &beta, call.result, layouts[2], call.result, layouts[2],
                                &algorithm, workspace, workspaceUsed, stream),
                    "multiplying");
}

Status Product::issue(CUstream stream) {
  for (const Call &call : calls)
    if (Status status = run(call, stream); !status)
      return status;
  return {};
}

/// Tells the library how the operands of all calls lie; it takes 256 bytes for granted.
void Product::preferAligned(cublasLtMatmulPreference_t preference) const {
  for (const auto &[which, bytes] : {std::pair(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignments[0]),
                                     {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignments[1]},
                                     {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignments[2]},
                                     {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignments[2]}})
    blas.preferenceSet(preference, which, &bytes, sizeof bytes);
}

Status Product::makeLayout(int index, const Matrix &matrix, cudaDataType_t type, int64_t batch,
                           int64_t stride) {
  if (Status status = blas.check(blas.layoutCreate(&layouts[index], type, static_cast<uint64_t>(matrix.rows),
                                                   static_cast<uint64_t>(matrix.columns), matrix.leading),
                                 "describing a matrix");
      !status)
    return status;
  keyText += fmt::format(" {}x{}/{}+{}:{}", matrix.rows, matrix.columns, matrix.leading, stride, int(type));
  if (batch == 1)
    return {};
  const auto count = static_cast<int32_t>(batch);
  cublasStatus_t result =
      blas.layoutSet(layouts[index], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
  if (result == CUBLAS_STATUS_SUCCESS)
    result =
        blas.layoutSet(layouts[index], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride);
  return blas.check(result, "describing a batch");
}

Status Product::setEpilogue(const MatmulDesc &desc, const void *bias, const Epilogue &beside, bool flips) {
  const cublasLtEpilogue_t epilogue = epilogueOf(desc, beside, flips);
  keyText += fmt::format(" epilogue {} beta {}", int(epilogue), desc.accumulate);
  if (Status status = set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue); !status || !bias)
    return status;
  if (Status status = set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias); !status)
    return status;
  const std::optional<cudaDataType_t> type = dataType(desc.bias);
  return type ? set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(*type)) : Status();
}

/// GELU's input lies as the result does, of whose type it is. The library wants columns of whole 16 bytes;
/// what it asks of its address is not said, but depends on it (cublasLt.h): 16 bytes here.
Status Product::setGeluInput(const Epilogue &beside, const Matrix &written, cudaDataType_t type,
                             bool isOneCall) {
  constexpr int64_t kDivisor = 8;
  if (!beside.input)
    return {};
  if (!isOneCall || written.leading % kDivisor != 0 || alignmentOf(beside.input) < 16)
    return Error{ExitCode::Device, "cuBLASLt does not take GELU's input as it lies", ""};
  keyText += fmt::format(" input aligned {}", alignmentOf(beside.input));
  if (Status status = set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, beside.input); !status)
    return status;
  if (Status status = set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, written.leading); !status)
    return status;
  return set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE, static_cast<int32_t>(type));
}

/// Gradients of biases have the type of the result (cublasLt.h). How a product whose sum is split adds up
/// those of its parts is not said: none is asked for.
Status Product::setSums(const Epilogue &beside, cudaDataType_t type) {
  if (beside.summed == Summed::None)
    return {};
  if (dataType(static_cast<int32_t>(beside.sumsType)) != type)
    return Error{ExitCode::Device,
                 fmt::format("cuBLASLt adds up {} in the type of the result only",
                             beside.summed == Summed::Result ? "a result" : "a factor"),
                 ""};
  mayReduce = false;
  keyText += fmt::format(" sums aligned {}", alignmentOf(beside.sums));
  if (Status status = set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, beside.sums); !status)
    return status;
  return set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(type));
}

Status Product::describe(const MatmulDesc &desc, const MatmulMemory &memory, const Epilogue &beside) {
  const std::optional<cudaDataType_t> in = dataType(desc.a.dtype), out = dataType(desc.result.dtype);
  if (!in || !out)
    return Error{ExitCode::Device, "cuBLASLt multiplies f32, f16 and bf16 only", ""};
  const Plane result = planeOf(desc.result, desc.rank);
  const bool flips = !byColumns(flip(result)).transposed;
  if (!flips && desc.bias >= 0)
    return Error{ExitCode::Device, "a product by columns cannot add a bias", ""};
  const Plane a = planeOf(desc.a, desc.rank), b = planeOf(desc.b, desc.rank);
  const Matrix first = byColumns(flips ? flip(b) : a), second = byColumns(flips ? flip(a) : b);
  const Matrix written = byColumns(flips ? flip(result) : result);
  if (written.transposed)
    return Error{ExitCode::Device, "the result of a product has no contiguous dimension", ""};
  const Batch batch = collapse(desc);
  const int one = flips ? 1 : 0, other = 1 - one; // which of a and b comes first
  const cublasComputeType_t compute = computeType(desc.a.dtype, tf32);
  if (Status status = blas.check(blas.descCreate(&operation, compute, CUDA_R_32F), "describing a product");
      !status)
    return status;
  keyText =
      fmt::format("{} compute {} ops {}{}", blas.prefix, int(compute), first.transposed, second.transposed);
  beta = desc.accumulate ? 1.0f : 0.0f;
  for (auto [which, matrix] :
       {std::pair(CUBLASLT_MATMUL_DESC_TRANSA, &first), {CUBLASLT_MATMUL_DESC_TRANSB, &second}})
    if (Status status = set(which, matrix->transposed ? CUBLAS_OP_T : CUBLAS_OP_N); !status)
      return status;
  if (Status status = setEpilogue(desc, memory.bias, beside, flips); !status)
    return status;
  const bool isOneCall = flips && batch.count == 1 && batch.starts.size() == 1;
  if (Status status = setGeluInput(beside, written, *out, isOneCall); !status)
    return status;
  if (Status status = setSums(beside, *out); !status)
    return status;
  const Matrix *matrices[] = {&first, &second, &written};
  const int64_t strides[] = {batch.strides[one], batch.strides[other], batch.strides[2]};
  for (int i = 0; i < 3; ++i)
    if (Status status = makeLayout(i, *matrices[i], i == 2 ? *out : *in, batch.count, strides[i]); !status)
      return status;
  const int64_t inBytes = byteSize(static_cast<DType>(desc.a.dtype)),
                outBytes = byteSize(static_cast<DType>(desc.result.dtype));
  const std::byte *operands[] = {static_cast<const std::byte *>(memory.a),
                                 static_cast<const std::byte *>(memory.b)};
  for (const auto &start : batch.starts)
    calls.push_back({operands[one] + start[one] * inBytes, operands[other] + start[other] * inBytes,
                     static_cast<std::byte *>(memory.result) + start[2] * outBytes});
  for (const Call &call : calls) {
    alignments[0] = std::min(alignments[0], alignmentOf(call.first));
    alignments[1] = std::min(alignments[1], alignmentOf(call.second));
    alignments[2] = std::min(alignments[2], alignmentOf(call.result));
  }
  keyText += fmt::format(" aligned {}", fmt::join(alignments, ","));
  workspace = memory.workspace;
  return {};
}

Result<std::vector<cublasLtMatmulHeuristicResult_t>> Product::candidates(uint64_t workspaceBytes) {
  cublasLtMatmulPreference_t preference = nullptr;
  if (Status status = blas.check(blas.preferenceCreate(&preference), "making a preference"); !status)
    return status.error();
  // Reductions in place depend on who comes first; the others do not.
  const uint32_t schemes =
      mayReduce ? CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE
                : CUBLASLT_REDUCTION_SCHEME_NONE;
  blas.preferenceSet(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspaceBytes,
                     sizeof workspaceBytes);
  blas.preferenceSet(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes);
  preferAligned(preference);
  std::vector<cublasLtMatmulHeuristicResult_t> found(kCandidates);
  int count = 0;
  const cublasStatus_t result = blas.getHeuristic(blas.handle, operation, layouts[0], layouts[1], layouts[2],
                                                  layouts[2], preference, kCandidates, found.data(), &count);
  blas.preferenceDestroy(preference);
  if (Status status = blas.check(result, "choosing an algorithm"); !status)
    return status.error();
  found.resize(static_cast<size_t>(count));
  std::erase_if(found, [](const auto &each) { return each.state != CUBLAS_STATUS_SUCCESS; });
  if (found.empty())
    return Error{ExitCode::Device,
                 fmt::format("cuBLASLt has no algorithm for this product within {} bytes of workspace",
                             workspaceBytes),
                 ""};
  return found;
}

bool Product::recall(std::span<const uint64_t> kept, uint64_t workspaceBytes) {
  if (kept.size() != std::size(algorithm.data))
    return false;
  std::copy(kept.begin(), kept.end(), algorithm.data);
  cublasLtMatmulHeuristicResult_t found{};
  const cublasStatus_t result = blas.algoCheck(blas.handle, operation, layouts[0], layouts[1], layouts[2],
                                               layouts[2], &algorithm, &found);
  workspaceUsed = found.workspaceSize;
  return result == CUBLAS_STATUS_SUCCESS && found.workspaceSize <= workspaceBytes;
}

} // namespace ds::rt::cuda
