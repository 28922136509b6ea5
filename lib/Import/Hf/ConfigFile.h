//===- ConfigFile.h - Reads the keys of a config.json ---------------------------===//
//
// A config.json holds hundreds of keys of which a model needs twenty, and a wrong one gives a model that
// trains and is not the one that was meant. So each key is read with its type and limits, a key that is
// nearly one that is read is refused, and the first mistake is told with its place. Readers go on with a
// value that is legal, so that they need not ask after each key; `finish` says whether what they made may be
// used.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_HF_CONFIGFILE_H
#define DS_LIB_IMPORT_HF_CONFIGFILE_H

#include "../../Config/Value.h"
#include "ds/Support/Error.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ds::hf {

/// Closed interval of what a number may be.
template <class T>
struct Range {
  T min, max;
};

/// An object of the file, or an absent one, whose keys are all missing. Cheap to copy; refers to the file.
/// Key arguments may name several spellings, "n_embd|hidden_size", the published one first.
class Section {
public:
  /// A number that must be there.
  int64_t integer(std::string_view key, Range<int64_t> range) const { return required(key, range); }
  double number(std::string_view key, Range<double> range) const { return required(key, range); }
  /// A number that has a default.
  int64_t integer(std::string_view key, Range<int64_t> range, int64_t fallback) const {
    return optional(key, range).value_or(fallback);
  }
  double number(std::string_view key, Range<double> range, double fallback) const {
    return optional(key, range).value_or(fallback);
  }
  /// A number that may be missing or null.
  template <class T>
  std::optional<T> optional(std::string_view key, Range<T> range) const;
  bool flag(std::string_view key, bool fallback) const;
  /// A text; empty when it is missing or null.
  std::string text(std::string_view key) const;
  /// A list of texts; empty when it is missing or null.
  std::vector<std::string> texts(std::string_view key) const;
  /// An object; absent when it is missing or null.
  Section section(std::string_view key) const;
  bool has(std::string_view key) const;      ///< present and not null
  bool mentions(std::string_view key) const; ///< present, be it null
  /// Members of an object or a list; 0 when it is missing, null or neither.
  int64_t entries(std::string_view key) const;
  explicit operator bool() const { return object != nullptr; }
  /// The member under any of the spellings of `key`; null when missing or null. Two that disagree are
  /// refused.
  const config::Value *find(std::string_view key) const;

  /// Refuses the value of `key` (or, where it is missing, the section): "expects ..., but got ...".
  void refuse(std::string_view key, const std::string &complaint, const std::string &hint = "") const;
  /// What messages show as the value of `key`.
  std::string describe(std::string_view key) const;

private:
  friend class ConfigFile;
  struct Shared; ///< the file's name and its first error
  Section(const config::Value *object, std::string path, Shared *shared)
      : object(object), path(std::move(path)), shared(shared) {}

  template <class T>
  T required(std::string_view key, Range<T> range) const;
  void expect(std::string_view key, const std::string &what) const;
  void refuseMissing(std::string_view key, const std::string &what) const;

  const config::Value *object;
  std::string path; ///< "rope_scaling." or empty
  Shared *shared;
};

/// A list of numbers in `range`; empty when it is missing or null.
std::vector<double> readNumbers(const Section &config, std::string_view key, Range<double> range);
/// The texts of pairs [texts, n], each list n times; empty when it is missing or null.
std::vector<std::string> readRepeatedTexts(const Section &config, std::string_view key);

/// The parsed file.
class ConfigFile {
public:
  static Result<ConfigFile> read(const std::string &path);
  static Result<ConfigFile> parse(const std::string &text, const std::string &name);
  ConfigFile(ConfigFile &&) noexcept;
  ~ConfigFile();

  Section root() const;
  /// As it was read.
  const std::string &text() const { return content; }
  /// The first refusal; after that, a key that was not read, but is nearly one that was looked for in vain.
  Status finish() const;
  /// Keys that nothing read and that are not known to be without meaning for a training step.
  std::vector<std::string> unreadKeys() const;

private:
  ConfigFile();
  std::string content;
  std::unique_ptr<config::Value> value;
  std::unique_ptr<Section::Shared> shared;
};

} // namespace ds::hf

#endif // DS_LIB_IMPORT_HF_CONFIGFILE_H
