//===- TokenInputs.cpp - What a window of tokens says beside its tokens --------===//

#include "TokenInputs.h"

#include "Files/Text.h"

#include <fmt/format.h>

using namespace ds;
using namespace ds::rt;

Result<TokenInputs> ds::rt::findTokenInputs(const std::string &path, std::span<const InputSpec> inputs) {
  TokenInputs found;
  std::vector<size_t> others;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string &name = inputs[i].name;
    if (name == "position_ids" && inputs.size() > 2)
      found.positions = i;
    else if ((name == "document_ids" || name == "segment_ids") && inputs.size() > 2 && !found.documents)
      found.documents = i;
    else
      others.push_back(i);
  }
  bool fits = others.size() == 2;
  std::string got;
  for (const InputSpec &input : inputs) {
    fits = fits && isInteger(toFileDType(input.dtype)) && input.shape.size() == 2 && input.shape[1] > 0 &&
           input.shape == inputs[0].shape;
    got += (got.empty() ? "" : ", ") + quote(input.name) + " " + spellShape(input.shape) + " " +
           std::string(spell(toFileDType(input.dtype)));
  }
  if (!fits)
    return Error{
        ExitCode::Invalid,
        quote(path) +
            ": a token stream fills two integer arguments of the same shape [batch, length], inputs and "
            "targets, and 'position_ids' and 'document_ids' where there are such, but the forward has " +
            got,
        "put one tensor for each argument into a .safetensors file"};
  found.tokens = others[0];
  found.targets = others[1];
  return found;
}

static Error usage(std::string message, std::string hint) {
  return {ExitCode::Usage, std::move(message), std::move(hint)};
}

/// What the program must have for what is asked.
static Status checkInputs(const DataOptions &options, const TokenInputs &places,
                          std::span<const InputSpec> inputs) {
  const int64_t limit = inputs[places.tokens].indexLimit;
  if (const auto token = options.documentToken; token && (*token < 0 || (limit != 0 && *token >= limit)))
    return usage(fmt::format("--document-token {}: the tokens of {} are 0 to {}", *token,
                             quote(inputs[places.tokens].name), limit - 1),
                 "give the id of the token that ends a document");
  if (options.documentToken && !inputs[places.targets].hasIgnoreIndex)
    return usage(fmt::format("--document-token: targets after the end of a document cannot be left out, for "
                             "the loss of {} has no ignore index",
                             quote(inputs[places.targets].name)),
                 "compile a model whose loss is cross_entropy of its logits");
  if (options.resetPositions && !places.positions)
    return usage(
        "--reset-positions: the program has no input 'position_ids'",
        "compile a config.json with --input position_ids=BxTxi64, or give forward an argument of that "
        "name and look positions up by it");
  if (options.resetAttention && !places.documents)
    return usage(
        "--reset-attention: the program has no input 'document_ids', by which attention could be "
        "kept within a document",
        "compile a config.json with --input document_ids=BxTxi64, or give forward an argument of that "
        "name and hide scores where query and key differ in it");
  if (places.documents && !options.documentToken)
    return usage(fmt::format("input {} of the program counts documents, and it is not known what ends one",
                             quote(inputs[*places.documents].name)),
                 "give the id of that token with --document-token");
  return {};
}

Status ds::rt::checkDocuments(const DataOptions &options, std::span<const InputSpec> inputs,
                              bool isTokenStream) {
  for (auto [asked, option] : {std::pair(options.resetPositions, "--reset-positions"),
                               {options.resetAttention, "--reset-attention"}})
    if (asked && !options.documentToken)
      return usage(std::string(option) + " needs --document-token",
                   "give the id of the token that ends a document");
  if (options.documentToken && !isTokenStream)
    return usage("--document-token: " + quote(options.path) + " is no token stream",
                 "put the inputs that the model takes into the file, and a loss_mask");
  if (!isTokenStream)
    return {};
  const Result<TokenInputs> places = findTokenInputs(options.path, inputs);
  return places ? checkInputs(options, *places, inputs) : Status(places.error());
}

WindowFacts ds::rt::factsOf(std::span<const int64_t> tokens, std::optional<int64_t> documentToken,
                            bool resetPositions) {
  WindowFacts facts;
  int64_t position = 0, document = 0;
  for (const int64_t token : tokens) {
    const bool ends = token == documentToken;
    facts.keep.push_back(!ends);
    facts.positions.push_back(position);
    facts.documents.push_back(document);
    position = ends && resetPositions ? 0 : position + 1;
    document += ends;
  }
  return facts;
}
