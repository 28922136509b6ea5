//===- ReadTokenizer.cpp - From a tokenizer.json -----------------------------------------===//
//
// Each part of the file is one of a kind ("type"), and most kinds would give a text other tokens than the one
// that is known here. So a part is accepted where it is what it is for GPT-2, or where it does nothing.
//
//===---------------------------------------------------------------------------===//
#include "TokenizerParts.h"

#include "ByteAlphabet.h"
#include "Files/Text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace ds::rt {
namespace {

using nlohmann::json;

/// More numbers of tokens than any vocabulary has.
constexpr uint64_t kMaxTokens = uint64_t(1) << 24;

/// What is there under `key`, null without.
const json &at(const json &object, const char *key) {
  static const json none;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : none;
}

/// A value in a message.
std::string spell(const json &value) {
  return value.is_string() ? quote(value.get_ref<const std::string &>())
                           : quote(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

class Reader {
public:
  Reader(const json &file, TokenizerParts &parts) : file(file), parts(parts) {}

  Status read();

private:
  Status checkKinds() const;
  Status checkModel(const json &model) const;
  Status checkPostProcessor(const json &processor) const;
  Status readPreTokenizer();
  Status readVocabulary(const json &vocabulary);
  Status readMerges(const json &merges);
  Status addMerge(const std::string &left, const std::string &right, size_t number);
  Status readAdded(const json &added);
  void give(uint32_t token, std::string bytes);

  Error refuse(const std::string &key, const std::string &expected, const json &got) const {
    return {ExitCode::Invalid,
            fmt::format("{}: {}: expects {}, but got {}", quote(parts.name), key, expected, spell(got)),
            "byte-level BPE as of GPT-2 is read; give the numbers of the tokens with --sample-tokens"};
  }
  Error corrupt(const std::string &what) const {
    return {ExitCode::Corrupt, fmt::format("{}: {}", quote(parts.name), what),
            "write the file again with save_pretrained or Tokenizer.save"};
  }

  const json &file;
  TokenizerParts &parts;
  std::unordered_map<std::string, uint32_t> vocabulary; ///< by the file's spelling
};

Status Reader::checkModel(const json &model) const {
  if (!model.is_object())
    return corrupt("has no \"model\", as a tokenizer.json has");
  // Files of before 2021 do not say their kind; merges are BPE's alone.
  if (const json &type = at(model, "type");
      type != "BPE" && !(type.is_null() && at(model, "merges").is_array()))
    return refuse("model.type", "BPE", type);
  for (const char *key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const json &text = at(model, key); !text.is_null() && text != "")
      return refuse(std::string("model.") + key, "none", text);
  for (const char *key : {"byte_fallback", "ignore_merges"})
    if (const json &flag = at(model, key); !flag.is_null() && flag != false)
      return refuse(std::string("model.") + key, "false", flag);
  if (const json &dropout = at(model, "dropout"); !dropout.is_null() && dropout != 0)
    return refuse("model.dropout", "none", dropout);
  return {};
}

/// One that adds no token is as none.
Status Reader::checkPostProcessor(const json &processor) const {
  const json &type = at(processor, "type");
  if (processor.is_null() || type == "ByteLevel")
    return {};
  if (type != "TemplateProcessing")
    return refuse("post_processor.type", "ByteLevel or none", type);
  const json &single = at(processor, "single");
  for (const json &part : single.is_array() ? single : json::array())
    if (at(part, "Sequence").is_null())
      return refuse("post_processor.single", "the text alone", part);
  return {};
}

Status Reader::checkKinds() const {
  if (Status status = checkModel(at(file, "model")); !status)
    return status;
  if (const json &normalizer = at(file, "normalizer");
      !normalizer.is_null() && at(normalizer, "type") != "NFC")
    return refuse("normalizer.type", "NFC or none", at(normalizer, "type"));
  if (const json &decoder = at(file, "decoder"); !decoder.is_null() && at(decoder, "type") != "ByteLevel")
    return refuse("decoder.type", "ByteLevel", at(decoder, "type"));
  return checkPostProcessor(at(file, "post_processor"));
}

Status Reader::readPreTokenizer() {
  const json &kind = at(file, "pre_tokenizer");
  if (at(kind, "type") != "ByteLevel")
    return refuse("pre_tokenizer.type", "ByteLevel", at(kind, "type"));
  if (const json &regex = at(kind, "use_regex"); !regex.is_null() && regex != true)
    return refuse("pre_tokenizer.use_regex", "true", regex);
  parts.addsSpace = at(kind, "add_prefix_space") == true;
  parts.normalizes = !at(file, "normalizer").is_null();
  return {};
}

/// From now on `token` stands for `bytes`.
void Reader::give(uint32_t token, std::string bytes) {
  if (parts.bytes.size() <= token)
    parts.bytes.resize(token + size_t(1));
  parts.bytes[token] = std::move(bytes);
}

Status Reader::readVocabulary(const json &words) {
  if (!words.is_object() || words.empty())
    return corrupt("model.vocab has no tokens");
  for (const auto &[word, number] : words.items()) {
    if (!number.is_number_unsigned() || number.get<uint64_t>() >= kMaxTokens)
      return corrupt(fmt::format("model.vocab gives {} the number {}, expected one below {}", quote(word),
                                 spell(number), kMaxTokens));
    const auto token = number.get<uint32_t>();
    vocabulary[word] = token;
    // What the alphabet cannot spell was added, and stands for itself.
    give(token, bytesOf(word).value_or(word));
  }
  parts.byteTokens.fill(TokenizerParts::kNone);
  for (unsigned byte = 0; byte < parts.byteTokens.size(); ++byte)
    if (const auto found = vocabulary.find(spellByte(static_cast<unsigned char>(byte)));
        found != vocabulary.end())
      parts.byteTokens[byte] = found->second;
  return {};
}

Status Reader::addMerge(const std::string &left, const std::string &right, size_t number) {
  const auto first = vocabulary.find(left), second = vocabulary.find(right),
             merged = vocabulary.find(left + right);
  for (const auto &[found, word] : {std::pair(first, left), {second, right}, {merged, left + right}})
    if (found == vocabulary.end())
      return corrupt(
          fmt::format("model.merges[{}] is of {}, which model.vocab does not have", number, quote(word)));
  parts.merges.add(first->second, second->second, merged->second);
  return {};
}

Status Reader::readMerges(const json &merges) {
  if (!merges.is_array())
    return corrupt("model.merges is no list");
  for (size_t i = 0; i < merges.size(); ++i) {
    const json &merge = merges[i];
    std::string left, right;
    if (merge.is_string()) {
      const auto &text = merge.get_ref<const std::string &>();
      const size_t space = text.find(' ');
      left = text.substr(0, space);
      right = space == std::string::npos ? "" : text.substr(space + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get<std::string>();
      right = merge[1].get<std::string>();
    }
    if (left.empty() || right.empty())
      return corrupt(fmt::format("model.merges[{}] is {}, expected two tokens", i, spell(merge)));
    if (Status status = addMerge(left, right, i); !status)
      return status;
  }
  return {};
}

Status Reader::readAdded(const json &added) {
  for (size_t i = 0; added.is_array() && i < added.size(); ++i) {
    const json &content = at(added[i], "content"), &number = at(added[i], "id");
    if (!content.is_string() || content == "" || !number.is_number_unsigned() ||
        number.get<uint64_t>() >= kMaxTokens)
      return corrupt(fmt::format("added_tokens[{}] has no content and number", i));
    for (const char *key : {"single_word", "lstrip", "rstrip"})
      if (at(added[i], key) == true)
        return refuse(fmt::format("added_tokens[{}].{}", i, key), "false", true);
    parts.added.push_back({content.get<std::string>(), number.get<uint32_t>()});
    give(parts.added.back().token, parts.added.back().content);
  }
  std::ranges::sort(parts.added, std::greater<>(),
                    [](const AddedToken &token) { return token.content.size(); });
  return {};
}

Status Reader::read() {
  if (!file.is_object())
    return corrupt("is no JSON object");
  if (Status status = checkKinds(); !status)
    return status;
  if (Status status = readPreTokenizer(); !status)
    return status;
  const json &model = at(file, "model");
  if (Status status = readVocabulary(at(model, "vocab")); !status)
    return status;
  if (Status status = readMerges(at(model, "merges")); !status)
    return status;
  return readAdded(at(file, "added_tokens"));
}

} // namespace

Result<std::unique_ptr<const TokenizerParts>> readTokenizer(std::string_view text, const std::string &name) {
  auto parts = std::make_unique<TokenizerParts>();
  parts->name = name;
  const json file = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (Status status = Reader(file, *parts).read(); !status)
    return status.error();
  return std::unique_ptr<const TokenizerParts>(std::move(parts));
}

} // namespace ds::rt
