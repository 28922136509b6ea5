//===- Check.cpp - One value against one row of the key table ------------------------===//
//
// Types are strict (a number in quotes is a string), with the one liberty that DeepSpeed's users rely on: a
// number that is integral counts as an integer however it is spelt (5e8). A value that passes is brought to
// one spelling, so that equal settings print and compare equal.
//
//===---------------------------------------------------------------------------===//
#include "Parser.h"
#include "Resolve.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace ds::config {

static bool sameIgnoringCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

static double toDouble(std::string_view text) {
  double number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Whether a number lies within ">0", ">=0", "0..1"; "even" is for integers.
static bool inRange(std::string_view limits, double number) {
  if (limits.starts_with(">="))
    return number >= toDouble(limits.substr(2));
  if (limits.starts_with(">"))
    return number > toDouble(limits.substr(1));
  if (size_t dots = limits.find(".."); dots != std::string_view::npos)
    return number >= toDouble(limits.substr(0, dots)) && number <= toDouble(limits.substr(dots + 2));
  return true;
}

/// fp32 | fp16 | bf16 | int8 of any spelling torch or DeepSpeed know; "" for others.
static std::string_view canonicalDtype(std::string_view text) {
  static constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
      {"fp32", "fp32"}, {"float32", "fp32"}, {"float", "fp32"},    {"fp16", "fp16"}, {"float16", "fp16"},
      {"half", "fp16"}, {"bf16", "bf16"},    {"bfloat16", "bf16"}, {"int8", "int8"}};
  if (text.starts_with("torch."))
    text.remove_prefix(6);
  for (auto [spelling, dtype] : kSpellings)
    if (sameIgnoringCase(spelling, text))
      return dtype;
  return "";
}

static std::optional<Value> checkInteger(const Key &key, const Value &value, std::string &hint) {
  if (value.is(Value::Kind::String)) {
    hint = "numbers are written without quotes";
    return std::nullopt;
  }
  std::optional<int64_t> integer;
  if (value.is(Value::Kind::Number))
    integer = exactInteger(value.text);
  if (!integer || !inRange(key.limits, static_cast<double>(*integer)) ||
      (key.limits == "even" && (*integer % 2 != 0 || *integer < 0)))
    return std::nullopt;
  return makeInt(*integer);
}

static std::optional<Value> checkNumber(const Key &key, const Value &value, std::string &hint) {
  if (value.is(Value::Kind::String))
    hint = "numbers are written without quotes";
  if (!value.is(Value::Kind::Number) || key.limits == "null" || !inRange(key.limits, value.number))
    return std::nullopt;
  return makeNumber(value.number);
}

static std::optional<Value> checkChoice(const Key &key, const Value &value, std::string &hint) {
  if (!value.is(Value::Kind::String))
    return std::nullopt;
  std::vector<std::string_view> words = splitAt(key.limits, '|');
  for (std::string_view word : words)
    if (sameIgnoringCase(word, value.text))
      return makeString(word);
  if (std::string near = nearestWord(value.text, words); !near.empty())
    hint = "did you mean " + quote(near) + "?";
  return std::nullopt;
}

/// A list whose elements all pass as `element`'s kind; Floats have a fixed length instead of a range.
static std::optional<Value> checkList(const Key &key, const Value &value, KeyKind element,
                                      std::string &hint) {
  if (!value.is(Value::Kind::Array))
    return std::nullopt;
  bool fixed = element == KeyKind::Float;
  if (fixed && value.items.size() != static_cast<size_t>(toDouble(key.limits)))
    return std::nullopt;
  Key row = key;
  row.kind = element;
  if (fixed)
    row.limits = "";
  Value list;
  list.kind = Value::Kind::Array;
  for (const Value &item : value.items) {
    std::string problem;
    std::optional<Value> checked = checkValue(row, item, problem, hint);
    if (!checked)
      return std::nullopt;
    list.items.push_back(std::move(*checked));
  }
  return list;
}

static std::optional<Value> checkKind(const Key &key, const Value &value, std::string &hint) {
  switch (key.kind) {
  case KeyKind::AutoBool:
    if (value.isText("auto"))
      return value;
    [[fallthrough]];
  case KeyKind::Bool:
    if (value.is(Value::Kind::String) || value.is(Value::Kind::Number))
      hint = "write true or false, without quotes";
    return value.is(Value::Kind::Bool) ? std::optional(value) : std::nullopt;
  case KeyKind::Int:
    return checkInteger(key, value, hint);
  case KeyKind::Float:
    return checkNumber(key, value, hint);
  case KeyKind::AutoInt:
    return value.isText("auto") ? std::optional(value) : checkInteger(key, value, hint);
  case KeyKind::AutoFloat:
    return value.isText("auto") ? std::optional(value) : checkNumber(key, value, hint);
  case KeyKind::Text:
    return value.is(Value::Kind::String) ? std::optional(value) : std::nullopt;
  case KeyKind::Choice:
    return checkChoice(key, value, hint);
  case KeyKind::Dtype: {
    std::string_view dtype = value.is(Value::Kind::String) ? canonicalDtype(value.text) : "";
    return dtype.empty() ? std::nullopt : std::optional(makeString(dtype));
  }
  case KeyKind::Ints:
    return checkList(key, value, KeyKind::Int, hint);
  case KeyKind::Floats:
    return checkList(key, value, KeyKind::Float, hint);
  case KeyKind::Texts:
    return checkList(key, value, key.limits.empty() ? KeyKind::Text : KeyKind::Choice, hint);
  case KeyKind::Section:
    return value.is(Value::Kind::Object) ? std::optional(value) : std::nullopt;
  case KeyKind::Any:
    return value;
  }
  return std::nullopt;
}

std::optional<Value> checkValue(const Key &key, const Value &value, std::string &problem, std::string &hint) {
  if (value.is(Value::Kind::Null) && key.fallback == "null")
    return value;
  std::optional<Value> checked = checkKind(key, value, hint);
  if (!checked) {
    problem = "expects " + spellExpected(key) + ", but got " + describe(value);
    if (value.is(Value::Kind::Array) || value.is(Value::Kind::Object))
      problem += " " + toJson(value).substr(0, 60);
    if (hint.empty())
      hint = key.fallback == "null" ? "or leave the key out"
                                    : "DeepSpeed's default is " + std::string(key.fallback);
    return std::nullopt;
  }
  checked->place = value.place;
  checked->key.clear();
  return checked;
}

static Value parseDefault(const Key &key) {
  const std::string name = "default", set;
  Result<Value> parsed = parseText(key.fallback, name, set);
  assert(parsed && "the key table has a malformed default");
  std::string problem, hint;
  std::optional<Value> checked = checkValue(key, *parsed, problem, hint);
  assert(checked && "the key table has a default outside its own limits");
  return *checked;
}

const Value &defaultValue(const Key &key) {
  static const std::vector<Value> defaults = [] {
    std::vector<Value> all;
    for (const Key &row : keyTable())
      all.push_back(parseDefault(row));
    return all;
  }();
  return defaults[static_cast<size_t>(&key - keyTable().data())];
}

} // namespace ds::config
