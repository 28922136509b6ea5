//===- Npy.cpp - One array in numpy's own format -------------------------------===//

#include "ds/Runtime/Formats/Npy.h"

#include "Files/Text.h"

#include <array>
#include <charconv>
#include <cstring>

using namespace ds;
using namespace ds::rt;

namespace {

/// numpy's own limit on headers that are not trusted is 10,000; ours leaves room for padding.
constexpr size_t kMaxHeader = 65536;
constexpr size_t kMaxRank = 64;

/// What the dictionary says.
struct NpyHeader {
  std::string descr;
  bool isRecord = false; ///< descr is a list of fields; nothing behind it was read
  bool fortranOrder = false;
  std::vector<int64_t> shape;
};

/// Reads the one dictionary that numpy writes; Python's other spellings are not needed.
class HeaderParser {
public:
  HeaderParser(std::string_view text, std::string &message) : text(text), message(message) {}
  bool parse(NpyHeader &header);

private:
  bool fail(const std::string &what) {
    message = "header: " + what + " at byte " + std::to_string(position);
    return false;
  }
  bool skip(char wanted) {
    skipSpace();
    if (position == text.size() || text[position] != wanted)
      return false;
    ++position;
    return true;
  }
  void skipSpace() {
    while (position < text.size() &&
           (text[position] == ' ' || text[position] == '\n' || text[position] == '\t'))
      ++position;
  }
  bool parseString(std::string &value);
  bool parseBool(bool &value);
  bool parseShape(std::vector<int64_t> &shape);
  bool parseDim(int64_t &dim);
  bool parseField(NpyHeader &header, unsigned &seen);

  std::string_view text;
  std::string &message;
  size_t position = 0;
};

} // namespace

bool HeaderParser::parseString(std::string &value) {
  char delimiter = skip('\'') ? '\'' : skip('"') ? '"' : 0;
  if (!delimiter)
    return fail("expects a string");
  size_t end = text.find(delimiter, position);
  if (end == std::string_view::npos)
    return fail("unterminated string");
  value = text.substr(position, end - position);
  position = end + 1;
  return value.find('\\') == std::string::npos || fail("escape in a string");
}

bool HeaderParser::parseBool(bool &value) {
  skipSpace();
  std::string_view rest = text.substr(position);
  value = rest.starts_with("True");
  if (!value && !rest.starts_with("False"))
    return fail("expects True or False");
  position += value ? 4 : 5;
  return true;
}

bool HeaderParser::parseDim(int64_t &dim) {
  skipSpace();
  const char *begin = text.data() + position, *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(begin, end, dim);
  if (error != std::errc() || dim < 0)
    return fail("expects a dimension of at most 2^63 - 1");
  position += size_t(stop - begin);
  return true;
}

bool HeaderParser::parseShape(std::vector<int64_t> &shape) {
  if (!skip('('))
    return fail("expects a tuple");
  while (!skip(')')) {
    if (!shape.empty() && !skip(','))
      return fail("expects ',' or ')'");
    if (!shape.empty() && skip(')')) // (2,)
      return true;
    if (shape.size() == kMaxRank)
      return fail("more than " + std::to_string(kMaxRank) + " dimensions");
    int64_t dim = 0;
    if (!parseDim(dim))
      return false;
    shape.push_back(dim);
  }
  return true;
}

bool HeaderParser::parseField(NpyHeader &header, unsigned &seen) {
  static constexpr std::array<std::string_view, 3> kKeys = {"descr", "fortran_order", "shape"};
  std::string key;
  if (!parseString(key))
    return false;
  size_t index = 0;
  while (index < kKeys.size() && kKeys[index] != key)
    ++index;
  if (index == kKeys.size() || seen & 1u << index)
    return fail((index == kKeys.size() ? "unknown key " : "duplicate key ") + quote(key));
  seen |= 1u << index;
  if (!skip(':'))
    return fail("expects ':'");
  skipSpace();
  if (index == 0 && position < text.size() && text[position] == '[') {
    header.isRecord = true;
    return fail("expects one element type, but got a list of fields");
  }
  return index == 0   ? parseString(header.descr)
         : index == 1 ? parseBool(header.fortranOrder)
                      : parseShape(header.shape);
}

bool HeaderParser::parse(NpyHeader &header) {
  if (!skip('{'))
    return fail("expects '{'");
  unsigned seen = 0;
  while (!skip('}')) {
    if (!parseField(header, seen))
      return false;
    if (!skip(',')) {
      if (!skip('}'))
        return fail("expects ',' or '}'");
      break;
    }
  }
  skipSpace();
  if (position != text.size())
    return fail("text after the dictionary");
  return seen == 7 || fail("expects the keys descr, fortran_order and shape; one is missing");
}

