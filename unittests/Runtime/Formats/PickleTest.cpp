//===- PickleTest.cpp - What pickles hold, and what they may not do -------------===//

#include "ds/Runtime/Formats/Pickle.h"
#include "PickleStreams.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <chrono>
#include <filesystem>

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::streams;
using testing::HasSubstr;

namespace {

/// The pickle of `value`, which is right.
Pickle read(const std::string &value) {
  Result<Pickle> result = Pickle::read(pickle(value), "p");
  if (!result)
    throw std::runtime_error(result.error().message);
  return std::move(*result);
}

/// The message that refuses the bytes.
std::string refusal(const std::string &bytes) {
  Result<Pickle> result = Pickle::read(bytes, "p");
  if (result)
    return "accepted";
  EXPECT_EQ(result.error().code, ExitCode::Corrupt);
  return result.error().message;
}

TEST(PickleTest, NumbersAndTexts) {
  std::string bytes = tuple("N\x88\x89" + integer(-5) + "K\xff" + std::string("M\x01\x02") + "\x8a\x01\xfe" +
                            std::string("\x8a\x00", 2) + longInteger(INT64_MIN) + "G\x3f\xf8" +
                            std::string(6, '\0') + text("\xc3\xa9t\xc3\xa9"));
  Pickle file = read(bytes);
  PickleValue root = file.root();
  ASSERT_EQ(root.kind(), PickleKind::Tuple);
  ASSERT_EQ(root.size(), 11u);
  EXPECT_TRUE(root[0].isNone());
  EXPECT_EQ(root[1].asBool(), true);
  EXPECT_EQ(root[2].asBool(), false);
  EXPECT_EQ(root[1].asInt(), std::nullopt) << "a truth value is no number";
  EXPECT_EQ(root[3].asInt(), -5);
  EXPECT_EQ(root[4].asInt(), 255);
  EXPECT_EQ(root[5].asInt(), 0x201);
  EXPECT_EQ(root[6].asInt(), -2) << "sign of a short long integer";
  EXPECT_EQ(root[7].asInt(), 0) << "a long integer of no bytes";
  EXPECT_EQ(root[8].asInt(), INT64_MIN);
  EXPECT_EQ(root[9].asNumber(), 1.5);
  EXPECT_EQ(root[9].asInt(), std::nullopt);
  EXPECT_EQ(root[10].asText(), "\xc3\xa9t\xc3\xa9");
}

TEST(PickleTest, IntegersOfMoreThan64BitsAreNoNumbers) {
  // A seed may be of any size; a file that has one is still read.
  Pickle file = read(std::string("\x8a\x09") + std::string(8, '\xff') + '\x7f');
  EXPECT_EQ(file.root().kind(), PickleKind::LongInt);
  EXPECT_EQ(file.root().asInt(), std::nullopt);
  EXPECT_EQ(file.root().asNumber(), std::nullopt);
}

TEST(PickleTest, Bytes) {
  Pickle direct = read("C\x03"
                       "ab\xff");
  EXPECT_EQ(direct.root().asBytes(), "ab\xff");
  // Protocol 2 has no bytes: picklers write a call of the latin-1 codec.
  Pickle coded = read(call(global("_codecs", "encode"), text("ab\xc3\xbf") + text("latin1")));
  EXPECT_EQ(coded.root().asBytes(), "ab\xff");
  Pickle other = read(call(global("_codecs", "encode"), text("ab") + text("rot13")));
  EXPECT_EQ(other.root().kind(), PickleKind::Object);
}

TEST(PickleTest, Containers) {
  // A list that is remembered, grows, and is seen grown through the other reference.
  Pickle file = read("]q\x01(K\x01K\x02"
                     "eh\x01K\x03"
                     "a\x86");
  EXPECT_EQ(file.root()[0].size(), 3u);
  EXPECT_TRUE(file.root()[0] == file.root()[1]);
  Pickle dict = read("}(" + text("a") + "K\x01" + text("b") + "K\x02u" + text("a") + "K\x03s");
  EXPECT_EQ(dict.root().size(), 3u);
  EXPECT_EQ(dict.root().find("a")->asInt(), 3) << "the last of equal keys counts";
  EXPECT_EQ(dict.root().find("c"), std::nullopt);
  EXPECT_EQ(read("\x8f(K\x01K\x02\x90").root().size(), 2u);
  EXPECT_EQ(read(call(global("builtins", "set"), "](K\x01K\x02"
                                                 "e"))
                .root()[1]
                .asInt(),
            2);
  EXPECT_EQ(read("(K\x01K\x02K\x03\x91").root().kind(), PickleKind::Set);
}

TEST(PickleTest, OrderedDictsAndSizes) {
  // state_dict() of a module is an OrderedDict with attributes.
  Pickle file = read(call(global("collections", "OrderedDict"), "") + text("a") + "K\x01s}" +
                     text("_metadata") + "Nsb");
  EXPECT_EQ(file.root().kind(), PickleKind::Dict);
  EXPECT_EQ(file.root().find("a")->asInt(), 1);
  EXPECT_EQ(file.root().find("_metadata"), std::nullopt);
  Pickle size = read(call(global("torch", "Size"), "K\x02K\x03\x86"));
  EXPECT_EQ(size.root().kind(), PickleKind::Tuple);
  EXPECT_EQ(size.root()[1].asInt(), 3);
}

TEST(PickleTest, ProtocolFour) {
  // STACK_GLOBAL, MEMOIZE, FRAME, SHORT_BINUNICODE.
  std::string body = std::string("\x8c\x08"
                                 "argparse\x8c\x09Namespace\x93\x94)\x81}\x94\x8c\x01nK\x07sb.");
  Result<Pickle> file = Pickle::read("\x80\x04\x95" + little(uint64_t(body.size())) + body, "p");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->root().typeName(), "argparse.Namespace");
  EXPECT_EQ(file->root().find("n")->asInt(), 7);
  EXPECT_THAT(refusal("\x80\x04\x95" + little(uint64_t(body.size() + 1)) + body),
              HasSubstr("has a frame of"));
}

