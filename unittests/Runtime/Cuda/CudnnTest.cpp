//===- CudnnTest.cpp - cuDNN itself, without a GPU ---------------------------------------===//
//
// The real library chooses and compiles engines for a device that only its properties describe: which graphs
// it takes, how much memory it asks for and whether it notes that bits may vary is its own word. Nothing is
// executed.
//
//===---------------------------------------------------------------------------===//
#include "../../../kernels/CudaCommands.h"
#include "../ConvReference.h"
#include "Cuda/Cudnn/CudnnAttention.h"
#include "Cuda/Cudnn/CudnnConvolution.h"
#include "Cuda/Cudnn/CudnnPlan.h"

#include "ds/Kernels/Kernels.h"
#include "ds/Runtime/Program/AttentionPieces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <dlfcn.h>
#include <optional>
#include <set>
#include <thread>

namespace ds::rt::cuda {
namespace {

using testing::HasSubstr;

/// A device as the library would describe it: an H100 for 90, else an A100.
std::string describeDevice(int architecture) {
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
};

/// Operands of the command as Library.h lists them.
std::vector<Buffer> operandsOf(const Form &f, bool gradient) {
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
  return operands;
}

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

  static std::optional<AttentionPieces> piecesOf(const Form &form, bool gradient) {
    const std::vector<Buffer> buffers = operandsOf(form, gradient);
    std::vector<const Buffer *> operands;
    for (const Buffer &buffer : buffers)
      operands.push_back(&buffer);
    return attentionPieces(gradient ? LibraryFn::AttentionBackward : LibraryFn::AttentionForward, operands,
                           {.isCausal = form.causal});
  }

  /// The graph of the form's pieces.
  static Result<NamedGraph> describe(const Form &form, bool gradient, const AttentionPieces &pieces) {
    const std::vector<Buffer> buffers = operandsOf(form, gradient);
    std::vector<View> views;
    for (const Buffer &b : buffers)
      views.push_back(
          {nullptr, b.shape.data(), b.strides.data(), static_cast<uint32_t>(b.shape.size()), b.dtype});
    const int64_t params[] = {form.causal, std::bit_cast<int64_t>(0.125)};
    const AttentionCall call =
        attentionCall(gradient ? LibraryFn::AttentionBackward : LibraryFn::AttentionForward,
                      {views.data(), params, static_cast<uint32_t>(views.size()), 2, 1});
    const cudnnDataType_t type = form.dtype == DType::BF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
    return describeAttention(*cudnn, {call, pieces.batch, pieces.groups, type, gradient, !form.mask.empty()});
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

  static std::unique_ptr<Cudnn> cudnn;
};
std::unique_ptr<Cudnn> CudnnTest::cudnn;

class CudnnForms : public CudnnTest {
protected:
  /// The library has engines for forward and gradient of the forms on both architectures, within the plan's
  /// workspace.
  static void compile(const std::vector<Form> &forms) {
    for (int architecture : {80, 90})
      for (const Form &form : forms)
        for (bool gradient : {false, true}) {
          SCOPED_TRACE(fmt::format("sm_{}, {} rows of {}, mask {}, gradient {}", architecture, form.queries,
                                   form.size, fmt::join(form.mask, "x"), gradient));
          compile(form, gradient, architecture);
        }
  }

