//===- EventRecords.cpp - The records of TensorBoard's event files -------------------===//

#include "EventRecords.h"

#include <array>
#include <bit>

namespace ds::rt {
namespace {

constexpr std::array<uint32_t, 256> makeTable() {
  constexpr uint32_t kPolynomial = 0x82f63b78; // reflected
  std::array<uint32_t, 256> table = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t rest = byte;
    for (int bit = 0; bit < 8; ++bit)
      rest = rest >> 1 ^ (rest & 1 ? kPolynomial : 0);
    table[byte] = rest;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = makeTable();

void appendLittle(std::string &out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out += static_cast<char>(value >> 8 * i & 0xff);
}

/// A checksum that is itself part of data that are summed up is turned and moved.
void appendMasked(std::string &out, std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  appendLittle(out, (crc >> 15 | crc << 17) + 0xa282ead8u, 4);
}

std::string frame(const std::string &data) {
  std::string record;
  appendLittle(record, data.size(), 8);
  appendMasked(record, std::string_view(record).substr(0, 8));
  record += data;
  appendMasked(record, data);
  return record;
}

/// Appends fields of a message. Wire types: 0 numbers, 1 eight bytes, 2 what has a length, 5 four bytes.
class Message {
public:
  Message &number(uint32_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message &real64(uint32_t field, double value) {
    varint(field << 3 | 1);
    appendLittle(text, std::bit_cast<uint64_t>(value), 8);
    return *this;
  }
  Message &real32(uint32_t field, float value) {
    varint(field << 3 | 5);
    appendLittle(text, std::bit_cast<uint32_t>(value), 4);
    return *this;
  }
  Message &bytes(uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    text += value;
    return *this;
  }
  std::string text;

private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7)
      text += static_cast<char>(value | 0x80);
    text += static_cast<char>(value);
  }
};

// Fields of Event, SessionLog, Summary and Summary.Value.
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr uint32_t kStatus = 1, kStart = 1;
constexpr uint32_t kValue = 1, kTag = 1, kSimpleValue = 2;

} // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes)
    crc = crc >> 8 ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xff];
  return ~crc;
}

std::string spellFirstEvent(double seconds) {
  return frame(Message().real64(kWallTime, seconds).bytes(kFileVersion, "brain.Event:2").text);
}

std::string spellRestartEvent(double seconds, uint64_t step) {
  const std::string log = Message().number(kStatus, kStart).text;
  return frame(Message().real64(kWallTime, seconds).number(kStep, step).bytes(kSessionLog, log).text);
}

std::string spellScalarEvent(double seconds, uint64_t step, std::span<const Scalar> scalars) {
  Message summary;
  for (const Scalar &scalar : scalars)
    summary.bytes(
        kValue,
        Message().bytes(kTag, scalar.tag).real32(kSimpleValue, static_cast<float>(scalar.value)).text);
  return frame(Message().real64(kWallTime, seconds).number(kStep, step).bytes(kSummary, summary.text).text);
}

} // namespace ds::rt