/// numpy's code for an element type, without the byte order.
static bool lookUpType(std::string_view code, FileDType &dtype) {
  static constexpr std::pair<std::string_view, FileDType> kCodes[] = {
      {"b1", FileDType::Bool}, {"i1", FileDType::I8},  {"u1", FileDType::U8},  {"i2", FileDType::I16},
      {"u2", FileDType::U16},  {"f2", FileDType::F16}, {"i4", FileDType::I32}, {"u4", FileDType::U32},
      {"f4", FileDType::F32},  {"i8", FileDType::I64}, {"u8", FileDType::U64}, {"f8", FileDType::F64},
      {"c8", FileDType::C64}};
  for (const auto &[name, type] : kCodes)
    if (name == code) {
      dtype = type;
      return true;
    }
  return false;
}

/// Element type of `descr`, or the reason for refusing it.
static std::string parseDescr(std::string_view descr, FileDType &dtype) {
  char order = descr.empty() ? 0 : descr[0];
  std::string_view code = descr.substr(descr.empty() ? 0 : 1);
  std::string expects = "expects little-endian numbers or booleans, but got descr " + quote(descr);
  if (code.starts_with("O"))
    return expects + ": pickled Python objects are never read";
  if (order == '>')
    return expects + ", which is big-endian";
  if (code.starts_with("V"))
    return expects + ": numpy has no name for bf16, keep it in a .safetensors file";
  if ((order != '<' && order != '|' && order != '=') || !lookUpType(code, dtype))
    return expects;
  if (order == '|' && bitSize(dtype) != 8)
    return expects + ", which has no byte order";
  return "";
}

/// Length of the dictionary and where it begins; false if this is no .npy file that we know.
static bool readPrefix(std::string_view bytes, size_t &begin, size_t &length, std::string &message) {
  if (bytes.size() < 10 || !bytes.starts_with("\x93NUMPY")) {
    message = "is not a .npy file: it does not begin with \\x93NUMPY and a version";
    return false;
  }
  unsigned major = uint8_t(bytes[6]), minor = uint8_t(bytes[7]);
  if (major < 1 || major > 3 || minor != 0) {
    message =
        "version " + std::to_string(major) + "." + std::to_string(minor) + " is not one of 1.0, 2.0, 3.0";
    return false;
  }
  uint32_t wide = 0;
  begin = major == 1 ? 10 : 12;
  if (bytes.size() >= begin)
    memcpy(&wide, bytes.data() + 8, begin - 8);
  length = wide;
  if (length > kMaxHeader) {
    message =
        "header of " + std::to_string(length) + " bytes is over the limit of " + std::to_string(kMaxHeader);
    return false;
  }
  if (bytes.size() < begin || length > bytes.size() - begin) {
    message = "header of " + std::to_string(length) + " bytes does not fit into the file of " +
              std::to_string(bytes.size());
    return false;
  }
  return true;
}

/// The reason why `dataBytes` do not hold this array, or "".
static std::string checkSize(FileDType dtype, std::span<const int64_t> shape, size_t dataBytes) {
  int64_t count = 0;
  uint64_t bytes = 0;
  if (!checkedProduct(shape, count) || __builtin_mul_overflow(uint64_t(count), bitSize(dtype) / 8, &bytes))
    return "shape " + spellShape(shape) + " overflows 64 bits";
  if (bytes == dataBytes)
    return "";
  return "shape " + spellShape(shape) + " of " + std::string(spell(dtype)) + " takes " +
         std::to_string(bytes) + " bytes, but the file has " + std::to_string(dataBytes) +
         " after the header";
}

Result<NpyFile> NpyFile::open(const std::string &path) {
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped)
    return mapped.error();
  NpyFile npy;
  npy.file = std::move(*mapped);
  auto refuse = [&](ExitCode code, const std::string &what) {
    return Error{code, quote(path) + ": " + what,
                 "write it with numpy.save(path, numpy.ascontiguousarray(array)), without objects"};
  };
  std::span<const std::byte> raw = npy.file.bytes();
  std::string_view bytes(reinterpret_cast<const char *>(raw.data()), raw.size());
  size_t begin = 0, length = 0;
  std::string message;
  NpyHeader header;
  if (!readPrefix(bytes, begin, length, message) ||
      !HeaderParser(bytes.substr(begin, length), message).parse(header))
    return refuse(header.isRecord ? ExitCode::Invalid : ExitCode::Corrupt, message);
  if (std::string reason = parseDescr(header.descr, npy.type); !reason.empty())
    return refuse(ExitCode::Invalid, reason);
  if (header.fortranOrder && header.shape.size() > 1)
    return refuse(ExitCode::Invalid,
                  "expects row-major data, but got Fortran order for shape " + spellShape(header.shape));
  npy.dims = std::move(header.shape);
  npy.dataOffset = begin + length;
  if (std::string reason = checkSize(npy.type, npy.dims, npy.data().size()); !reason.empty())
    return refuse(ExitCode::Corrupt, reason);
  return npy;
}
