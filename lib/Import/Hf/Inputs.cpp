//===- Inputs.cpp - Shapes of the forward's arguments ---------------------------===//

#include "Inputs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSet.h"

using namespace ds;
using namespace ds::hf;

static Error usage(llvm::StringRef input, const std::string &why) {
  return {ExitCode::Usage, "--input '" + input.take_front(200).str() + "' " + why,
          "write it as NAME=SHAPExTYPE, for example input_ids=4x1024xi64"};
}

static Error invalid(const std::string &message, const std::string &hint) {
  return {ExitCode::Invalid, message, hint};
}

namespace {
/// What follows the name of an input: "4x1024xi64".
struct Spelling {
  llvm::SmallVector<int64_t> sizes;
  llvm::StringRef element;
};
} // namespace

/// Parses sizes, which are positive, and an element type.
static Result<Spelling> parseSpelling(llvm::StringRef input, llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef, 4> parts;
  text.split(parts, 'x');
  if (parts.size() < 2 || parts.back().empty())
    return usage(input, "is no shape with an element type");
  Spelling spelling;
  spelling.element = parts.back();
  for (llvm::StringRef part : llvm::ArrayRef(parts).drop_back()) {
    int64_t size = 0;
    if (part.getAsInteger(10, size) || size < 1 || part.starts_with("0"))
      return usage(input, "has a size that is not a positive number");
    spelling.sizes.push_back(size);
  }
  return spelling;
}

/// Parses "4x1024xi64".
static Result<TokenShape> parseShape(llvm::StringRef input, llvm::StringRef text) {
  Result<Spelling> spelling = parseSpelling(input, text);
  if (!spelling)
    return spelling.error();
  if (spelling->sizes.size() != 2 || spelling->element != "i64")
    return invalid("--input '" + input.take_front(200).str() + "': expects samples of tokens, BxTxi64",
                   "write, for example, input_ids=4x1024xi64");
  TokenShape shape;
  shape.batch = spelling->sizes[0], shape.length = spelling->sizes[1];
  return shape;
}

/// The arguments that --input gives must be of one shape.
static Result<std::optional<TokenShape>> combine(const std::vector<std::string> &inputs) {
  static constexpr llvm::StringLiteral known[] = {"input_ids", "labels", "position_ids", "document_ids"};
  std::optional<TokenShape> all;
  llvm::StringSet<> seen;
  for (llvm::StringRef input : inputs) {
    auto [name, spelling] = input.split('=');
    if (name.empty() || !input.contains('='))
      return usage(input, "has no name");
    if (!llvm::is_contained(known, name))
      return invalid("--input gives '" + name.take_front(100).str() +
                         "', but the forward takes input_ids and labels, and position_ids and document_ids "
                         "where they are given",
                     "write, for example, --input input_ids=4x1024xi64");
    if (!seen.insert(name).second)
      return invalid("--input gives '" + name.str() + "' twice", "give each argument once");
    Result<TokenShape> shape = parseShape(input, spelling);
    if (!shape)
      return shape.error();
    if (all && (all->batch != shape->batch || all->length != shape->length))
      return invalid("--input gives '" + name.str() + "' another shape than the argument before it",
                     "make them equal");
    all = *shape;
  }
  if (all) {
    all->positions = seen.contains("position_ids");
    all->documents = seen.contains("document_ids");
  }
  return all;
}

/// What pictures of the model and their labels are called with B of them: "4x3x224x224xf32".
static std::string spellPictures(const Image &image, const std::string &batch) {
  std::string text = batch;
  for (int64_t size : {image.channels, image.height, image.width})
    text += "x" + std::to_string(size);
  return text + "xf32";
}

/// What --input says of pictures and their labels.
static Result<TokenShape> readPictures(const std::vector<std::string> &inputs, int64_t microBatch,
                                       const Architecture &model) {
  const std::string pictures = "pixel_values=" + spellPictures(*model.samples.image, "B"),
                    labels = "labels=Bxi64";
  std::optional<int64_t> batch;
  llvm::StringSet<> seen;
  for (llvm::StringRef input : inputs) {
    auto [name, text] = input.split('=');
    Result<Spelling> spelling = parseSpelling(input, text);
    if (!spelling)
      return spelling.error();
    const int64_t samples = spelling->sizes.front();
    const std::string wanted = name == "pixel_values"
                                   ? spellPictures(*model.samples.image, std::to_string(samples))
                                   : std::to_string(samples) + "xi64";
    if ((name != "pixel_values" && name != "labels") || text != wanted || !seen.insert(name).second)
      return invalid("--input '" + input.take_front(200).str() + "': expects " + pictures + " or " + labels +
                         ", each once",
                     "the size of pictures is image_size of config.json");
    if (batch.value_or(samples) != samples)
      return invalid("--input gives '" + name.str() +
                         "' another number of samples than the argument before it",
                     "make them equal");
    batch = samples;
  }
  return TokenShape{batch.value_or(microBatch), model.positions, false, false, std::nullopt};
}