TEST(PickleTest, ObjectsAreNeverMade) {
  std::filesystem::path trace = testing::TempDir() + "pickle-was-run";
  std::filesystem::remove(trace);
  Pickle file = read("}(" + text("bad") + call(global("os", "system"), text("touch " + trace.string())) +
                     text("n") + "K\x05u");
  EXPECT_FALSE(std::filesystem::exists(trace));
  EXPECT_EQ(file.root().find("n")->asInt(), 5) << "what lies beside it is read";
  PickleValue object = *file.root().find("bad");
  EXPECT_EQ(object.kind(), PickleKind::Object);
  EXPECT_EQ(object.typeName(), "os.system");
  EXPECT_EQ(object.describe(), "an object of 'os.system', which is not made");
  EXPECT_TRUE(object.arguments()->operator[](0).asText()->starts_with("touch "));
  EXPECT_EQ(object.asText(), std::nullopt);
}

TEST(PickleTest, ObjectsKeepTheirStateAndItems) {
  // A dict subclass with attributes, a list subclass, and one whose class has slots.
  std::string dict = global("m", "D") + ")\x81" + text("k") + "K\x01s}" + text("a") + "K\x02sb";
  EXPECT_EQ(read(dict).root().find("k")->asInt(), 1);
  EXPECT_EQ(read(dict).root().find("a")->asInt(), 2);
  EXPECT_EQ(read(global("m", "L") + ")\x81(K\x01K\x02"
                                    "e")
                .root()[1]
                .asInt(),
            2);
  EXPECT_EQ(read(global("m", "S") + ")\x81N}" + text("a") +
                 "K\x04s\x86"
                 "b")
                .root()
                .find("a")
                ->asInt(),
            4);
  // An enumeration is a call of its class.
  Pickle stage = read(call(global("deepspeed.runtime.zero.config", "ZeroStageEnum"), "K\x02"));
  EXPECT_EQ((*stage.root().arguments())[0].asInt(), 2);
  EXPECT_EQ(stage.root().asInt(), std::nullopt);
}

