//===- HfModel.cpp - Builds a model from a Hugging Face config.json -------------===//

#include "ds/Import/HfModel.h"
#include "ds/Import/HfShape.h"

#include "FamilyTable.h"
#include "Inputs.h"

#include "ds/Support/Format.h"

#include "ds/Support/ModelConfig.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ds;
using namespace ds::hf;

namespace {
/// A configuration that was read, and of which family; both null where its model_type is not known.
struct ReadModel {
  const Family *family = nullptr;
  std::unique_ptr<Architecture> architecture;
};
} // namespace

void Architecture::readSizes(const Section &config) {
  vocabulary.size = config.integer("vocab_size", kVocabularies);
  positions = config.integer("max_position_embeddings", kPositions);
  hidden = config.integer("hidden_size", kWidths);
  inner = config.integer("intermediate_size", kInnerWidths);
  layers = config.integer("num_hidden_layers", kLayers);
}

std::optional<int64_t> ds::hf::readPadding(const Section &config, int64_t size,
                                           std::optional<int64_t> fallback) {
  std::optional<int64_t> row = config.optional("pad_token_id", Range<int64_t>{-size, size - 1});
  if (!config.mentions("pad_token_id"))
    return fallback;
  return row && *row < 0 ? *row + size : row; // negative: counts from the end
}

cost::ModelShape Architecture::commonShape() const {
  cost::ModelShape shape;
  shape.layers = layers;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.ffn = inner;
  shape.vocab = vocabulary.size;
  shape.tied = vocabulary.tied;
  return shape;
}

int64_t ds::hf::headSize(const Section &config, int64_t width, int64_t heads, std::string_view widthKey,
                         std::string_view headsKey) {
  if (width % heads == 0)
    return width / heads;
  std::string name = llvm::StringRef(widthKey).split('|').first.str();
  config.refuse(headsKey, "expects a divisor of " + name + ", which is " + std::to_string(width) +
                              ", but got " + std::to_string(heads));
  return 1;
}

void ds::hf::refuseTrue(const Section &config, std::string_view key, const std::string &why) {
  if (config.flag(key, false))
    config.refuse(key, "expects false, but got true: " + why);
}

/// Whether `model` is one of `given`, in whatever case: older files have LLaMAForCausalLM.
static bool isAmong(llvm::StringRef model, const std::vector<std::string> &given) {
  return !model.empty() &&
         llvm::any_of(given, [&](const std::string &name) { return model.equals_insensitive(name); });
}

/// Refuses what would make another model than the one that is built: a head that the family does not have
/// here, parameters that are quantised, and heads of attention that were cut away.
static void refuseOthers(const Section &config, const Family &family) {
  const std::vector<std::string> given = config.texts("architectures");
  const std::string built = family.built.str();
  if (!given.empty() && !isAmong(built, given) && !isAmong(family.base, given) &&
      !isAmong(family.wider, given))
    config.refuse("architectures",
                  "expects " + built + ", which is the model that would be built, but got " +
                      llvm::join(given, ", "),
                  "export the model as TorchScript and give the .pt file");
  for (const char *key : {"quantization_config", "quantization", "compression_config"})
    if (config.has(key))
      config.refuse(key,
                    "the model's parameters are quantised, but " + built +
                        " would be built with all of them in floating point",
                    "give the config.json of the model that was quantised");
  if (config.entries("pruned_heads") > 0)
    config.refuse("pruned_heads",
                  "expects no heads, but got some: " + built + " would be built with all of them",
                  "export the model as TorchScript and give the .pt file");
}

/// Reads the configuration as its model_type asks for; mistakes are kept in the file.
static ReadModel readModel(const ConfigFile &file) {
  ReadModel model;
  model.family = findFamily(file);
  if (!model.family)
    return model;
  refuseOthers(file.root(), *model.family);
  model.architecture = model.family->read(file.root());
  return model;
}

