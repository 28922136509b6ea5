//===- SafeTensorsHeader.cpp - The header's JSON as flat tables ----------------===//
//
// A SAX handler that knows at every moment which kind of value may come next and stops at anything else.
// Building a document first was rejected: it keeps the last of duplicate keys, turns 2^64 into a double, and
// takes ten times the header's size.
//
//===---------------------------------------------------------------------------===//

#include "SafeTensorsHeader.h"

#include "Files/Text.h"
#include "ds/Runtime/Formats/SafeTensors.h"

#include <nlohmann/json.hpp>

using namespace ds::rt;

namespace {

/// What the next value must be.
enum class Expect : uint8_t { Header, Tensor, Metadata, Text, DType, Shape, Offsets, Dim, Offset };

/// For messages, by Expect.
constexpr const char *kExpected[] = {"an object of tensors",
                                     "an object with dtype, shape and data_offsets",
                                     "an object of strings",
                                     "a string",
                                     "a dtype",
                                     "an array of dimensions",
                                     "an array of two offsets",
                                     "an unsigned integer",
                                     "an unsigned integer"};

class Handler {
public:
  // NOLINTBEGIN(readability-identifier-naming): the parser calls them by these names
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Handler(HeaderTables &tables, std::string &message) : tables(tables), message(message) {}

  bool null() { return unexpected("null"); }
  bool boolean(bool value) { return unexpected(value ? "true" : "false"); }
  bool number_integer(number_integer_t value) { return unexpected(std::to_string(value)); }
  bool number_float(number_float_t, const string_t &text) { return unexpected(quote(text)); }
  bool binary(binary_t &) { return unexpected("binary data"); }
  bool number_unsigned(number_unsigned_t value);
  bool string(string_t &value);
  bool start_object(size_t);
  bool key(string_t &value);
  bool end_object();
  bool start_array(size_t);
  bool end_array();
  bool parse_error(size_t position, const std::string &token, const nlohmann::json::exception &);
  // NOLINTEND(readability-identifier-naming)

private:
  enum Field : uint8_t { kDType = 1, kShape = 2, kOffsets = 4 };

  bool fail(std::string text) {
    message = std::move(text);
    return false;
  }
  bool unexpected(const std::string &value) {
    return fail(where() + "expects " + kExpected[size_t(expected)] + ", but got " + value);
  }
  std::string where() const;
  bool fieldKey(const std::string &name);
  HeaderTables::Text store(std::string_view text);

  HeaderTables &tables;
  std::string &message;
  Expect expected = Expect::Header;
  uint8_t depth = 0;       ///< open objects and arrays
  bool inMetadata = false; ///< the second-level object is __metadata__
  bool hasMetadata = false;
  uint8_t fields = 0;     ///< of the current tensor
  uint8_t numOffsets = 0; ///< of the current tensor
};

} // namespace

/// "tensor 'a': " or "__metadata__: ".
std::string Handler::where() const {
  if (inMetadata)
    return "__metadata__: ";
  if (tables.tensors.empty() || expected == Expect::Header)
    return "";
  return "tensor " + quote(tables.view(tables.tensors.back().name)) + ": ";
}

HeaderTables::Text Handler::store(std::string_view text) {
  HeaderTables::Text window{uint32_t(tables.text.size()), uint32_t(text.size())};
  tables.text.insert(tables.text.end(), text.begin(), text.end());
  return window;
}

bool Handler::start_object(size_t) {
  if (expected != Expect::Header && expected != Expect::Tensor && expected != Expect::Metadata)
    return unexpected("an object");
  ++depth;
  return true;
}

bool Handler::key(string_t &value) {
  if (depth == 1) {
    inMetadata = value == "__metadata__";
    if (inMetadata) {
      if (hasMetadata)
        return fail("duplicate key '__metadata__'");
      hasMetadata = true;
      expected = Expect::Metadata;
      return true;
    }
    tables.tensors.push_back({store(value)});
    fields = numOffsets = 0;
    expected = Expect::Tensor;
    return true;
  }
  if (inMetadata) {
    tables.metadata.push_back({store(value), {}});
    expected = Expect::Text;
    return true;
  }
  return fieldKey(value);
}

