//===- FieldText.h - Plain structs as the text of attributes ----------------------===//
//
// Attributes that hold much are plain structs: `visitFields(visitor, struct)` names each field by its key,
// and here such a list becomes text, is read back and is hashed:
//
//   #ds.training<gradient_accumulation_steps = 2, optimizer = {type = sgd, lr = 5.000000e-01}>
//
// A field may be a number, a truth value, a text, a word of an enumeration (`wordsOf`), a struct, or an
// optional or a list of these. What has its default is not written, but for enumerations with
// `isAlwaysWritten`. Where a struct has a static `defaults(kind)`, the other fields' defaults depend on its
// `type`, which therefore comes first.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_DIALECT_FIELDTEXT_H
#define DS_LIB_DIALECT_FIELDTEXT_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"

#include <bit>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace mlir::ds {

template <class Struct>
concept HasKinds = requires(Struct value) {
  Struct::defaults(value.kind);
};

/// What a field of `value` is where nothing is said of it.
template <class Struct>
Struct defaultsFor(const Struct &value) {
  if constexpr (HasKinds<Struct>)
    return Struct::defaults(value.kind);
  else
    return {};
}

//===----------------------------------------------------------------------===//
// Hashing
//===----------------------------------------------------------------------===//

/// Visitor: the hash of all fields, doubles by their bits.
class FieldHasher {
public:
  template <class Struct>
  static llvm::hash_code hash(Struct value) {
    FieldHasher hasher;
    visitFields(hasher, value);
    return hasher.code;
  }
  template <class Field>
  void operator()(StringRef, Field &field) {
    code = llvm::hash_combine(code, of(field));
  }

private:
  template <class Field>
  static llvm::hash_code of(const Field &field) {
    if constexpr (std::is_same_v<Field, double>)
      return llvm::hash_value(std::bit_cast<uint64_t>(field));
    else if constexpr (std::is_arithmetic_v<Field> || std::is_enum_v<Field> ||
                       std::is_same_v<Field, std::string>)
      return llvm::hash_value(field);
    else
      return hash(field);
  }
  template <class Field>
  static llvm::hash_code of(const std::optional<Field> &field) {
    return field ? of(*field) : llvm::hash_code(0);
  }
  template <class Field>
  static llvm::hash_code of(const std::vector<Field> &field) {
    llvm::hash_code code(field.size());
    for (const Field &entry : field)
      code = llvm::hash_combine(code, of(entry));
    return code;
  }

  llvm::hash_code code = 0;
};

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

/// Visitor: prints `key = value` of each field that has not its default.
class FieldPrinter {
public:
  FieldPrinter(AsmPrinter &printer, MLIRContext *context) : printer(printer), context(context) {}

  /// Prints the fields of `value` between `open` and `close`.
  template <class Struct>
  void print(Struct value, char open, char close) {
    Struct usual = defaultsFor(value);
    FieldPrinter inner(printer, context);
    if constexpr (HasKinds<Struct>)
      usual.kind = Struct().kind;
    Addresses addresses;
    visitFields(addresses, usual);
    inner.usual = addresses.list;
    printer << open;
    visitFields(inner, value);
    printer << close;
  }

  template <class Field>
  void operator()(StringRef key, Field &field) {
    const bool isUsual = *static_cast<const Field *>(usual[index++]) == field;
    if (isUsual && !requires { isAlwaysWritten(field); })
      return;
    printer << (isFirst ? "" : ", ") << key << " = ";
    isFirst = false;
    write(field);
  }

private:
  /// Visitor: where the fields are.
  struct Addresses {
    template <class Field>
    void operator()(StringRef, Field &field) {
      list.push_back(&field);
    }
    std::vector<const void *> list;
  };

  template <class Field>
  void write(const Field &field) {
    if constexpr (std::is_same_v<Field, bool>)
      printer << (field ? "true" : "false");
    else if constexpr (std::is_same_v<Field, double>)
      writeFloat(field);
    else if constexpr (std::is_arithmetic_v<Field>)
      printer << field;
    else if constexpr (std::is_same_v<Field, std::string>)
      printer.printString(field);
    else if constexpr (std::is_enum_v<Field>)
      printer << llvm::find_if(wordsOf(field), [&](auto &word) { return word.second == field; })->first;
    else
      print(field, '{', '}');
  }
  void writeFloat(double value) {
    auto attribute = FloatAttr::get(Float64Type::get(context), value);
    if (std::isfinite(value))
      printer.printAttributeWithoutType(attribute);
    else
      printer.printAttribute(attribute); // bits, which say nothing without a type
  }
  template <class Field>
  void write(const std::optional<Field> &field) {
    write(*field); // one without a value is the default
  }
  template <class Field>
  void write(const std::vector<Field> &field) {
    printer << '[';
    llvm::interleaveComma(field, printer, [&](const Field &entry) { write(entry); });
    printer << ']';
  }