/// What is built where the configuration is of the model without its head, or with one more; else empty.
static std::string headNotice(const Section &config, const Family &family) {
  const std::vector<std::string> given = config.texts("architectures");
  if (given.empty() || isAmong(family.built, given))
    return "";
  const bool isBase = isAmong(family.base, given);
  return "architectures: " + (isBase ? family.base : family.wider).str() +
         (isBase ? " has no head" : " has two heads") + "; what is built is " + family.built.str();
}

/// Says that checkpoints are stored in another type than is trained in; else empty.
static std::string precisionNotice(const Section &config, const std::string &trainedIn) {
  const char *key = config.has("dtype") ? "dtype" : "torch_dtype";
  const std::string text = config.text(key);
  llvm::StringRef stored(text);
  stored.consume_front("torch.");
  if (stored.empty() || trainedIn.empty() || stored == trainedIn)
    return "";
  return std::string(key) + " is " + stored.str() + ", but the model is trained in " + trainedIn +
         ", as the training configuration says (\"bf16\" and \"fp16\" change that)";
}

/// One line about each thing that a user may not expect; `isAssumed`: nothing says how long samples are.
static std::vector<Notice> notices(const ConfigFile &file, const ReadModel &read, const HfRequest &request,
                                   bool isAssumed) {
  const Architecture &model = *read.architecture;
  const std::string &path = request.path;
  std::vector<Notice> lines;
  if (isAssumed) // first: most of a plan follows from it
    lines.push_back({path + ": samples have " + std::to_string(model.positions) +
                         " tokens, all positions that the model has; --length " +
                         std::to_string(std::max<int64_t>(1, model.positions / 2)) +
                         " makes them half as long",
                     /*isCostly=*/true});
  for (const std::string &line :
       {headNotice(file.root(), *read.family), precisionNotice(file.root(), request.trainedIn)})
    if (!line.empty())
      lines.push_back({path + ": " + line, /*isCostly=*/true});
  std::string unread;
  for (const std::string &key : file.unreadKeys())
    unread += (unread.empty() ? "" : ", ") + key;
  if (!unread.empty())
    lines.push_back(path + ": keys that the model does not depend on, or that are not known: " + unread);
  if (model.weights.storedHeads > 0)
    lines.push_back({path + ": attention weights are kept in memory, for what is added to scores is trained",
                     /*isCostly=*/true});
  return lines;
}

/// The module of `model`.
static Result<mlir::OwningOpRef<mlir::ModuleOp>> build(const Architecture &model, const TokenShape &shape,
                                                       mlir::MLIRContext &context) {
  Graph graph(context, model.basePrefix);
  mlir::Type i64 = mlir::IntegerType::get(&context, 64);
  if (const std::optional<Image> &image = model.samples.image) {
    auto pixels = mlir::RankedTensorType::get({shape.batch, image->channels, image->height, image->width},
                                              mlir::Float32Type::get(&context));
    Value values = graph.input("pixel_values", pixels);
    Value labels = graph.input("labels", mlir::RankedTensorType::get({shape.batch}, i64));
    return graph.finish(model.forward(graph, values, labels));
  }
  auto type = mlir::RankedTensorType::get({shape.batch, shape.length}, i64);
  auto told = type.clone({shape.batch, shape.decoderLength.value_or(shape.length)});
  Value ids;
  if (const std::optional<Spectrogram> &kind = model.samples.spectrogram)
    ids = graph.input("input_features", mlir::RankedTensorType::get({shape.batch, kind->mels, kind->frames},
                                                                    mlir::Float32Type::get(&context)));
  else
    ids = graph.input("input_ids", type);
  if (shape.decoderLength)
    graph.tokens.decoder = graph.input("decoder_input_ids", told);
  Value labels = graph.input("labels", told);
  if (shape.positions)
    graph.tokens.positions = graph.input("position_ids", type);
  if (shape.documents)
    graph.tokens.documents = graph.input("document_ids", type);
  return graph.finish(model.forward(graph, ids, labels));
}