  static void compileGradient(const Form &form) {
    Form whole = form;
    whole.rowsOfAll = 0;
    for (int architecture : {80, 90})
      compile(form, true, architecture, piecesOf(whole, true));
  }

private:
  static void compile(const Form &form, bool gradient, int architecture) {
    compile(form, gradient, architecture, piecesOf(form, gradient));
  }
  static void compile(const Form &form, bool gradient, int architecture,
                      const std::optional<AttentionPieces> &pieces) {
    ASSERT_TRUE(pieces);
    Result<NamedGraph> graph = describe(form, gradient, *pieces);
    ASSERT_TRUE(graph) << graph.error().message;
    const uint64_t budget = pieces->workspaceBytes - pieces->scratch.bytes();
    Result<CudnnPlan> plan = firstPlan(graph->graph, device(architecture), budget);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_LE(plan->workspaceBytes(), budget);
    // Gradients of all scores are kept: the engine does not add up the queries' as they come.
    if (gradient)
      EXPECT_GE(plan->workspaceBytes(),
                uint64_t(2 * pieces->batch * pieces->groups * form.queries * form.keys));
  }
};

TEST_F(CudnnForms, EveryLayout) {
  compile({{2, 128, 128, 4, 4, 64, true, DType::BF16, true}, // GPT's
           {1, 256, 256, 8, 2, 128, true},                   // Llama's
           {2, 200, 200, 3, 3, 64, true, DType::F16},
           {2, 64, 192, 2, 2, 32, false}});
}

TEST_F(CudnnForms, MoreKeysThanQueries) {
  compile({{2, 64, 192, 4, 4, 64, true}, {1, 100, 201, 4, 2, 128, true, DType::F16}});
}

/// The diagonal block of a long gradient, one that nothing is hidden of, and those at its ends.
TEST_F(CudnnForms, BlocksOfALongGradient) {
  for (const int64_t groups : {4, 1})
    for (const auto &[queries, keys, causal] : {std::tuple(256, 256, true),
                                                {256, 256, false},
                                                {128, 256, false},
                                                {104, 104, true},
                                                {256, 40, false}}) {
      Form form{1, queries, keys, 4, groups, 128, causal};
      form.rowsOfAll = 1000;
      compileGradient(form);
    }
}

TEST_F(CudnnForms, MasksInMemory) {
  const auto masked = [](std::vector<int64_t> mask, bool causal = false, int64_t groups = 4) {
    return Form{2, 100, 100, 4, groups, 64, causal, DType::BF16, false, std::move(mask)};
  };
  compile({masked({1, 1, 100, 100}), masked({2, 4, 100, 100}, /*causal=*/true),
           masked({2, 1, 1, 100}, false, /*groups=*/2)});
}

TEST_F(CudnnTest, HasNoEngineForOtherHeads) {
  for (int64_t size : {4, 12, 20}) {
    const Form form{2, 128, 128, 4, 4, size, true};
    EXPECT_FALSE(piecesOf(form, false));
    Result<NamedGraph> graph = describe(form, false, *piecesOf({2, 128, 128, 4, 4, 64, true}, false));
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_FALSE(firstPlan(graph->graph, device(90), 1 << 30)) << size;
  }
}

TEST_F(CudnnTest, TheLibraryAsksForNoMoreThanIsPlanned) {
  int known = 0;
  for (int architecture : {80, 90}) {
    const Descriptor properties = device(architecture);
    for (int64_t batch : {1, 3})
      for (int64_t rows : {8, 100, 1000, 4096})
        for (int64_t heads : {1, 12})
          for (int64_t share : {1, 4})
            for (int64_t size : {8, 96, 128})
              for (bool gradient : {false, true}) {
                const Form form{batch, rows, rows, heads, std::max<int64_t>(heads / share, 1), size, true};
                const std::optional<AttentionPieces> pieces = piecesOf(form, gradient);
                ASSERT_TRUE(pieces);
                Result<NamedGraph> graph = describe(form, gradient, *pieces);
                ASSERT_TRUE(graph) << graph.error().message;
                const int64_t bytes = asked(graph->graph, properties);
                ASSERT_LE(bytes, int64_t(pieces->workspaceBytes - pieces->scratch.bytes()))
                    << architecture << ": " << batch << " x " << rows << " x " << heads << "/" << share
                    << " x " << size << (gradient ? " gradient" : "");
                known += bytes >= 0;
              }
  }
  EXPECT_EQ(known, 2 * 2 * 4 * 2 * 2 * 3 * 2); // every form has an engine
}

TEST_F(CudnnTest, FindsAnEngineAgain) {
  const Form form{2, 128, 128, 4, 4, 64, true};
  const AttentionPieces pieces = *piecesOf(form, true);
  Result<NamedGraph> graph = describe(form, true, pieces);
  ASSERT_TRUE(graph);
  const Descriptor properties = device(90);
  Result<CudnnPlan> plan = firstPlan(graph->graph, properties, pieces.workspaceBytes);
  ASSERT_TRUE(plan);
  Result<CudnnPlan> again =
      CudnnPlan::recall(*cudnn, graph->graph, properties, plan->choice(), pieces.workspaceBytes);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->choice(), plan->choice());
  EXPECT_EQ(again->workspaceBytes(), plan->workspaceBytes());
}

/// What is kept is compiled on several threads at once (Choices::prepareKept), which share the library and
/// the device's properties.
TEST_F(CudnnTest, FindsEnginesAgainAtOnce) {
  constexpr size_t kForms = 2;
  const Descriptor properties = device(90);
  std::vector<NamedGraph> graphs;
  std::vector<AlgorithmCache::Value> kept;
  uint64_t most = 0;
  for (size_t i = 0; i < kForms; ++i) {
    const Form form{2, 1024, 1024, 4, 4, 64, true};
    const bool gradient = i % 2 != 0;
    const AttentionPieces pieces = *piecesOf(form, gradient);
    Result<NamedGraph> graph = describe(form, gradient, pieces);
    ASSERT_TRUE(graph);
    const Result<CudnnPlan> plan = firstPlan(graph->graph, properties, pieces.workspaceBytes);
    ASSERT_TRUE(plan);
    kept.push_back(plan->choice());
    graphs.push_back(std::move(*graph));
    most = std::max(most, pieces.workspaceBytes);
  }
  std::array<std::optional<Result<CudnnPlan>>, kForms> found;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kForms; ++i)
    threads.emplace_back(
        [&, i] { found[i].emplace(CudnnPlan::recall(*cudnn, graphs[i].graph, properties, kept[i], most)); });
  for (std::thread &thread : threads)
    thread.join();
  for (size_t i = 0; i < kForms; ++i) {
    ASSERT_TRUE(*found[i]) << found[i]->error().message;
    EXPECT_EQ((*found[i])->choice(), kept[i]);
  }
}