bool Handler::fieldKey(const std::string &name) {
  Field field;
  if (name == "dtype") {
    field = kDType;
    expected = Expect::DType;
  } else if (name == "shape") {
    field = kShape;
    expected = Expect::Shape;
  } else if (name == "data_offsets") {
    field = kOffsets;
    expected = Expect::Offsets;
  } else {
    return fail(where() + "expects the keys dtype, shape and data_offsets, but got " + quote(name));
  }
  if (fields & field)
    return fail(where() + "duplicate key " + quote(name));
  fields |= field;
  return true;
}

bool Handler::end_object() {
  --depth;
  if (depth == 1 && !inMetadata && fields != (kDType | kShape | kOffsets))
    return fail(where() + "expects the keys dtype, shape and data_offsets, but " +
                (fields & kDType ? fields & kShape ? "data_offsets" : "shape" : "dtype") + " is missing");
  inMetadata = false;
  return true;
}

bool Handler::string(string_t &value) {
  if (expected == Expect::Text) {
    tables.metadata.back().value = store(value);
    return true;
  }
  if (expected != Expect::DType)
    return unexpected(quote(value));
  std::optional<FileDType> dtype = parseFileDType(value);
  if (!dtype)
    return fail(where() + "unknown dtype " + quote(value));
  tables.tensors.back().dtype = *dtype;
  return true;
}

bool Handler::start_array(size_t) {
  if (expected == Expect::Shape) {
    tables.tensors.back().firstDim = uint32_t(tables.dims.size());
    expected = Expect::Dim;
  } else if (expected == Expect::Offsets) {
    expected = Expect::Offset;
  } else {
    return unexpected("an array");
  }
  ++depth;
  return true;
}

bool Handler::number_unsigned(number_unsigned_t value) {
  HeaderTables::Tensor *tensor = tables.tensors.empty() ? nullptr : &tables.tensors.back();
  if (expected == Expect::Dim) {
    if (value > uint64_t(INT64_MAX))
      return fail(where() + "dimension " + std::to_string(value) + " is over the limit of 2^63 - 1");
    if (tensor->rank == kMaxSafeTensorsRank)
      return fail(where() + "has more than " + std::to_string(kMaxSafeTensorsRank) + " dimensions");
    ++tensor->rank;
    tables.dims.push_back(int64_t(value));
    return true;
  }
  if (expected != Expect::Offset)
    return unexpected(std::to_string(value));
  if (numOffsets == 2)
    return fail(where() + "expects two data_offsets, but got more");
  (numOffsets == 0 ? tensor->begin : tensor->end) = value;
  ++numOffsets;
  return true;
}

bool Handler::end_array() {
  if (expected == Expect::Offset && numOffsets != 2)
    return fail(where() + "expects two data_offsets, but got " + std::to_string(numOffsets));
  --depth;
  return true;
}

bool Handler::parse_error(size_t position, const std::string &token, const nlohmann::json::exception &) {
  return fail("header is not JSON at byte " + std::to_string(position) + ", near " + quote(token));
}

bool ds::rt::parseHeader(std::string_view json, HeaderTables &tables, std::string &message) {
  // The parser takes a NUL for the end of the text and skips a byte-order mark; the format allows neither.
  if (size_t nul = json.find('\0'); nul != std::string_view::npos) {
    message = "header has a NUL at byte " + std::to_string(nul);
    return false;
  }
  size_t first = json.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || json[first] != '{') {
    message = "header does not start with '{'";
    return false;
  }
  Handler handler(tables, message);
  if (nlohmann::json::sax_parse(json.data(), json.data() + json.size(), &handler))
    return true;
  if (message.empty())
    message = "header is not JSON";
  return false;
}
