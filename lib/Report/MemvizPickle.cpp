//===- MemvizPickle.cpp - JSON values as Python's pickle -------------------------------===//
//
// A pickle is a program for a stack machine: each value pushes itself, lists and dictionaries collect what
// lies above a mark. Texts that come again are taken from the memo, which keeps the file small.
//
//===---------------------------------------------------------------------------===//
#include "MemvizPickle.h"

#include <cassert>
#include <map>

namespace ds::report {

using Json = nlohmann::ordered_json;

namespace {
/// Opcodes, as Python's pickletools names them.
enum Opcode : uint8_t {
  Mark = '(',
  Stop = '.',
  BinInt = 'J',
  BinInt1 = 'K',
  BinInt2 = 'M',
  None = 'N',
  BinUnicode = 'X',
  EmptyList = ']',
  Appends = 'e',
  BinGet = 'h',
  LongBinGet = 'j',
  SetItems = 'u',
  EmptyDict = '}',
  Proto = 0x80,
  NewTrue = 0x88,
  NewFalse = 0x89,
  Long1 = 0x8a,
  ShortBinUnicode = 0x8c,
  Memoize = 0x94
};

class Pickler {
public:
  std::string run(const Json &value) {
    out = {static_cast<char>(Proto), 4};
    write(value);
    op(Stop);
    return std::move(out);
  }

private:
  void op(Opcode opcode) { out += static_cast<char>(opcode); }
  /// The lowest `count` bytes of `value`, the least first.
  void bytes(uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      out += static_cast<char>(value >> (8 * i) & 0xff);
  }
  void write(const Json &value);
  void integer(int64_t value);
  void text(const std::string &value);
  void list(const Json &value);
  void dictionary(const Json &value);

  std::string out;
  std::map<std::string, uint32_t> memo;
};
} // namespace

void Pickler::integer(int64_t value) {
  if (value >= 0 && value < 256)
    return op(BinInt1), bytes(value, 1);
  if (value >= 0 && value < 65536)
    return op(BinInt2), bytes(value, 2);
  if (value >= INT32_MIN && value <= INT32_MAX)
    return op(BinInt), bytes(static_cast<uint32_t>(value), 4);
  op(Long1);
  bytes(8, 1);
  bytes(static_cast<uint64_t>(value), 8);
}

void Pickler::text(const std::string &value) {
  auto [known, isNew] = memo.try_emplace(value, static_cast<uint32_t>(memo.size()));
  uint32_t id = known->second;
  if (!isNew)
    return id < 256 ? (op(BinGet), bytes(id, 1)) : (op(LongBinGet), bytes(id, 4));
  if (value.size() < 256) {
    op(ShortBinUnicode);
    bytes(value.size(), 1);
  } else {
    op(BinUnicode);
    bytes(value.size(), 4);
  }
  out += value;
  op(Memoize);
}

void Pickler::list(const Json &value) {
  // The visualiser passes what lies above a mark as arguments of one call: no more than Python's own batch.
  constexpr size_t kBatch = 1000;
  op(EmptyList);
  for (size_t first = 0; first < value.size(); first += kBatch) {
    op(Mark);
    for (size_t i = first; i < std::min(value.size(), first + kBatch); ++i)
      write(value[i]);
    op(Appends);
  }
}

void Pickler::dictionary(const Json &value) {
  op(EmptyDict);
  if (value.empty())
    return;
  op(Mark);
  for (const auto &[key, member] : value.items()) {
    text(key);
    write(member);
  }
  op(SetItems);
}

void Pickler::write(const Json &value) {
  if (value.is_object())
    return dictionary(value);
  if (value.is_array())
    return list(value);
  if (value.is_string())
    return text(value.get_ref<const std::string &>());
  if (value.is_boolean())
    return op(value.get<bool>() ? NewTrue : NewFalse);
  if (value.is_null())
    return op(None);
  assert(value.is_number_integer() && "a snapshot has whole numbers alone");
  integer(value.get<int64_t>());
}

std::string writePickle(const Json &value) { return Pickler().run(value); }

} // namespace ds::report