/// Parses "4x80x3000xf32", which has the model's sizes but for the number of samples.
static Result<TokenShape> parseSpectrograms(llvm::StringRef input, llvm::StringRef text,
                                            const Spectrogram &kind) {
  Result<Spelling> spelling = parseSpelling(input, text);
  if (!spelling)
    return spelling.error();
  const std::string size = "x" + std::to_string(kind.mels) + "x" + std::to_string(kind.frames) + "xf32";
  TokenShape shape;
  shape.batch = spelling->sizes.front(), shape.length = kind.tokens;
  if (text != std::to_string(shape.batch) + size)
    return invalid("--input '" + input.take_front(200).str() + "': expects input_features=B" + size,
                   "the sizes are num_mel_bins and twice max_source_positions of config.json");
  return shape;
}

/// What --input says of a model with an encoder and a decoder: labels are as long as what the decoder reads,
/// which is as long as what the encoder reads unless they say; of speech, as long as the model allows.
static Result<TokenShape> readPairs(const std::vector<std::string> &inputs, int64_t microBatch,
                                    const Architecture &model) {
  const std::optional<Spectrogram> &speech = model.samples.spectrogram;
  const llvm::StringRef read = speech ? "input_features" : "input_ids";
  std::optional<int64_t> batch, length, decoderLength;
  llvm::StringSet<> seen;
  for (llvm::StringRef input : inputs) {
    auto [name, text] = input.split('=');
    if ((name != read && name != "decoder_input_ids" && name != "labels") || !seen.insert(name).second)
      return invalid("--input gives '" + name.take_front(100).str() + "', but the forward takes " +
                         read.str() + ", decoder_input_ids and labels, each once",
                     speech ? "write, for example, --input labels=4x128xi64"
                            : "write, for example, --input input_ids=4x512xi64 --input labels=4x128xi64");
    Result<TokenShape> shape =
        speech && name == read ? parseSpectrograms(input, text, *speech) : parseShape(input, text);
    if (!shape)
      return shape.error();
    std::optional<int64_t> &known = name == read ? length : decoderLength;
    if (batch.value_or(shape->batch) != shape->batch || known.value_or(shape->length) != shape->length)
      return invalid("--input gives '" + name.str() + "' another shape than the argument before it",
                     "samples are as many everywhere, labels as long as decoder_input_ids");
    batch = shape->batch, known = shape->length;
  }
  TokenShape shape;
  shape.batch = batch.value_or(microBatch);
  shape.length = speech ? speech->tokens : length.value_or(model.positions);
  shape.decoderLength = decoderLength.value_or(speech ? model.positions : shape.length);
  return shape;
}

/// Refuses samples of more tokens than the model has positions.
static Status checkLength(int64_t length, const Architecture &model, const std::string &file) {
  if (length <= model.positions)
    return {};
  return invalid("samples of " + std::to_string(length) + " tokens are asked for, but " + file + " has " +
                     std::to_string(model.positions) + " positions",
                 "shorten the samples, or raise the number of positions in config.json");
}

Result<TokenShape> ds::hf::readInputs(const std::vector<std::string> &inputs, int64_t microBatch,
                                      const Architecture &model, const std::string &file) {
  if (model.samples.image)
    return readPictures(inputs, microBatch, model);
  if (model.samples.hasDecoder) {
    Result<TokenShape> pair = readPairs(inputs, microBatch, model);
    if (pair && model.samples.spectrogram)
      if (Status status = checkLength(*pair->decoderLength, model, file); !status)
        return status.error();
    return pair;
  }
  Result<std::optional<TokenShape>> given = combine(inputs);
  if (!given)
    return given.error();
  TokenShape shape = given->value_or(TokenShape{microBatch, model.positions, false, false, std::nullopt});
  if (Status status = checkLength(shape.length, model, file); !status)
    return status.error();
  return shape;
}

/// Product of positive factors; nothing beyond kMaxElements.
static std::optional<int64_t> product(std::initializer_list<int64_t> factors) {
  int64_t result = 1;
  for (int64_t factor : factors)
    if (__builtin_mul_overflow(result, factor, &result) || result > kMaxElements)
      return std::nullopt;
  return result;
}

Status ds::hf::checkTensors(const TokenShape &shape, const Architecture &model, const std::string &file) {
  auto refuse = [&](const std::string &what, int64_t width) {
    return invalid(file + ": the " + what + " of " + std::to_string(shape.batch) + " samples of " +
                       std::to_string(shape.length) + " tokens, " + std::to_string(width) +
                       " for each token, are more than " + std::to_string(kMaxElements) + " elements",
                   "lower the micro-batch or the length with --input, or the sizes in config.json");
  };
  const int64_t longest = std::max(shape.length, shape.decoderLength.value_or(0));
  if (!product({shape.batch, longest, model.vocabulary.size}))
    return refuse("logits", model.vocabulary.size);
  if (!product({shape.batch, longest, model.widest}))
    return refuse("activations", model.widest);
  if (shape.documents && !product({shape.batch, shape.length, shape.length}))
    return refuse("mask of documents", shape.length);
  if (model.weights.storedHeads > 0 && !product({shape.batch, model.weights.storedHeads, longest, longest}))
    return refuse("attention weights", model.weights.storedHeads * longest);
  return {};
}
