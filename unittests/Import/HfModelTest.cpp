//===- HfModelTest.cpp - Models from config.json: sizes, names, initialisation --===//

#include "ds/Import/HfModel.h"
#include "HfConfigs.h"
#include "ds/Dialect/Ds.h"
#include "ds/Import/BuiltinModels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/Format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir::ds;
using testing::ElementsAre;
using testing::IsSupersetOf;

namespace {

/// A context with what a model needs, and what it is asked for.
class HfModel : public testing::Test {
protected:
  HfModel() { context.loadDialect<DsDialect, mlir::func::FuncDialect>(); }

  mlir::ModuleOp build(const char *text, const std::string &shape = "1x16") {
    ds::HfRequest request{"config.json", {"labels=" + shape + "xi64"}, 1};
    auto result = ds::buildHfModelFromText(request, text, context);
    EXPECT_TRUE(result) << result.error().message;
    if (!result)
      return {};
    EXPECT_TRUE(succeeded(mlir::verify(*result->module)));
    model = std::move(*result);
    return *model.module;
  }

  int64_t parameters(const char *text) {
    int64_t count = 0;
    for (StateOp state : build(text).getOps<StateOp>())
      count += state.getRole() == Role::Parameter ? state.getTensorType().getNumElements() : 0;
    return count;
  }

  StateOp state(llvm::StringRef name) { return model.module->lookupSymbol<StateOp>(name); }

  static std::vector<std::string> texts(mlir::ArrayAttr list) {
    std::vector<std::string> result;
    for (llvm::StringRef text : list.getAsValueRange<mlir::StringAttr>())
      result.push_back(text.str());
    return result;
  }

  std::string init(llvm::StringRef name) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    InitAttr attr = state(name).getInit();
    stream << stringifyInitKind(attr.getKind()) << " " << llvm::format("%.8f", attr.getA().convertToDouble())
           << " " << llvm::format("%.8f", attr.getB().convertToDouble());
    return text;
  }

  mlir::MLIRContext context;
  ds::HfModel model;
  std::vector<ds::Notice> notices;
};