TEST_F(CudnnTest, HasSeveralEnginesToChooseFrom) {
  const Form form{2, 1024, 1024, 4, 4, 64, true};
  const AttentionPieces pieces = *piecesOf(form, false);
  Result<NamedGraph> graph = describe(form, false, pieces);
  ASSERT_TRUE(graph);
  Result<std::vector<CudnnPlan>> found =
      CudnnPlan::candidates(*cudnn, graph->graph, device(90), pieces.workspaceBytes, kVaries, 3);
  ASSERT_TRUE(found) << found.error().message;
  std::set<AlgorithmCache::Value> choices;
  for (const CudnnPlan &plan : *found) {
    EXPECT_LE(plan.workspaceBytes(), pieces.workspaceBytes);
    EXPECT_TRUE(choices.insert(plan.choice()).second);
  }
  EXPECT_GE(found->size(), 2u);
  EXPECT_LE(found->size(), 3u);
}

TEST_F(CudnnTest, RefusesAChoiceThatDoesNotFit) {
  const Form form{2, 128, 128, 4, 4, 64, true};
  const AttentionPieces pieces = *piecesOf(form, true);
  Result<NamedGraph> graph = describe(form, true, pieces);
  ASSERT_TRUE(graph);
  const Descriptor properties = device(90);
  Result<CudnnPlan> none = firstPlan(graph->graph, properties, 4096);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("bytes of workspace, but 4096 are planned"));
  Result<CudnnPlan> plan = firstPlan(graph->graph, properties, pieces.workspaceBytes);
  ASSERT_TRUE(plan);
  EXPECT_FALSE(CudnnPlan::recall(*cudnn, graph->graph, properties, plan->choice(), 4096));
  EXPECT_FALSE(CudnnPlan::recall(*cudnn, graph->graph, properties, {}, 1 << 30));
  EXPECT_FALSE(CudnnPlan::recall(*cudnn, graph->graph, properties, {1000}, 1 << 30));
}

/// The patches of ViT-B/16, the stem of Whisper's small model, a block of a VAE, and small odd ones.
std::vector<test::ConvCase> convolutions() {
  std::vector<test::ConvCase> cases = {
      {"ViT-B/16", 16, 3, 768, 1, {224, 224}, {16, 16}, {16, 16}, {0, 0}, {1, 1}, true},
      {"Whisper 1", 8, 80, 768, 1, {3000}, {3}, {1}, {1}, {1}, true},
      {"Whisper 2", 8, 768, 768, 1, {3000}, {3}, {2}, {1}, {1}, true},
      {"VAE", 4, 128, 128, 1, {64, 64}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, true}};
  for (const test::ConvCase &c : test::convCases())
    if (c.input.size() < 3)
      cases.push_back(c);
  return cases;
}

class CudnnConvolutions : public CudnnTest {
protected:
  static Result<CudnnPlan> firstPlan(const ConvForm &form, DType dtype, NumericalNotes unwanted) {
    Result<NamedGraph> graph = describeConvolution(*cudnn, form, dtype);
    if (!graph)
      return graph.error();
    return CudnnTest::firstPlan(graph->graph, device(90), cudnnConvBytes(form, dtype), unwanted);
  }
};

TEST_F(CudnnConvolutions, HaveAnEngineWithinThePlan) {
  for (const test::ConvCase &c : convolutions())
    for (LibraryFn fn : test::kConvFunctions)
      for (DType dtype : {DType::F32, DType::BF16, DType::F16}) {
        SCOPED_TRACE(fmt::format("{}: {} in {}", c.name, spell(fn), spell(dtype)));
        const ConvForm form = test::formOf(c, fn);
        Result<CudnnPlan> plan = firstPlan(form, dtype, unwantedForConvolutions(dtype, false));
        ASSERT_TRUE(plan) << plan.error().message;
        EXPECT_LE(plan->workspaceBytes(), cudnnConvBytes(form, dtype));
      }
}

TEST_F(CudnnConvolutions, KeepTheBitsOfSinglePrecision) {
  const ConvForm form = test::formOf(convolutions()[3], LibraryFn::ConvForward);
  Result<CudnnPlan> exact = firstPlan(form, DType::F32, unwantedForConvolutions(DType::F32, false)),
                    any = firstPlan(form, DType::F32, kVaries),
                    tf32 = firstPlan(form, DType::F32, unwantedForConvolutions(DType::F32, true));
  ASSERT_TRUE(exact && any && tf32);
  EXPECT_NE(exact->choice(), any->choice()); // the library's first proposal uses tensor cores
  EXPECT_EQ(tf32->choice(), any->choice());
}

TEST_F(CudnnTest, SaysWhatTheLibraryRefuses) {
  Result<Descriptor> properties = deviceProperties(*cudnn, std::string("{}"));
  ASSERT_FALSE(properties);
  EXPECT_EQ(properties.error().code, ExitCode::Device);
  EXPECT_THAT(properties.error().message, HasSubstr("cuDNN, describing a device: CUDNN_STATUS_"));
}

} // namespace
} // namespace ds::rt::cuda
