//===- PickleFuzzTest.cpp - Mutated pickles neither crash nor explode -----------===//
//
// A fixed generator mutates a pickle that has everything ten thousand times, by bytes and by whole opcodes.
// What comes out is accepted or refused as corrupt; what is accepted keeps its promises.
//
//===---------------------------------------------------------------------------===//

#include "CountedMemory.h"
#include "PickleStreams.h"
#include "ds/Runtime/Formats/Pickle.h"

#include "gtest/gtest.h"

#include <iterator>
#include <random>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::streams;

namespace {

/// Opcodes and their operands, to be joined.
std::vector<std::string> parts() {
  std::string dict = call(global("collections", "OrderedDict"), "");
  return {"}",
          "(",
          text("a"),
          tensor(storage("0", 12), 2, {2, 3}, {1, 4}),
          text("b"),
          tensor(storage("1", 9, "HalfStorage"), 0, {3, 3}, {3, 1}),
          "q\x01",
          text("list"),
          "]",
          "q\x02",
          "(",
          integer(7),
          "N",
          "\x88",
          "G\x3f\xf8\x01\x02\x03\x04\x05\x06",
          "e",
          text("dict"),
          dict,
          "q\x03",
          "(",
          text("k"),
          "h\x02",
          text("l"),
          "h\x01",
          "u",
          text("object"),
          global("argparse", "Namespace"),
          ")",
          "\x81",
          "}",
          text("n"),
          integer(3),
          "s",
          "b",
          text("size"),
          call(global("torch", "Size"), "K\x02K\x03\x86"),
          text("set"),
          "\x8f",
          "(",
          integer(1),
          "h\x03",
          "\x90",
          text("long"),
          "\x8a\x09"
          "123456789",
          text("call"),
          call(global("os", "system"), text("true")),
          text("bytes"),
          call(global("_codecs", "encode"), text("x") + text("latin1")),
          "u"};
}

std::string mutateBytes(std::string bytes, std::mt19937_64 &random) {
  for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
    size_t at = 2 + random() % (bytes.size() - 2);
    switch (random() % 4) {
    case 0:
      bytes[at] = char(random());
      break;
    case 1:
      bytes[at] ^= char(1 << random() % 8);
      break;
    case 2:
      bytes.erase(at, 1 + random() % 8);
      break;
    case 3:
      bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40));
      break;
    }
    bytes.resize(std::max<size_t>(bytes.size(), 3), '.');
  }
  return bytes;
}

std::string mutateParts(std::vector<std::string> list, std::mt19937_64 &random) {
  static const char *const kMore[] = {
      "0",    "1",    "2",    "(",    "t",    "l",    "e",    "a",    "s",    "u",     "R",     "b",    "Q",
      "\x81", "\x85", "\x86", "\x87", "\x90", "\x91", "\x92", "\x93", "\x94", "h\x01", "h\x02", "q\x03"};
  for (unsigned edits = 1 + random() % 4; edits > 0; --edits) {
    size_t at = random() % list.size(), other = random() % list.size();
    switch (random() % 4) {
    case 0:
      std::swap(list[at], list[other]);
      break;
    case 1:
      list.insert(list.begin() + long(at), kMore[random() % std::size(kMore)]);
      break;
    case 2:
      list[at] = list[other];
      break;
    case 3:
      list[at] = mutateBytes("xx" + list[at] + "x", random).substr(2);
      break;
    }
  }
  std::string bytes = "\x80\x02";
  for (const std::string &part : list)
    bytes += part;
  return bytes + ".";
}

/// Asks everything that can be asked of a value and of what it holds, a few steps deep.
void ask(const PickleValue &value, unsigned depth) {
  (void)value.asBool(), (void)value.asNumber(), (void)value.asText(), (void)value.asBytes(),
      (void)value.find("k");
  ASSERT_LT(value.describe().size(), 600u);
  if (std::optional<PickleTensor> tensor = value.asTensor()) {
    uint64_t end = tensor->offset + (tensor->numElements() > 0);
    for (size_t i = 0; i < tensor->shape.size() && tensor->numElements() > 0; ++i)
      end += uint64_t(tensor->shape[i] - 1) * uint64_t(tensor->strides[i]);
    ASSERT_LE(end, tensor->numElements() > 0 ? tensor->storageElements : UINT64_MAX);
    (void)tensor->isPacked();
  }
  for (size_t i = 0; i < value.size() && i < 50 && depth > 0; ++i) {
    if (value.isMap())
      ask(value.key(i), depth - 1);
    ask(value.isMap() ? value.value(i) : value[i], depth - 1);
  }
  for (std::optional<PickleValue> part : {value.state(), value.arguments()})
    if (part && depth > 0)
      ask(*part, depth - 1);
}