/// The module keeps what it was made of, unless others could not read it.
static void keepText(const std::string &text, const std::string &path, HfModel &model) {
  if (isModelConfig(text))
    mlir::ds::FilesOp::lookup(*model.module).setConfig(text);
  else
    model.notices.push_back(path + ": has comments or other liberties that Hugging Face does not read: "
                                   "checkpoints of the program do not keep it");
}

static Result<HfModel> buildFrom(const HfRequest &request, const ConfigFile &file,
                                 mlir::MLIRContext &context) {
  const ReadModel read = readModel(file);
  if (Status status = file.finish(); !status)
    return status.error();
  const Architecture *model = read.architecture.get();
  if (!model->whyNoProgram.empty())
    return Error{ExitCode::Invalid, request.path + ": model_type: " + model->whyNoProgram,
                 "plans by rules answer: add --cluster NAME and leave --emit out"};
  Result<TokenShape> shape = readInputs(request.inputs, request.microBatch, *model, request.path);
  if (!shape)
    return shape.error();
  if (Status status = checkTensors(*shape, *model, request.path); !status)
    return status.error();
  auto module = build(*model, *shape, context);
  if (!module)
    return Error{module.error().code, request.path + ": " + module.error().message, module.error().hint};
  const bool isAssumed = request.inputs.empty() && !model->samples.image;
  HfModel made{std::move(*module), notices(file, read, request, isAssumed)};
  keepText(file.text(), request.path, made);
  return made;
}

Result<HfModel> ds::buildHfModelFromText(const HfRequest &request, const std::string &text,
                                         mlir::MLIRContext &context) {
  Result<ConfigFile> file = ConfigFile::parse(text, request.path);
  if (!file)
    return file.error();
  return buildFrom(request, *file, context);
}

Result<HfModel> ds::buildHfModel(const HfRequest &request, mlir::MLIRContext &context) {
  Result<ConfigFile> file = ConfigFile::read(request.path);
  if (!file)
    return file.error();
  return buildFrom(request, *file, context);
}

Result<cost::ModelShape> Architecture::sizes() const {
  return Error{ExitCode::Invalid, "model_type: plans by rules are of decoder-only models",
               "leave --cluster out to plan the program itself"};
}

std::string ds::lengthInput(const std::string &path) {
  Result<ConfigFile> file = ConfigFile::read(path);
  const ReadModel read = file ? readModel(*file) : ReadModel();
  return read.architecture && read.architecture->samples.spectrogram ? "labels" : "input_ids";
}

Result<HfShape> ds::readHfShape(const HfRequest &request) {
  const std::string &path = request.path;
  Result<ConfigFile> file = ConfigFile::read(path);
  if (!file)
    return file.error();
  const ReadModel read = readModel(*file);
  if (Status status = file->finish(); !status)
    return status.error();
  const Architecture *model = read.architecture.get();
  Result<TokenShape> tokens = readInputs(request.inputs, request.microBatch, *model, path);
  if (!tokens)
    return tokens.error();
  Result<cost::ModelShape> shape = model->sizes();
  if (!shape)
    return Error{shape.error().code, path + ": " + shape.error().message, shape.error().hint};
  HfShape result{*shape,
                 tokens->batch,
                 model->positions,
                 model->weights.storedHeads == 0,
                 model->whyNoProgram,
                 notices(*file, read, request, request.inputs.empty())};
  result.shape.seq = tokens->length;
  result.shape.dropsAttention = model->weights.areDropped;
  if (const int64_t active = shape->activeParameters(); active < shape->parameters())
    result.notices.push_back(
        path + ": " + formatExact(active) + " of " + formatExact(shape->parameters()) +
        " parameters are active for a token, the others are experts that it is not sent to");
  if (tokens->documents)
    result.notices.push_back(path + ": the mask of documents is not counted");
  return result;
}
