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

/// Parses "4x1024xi64".
static Result<TokenShape> parseShape(llvm::StringRef input, llvm::StringRef spelling) {
  llvm::SmallVector<llvm::StringRef, 4> parts;
  spelling.split(parts, 'x');
  if (parts.size() < 2 || parts.back().empty())
    return usage(input, "is no shape with an element type");
  TokenShape shape;
  bool isPair = parts.size() == 3 && parts[2] == "i64";
  for (llvm::StringRef part : llvm::ArrayRef(parts).drop_back()) {
    int64_t size = 0;
    if (part.getAsInteger(10, size) || size < 1 || part.starts_with("0"))
      return usage(input, "has a size that is not a positive number");
  }
  if (!isPair)
    return invalid("--input '" + input.take_front(200).str() + "': expects samples of tokens, BxTxi64",
                   "write, for example, input_ids=4x1024xi64");
  parts[0].getAsInteger(10, shape.batch);
  parts[1].getAsInteger(10, shape.length);
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

Result<TokenShape> ds::hf::readInputs(const std::vector<std::string> &inputs, int64_t microBatch,
                                      const Architecture &model, const std::string &file) {
  Result<std::optional<TokenShape>> given = combine(inputs);
  if (!given)
    return given.error();
  TokenShape shape = given->value_or(TokenShape{microBatch, model.positions, false, false});
  if (shape.length > model.positions)
    return invalid("--input has samples of " + std::to_string(shape.length) + " tokens, but " + file +
                       " has " + std::to_string(model.positions) + " positions",
                   "shorten the samples, or raise the number of positions in config.json");
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
  if (!product({shape.batch, shape.length, model.vocabulary.size}))
    return refuse("logits", model.vocabulary.size);
  if (!product({shape.batch, shape.length, model.widest}))
    return refuse("activations", model.widest);
  if (shape.documents && !product({shape.batch, shape.length, shape.length}))
    return refuse("mask of documents", shape.length);
  if (model.scoreHeads > 0 && !product({shape.batch, model.scoreHeads, shape.length, shape.length}))
    return refuse("attention weights", model.scoreHeads * shape.length);
  return {};
}
