//===- ConfigFile.cpp - Reads the keys of a config.json -------------------------===//

#include "ConfigFile.h"

#include "../../Config/Parser.h"
#include "ds/Import/BuiltinModels.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace ds;
using namespace ds::hf;
using config::Value;

/// What readers of one file share.
struct Section::Shared {
  std::string file;
  std::optional<Error> error;
  std::set<std::string> looked; ///< paths that were looked for
  std::set<std::string> found;  ///< paths that were there
};

/// Keys of transformers' PretrainedConfig and of tools around it that change no training step of these
/// families: generation, labels, storage, and what other heads than the language model's use.
static constexpr llvm::StringLiteral kHarmless[] = {"_attn_implementation_autoset",
                                                    "_commit_hash",
                                                    "_name_or_path",
                                                    "auto_map",
                                                    "begin_suppress_tokens",
                                                    "bos_token_id",
                                                    "classifier_dropout",
                                                    "decoder_start_token_id",
                                                    "eos_token_id",
                                                    "finetuning_task",
                                                    "forced_decoder_ids",
                                                    "gradient_checkpointing",
                                                    "id2label",
                                                    "is_encoder_decoder",
                                                    "label2id",
                                                    "language",
                                                    "max_length",
                                                    "min_length",
                                                    "model_type",
                                                    "n_ctx",
                                                    "name_or_path",
                                                    "num_labels",
                                                    "output_attentions",
                                                    "output_hidden_states",
                                                    "output_past",
                                                    "predict_special_tokens",
                                                    "pretraining_tp",
                                                    "problem_type",
                                                    "reorder_and_upcast_attn",
                                                    "return_dict",
                                                    "sep_token_id",
                                                    "summary_activation",
                                                    "summary_first_dropout",
                                                    "summary_proj_to_labels",
                                                    "summary_type",
                                                    "summary_use_proj",
                                                    "suppress_tokens",
                                                    "task_specific_params",
                                                    "tokenizer_class",
                                                    "transformers_version",
                                                    "use_bfloat16",
                                                    "use_cache"};

//===----------------------------------------------------------------------===//
// Looking up
//===----------------------------------------------------------------------===//

/// The spellings of "n_embd|hidden_size".
static llvm::SmallVector<llvm::StringRef, 2> spellings(std::string_view key) {
  llvm::SmallVector<llvm::StringRef, 2> names;
  llvm::StringRef(key).split(names, '|');
  return names;
}

static std::string publishedName(std::string_view key) { return spellings(key).front().str(); }

const Value *Section::find(std::string_view key) const {
  const Value *first = nullptr;
  for (llvm::StringRef name : spellings(key)) {
    shared->looked.insert(path + name.str());
    const Value *member = object ? object->member(name) : nullptr;
    if (member)
      shared->found.insert(path + name.str());
    if (!member || member->is(Value::Kind::Null))
      continue;
    if (first && config::toJson(*first) != config::toJson(*member))
      refuse(name,
             "contradicts " + first->key + ", which is another name of it: " + config::describe(*member) +
                 " against " + config::describe(*first),
             "keep one of them");
    first = first ? first : member;
  }
  return first;
}

bool Section::has(std::string_view key) const { return find(key) != nullptr; }

bool Section::mentions(std::string_view key) const {
  return llvm::any_of(spellings(key), [&](llvm::StringRef name) { return object && object->member(name); });
}

int64_t Section::entries(std::string_view key) const {
  const Value *value = find(key);
  bool hasItems = value && (value->is(Value::Kind::Object) || value->is(Value::Kind::Array));
  return hasItems ? static_cast<int64_t>(value->items.size()) : 0;
}

std::string Section::describe(std::string_view key) const {
  const Value *value = find(key);
  return value ? config::describe(*value) : "nothing";
}

//===----------------------------------------------------------------------===//
// Refusing
//===----------------------------------------------------------------------===//

void Section::refuse(std::string_view key, const std::string &complaint, const std::string &hint) const {
  if (shared->error)
    return;
  std::string place = shared->file, name = publishedName(key);
  for (llvm::StringRef spelling : spellings(key))
    if (const Value *member = object ? object->member(spelling) : nullptr) {
      place = config::spellLocation(shared->file, member->place);
      name = spelling.str();
      break;
    }
  shared->error = Error{ExitCode::Invalid, place + ": " + path + name + ": " + complaint, hint};
}