TEST(PickleFuzzTest, MutatedPickles) {
  std::vector<std::string> right = parts();
  std::string whole = "\x80\x02";
  for (const std::string &part : right)
    whole += part;
  whole += ".";
  Result<Pickle> accepted = Pickle::read(whole, "p");
  ASSERT_TRUE(accepted) << accepted.error().message;
  std::mt19937_64 random(2024);
  unsigned numAccepted = 0;
  for (unsigned i = 0; i < 10'000; ++i) {
    std::string bytes = i % 2 ? mutateBytes(whole, random) : mutateParts(right, random);
    Result<Pickle> file = Pickle::read(bytes, "p");
    if (!file) {
      ASSERT_EQ(file.error().code, ExitCode::Corrupt) << file.error().message;
      ASSERT_LT(file.error().message.size(), 4000u);
      continue;
    }
    ++numAccepted;
    ask(file->root(), 4);
  }
  EXPECT_GT(numAccepted, 500u); // other texts and numbers: the mutations do reach the end
}

TEST(PickleFuzzTest, MemoryIsBoundedByTheFile) {
#ifdef DS_SANITIZED
  GTEST_SKIP() << "memory is not counted under sanitizers";
#endif
  // The pickles with the most to remember for a byte: empty containers, nested and flat, remembered values,
  // objects, and a long name that is used again and again.
  constexpr size_t kRepeats = 300'000;
  auto repeat = [](std::string_view unit) {
    std::string out;
    for (size_t i = 0; i < kRepeats; ++i)
      out += unit;
    return out;
  };
  std::string lists = "](" + repeat("]") + "e", nested = repeat("]") + repeat("a").substr(1);
  std::string memo = "\x80\x04](" + repeat("N\x94") + "e.";
  std::string objects = global("m", "C") +
                        "q\x01"
                        "0](" +
                        repeat("h\x01)\x81") + "e";
  std::string states = global("m", "C") +
                       "q\x01"
                       "0](" +
                       repeat("h\x01)\x81Nb") + "e";
  std::string items = global("m", "C") +
                      "q\x01"
                      "0](" +
                      repeat("h\x01)\x81Na") + "e";
  std::string names = text(std::string(1'000'000, 'm')) +
                      "q\x01"
                      "0](" +
                      repeat("h\x01h\x01\x93") + "e";
  std::string decoded = text(std::string(1'000'000, 'm')) +
                        "q\x01"
                        "0" +
                        global("_codecs", "encode") +
                        "q\x02"
                        "0" +
                        text("latin1") +
                        "q\x03"
                        "0](" +
                        repeat("h\x02h\x01h\x03\x86R") + "e";
  for (std::string bytes : {pickle(lists), pickle(nested), memo, pickle(objects), pickle(states),
                            pickle(items), pickle(names), pickle(decoded)}) {
    std::string start = bytes.substr(0, 20);
    size_t size = bytes.size();
    PeakMemory peak;
    Result<Pickle> file = Pickle::read(std::move(bytes), "p");
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_LT(peak.bytes(), size * 48) << start;
  }
}

TEST(PickleFuzzTest, RefusalCostsNoMemory) {
#ifdef DS_SANITIZED
  GTEST_SKIP() << "memory is not counted under sanitizers";
#endif
  for (std::string bytes :
       {"\x80\x02\x8b\xff\xff\xff\x7f.", "\x80\x02X\xff\xff\xff\x7f.", "\x80\x02Nr\xff\xff\xff\x7f."}) {
    PeakMemory peak;
    EXPECT_FALSE(Pickle::read(bytes, "p"));
    EXPECT_LT(peak.bytes(), 10'000u);
  }
}

} // namespace
