//===- TokenStream.cpp - Tokens one after another in a .bin file ---------------===//

#include "ds/Runtime/Data/TokenStream.h"

#include "Files/Text.h"

#include <algorithm>
#include <array>
#include <cstring>

using namespace ds;
using namespace ds::rt;

namespace {

constexpr size_t kHeaderBytes = 256 * sizeof(int32_t);
constexpr int32_t kEvaluationMagic = 20240522;

/// What llm.c writes for each of its tokenizers.
struct Dialect {
  int32_t magic, version;
  TokenWidth width;
};
constexpr Dialect kDialects[] = {{20240520, 1, TokenWidth::U16}, {20240801, 7, TokenWidth::U32}};

} // namespace

static std::string spellWidth(TokenWidth width) { return width == TokenWidth::U16 ? "u16" : "u32"; }

std::optional<TokenWidth> ds::rt::parseTokenWidth(std::string_view text) {
  if (text == "u16")
    return TokenWidth::U16;
  if (text == "u32")
    return TokenWidth::U32;
  return std::nullopt;
}

/// Checks version, count and size against each other and returns the number of tokens.
static Result<uint64_t> checkHeader(const std::string &path, const Dialect &dialect, int32_t version,
                                    int32_t count, uint64_t fileBytes) {
  auto corrupt = [&](const std::string &what) {
    return Error{ExitCode::Corrupt, quote(path) + ": " + what,
                 "write the file again with llm.c's own script"};
  };
  if (version != dialect.version)
    return corrupt("expects version " + std::to_string(dialect.version) + " for magic " +
                   std::to_string(dialect.magic) + ", but got " + std::to_string(version));
  if (count < 0)
    return corrupt("the header counts " + std::to_string(count) + " tokens");
  uint64_t expected = kHeaderBytes + uint64_t(count) * unsigned(dialect.width);
  if (fileBytes != expected)
    return corrupt("the header's " + std::to_string(count) + " " + spellWidth(dialect.width) +
                   " tokens take " + std::to_string(expected) + " bytes with it, but the file has " +
                   std::to_string(fileBytes));
  return uint64_t(count);
}

Result<TokenStream> TokenStream::open(const std::string &path, std::optional<TokenWidth> rawWidth) {
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.error();
  TokenStream stream;
  stream.file = std::move(*mapped);
  std::span<const std::byte> bytes = stream.file.bytes();
  std::array<int32_t, 3> words = {}; // magic, version, count
  if (!bytes.empty()) // a file that was cut off inside its header is still recognised by its magic
    memcpy(words.data(), bytes.data(), std::min(bytes.size(), sizeof(words)));
  if (words[0] == kEvaluationMagic)
    return Error{ExitCode::Invalid,
                 quote(path) + ": is one of llm.c's multiple-choice files, not a token stream",
                 "give a file of tokens"};
  for (const Dialect &dialect : kDialects) {
    if (words[0] != dialect.magic)
      continue;
    if (rawWidth && *rawWidth != dialect.width)
      return Error{ExitCode::Usage,
                   quote(path) + ": its header says " + spellWidth(dialect.width) +
                       ", but --token-dtype says " + spellWidth(*rawWidth),
                   "leave --token-dtype out"};
    Result<uint64_t> count = checkHeader(path, dialect, words[1], words[2], bytes.size());
    if (!count)
      return count.error();
    stream.count = *count;
    stream.tokenWidth = dialect.width;
    stream.dataOffset = kHeaderBytes;
    return stream;
  }
  const TokenWidth width = rawWidth.value_or(TokenWidth::U16); // nanoGPT's own files have 16-bit tokens
  if (bytes.size() % unsigned(width) != 0)
    return Error{ExitCode::Corrupt,
                 quote(path) + ": " + std::to_string(bytes.size()) + " bytes are not a whole number of " +
                     spellWidth(width) + " tokens",
                 "check --token-dtype, and that the file is complete"};
  stream.tokenWidth = width;
  stream.count = bytes.size() / unsigned(width);
  return stream;
}
