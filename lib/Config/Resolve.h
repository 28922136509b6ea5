//===- Resolve.h - From a parsed tree to one checked value per key ------------------===//
//
// The tree of the file, with `--set` applied and old spellings translated, is laid over the key table: every
// member must be a key, of the right type and within its limits; every absent key gets DeepSpeed's default.
// What comes out is a flat list of entries with origins, which the typed structs, the rules and the printer
// all read.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_CONFIG_RESOLVE_H
#define DS_LIB_CONFIG_RESOLVE_H

#include "Keys.h"
#include "Value.h"

#include <map>

namespace ds::config {

/// Mistakes that are told; the rest is counted.
inline constexpr size_t kMostComplaints = 50;

/// What is collected on the way: mistakes, remarks, and how messages name the text.
struct Report {
  std::string name; ///< of the file
  std::vector<Complaint> complaints;
  std::vector<Notice> notices;

  void complain(const TextLocation &place, const std::string &message, std::string hint = "");
  void note(const TextLocation &place, const std::string &message, bool isCostly = false);
};

/// All complaints as one error: the first is the message's first line and gives the hint.
Error toError(const Report &report);

/// One key with its value.
struct Entry {
  const Key *key = nullptr;
  std::string path;
  Value value;
  Origin origin = Origin::Default;
  std::string from;    ///< for people
  bool isAuto = false; ///< written as "auto", which counts as absent
  bool secret = false; ///< never printed
};

/// All entries. The getters require a path of the table whose type fits; they never fail on user input,
/// because checking came first.
class Resolved {
public:
  std::vector<Entry> entries; ///< in the table's order

  const Entry *find(std::string_view path) const;
  /// Written in the file or by `--set`, and neither null nor "auto".
  bool given(std::string_view path) const;
  bool isNull(std::string_view path) const;
  bool flag(std::string_view path) const;
  int64_t integer(std::string_view path) const;
  double number(std::string_view path) const;
  std::string text(std::string_view path) const; ///< "" for null
  std::vector<double> numbers(std::string_view path) const;
  std::vector<int64_t> integers(std::string_view path) const;
  std::vector<std::string> texts(std::string_view path) const;
  std::optional<int64_t> maybeInteger(std::string_view path) const; ///< null and "auto" are absent
  std::optional<DType> maybeDtype(std::string_view path) const;

  /// Gives a key a value that follows from others.
  void derive(std::string_view path, Value value, std::string why);

private:
  friend Resolved resolve(const Value &root, bool allowUnknownKeys, Report &report);
  const Value &at(std::string_view path) const;
  std::map<std::string, size_t, std::less<>> index;
};

/// Lays the tree over the table; mistakes go to the report.
Resolved resolve(const Value &root, bool allowUnknownKeys, Report &report);

/// Applies KEY=VALUE arguments to the tree, in order.
void applySets(Value &root, const std::vector<std::string> &sets, Report &report);

/// Translates old and informal spellings to the table's, with a notice each.
void translateAliases(Value &root, Report &report);

/// The canonical value of a key, or the complaint's words in `problem`.
std::optional<Value> checkValue(const Key &key, const Value &value, std::string &problem, std::string &hint);

/// The canonical default of a key.
const Value &defaultValue(const Key &key);

} // namespace ds::config

#endif // DS_LIB_CONFIG_RESOLVE_H
