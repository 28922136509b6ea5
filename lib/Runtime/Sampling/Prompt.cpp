//===- Prompt.cpp - Tokens from what the user writes, and back ------------------------===//
#include "Prompt.h"

#include "Files/Text.h"

#include <fmt/format.h>

#include <filesystem>

namespace ds::rt {

static constexpr const char *kFile = "tokenizer.json";
static constexpr int64_t kBytes = 256; ///< tokens of a model of bytes

/// The file beside `path`, which is a file or a directory; empty where there is none.
static std::string besides(const std::string &path) {
  if (path.empty())
    return "";
  std::error_code error;
  const std::filesystem::path place(path);
  const auto file = (std::filesystem::is_directory(place, error) ? place : place.parent_path()) / kFile;
  return std::filesystem::exists(file, error) ? file.string() : "";
}

Result<Language> Language::find(const SampleOptions &options, const std::string &program,
                                const std::string &weights, int64_t vocabulary) {
  Language language;
  if (!options.text && options.tokenizer.empty())
    return language;
  std::string file = options.tokenizer;
  for (const std::string &place : {weights, program})
    if (file.empty())
      file = besides(place);
  if (!file.empty()) {
    Result<Tokenizer> opened = Tokenizer::open(file);
    if (!opened)
      return opened.error();
    language.tokenizer.emplace(std::move(*opened));
    language.kind = Kind::Words;
    return language;
  }
  if (vocabulary != kBytes)
    return Error{
        ExitCode::Invalid,
        fmt::format("--sample: the model has {} tokens, which are no bytes, and there is no {} beside {}",
                    vocabulary, kFile, quote(weights.empty() ? program : weights)),
        "bring the file there, name it with --tokenizer FILE, or give numbers with --sample-tokens"};
  language.kind = Kind::Bytes;
  return language;
}

Result<std::vector<int64_t>> Language::begin(const SampleOptions &options, int64_t vocabulary) const {
  std::vector<int64_t> tokens = options.tokens;
  if (options.text && kind == Kind::Words) {
    Result<std::vector<int64_t>> encoded = tokenizer->encode(*options.text);
    if (!encoded)
      return encoded.error();
    tokens = std::move(*encoded);
  } else if (options.text) {
    for (const char byte : *options.text)
      tokens.push_back(static_cast<unsigned char>(byte));
  }
  if (tokens.empty())
    return Error{ExitCode::Usage, "--sample: there is no token to continue from",
                 "give a text, if only a line break or the token that ends documents"};
  for (size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= vocabulary)
      return Error{ExitCode::Invalid,
                   fmt::format("{}: token {} is {}, but those of the model are 0 to {}",
                               options.text ? "--sample" : "--sample-tokens", i + 1, tokens[i],
                               vocabulary - 1),
                   options.text ? "the tokenizer is of another vocabulary than the model" : ""};
  return tokens;
}

std::string Language::spell(int64_t token) const {
  switch (kind) {
  case Kind::Numbers:
    return std::to_string(token);
  case Kind::Bytes:
    return {static_cast<char>(token)};
  case Kind::Words:
    return std::string(tokenizer->decode(token));
  }
  return {};
}

} // namespace ds::rt