  AsmPrinter &printer;
  MLIRContext *context;
  std::vector<const void *> usual; ///< the defaults, in the order of visits
  size_t index = 0;
  bool isFirst = true;
};

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

/// Parses what FieldPrinter prints; keys in any order, each at most once.
class FieldReader {
public:
  /// `attribute` is what diagnostics call it all, `section` the struct in it.
  FieldReader(AsmParser &parser, StringRef attribute, std::string section = "")
      : parser(parser), attribute(attribute), section(std::move(section)) {}

  /// Parses the fields of `value`.
  template <class Struct>
  ParseResult parse(Struct &value, AsmParser::Delimiter delimiter) {
    return parser.parseCommaSeparatedList(delimiter, [&] { return parseField(value); });
  }

  /// Takes the field whose key was read.
  template <class Field>
  void operator()(StringRef name, Field &field) {
    if (name != key)
      return;
    isKnown = true;
    result = read(field);
  }

private:
  template <class Struct>
  ParseResult parseField(Struct &value) {
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&key) || parser.parseEqual())
      return failure();
    if (llvm::is_contained(seen, key))
      return fail(at) << "has " << spellKey() << " twice";
    if (HasKinds<Struct> && key == "type" && !seen.empty())
      return fail(at) << "expects " << spellKey() << " before what depends on it";
    seen.push_back(key);
    isKnown = false;
    visitFields(*this, value);
    if (!isKnown)
      return fail(at) << "has no key \"" << key << '"' << (section.empty() ? "" : " in ") << section;
    if constexpr (HasKinds<Struct>)
      if (key == "type")
        value = Struct::defaults(value.kind);
    return result;
  }

  ParseResult read(double &field) {
    return readAs<FloatAttr>("a float", [&](FloatAttr value) { field = value.getValueAsDouble(); });
  }
  ParseResult read(int64_t &field) {
    return readAs<IntegerAttr>("an integer", [&](IntegerAttr value) { field = value.getInt(); });
  }
  ParseResult read(bool &field) {
    return readAs<BoolAttr>("a boolean", [&](BoolAttr value) { field = value.getValue(); });
  }
  ParseResult read(std::string &field) {
    return readAs<StringAttr>("a string", [&](StringAttr value) { field = value.str(); });
  }
  template <class Field>
  ParseResult read(std::optional<Field> &field) {
    return read(field.emplace());
  }
  template <class Field>
  ParseResult read(std::vector<Field> &field) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                          [&] { return read(field.emplace_back()); });
  }
  template <class Field>
  ParseResult read(Field &field) {
    if constexpr (std::is_enum_v<Field>)
      return readWord(field);
    else
      return FieldReader(parser, attribute, spellKey()).parse(field, AsmParser::Delimiter::Braces);
  }

  /// Whether `attribute` is what a field of its kind holds.
  static bool fits(FloatAttr) { return true; }
  static bool fits(IntegerAttr value) { return value.getType().isSignlessInteger(64); }
  static bool fits(BoolAttr) { return true; }
  static bool fits(StringAttr) { return true; }

  template <class Attr, class Set>
  ParseResult readAs(StringRef expected, Set set) {
    SMLoc at = parser.getCurrentLocation();
    Attribute value;
    if (parser.parseAttribute(value))
      return failure();
    auto typed = dyn_cast<Attr>(value);
    if (!typed || !fits(typed))
      return fail(at) << "expects " << expected << " for " << spellKey() << ", but got " << value;
    return set(typed), success();
  }

  template <class Kind>
  ParseResult readWord(Kind &field) {
    SMLoc at = parser.getCurrentLocation();
    StringRef word;
    if (parser.parseKeyword(&word))
      return failure();
    for (const auto &[spelling, kind] : wordsOf(field))
      if (spelling == word)
        return field = kind, success();
    InFlightDiagnostic error = fail(at) << "expects ";
    const size_t count = std::size(wordsOf(field));
    for (size_t index = 0; index < count; ++index)
      error << (index == 0 ? "" : index + 1 < count ? ", " : " or ") << wordsOf(field)[index].first;
    return error << " for " << spellKey() << ", but got " << word;
  }

  std::string spellKey() const { return section.empty() ? key.str() : section + "." + key.str(); }
  InFlightDiagnostic fail(SMLoc at) { return parser.emitError(at) << attribute << ' '; }

  AsmParser &parser;
  StringRef attribute;
  std::string section;
  SmallVector<StringRef> seen;
  StringRef key; ///< that is being read
  bool isKnown = false;
  ParseResult result = success();
};

} // namespace mlir::ds

#endif // DS_LIB_DIALECT_FIELDTEXT_H