TEST_F(HfModel, HasAsManyParametersAsPublished) {
  EXPECT_EQ(parameters(ds::test::kGpt2), 124'439'808);
  EXPECT_EQ(parameters(ds::test::kGpt2Xl), 1'557'611'200);
  EXPECT_EQ(parameters(ds::test::kLlama2), 6'738'415'616);
  EXPECT_EQ(parameters(ds::test::kLlama2Large), 68'976'648'192);
  EXPECT_EQ(parameters(ds::test::kLlama3), 8'030'261'248);
  EXPECT_EQ(parameters(ds::test::kMistral), 7'241'732'096);
  EXPECT_EQ(parameters(ds::test::kQwen2), 494'032'768);
  EXPECT_EQ(parameters(ds::test::kPythia), 162'322'944);
  EXPECT_EQ(parameters(ds::test::kBert), 109'514'298);
}

TEST_F(HfModel, NamesOfPublishedModelsHaveAsManyParameters) {
  std::vector<std::string_view> names;
  for (const auto &[name, elements, active] : ds::test::kPublished) {
    names.push_back(name);
    if (active > 0)
      continue; // no program has experts
    EXPECT_EQ(parameters(std::string(ds::builtinModelText(name)).c_str()), elements) << name;
    for (const ds::Notice &notice : model.notices)
      EXPECT_THAT(notice.text, testing::Not(testing::HasSubstr("keys that"))) << name;
  }
  EXPECT_EQ(ds::builtinModelNames(), names);
  EXPECT_EQ(ds::builtinModelText("gpt2-xl/config.json"), ds::builtinModelText("gpt2-xl"));
  EXPECT_EQ(ds::builtinModelText("gpt2-xxl"), "");
}

TEST_F(HfModel, CallsParametersAsCheckpointsDo) {
  build(ds::test::kGpt2);
  EXPECT_TRUE(state("transformer.h.11.mlp.c_proj.bias"));
  EXPECT_THAT(texts(*state("transformer.wte.weight").getAliases()), ElementsAre("lm_head.weight"));
  EXPECT_EQ(state("transformer.h.0.attn.c_attn.weight").getTensorType().getShape(),
            llvm::ArrayRef<int64_t>({768, 2304})); // Conv1D: inputs first
  EXPECT_THAT(texts(*state("transformer.h.3.ln_1.bias").getReadNames()), ElementsAre("h.3.ln_1.bias"));
  EXPECT_THAT(texts(*FilesOp::lookup(*model.module).getUnused()),
              IsSupersetOf({"transformer.h.3.attn.bias", "h.3.attn.bias", "h.3.attn.masked_bias"}));
  build(ds::test::kLlama2);
  EXPECT_THAT(texts(*FilesOp::lookup(*model.module).getUnused()),
              IsSupersetOf({"model.layers.31.self_attn.rotary_emb.inv_freq"}));
  EXPECT_FALSE(state("lm_head.weight").getReadNames());
  build(ds::test::kBert);
  EXPECT_THAT(texts(*state("bert.embeddings.LayerNorm.weight").getReadNames()),
              ElementsAre("embeddings.LayerNorm.weight", "bert.embeddings.LayerNorm.gamma",
                          "embeddings.LayerNorm.gamma"));
  EXPECT_THAT(texts(*state("cls.predictions.bias").getAliases()),
              ElementsAre("cls.predictions.decoder.bias"));
}

TEST_F(HfModel, StartsAsTheArchitecturePublishes) {
  build(ds::test::kGpt2);
  EXPECT_EQ(init("transformer.wte.weight"), "normal 0.00000000 0.02000000");
  EXPECT_EQ(init("transformer.h.0.attn.c_attn.weight"), "normal 0.00000000 0.02000000");
  EXPECT_EQ(init("transformer.h.0.attn.c_attn.bias"), "zero 0.00000000 0.00000000");
  EXPECT_EQ(init("transformer.h.0.ln_1.weight"), "constant 1.00000000 0.00000000");
  // 0.02 / sqrt(2 * 12): what writes into the residual stream.
  EXPECT_EQ(init("transformer.h.0.attn.c_proj.weight"), "normal 0.00000000 0.00408248");
  EXPECT_EQ(init("transformer.h.0.mlp.c_proj.weight"), "normal 0.00000000 0.00408248");
  build(ds::test::kLlama3);
  EXPECT_EQ(init("model.layers.0.self_attn.o_proj.weight"), "normal 0.00000000 0.02000000");
  EXPECT_EQ(init("model.norm.weight"), "constant 1.00000000 0.00000000");
}

TEST_F(HfModel, WhisperHearsWithPositionsThatNothingTrains) {
  build(std::string(ds::builtinModelText("whisper-tiny")).c_str(), "2x8");
  StateOp heard = state("model.encoder.embed_positions.weight"),
          said = state("model.decoder.embed_positions.weight");
  EXPECT_EQ(heard.getTensorType().getShape(), llvm::ArrayRef<int64_t>({1500, 384}));
  EXPECT_FALSE(heard.getTrainable());
  EXPECT_EQ(init("model.encoder.embed_positions.weight"), "sinusoid 10000.00000000 0.00000000");
  EXPECT_EQ(said.getTensorType().getShape(), llvm::ArrayRef<int64_t>({448, 384}));
  EXPECT_TRUE(said.getTrainable());
  for (const char *drawn : {"model.decoder.embed_positions.weight", "model.encoder.conv1.weight",
                            "model.decoder.layers.3.encoder_attn.k_proj.weight"})
    EXPECT_EQ(init(drawn), "normal 0.00000000 0.02000000") << drawn;
  EXPECT_FALSE(state("model.encoder.layers.0.self_attn.k_proj.bias"));
  EXPECT_EQ(init("model.encoder.layers.0.self_attn.v_proj.bias"), "zero 0.00000000 0.00000000");
  EXPECT_THAT(texts(*state("model.decoder.embed_tokens.weight").getAliases()),
              ElementsAre("proj_out.weight"));
  EXPECT_THAT(texts(*heard.getReadNames()), ElementsAre("encoder.embed_positions.weight"));
  auto forward = model.module->lookupSymbol<mlir::func::FuncOp>("forward");
  EXPECT_EQ(mlir::cast<mlir::RankedTensorType>(forward.getArgumentTypes()[0]).getShape(),
            llvm::ArrayRef<int64_t>({2, 80, 3000}));
}

TEST_F(HfModel, PlacesOpsInTheLayersOfTheCheckpoint) {
  build(ds::test::kGpt2);
  std::vector<std::string> layers;
  model.module->walk([&](mlir::Operation *op) {
    if (auto name = mlir::dyn_cast<mlir::NameLoc>(op->getLoc()); name && mlir::isa<MatmulOp, AttentionOp>(op))
      layers.push_back(name.getName().str());
  });
  EXPECT_THAT(layers, IsSupersetOf({"transformer.h.3.attn.c_attn", "transformer.h.3.attn", "lm_head"}));
}

TEST_F(HfModel, TakesTheLongestSamplesOfTheMicroBatchByDefault) {
  auto result = ds::buildHfModelFromText({"config.json", {}, 3}, ds::test::kBert, context);
  ASSERT_TRUE(result) << result.error().message;
  auto forward = result->module->lookupSymbol<mlir::func::FuncOp>("forward");
  EXPECT_EQ(mlir::cast<mlir::RankedTensorType>(forward.getArgumentTypes()[0]).getShape(),
            llvm::ArrayRef<int64_t>({3, 512}));
}

TEST_F(HfModel, DropsAsConfiguredAndNotWhereTheProbabilityIsZero) {
  auto count = [&](mlir::ModuleOp module) {
    int drops = 0, ofWeights = 0;
    module.walk([&](DropoutOp) { ++drops; });
    module.walk([&](AttentionOp op) { ofWeights += op.getRng() != nullptr; });
    return std::pair(drops, ofWeights);
  };
  // Embeddings; projection and feed-forward; weights of attention within it.
  EXPECT_EQ(count(build(ds::test::kGpt2)), std::pair(1 + 12 * 2, 12));
  EXPECT_EQ(count(build(ds::test::kLlama2)), std::pair(0, 0));
}

TEST_F(HfModel, SaysWhichKeysItDidNotRead) {
  std::string text = ds::test::kLlama3;
  text.insert(1, R"("residual_multiplier": 0.22, )");
  auto result = ds::buildHfModelFromText({"config.json", {"input_ids=1x8xi64"}, 1}, text, context);
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->notices.size(), 1u);
  EXPECT_THAT(result->notices[0].text, testing::HasSubstr("residual_multiplier"));
  EXPECT_TRUE((build(ds::test::kQwen2), model.notices.empty()));
}

/// One line each: a head that is made besides or left out, and a type that checkpoints do not have.
TEST_F(HfModel, SaysWhatItBuildsInstead) {
  const auto said = [this](std::string text, const char *head, const std::string &trainedIn) {
    if (*head)
      text.replace(text.find("BertForMaskedLM"), 15, head);
    ds::HfRequest request{"config.json", {"input_ids=1x8xi64"}, 1, trainedIn};
    auto result = ds::buildHfModelFromText(request, text, context);
    EXPECT_TRUE(result) << result.error().message;
    std::vector<std::string> lines;
    for (const ds::Notice &notice : result->notices)
      lines.push_back(notice.text);
    return lines;
  };
  EXPECT_TRUE(said(ds::test::kBert, "", "float32").empty());
  EXPECT_THAT(
      said(ds::test::kBert, "BertModel", ""),
      ElementsAre("config.json: architectures: BertModel has no head; what is built is BertForMaskedLM"));
  EXPECT_THAT(said(ds::test::kBert, "BertForPreTraining", ""),
              ElementsAre("config.json: architectures: BertForPreTraining has two heads; what is built is "
                          "BertForMaskedLM"));
  EXPECT_THAT(said(ds::test::kLlama2, "", "float32"),
              ElementsAre("config.json: torch_dtype is float16, but the model is trained in float32, as the "
                          "training configuration says (\"bf16\" and \"fp16\" change that)"));
  EXPECT_TRUE(said(ds::test::kLlama2, "", "float16").empty());
  EXPECT_TRUE(said(ds::test::kLlama2, "", "").empty());
  EXPECT_TRUE(said(ds::test::kQwen2, "", "bfloat16").empty());
  std::string newer = ds::test::kQwen2;
  EXPECT_TRUE(said(newer.insert(1, R"("dtype": "torch.bfloat16", )"), "", "bfloat16").empty());
  EXPECT_THAT(said(newer, "", "float32"), ElementsAre(testing::HasSubstr("dtype is bfloat16")));
}

TEST_F(HfModel, KeepsTheTextThatOthersCanRead) {
  const auto kept = [this](const std::string &text) {
    auto result = ds::buildHfModelFromText({"config.json", {"input_ids=1x8xi64"}, 1}, text, context);
    EXPECT_TRUE(result) << result.error().message;
    notices = result->notices;
    return FilesOp::lookup(*result->module).getConfig().value_or("none").str();
  };
  EXPECT_EQ(kept(ds::test::kQwen2), ds::test::kQwen2);
  EXPECT_TRUE(notices.empty());
  EXPECT_EQ(kept("# mine\n" + std::string(ds::test::kQwen2)), "none");
  ASSERT_EQ(notices.size(), 1u);
  EXPECT_THAT(notices[0].text, testing::HasSubstr("checkpoints of the program do not keep it"));
}

TEST_F(HfModel, TakesPositionsAndDocumentsWhereTheyAreGiven) {
  auto masks = [this](std::vector<std::string> inputs) {
    auto result = ds::buildHfModelFromText({"config.json", std::move(inputs), 1}, ds::test::kLlama3, context);
    EXPECT_TRUE(result) << result.error().message;
    std::vector<std::string> names;
    auto forward = *result->module->getOps<mlir::func::FuncOp>().begin();
    for (unsigned i = 0; i < forward.getNumArguments(); ++i)
      if (auto name = forward.getArgAttrOfType<mlir::StringAttr>(i, "ds.input"))
        names.push_back(name.str());
    int64_t masked = 0, lookups = 0;
    result->module->walk([&](AttentionOp op) { masked += bool(op.getMask()); });
    result->module->walk([&](EmbeddingOp) { ++lookups; });
    names.push_back(std::to_string(masked) + " masks, " + std::to_string(lookups) + " lookups");
    return names;
  };
  EXPECT_THAT(masks({"input_ids=1x8xi64"}), ElementsAre("input_ids", "labels", "0 masks, 1 lookups"));
  EXPECT_THAT(masks({"document_ids=1x8xi64"}),
              ElementsAre("input_ids", "labels", "document_ids", "32 masks, 1 lookups"));
  // Cosines and sines.
  EXPECT_THAT(masks({"document_ids=1x8xi64", "position_ids=1x8xi64"}),
              ElementsAre("input_ids", "labels", "position_ids", "document_ids", "32 masks, 3 lookups"));
}

TEST_F(HfModel, ComputesLongRotaryTablesInsteadOfCarryingThem) {
  int64_t largest = 0;
  build(ds::test::kLlama3, "1x8192").walk([&](ConstantOp op) {
    auto elements = mlir::cast<mlir::DenseElementsAttr>(op.getValue());
    largest = std::max<int64_t>(largest, elements.isSplat() ? 1 : elements.getNumElements());
  });
  EXPECT_EQ(largest, 64); // the frequencies of a head of 128
}

} // namespace
