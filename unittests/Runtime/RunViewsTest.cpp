//===- RunViewsTest.cpp - Runs of which tensors are cut by heads, or padded -----------===//
//
// The real binary on 1, 2 and 8 ranks along tp: what one run saves another with other cuts resumes from, and
// every file has the fused QKV and the table of 50257 words as one rank has them.
//
//===---------------------------------------------------------------------------===//
#include "RankedRegression.h"

#include "ds/Runtime/Formats/SafeTensors.h"

using namespace ds;
using namespace ds::rt;
using namespace ds::rt::test;
using testing::HasSubstr;

namespace {

constexpr int64_t kWidth = 48, kHeads = 8, kWords = 50257;

/// A regression that keeps two tensors more, which no command touches.
Program model(uint32_t dp, uint32_t tp) {
  RankedRegression regression(Mesh{{"dp", dp}, {"tp", tp}});
  ProgramBuilder &b = regression.b;
  Layout qkv, table;
  qkv.view = {3, kHeads, kWidth / kHeads, kWidth};
  qkv.cuts = {{}, {1}, {}, {}};
  table.cuts = {{1}, {}};
  if (const int64_t rows = (kWords + tp - 1) / tp * tp; rows > kWords) {
    table.view = {rows, 2};
    table.existing = kWords;
  }
  for (const auto &[name, shape, layout] : {std::tuple("qkv", std::vector<int64_t>{3 * kWidth, kWidth}, &qkv),
                                            std::tuple("table", std::vector<int64_t>{kWords, 2}, &table)}) {
    const uint32_t held = b.keep(localShape(b.program.mesh, *layout, shape));
    b.program.states.push_back(
        {name, {}, Role::Parameter, "", shape, held, {Init::Kind::Normal, 0, 1}, true, *layout});
  }
  return b.program;
}

class RunViewsTest : public RunFixture {
protected:
  /// A run of dp x tp ranks.
  Outcome train(uint32_t dp, uint32_t tp, const std::string &options) {
    write(model(dp, tp), "v.dsx");
    std::istringstream words("v.dsx --ranks " + std::to_string(dp * tp) +
                             " --timeout 60 --data data.safetensors " + options);
    return finish(start({std::istream_iterator<std::string>(words), {}}));
  }
  /// The bytes of both tensors in a file of weights, which has the whole ones.
  std::string tensors(const std::string &name) {
    auto file = SafeTensorsFile::open(at(name));
    EXPECT_TRUE(file) << file.error().message;
    std::string bytes;
    for (const auto &[tensor, shape] : {std::pair("qkv", std::vector<int64_t>{3 * kWidth, kWidth}),
                                        std::pair("table", std::vector<int64_t>{kWords, 2})}) {
      const TensorEntry *entry = file ? file->find(tensor) : nullptr;
      EXPECT_TRUE(entry) << tensor;
      if (!entry)
        continue;
      EXPECT_TRUE(std::ranges::equal(entry->shape, shape)) << tensor;
      bytes.append(reinterpret_cast<const char *>(entry->data), entry->bytes);
    }
    return bytes;
  }
};

TEST_F(RunViewsTest, RanksReadWhatOthersHaveSaved) {
  Outcome outcome = train(1, 1, "--steps 1 --save-weights one.safetensors");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const std::string expected = tensors("one.safetensors");
  outcome = train(
      2, 2, "--steps 2 --save four --save-mode sync --save-weights four.safetensors --check-replicas 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(tensors("four.safetensors") == expected, true) << "the same seed";
  outcome = train(1, 8, "--steps 3 --resume four --save eight --save-weights eight.safetensors");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(tensors("eight.safetensors") == expected, true);
  outcome = train(1, 1, "--steps 4 --resume eight --save-weights again.safetensors");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(tensors("again.safetensors") == expected, true);
  outcome = train(1, 2, "--steps 1 --weights again.safetensors --seed 9 --save-weights read.safetensors");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(tensors("read.safetensors") == expected, true);
}

TEST_F(RunViewsTest, ProgramsWithOtherViewsAreRefusedByName) {
  Program program = model(1, 2);
  program.states.back().layout.existing = kWords - 1;
  const Result<std::vector<uint8_t>> bytes = serializeProgram(program);
  ASSERT_TRUE(bytes);
  std::ofstream(at("bad.dsx"), std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes->data()), static_cast<std::streamsize>(bytes->size()));
  const Outcome outcome = finish(start({"bad.dsx", "--ranks", "2", "--data", "data.safetensors"}));
  EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::Corrupt)) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("'table' has the view [50256, 2] of 100512 elements, but 100514 elements"));
}

} // namespace