void Section::expect(std::string_view key, const std::string &what) const {
  refuse(key, "expects " + what + ", but got " + describe(key));
}

/// How far a misspelt key may be from what was meant.
static bool isNearly(llvm::StringRef given, llvm::StringRef meant) {
  if (given.size() > 100 || meant.size() < 4)
    return false;
  unsigned limit = meant.size() < 8 ? 1 : 2;
  return given.edit_distance(meant, /*AllowReplacements=*/true, limit) <= limit;
}

void Section::refuseMissing(std::string_view key, const std::string &what) const {
  std::string hint;
  for (const Value &member : object ? llvm::ArrayRef(object->items) : llvm::ArrayRef<Value>())
    for (llvm::StringRef name : spellings(key))
      if (isNearly(member.key, name))
        hint = "rename '" + member.key + "' to '" + name.str() + "'";
  refuse(key, "expects " + what + ", but the key is missing", hint);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static std::string spellRange(Range<int64_t> range) {
  return llvm::formatv("an integer from {0} to {1}", range.min, range.max).str();
}
static std::string spellRange(Range<double> range) {
  return "a number from " + config::spellDouble(range.min) + " to " + config::spellDouble(range.max);
}

/// The value as a number of T, if it is one.
template <class T>
static std::optional<T> as(const Value &value) {
  if (!value.is(Value::Kind::Number))
    return std::nullopt;
  if constexpr (std::is_integral_v<T>)
    return config::exactInteger(value.text);
  else
    return value.number;
}

template <class T>
std::optional<T> Section::optional(std::string_view key, Range<T> range) const {
  const Value *value = find(key);
  if (!value)
    return std::nullopt;
  std::optional<T> number = as<T>(*value);
  if (number && *number >= range.min && *number <= range.max)
    return number;
  expect(key, spellRange(range));
  return range.min;
}

template <class T>
T Section::required(std::string_view key, Range<T> range) const {
  if (std::optional<T> number = optional(key, range))
    return *number;
  refuseMissing(key, spellRange(range));
  return range.min;
}

template std::optional<int64_t> Section::optional(std::string_view, Range<int64_t>) const;
template std::optional<double> Section::optional(std::string_view, Range<double>) const;
template int64_t Section::required(std::string_view, Range<int64_t>) const;
template double Section::required(std::string_view, Range<double>) const;

//===----------------------------------------------------------------------===//
// Other kinds
//===----------------------------------------------------------------------===//

bool Section::flag(std::string_view key, bool fallback) const {
  const Value *value = find(key);
  if (value && !value->is(Value::Kind::Bool))
    expect(key, "true or false");
  return value && value->is(Value::Kind::Bool) ? value->boolean : fallback;
}

std::string Section::text(std::string_view key) const {
  const Value *value = find(key);
  if (value && !value->is(Value::Kind::String))
    expect(key, "a text");
  return value && value->is(Value::Kind::String) ? value->text : "";
}

std::vector<std::string> Section::texts(std::string_view key) const {
  const Value *value = find(key);
  std::vector<std::string> list;
  if (!value)
    return list;
  bool isList = value->is(Value::Kind::Array);
  for (const Value &item : isList ? llvm::ArrayRef(value->items) : llvm::ArrayRef<Value>()) {
    isList &= item.is(Value::Kind::String);
    list.push_back(item.text);
  }
  if (!isList)
    expect(key, "a list of texts");
  return list;
}

std::vector<double> ds::hf::readNumbers(const Section &config, std::string_view key, Range<double> range) {
  const Value *value = config.find(key);
  std::vector<double> list;
  if (!value)
    return list;
  bool isList = value->is(Value::Kind::Array);
  for (const Value &item : isList ? llvm::ArrayRef(value->items) : llvm::ArrayRef<Value>()) {
    std::optional<double> number = as<double>(item);
    isList &= number && *number >= range.min && *number <= range.max;
    list.push_back(number.value_or(range.min));
  }
  if (!isList)
    config.refuse(key, "expects a list whose every entry is " + spellRange(range) + ", but got " +
                           config.describe(key));
  return list;
}

/// Adds the texts of a pair [texts, n] n times; whether it is one.
static bool addRepeated(const Value &pair, std::vector<std::string> &list) {
  static constexpr int64_t kMaxTimes = 4096;
  if (!pair.is(Value::Kind::Array) || pair.items.size() != 2 || !pair.items[0].is(Value::Kind::Array))
    return false;
  const std::optional<int64_t> times = as<int64_t>(pair.items[1]);
  if (!times || *times < 0 || *times > kMaxTimes)
    return false;
  for (int64_t time = 0; time < *times; ++time)
    for (const Value &text : pair.items[0].items) {
      if (!text.is(Value::Kind::String) || list.size() >= static_cast<size_t>(kMaxTimes))
        return false;
      list.push_back(text.text);
    }
  return true;
}

std::vector<std::string> ds::hf::readRepeatedTexts(const Section &config, std::string_view key) {
  const Value *value = config.find(key);
  std::vector<std::string> list;
  if (!value)
    return list;
  if (!value->is(Value::Kind::Array) ||
      !llvm::all_of(value->items, [&](const Value &pair) { return addRepeated(pair, list); }))
    config.refuse(key, "expects a list of pairs of a list of texts and how often it is repeated, but got " +
                           config.describe(key));
  return list;
}

Section Section::section(std::string_view key) const {
  const Value *value = find(key);
  if (value && !value->is(Value::Kind::Object))
    expect(key, "an object");
  return Section(value && value->is(Value::Kind::Object) ? value : nullptr, path + publishedName(key) + ".",
                 shared);
}

//===----------------------------------------------------------------------===//
// ConfigFile
//===----------------------------------------------------------------------===//

ConfigFile::ConfigFile() = default;
ConfigFile::ConfigFile(ConfigFile &&) noexcept = default;
ConfigFile::~ConfigFile() = default;

Result<ConfigFile> ConfigFile::read(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  if (const std::string_view text = builtinModelText(path); !buffer && !text.empty())
    return parse(std::string(text), path);
  if (!buffer)
    return Error{ExitCode::Io, path + ": " + buffer.getError().message(),
                 "check the path; ds-opt --models lists published models that have a name"};
  return parse((*buffer)->getBuffer().str(), path);
}

Result<ConfigFile> ConfigFile::parse(const std::string &text, const std::string &name) {
  Result<Value> value = config::parseText(text, name);
  if (!value)
    return value.error();
  if (!value->is(Value::Kind::Object))
    return Error{ExitCode::Invalid, name + ": expects an object, but got " + config::describe(*value),
                 "give the config.json of a model"};
  ConfigFile file;
  file.content = text;
  file.value = std::make_unique<Value>(std::move(*value));
  file.shared = std::make_unique<Section::Shared>();
  file.shared->file = name;
  return file;
}

Section ConfigFile::root() const { return Section(value.get(), "", shared.get()); }

/// The key that was looked for in vain and that `given` nearly is; empty when there is none.
static std::string meantKey(llvm::StringRef given, const std::set<std::string> &looked,
                            const std::set<std::string> &found) {
  for (const std::string &name : looked)
    if (!found.count(name) && isNearly(given, name))
      return name;
  return "";
}

Status ConfigFile::finish() const {
  if (shared->error)
    return *shared->error;
  for (const Value &member : value->items) {
    if (shared->looked.count(member.key) || llvm::is_contained(kHarmless, member.key))
      continue;
    std::string meant = meantKey(member.key, shared->looked, shared->found);
    if (!meant.empty())
      return Error{ExitCode::Invalid,
                   config::spellLocation(shared->file, member.place) + ": " + member.key + ": unknown key",
                   "rename it to '" + meant + "'"};
  }
  return {};
}

std::vector<std::string> ConfigFile::unreadKeys() const {
  std::vector<std::string> keys;
  for (const Value &member : value->items)
    if (!shared->looked.count(member.key) && !llvm::is_contained(kHarmless, member.key))
      keys.push_back(member.key);
  return keys;
}
