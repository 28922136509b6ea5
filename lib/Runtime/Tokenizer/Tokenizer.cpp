//===- Tokenizer.cpp - Text as tokens, by a tokenizer.json -------------------------------===//
#include "ds/Runtime/Tokenizer/Tokenizer.h"

#include "Files/Text.h"
#include "Pieces.h"
#include "TokenizerParts.h"
#include "ds/Runtime/Files/MappedFile.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {

Tokenizer::Tokenizer(std::unique_ptr<const TokenizerParts> parts) : parts(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;

Result<Tokenizer> Tokenizer::open(const std::string &path) {
  const Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  const std::span<const std::byte> bytes = file->bytes();
  return parse({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, path);
}

Result<Tokenizer> Tokenizer::parse(std::string_view text, const std::string &name) {
  Result<std::unique_ptr<const TokenizerParts>> parts = readTokenizer(text, name);
  if (!parts)
    return parts.error();
  return Tokenizer(std::move(*parts));
}

/// Appends the tokens of text that no added token is in.
static Status encodePlain(const TokenizerParts &parts, std::string text, std::vector<int64_t> &tokens) {
  if (parts.addsSpace && !text.empty() && text.front() != ' ')
    text.insert(0, 1, ' ');
  for (const std::string_view piece : splitPieces(text)) {
    std::vector<uint32_t> bytes;
    for (const char each : piece) {
      const auto byte = static_cast<unsigned char>(each);
      bytes.push_back(parts.byteTokens[byte]);
      if (bytes.back() == TokenizerParts::kNone)
        return Error{
            ExitCode::Invalid,
            fmt::format("{}: model.vocab has no token for the byte {} of the text", quote(parts.name), byte),
            "give the numbers of the tokens with --sample-tokens"};
    }
    for (const uint32_t token : parts.merges.apply(bytes))
      tokens.push_back(token);
  }
  return {};
}

/// The first added token in `text`, of those that begin there the longest; null without.
static const AddedToken *findAdded(const TokenizerParts &parts, std::string_view text, size_t &at) {
  const AddedToken *first = nullptr;
  at = text.size();
  for (const AddedToken &token : parts.added)
    if (const size_t found = text.find(token.content); found < at) {
      first = &token;
      at = found;
    }
  return first;
}

Result<std::vector<int64_t>> Tokenizer::encode(std::string_view text) const {
  if (!isUtf8(text))
    return Error{ExitCode::Usage, "the text is not well-formed UTF-8, which a tokenizer asks for",
                 "give the numbers of the tokens with --sample-tokens"};
  if (parts->normalizes &&
      std::ranges::any_of(text, [](char byte) { return static_cast<unsigned char>(byte) >= 0xCC; }))
    return Error{
        ExitCode::Invalid,
        fmt::format("{}: normalizer NFC: the text has characters from U+0300 on, which may have to be "
                    "composed, and that is not done here",
                    quote(parts->name)),
        "give the numbers of the tokens with --sample-tokens"};
  std::vector<int64_t> tokens;
  while (!text.empty()) {
    size_t at = 0;
    const AddedToken *added = findAdded(*parts, text, at);
    if (Status status = encodePlain(*parts, std::string(text.substr(0, at)), tokens); !status)
      return status.error();
    if (!added)
      break;
    tokens.push_back(added->token);
    text.remove_prefix(at + added->content.size());
  }
  return tokens;
}

std::string_view Tokenizer::decode(int64_t token) const {
  return token >= 0 && static_cast<size_t>(token) < parts->bytes.size()
             ? parts->bytes[static_cast<size_t>(token)]
             : std::string_view();
}

} // namespace ds::rt
