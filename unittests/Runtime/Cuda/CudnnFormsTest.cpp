//===- CudnnFormsTest.cpp - Which forms of attention cuDNN has engines for -----------------===//
#include "CudnnFixture.h"

#include <fmt/ranges.h>

namespace ds::rt::cuda {
namespace {

class CudnnForms : public CudnnTest {
protected:
  /// The library has engines for forward and gradient of the forms on both architectures, within the plan's
  /// workspace.
  static void compile(const std::vector<Form> &forms, const std::vector<int> &architectures = {80, 90}) {
    for (int architecture : architectures)
      for (const Form &form : forms)
        for (bool gradient : {false, true}) {
          SCOPED_TRACE(fmt::format("sm_{}, {} rows of {}, mask {}, gradient {}, window {}, cap {}, slopes {}",
                                   architecture, form.queries, form.size, fmt::join(form.mask, "x"), gradient,
                                   form.window, form.cap, form.slopes));
          compile(form, gradient, architecture);
        }
  }

  static void compileGradient(const Form &form, const std::vector<int> &architectures = {80, 90}) {
    Form whole = form;
    whole.rowsOfAll = 0;
    whole.slopes = false; // which take no memory, and of which only a whole has as many keys as queries
    for (int architecture : architectures)
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
    if (gradient && !form.fast)
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

/// Gradients that may be added up in any order, in the forms of the models that are measured and at lengths
/// that exact ones are cut into blocks for, within a workspace without scores.
TEST_F(CudnnForms, FastGradients) {
  const auto fast = [](Form form) {
    form.fast = true;
    return form;
  };
  compile({fast({16, 1024, 1024, 12, 12, 64, true, DType::BF16, true}), // GPT-2 124M
           fast({8, 1024, 1024, 25, 25, 64, true, DType::BF16, true}),  // 1.5B
           fast({2, 8192, 8192, 32, 8, 64, true}),                      // Llama 1B
           fast({1, 32768, 32768, 32, 8, 128, true}), fast({2, 200, 200, 3, 3, 64, true, DType::F16}),
           fast({1, 100, 201, 4, 2, 128, true, DType::F16}),
           fast({2, 100, 100, 4, 2, 64, false, DType::BF16, false, {2, 1, 1, 100}})});
}

TEST_F(CudnnForms, DropoutByAMaskInMemory) {
  Form gpt{16, 1024, 1024, 12, 12, 64, true, DType::BF16, true},
      grouped{2, 256, 256, 4, 2, 128, true, DType::F16}, both{2, 200, 200, 3, 3, 64, false},
      longer{1, 100, 204, 4, 4, 64, true};
  for (Form *form : {&gpt, &grouped, &both, &longer})
    form->dropout = 0.1;
  compile({gpt, grouped, both, longer});
  gpt.fast = true;
  both.window = 32;
  compile({gpt, both});
}

/// An A100 has no engine for the gradient under a cap, nor for any of heads of 256.
TEST_F(CudnnForms, WindowsCapsAndSlopes) {
  const auto with = [](Form form, int64_t window, double cap, bool slopes) {
    form.window = window, form.cap = cap, form.slopes = slopes;
    return form;
  };
  const Form square{2, 256, 256, 4, 2, 64, true}, longer{2, 128, 256, 4, 4, 64, true},
      both{2, 256, 256, 4, 4, 64, false}, seven{1, 256, 256, 7, 7, 128, true, DType::F16};
  compile({with(square, 32, 0, false), with(longer, 32, 0, false), with(both, 32, 0, false),
           with(square, 0, 0, true), with(seven, 0, 0, true), with(square, 32, 0, true)});
  Form gemma{1, 1024, 1024, 16, 8, 256, true};
  compile({with(square, 0, 50, false), with(square, 32, 50, true), with(gemma, 512, 50, false),
           with(gemma, 0, 50, false), with(both, 32, 50, false)},
          {90});
  gemma.fast = true;
  compile({with(gemma, 512, 50, false)}, {90});
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

/// Blocks by queries have a window that reaches before their first query, and more keys than queries; others
/// are causal on the diagonal and see all else.
TEST_F(CudnnForms, BlocksOfLongForms) {
  const auto of = [](int64_t queries, int64_t keys, bool causal) {
    Form form{1, queries, keys, 4, 2, 64, causal};
    form.rowsOfAll = 1000;
    return form;
  };
  Form band = of(104, 360, true), both = of(128, 640, false), full = of(104, 256, false);
  band.window = both.window = 256;
  compileGradient(band);
  compileGradient(both);
  band.slopes = true, band.dropout = 0.1;
  compileGradient(band);
  band.slopes = false, band.cap = 50;
  compileGradient(band, {90});
  full.slopes = true, full.dropout = 0.1;
  compileGradient(full);
  full.slopes = false, full.cap = 50;
  compileGradient(full, {90});
}

TEST_F(CudnnForms, MasksInMemory) {
  const auto masked = [](std::vector<int64_t> mask, bool causal = false, int64_t groups = 4) {
    return Form{2, 100, 100, 4, groups, 64, causal, DType::BF16, false, std::move(mask)};
  };
  compile({masked({1, 1, 100, 100}), masked({2, 4, 100, 100}, /*causal=*/true),
           masked({2, 1, 1, 100}, false, /*groups=*/2)});
}

} // namespace
} // namespace ds::rt::cuda
