//===- Keys.h - The one table of all configuration keys -----------------------------===//
//
// Path, type, default, limits, what becomes of it and why: parsing, defaults, unknown-key detection, the
// printed configuration, the refusals and the reference in docs/config.md all read this table and nothing
// else. Later work that makes a key real changes its status here.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CONFIG_KEYS_H
#define DS_LIB_CONFIG_KEYS_H

#include "ds/Config/Config.h"

#include <span>

namespace ds::config {

enum class KeyKind : uint8_t {
  Bool,
  Int,
  Float,
  Text,
  Choice, ///< one of `limits`, whatever the case
  Dtype,  ///< fp32, fp16, bf16, int8 and torch's spellings of them
  Ints,   ///< a list
  Floats,
  Texts,
  AutoBool, ///< true or false, or "auto" as a value of its own
  AutoInt,  ///< the same of a number
  AutoFloat,
  Section, ///< an object whose mere presence means something; its keys have rows of their own
  Any,     ///< handed on unread
};

struct Key {
  std::string_view path; ///< dotted; a component "*" stands for any name
  KeyKind kind;
  std::string_view fallback; ///< the default as JSON, DeepSpeed's unless isOwn; null: none
  std::string_view limits;   ///< Choice: "a|b|c"; numbers: ">0", ">=0", "0..1", "even"; lists: their length
  KeyStatus status;
  std::string_view note; ///< what it does, what takes its place, or why it is refused
  std::string_view only; ///< optimizer and scheduler parameters: the types that have it, separated by blanks
  bool isOwn = false;    ///< not DeepSpeed's: its default is ours too
};

/// All rows, in the order of the reference.
std::span<const Key> keyTable();

/// The parts keyTable() is made of.
std::span<const Key> trainingKeys();
std::span<const Key> memoryKeys();
std::span<const Key> parallelKeys();
std::span<const Key> toolKeys();

/// The row of a path (no wildcards in `path`) that `type`, an optimizer's or scheduler's, has; or null.
const Key *findKey(std::string_view path, std::string_view type = "");

/// Whether an optimizer or scheduler of this type has the row; rows of no type are everyone's.
bool isFor(const Key &key, std::string_view type);

/// Whether `key` is one of `patterns`: keys, and beginnings of keys that end with a point or an underscore.
bool matchesAny(std::string_view key, std::span<const std::string_view> patterns);

/// Whether keys lie below this path.
bool isSection(std::string_view path);

/// The names directly below `section` ("" is the top) that `type` has; no wildcards.
std::vector<std::string_view> namesBelow(std::string_view section, std::string_view type);

/// The existing key that a mistyped `path` most likely means, or "": what other tools call so, else the
/// nearest sibling by edit distance, else a key of the same or nearly the same name elsewhere.
std::string nearestKey(std::string_view path, std::string_view type = "");

/// The nearest of some words, or "" when none is near.
std::string nearestWord(std::string_view word, std::span<const std::string_view> words);

/// Splits at a separator; no empty parts.
std::vector<std::string_view> splitAt(std::string_view text, char separator);

/// What an optimizer or scheduler type is called whatever its case; "" when unknown.
std::string_view canonicalOptimizer(std::string_view name);
/// DeepSpeed matches schedulers exactly.
std::string_view canonicalScheduler(std::string_view name);
std::span<const std::string_view> optimizerNames();
std::span<const std::string_view> schedulerNames();

/// Words for messages and the reference.
std::string_view spell(KeyStatus status);
std::string spellExpected(const Key &key);

} // namespace ds::config

#endif // DS_LIB_CONFIG_KEYS_H
