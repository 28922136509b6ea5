//===- CudnnFixture.h - cuDNN itself, without a GPU ---------------------------------------===//
//
// The real library chooses and compiles engines for a device that only its properties describe: which graphs
// it takes, how much memory it asks for and whether it notes that bits may vary is its own word. Nothing is
// executed.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_UNITTESTS_RUNTIME_CUDA_CUDNNFIXTURE_H
#define DS_UNITTESTS_RUNTIME_CUDA_CUDNNFIXTURE_H

#include "../../../kernels/CudaCommands.h"
#include "Cuda/Cudnn/CudnnAttention.h"
#include "Cuda/Cudnn/CudnnPlan.h"

#include "ds/Kernels/Kernels.h"
#include "ds/Runtime/Program/AttentionPieces.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>

namespace ds::rt::cuda {

/// A device as the library would describe it: an H100 for 90, else an A100.
inline std::string describeDevice(int architecture) {
  const bool hopper = architecture == 90;
  return fmt::format(
      R"({{"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
      R"("multiProcessorCount":{},"warpSize":32,"maxSharedMemoryPerBlock":49152,)"
      R"("maxSharedMemoryPerBlockOptin":{},"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,)"
      R"("maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,)"
      R"("supportCoopLaunch":1,"totalGlobalMem":{},"smClockRateKHz":{},"memClockRateKHz":{},"l2CacheSize":{},)"
      R"("cudaDeviceId":0,"deviceVer":{},"driverVer":13000,"deviceName":"{}"}})",
      hopper ? 132 : 108, hopper ? 232448 : 166912, hopper ? 85017624576 : 84987740160,
      hopper ? 1980000 : 1410000, hopper ? 2619000 : 1512000, hopper ? 52428800 : 41943040, architecture * 10,
      hopper ? "NVIDIA H100 80GB HBM3" : "NVIDIA A100-SXM4-80GB");
}

/// An attention of packed operands, but for queries, keys and values, which may be parts of one matrix.
struct Form {
  int64_t batch, queries, keys, heads, groups, size;
  bool causal;
  DType dtype = DType::BF16;
  bool joined = false;            ///< q, k and v are columns of one [batch, row, 3 * heads * size]
  std::vector<int64_t> mask = {}; ///< sizes of a mask in memory; empty: there is none
  int64_t rowsOfAll = 0;          ///< of a block: queries of the whole, by which rows of heads lie apart
  bool fast = false;              ///< the gradient may be added up in any order
  int64_t window = 0;             ///< 0: none
  double cap = 0;                 ///< of scores; 0: none
  bool slopes = false;            ///< one of each head
  double dropout = 0;             ///< of probabilities; 0: none
};

/// Operands of the command as Library.h lists them.
inline std::vector<Buffer> operandsOf(const Form &f, bool gradient) {
  const int64_t h = f.heads, d = f.size, width = f.joined ? 3 * h * d : h * d;
  const auto strided = [&](int64_t rows, int64_t heads, int64_t row) {
    return Buffer{Space::Device, f.dtype, 0, {f.batch, rows, heads, d}, {rows * row, row, d, 1}};
  };
  const Buffer q = strided(f.queries, h, width),
               k = strided(f.keys, f.groups, f.joined ? width : f.groups * d);
  const Buffer out = strided(f.queries, h, h * d), dk = strided(f.keys, f.groups, f.groups * d);
  const int64_t perHead = std::max(f.rowsOfAll, f.queries);
  const Buffer lse{Space::Device, DType::F32, 0, {f.batch, h, f.queries}, {h * perHead, perHead, 1}};
  std::vector<Buffer> operands = {q, k, k, out, lse};
  if (gradient)
    operands.insert(operands.end(), {out, out, dk, dk});
  if (const std::vector<int64_t> &m = f.mask; !m.empty())
    operands.push_back({Space::Device, DType::F32, 0, m, {m[1] * m[2] * m[3], m[2] * m[3], m[3], 1}});
  if (f.slopes)
    operands.push_back({Space::Device, DType::F32, 0, {h}, {1}});
  if (f.dropout != 0)
    operands.push_back({Space::Device, DType::I64, 0, {2}, {1}});
  return operands;
}

