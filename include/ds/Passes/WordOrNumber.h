//===- WordOrNumber.h - Requests of passes as words or numbers -----------------------===//
//
// What a pass is asked for is often a number, or something that no number should stand for: as little as can
// be, what the machine has, none at all. Such a request is a word or a number, and written so as an option:
//
//   ds-opt --ds-rematerialize-cheap="memory=least groups=none"      as little as can be, no call recomputed
//   ds-opt --ds-overlap-reductions=memory=1048576                   within one MiB
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PASSES_WORDORNUMBER_H
#define DS_PASSES_WORDORNUMBER_H

#include "mlir/IR/BuiltinOps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"

#include <optional>
#include <string>
#include <variant>

namespace mlir::ds {

/// A word of `Word`, or a number that is at least 1. The first word is what holds where nothing is asked.
template <class Word>
class WordOrNumber {
public:
  WordOrNumber() = default;
  WordOrNumber(Word word) : value(word) {}
  explicit WordOrNumber(int64_t number) : value(number) { assert(number >= 1 && "a word says what 0 is"); }

  bool is(Word word) const { return value == std::variant<Word, int64_t>(word); }
  /// The number; nothing where it is a word.
  std::optional<int64_t> getNumber() const {
    const auto *number = std::get_if<int64_t>(&value);
    return number ? std::optional(*number) : std::nullopt;
  }
  bool operator==(const WordOrNumber &) const = default;

  /// `text` as it is written in an option; nothing where it is neither.
  static std::optional<WordOrNumber> read(StringRef text) {
    for (auto [index, word] : llvm::enumerate(wordsOf(Word())))
      if (text == word)
        return WordOrNumber(static_cast<Word>(index));
    int64_t number = 0;
    if (text.getAsInteger(10, number) || number < 1)
      return std::nullopt;
    return WordOrNumber(number);
  }
  void write(raw_ostream &os) const {
    if (const auto *word = std::get_if<Word>(&value))
      os << wordsOf(Word())[static_cast<size_t>(*word)];
    else
      os << std::get<int64_t>(value);
  }

private:
  std::variant<Word, int64_t> value = Word();
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// What a choice may dispose of where no bytes are named: what the machine has, without a limit where nothing
/// is known of that; or nothing at all, so that as little is held as can be.
enum class MemoryWord { Machine, Least };
inline ArrayRef<StringLiteral> wordsOf(MemoryWord) {
  static constexpr StringLiteral words[] = {"machine", "least"};
  static_assert(std::size(words) == size_t(MemoryWord::Least) + 1);
  return words;
}

/// Bytes of the device that a choice may count on, together with all else that is live.
using MemoryLimit = WordOrNumber<MemoryWord>;

/// `limit` in bytes, for a choice in `module`; nothing: there is none.
std::optional<int64_t> bytesWithin(MemoryLimit limit, ModuleOp module);

//===----------------------------------------------------------------------===//
// What is recomputed, and losses
//===----------------------------------------------------------------------===//

/// Of which groups of values calls are recomputed: that is chosen, or none is. A number: of groups of so many
/// narrow values each.
enum class GroupWord { Open, None };
inline ArrayRef<StringLiteral> wordsOf(GroupWord) {
  static constexpr StringLiteral words[] = {"open", "none"};
  static_assert(std::size(words) == size_t(GroupWord::None) + 1);
  return words;
}
using RecomputedGroups = WordOrNumber<GroupWord>;

/// In how many rows losses are made that offer pieces: as the configuration asks for or the shapes suggest,
/// or in all. A number: in pieces of so many rows, those that offer them.
enum class LossWord { Shapes, Whole };
inline ArrayRef<StringLiteral> wordsOf(LossWord) {
  static constexpr StringLiteral words[] = {"shapes", "whole"};
  static_assert(std::size(words) == size_t(LossWord::Whole) + 1);
  return words;
}
using LossRows = WordOrNumber<LossWord>;

} // namespace mlir::ds

/// Reads and writes such values as options of passes.
template <class Word>
class llvm::cl::parser<mlir::ds::WordOrNumber<Word>>
    : public llvm::cl::basic_parser<mlir::ds::WordOrNumber<Word>> {
public:
  using Value = mlir::ds::WordOrNumber<Word>;
  using llvm::cl::basic_parser<Value>::basic_parser;

  bool parse(Option &option, StringRef, StringRef text, Value &value) {
    std::optional<Value> read = Value::read(text);
    if (!read) {
      std::string words;
      for (StringRef word : mlir::ds::wordsOf(Word()))
        words += (word + ", ").str();
      return option.error("expects " + words + "or a number of at least 1, but got '" + text + "'");
    }
    value = *read;
    return false;
  }
  static void print(raw_ostream &os, const Value &value) { value.write(os); }
  void printOptionDiff(const Option &option, const Value &, const OptionValue<Value> &, size_t width) const {
    this->printOptionNoValue(option, width);
  }
};

#endif // DS_PASSES_WORDORNUMBER_H
