//===- CudnnTest.cpp - How cuDNN's engines are found and kept, and those of convolutions -----===//
#include "../ConvReference.h"
#include "Cuda/Cudnn/CudnnConvolution.h"
#include "CudnnFixture.h"

#include <array>
#include <optional>
#include <set>
#include <thread>

namespace ds::rt::cuda {
namespace {

using testing::HasSubstr;

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
              for (const auto &[gradient, fast] : {std::pair(false, false), {true, false}, {true, true}}) {
                Form form{batch, rows, rows, heads, std::max<int64_t>(heads / share, 1), size, true};
                form.fast = fast;
                const std::optional<AttentionPieces> pieces = piecesOf(form, gradient);
                ASSERT_TRUE(pieces);
                Result<NamedGraph> graph = describe(form, gradient, *pieces);
                ASSERT_TRUE(graph) << graph.error().message;
                const int64_t bytes = asked(graph->graph, properties);
                ASSERT_LE(bytes, int64_t(pieces->workspaceBytes - pieces->scratch.bytes()))
                    << architecture << ": " << batch << " x " << rows << " x " << heads << "/" << share
                    << " x " << size << (fast ? " fast" : "") << (gradient ? " gradient" : "");
                known += bytes >= 0;
              }
  }
  EXPECT_EQ(known, 2 * 2 * 4 * 2 * 2 * 3 * 3); // every form has an engine
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