TEST(PickleTest, Tensors) {
  Pickle file = read(tensor(storage("7", 12), 2, {2, 3}, {1, 4})); // 2 + 1*1 + 2*4 = 11, the last of 12
  PickleTensor view = *file.root().asTensor();
  EXPECT_EQ(view.dtype, FileDType::F32);
  EXPECT_EQ(view.storage, "7");
  EXPECT_EQ(view.storageElements, 12u);
  EXPECT_EQ(view.offset, 2u);
  EXPECT_EQ(view.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(view.strides, (std::vector<int64_t>{1, 4}));
  EXPECT_FALSE(view.isPacked());
  EXPECT_EQ(view.numElements(), 6u);
  ASSERT_EQ(file.storages().size(), 1u);
  EXPECT_EQ(file.storages()[0].bytes, 48u);
  // A parameter is its tensor; so is a tensor with attributes of its own, as ZeRO 3's flat groups have.
  std::string plain = tensor(storage("0", 4, "HalfStorage"), 0, {4}, {1});
  Pickle parameter = read(call(global("torch._utils", "_rebuild_parameter"), plain + "\x88N"));
  EXPECT_EQ(parameter.root().asTensor()->dtype, FileDType::F16);
  Pickle typed = read(call(
      global("torch._tensor", "_rebuild_from_type_v2"),
      global("torch._utils", "_rebuild_tensor_v2") + global("torch.nn.parameter", "Parameter") +
          tuple(storage("0", 4, "BFloat16Storage") + integer(0) + extents({4}) + extents({1}) + "\x89N") +
          "}" + text("ds_id") + "K\x01s"));
  ASSERT_TRUE(typed.root().asTensor());
  EXPECT_EQ(typed.root().asTensor()->dtype, FileDType::BF16);
}

TEST(PickleTest, UntypedStoragesCountBytes) {
  auto rebuilt = [](int64_t offset) {
    return call(global("torch._utils", "_rebuild_tensor_v3"),
                storage("0", 8, "UntypedStorage") + longInteger(offset) + extents({3}) + extents({1}) +
                    "\x89N" + global("torch", "uint16"));
  };
  PickleTensor view = *read(rebuilt(1)).root().asTensor();
  EXPECT_EQ(view.dtype, FileDType::U16);
  EXPECT_EQ(view.storageElements, 4u); // 8 bytes
  EXPECT_THAT(refusal(pickle(rebuilt(2))), HasSubstr("leaves its storage of 4 elements"));
}

TEST(PickleTest, TensorsMayNotLeaveTheirStorage) {
  std::string four = storage("0", 4);
  EXPECT_THAT(refusal(pickle(tensor(four, 0, {5}, {1}))), HasSubstr("leaves its storage of 4 elements"));
  EXPECT_THAT(refusal(pickle(tensor(four, 1, {4}, {1}))), HasSubstr("leaves its storage"));
  EXPECT_THAT(refusal(pickle(tensor(four, 0, {2, 2}, {3, 1}))), HasSubstr("leaves its storage")); // 3 + 1 = 4
  EXPECT_THAT(refusal(pickle(tensor(four, -1, {4}, {1}))), HasSubstr("leaves its storage"));
  EXPECT_THAT(refusal(pickle(tensor(four, 0, {-4}, {1}))), HasSubstr("shape is not a tuple"));
  EXPECT_THAT(refusal(pickle(tensor(four, 3, {4}, {-1}))), HasSubstr("strides is not a tuple"));
  EXPECT_THAT(refusal(pickle(tensor(four, 0, {4}, {1, 1}))), HasSubstr("leaves its storage"));
  EXPECT_THAT(refusal(pickle(tensor(four, 0, {INT64_MAX, INT64_MAX}, {0, 0}))),
              HasSubstr("leaves its storage"));
  EXPECT_THAT(refusal(pickle(tensor(four, 0, {3}, {INT64_MAX}))), HasSubstr("leaves its storage"));
  EXPECT_THAT(refusal(pickle(tensor(four, INT64_MAX, {1}, {1}))), HasSubstr("leaves its storage"));
  EXPECT_THAT(refusal(pickle(tensor(four, 0, std::vector<int64_t>(65, 1), std::vector<int64_t>(65, 1)))),
              HasSubstr("at most 64 integers"));
  EXPECT_EQ(read(tensor(four, 4, {0}, {1})).root().asTensor()->numElements(), 0u);
  EXPECT_EQ(read(tensor(four, 0, {0, INT64_MAX, INT64_MAX}, {1, 1, 1})).root().asTensor()->numElements(), 0u);
}

TEST(PickleTest, NoTensorDependsOnAnObject) {
  std::string called = call(global("os", "system"), text("true"));
  EXPECT_THAT(refusal(pickle(tensor(called, 0, {1}, {1}))), HasSubstr("no storage of a known type"));
  std::string sized = call(global("torch._utils", "_rebuild_tensor_v2"),
                           storage("0", 4) + integer(0) + called + extents({1}) + "\x89N");
  EXPECT_THAT(refusal(pickle(sized)), HasSubstr("shape is not a tuple"));
  EXPECT_THAT(refusal(pickle(called + "Q")), HasSubstr("outside of the pickle"));
  // A tensor of an unknown class is an object: whoever asks for the tensor gets none.
  Pickle other = read(call(global("torch._tensor", "_rebuild_from_type_v2"),
                           global("evil", "rebuild") + global("torch", "Tensor") + ")N"));
  EXPECT_EQ(other.root().asTensor(), std::nullopt);
}

TEST(PickleTest, DamagedStreams) {
  EXPECT_THAT(refusal(""), HasSubstr("protocol 2 to 5"));
  EXPECT_THAT(refusal("\x80\x06N."), HasSubstr("protocol 2 to 5"));
  EXPECT_THAT(refusal("(lp0\n."), HasSubstr("protocol 2 to 5"));
  EXPECT_THAT(refusal("\x80\x02N"), HasSubstr("at byte 3, expects the end of the pickle"));
  EXPECT_THAT(refusal("\x80\x02N.N"), HasSubstr("ends 1 bytes before the file does"));
  EXPECT_THAT(refusal("\x80\x02NN."), HasSubstr("2 values on the stack"));
  EXPECT_THAT(refusal("\x80\x02(N."), HasSubstr("on the stack, not with one"));
  EXPECT_THAT(refusal("\x80\x02."), HasSubstr("0 values on the stack"));
  EXPECT_THAT(refusal("\x80\x02\x8b\xff\xff\xff\x7f."), HasSubstr("expects 2147483647 more bytes")); // LONG4
  EXPECT_THAT(refusal("\x80\x02\x8b\xff\xff\xff\xff."), HasSubstr("more bytes"));                    // or -1
  EXPECT_THAT(refusal("\x80\x04\x8e" + little(UINT64_MAX) + "N."), HasSubstr("more bytes"));
  EXPECT_THAT(refusal("\x80\x02j\xff\xff\xff\xff."), HasSubstr("refers to value 4294967295"));
  EXPECT_THAT(refusal("\x80\x02Nr\xff\xff\xff\xff."), HasSubstr("remembers a value as number 4294967295"));
  EXPECT_THAT(refusal("\x80\x02Nq\x05h\x04\x86."), HasSubstr("refers to value 4"));
  EXPECT_THAT(refusal("\x80\x02"
                      "e."),
              HasSubstr("expects a mark"));
  EXPECT_THAT(refusal("\x80\x02(a."), HasSubstr("empty stack"));
  EXPECT_THAT(refusal("\x80\x02](N0"
                      "0a."),
              HasSubstr("empty stack"))
      << "POP takes the mark, then the list";
  EXPECT_THAT(refusal("\x80\x02" + global("m", "C") + ")(R0."),
              HasSubstr("at byte 9, takes a value from an empty stack"))
      << "calls what lies below the mark";
  EXPECT_THAT(refusal("\x80\x02](NNae."), HasSubstr("adds to a value that is no list"));
  EXPECT_THAT(refusal("\x80\x02N(K\x01"
                      "e."),
              HasSubstr("adds to a value that is no list"));
  EXPECT_THAT(refusal("\x80\x02)K\x01"
                      "a."),
              HasSubstr("adds to a value"))
      << "tuples do not grow";
  EXPECT_THAT(refusal("\x80\x02}(K\x01u."), HasSubstr("a key without a value"));
  EXPECT_THAT(refusal("\x80\x02N}b."), HasSubstr("sets the attributes"));
  EXPECT_THAT(refusal("\x80\x02"
                      "cos"),
              HasSubstr("expects a line"));
  EXPECT_THAT(refusal("\x80\x04NN\x93."), HasSubstr("something that is no text"));
  for (const char *opcode : {"\x82\x01", "\x97", "\x98", "I1\n", "S'a'\n", "Pa\n", "\xff"})
    EXPECT_THAT(refusal("\x80\x02N" + std::string(opcode) + "."), HasSubstr("has opcode")) << opcode;
}

TEST(PickleTest, WhatContainsItself) {
  // A list in itself, and a tuple in itself by way of a list: legal, and finite to read.
  Pickle list = read("]q\x01h\x01"
                     "a");
  EXPECT_TRUE(list.root()[0] == list.root());
  Pickle pair = read("]q\x02\x85q\x01h\x02h\x01"
                     "a0");
  EXPECT_TRUE(pair.root()[0][0] == pair.root());
  EXPECT_EQ(pair.root()[0].find("a"), std::nullopt);
}

TEST(PickleTest, RepeatedDoublingCostsNothing) {
  // Each list has the one before twice: 2^200 values, were they walked.
  std::string bytes = "]";
  for (int i = 0; i < 200; ++i)
    bytes +=
        "q" + std::string(1, char(i)) + "](h" + std::string(1, char(i)) + "h" + std::string(1, char(i)) + "e";
  std::string dropped;
  Result<Pickle> file = Pickle::read("\x80\x02(" + bytes + "t.", "p");
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->root()[200].size(), 2u);
}

TEST(PickleTest, DeepNestingNeedsNoStack) {
  constexpr size_t kDepth = 1'000'000;
  Pickle file = read(std::string(kDepth, '(') + std::string(kDepth, 't'));
  PickleValue value = file.root();
  size_t depth = 1;
  for (; value.size() == 1; value = value[0])
    ++depth;
  EXPECT_EQ(depth, kDepth);
}

} // namespace