/// An address that nobody looks at.
inline void *const kSomewhere = reinterpret_cast<void *>(256);

class CudnnTest : public testing::Test {
protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(::dlopen(DS_COMPILE_ONLY_DRIVER, RTLD_NOW | RTLD_GLOBAL)) << ::dlerror();
    ASSERT_TRUE(::dlopen(DS_NVRTC_LIBRARY, RTLD_NOW)) << ::dlerror();
    ::setenv("DS_CUDNN", DS_CUDNN_LIBRARY, 1);
    Result<std::unique_ptr<Cudnn>> opened = Cudnn::open();
    ASSERT_TRUE(opened) << opened.error().message;
    cudnn = std::move(*opened);
  }
  static void TearDownTestSuite() { cudnn.reset(); }

  static std::vector<int64_t> paramsOf(const Form &form, bool gradient) {
    std::vector<int64_t> params = {form.causal, std::bit_cast<int64_t>(0.125)};
    if (form.window != 0 || form.cap != 0 || form.dropout != 0)
      params.insert(params.end(), {form.window, std::bit_cast<int64_t>(form.cap)});
    if (form.dropout != 0)
      params.insert(params.end(), {std::bit_cast<int64_t>(form.dropout), 0, form.heads});
    if (gradient && form.fast)
      params.push_back(kFastGradient);
    return params;
  }

  static std::optional<AttentionPieces> piecesOf(const Form &form, bool gradient) {
    const std::vector<Buffer> buffers = operandsOf(form, gradient);
    std::vector<const Buffer *> operands;
    for (const Buffer &buffer : buffers)
      operands.push_back(&buffer);
    return attentionPieces(gradient ? LibraryFn::AttentionBackward : LibraryFn::AttentionForward, operands,
                           attentionParams(paramsOf(form, gradient)));
  }

  /// The graph of the form's pieces.
  static Result<NamedGraph> describe(const Form &form, bool gradient, const AttentionPieces &pieces) {
    const std::vector<Buffer> buffers = operandsOf(form, gradient);
    std::vector<View> views;
    for (const Buffer &b : buffers)
      views.push_back(
          {kSomewhere, b.shape.data(), b.strides.data(), static_cast<uint32_t>(b.shape.size()), b.dtype});
    const std::vector<int64_t> params = paramsOf(form, gradient);
    const AttentionCall call =
        attentionCall(gradient ? LibraryFn::AttentionBackward : LibraryFn::AttentionForward,
                      {views.data(), params.data(), static_cast<uint32_t>(views.size()),
                       static_cast<uint32_t>(params.size()), 1});
    const cudnnDataType_t type = form.dtype == DType::BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
    return describeAttention(*cudnn, {call, pieces.batch, pieces.groups, type, gradient,
                                      gradient && form.fast, !form.mask.empty()});
  }

  static Descriptor device(int architecture) {
    Result<Descriptor> properties = deviceProperties(*cudnn, describeDevice(architecture));
    EXPECT_TRUE(properties) << properties.error().message;
    return std::move(*properties);
  }

  /// The first engine that will do.
  static Result<CudnnPlan> firstPlan(const CudnnGraph &graph, const Descriptor &device,
                                     uint64_t workspaceBytes, NumericalNotes unwanted = kVaries) {
    Result<std::vector<CudnnPlan>> found =
        CudnnPlan::candidates(*cudnn, graph, device, workspaceBytes, unwanted, 1);
    return found ? Result<CudnnPlan>(std::move(found->front())) : found.error();
  }

  /// Bytes that the library's first supported proposal asks for, uncompiled; -1 if it has none.
  static int64_t asked(const CudnnGraph &graph, const Descriptor &device) {
    Descriptor heuristics(*cudnn, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph.operations())
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode)
        .set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, device.get());
    if (!heuristics.finalize("asking"))
      return -1;
    const Descriptor first(*cudnn, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    cudnnBackendDescriptor_t raw = first.get();
    heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
    int64_t bytes = -1;
    first.get(CUDNN_ATTR_ENGINECFG_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
    return bytes;
  }

  static inline std::unique_ptr<Cudnn> cudnn;
};

} // namespace ds::rt::cuda

#endif // DS_UNITTESTS_RUNTIME_CUDA_CUDNNFIXTURE_H
