//===- CudaRunStagesTest.cpp - ds-run on programs of two stages, with a fake device for each rank
//--------===//
//
// The fake NCCL carries messages and sums; losses and weights are those of one stage, to the bit.
//
//===---------------------------------------------------------------------------===//
#include "StagedRegression.h"
#include "ToCuda.h"

namespace ds::rt {
namespace {

using namespace test;

class CudaRunStagesTest : public RunFixture {
protected:
  Outcome train(uint32_t stages, uint32_t dp, const std::string &options) {
    Program program = StagedRegression(stages, dp).b.program;
    write(program, "cpu.dsx");
    toCuda(program);
    write(program, "p.dsx");
    std::vector<std::string> environment = {"DS_CACHE_DIR=" + at("cache"), "DS_FAKE_PROGRAM=" + at("p.dsx"),
                                            "DS_FAKE_TWIN=" + at("cpu.dsx"), "DS_FAKE_DEVICES=4"};
    for (const char *name : {"DS_CUDA_DRIVER", "DS_CUBLASLT", "DS_NVML", "DS_NCCL"})
      environment.push_back(std::string(name) + "=" DS_FAKE_CUDA);
    std::istringstream words("p.dsx --device cuda --data data.safetensors --timeout 20 --ranks " +
                             std::to_string(stages * dp) + " " + options);
    return finish(start({std::istream_iterator<std::string>(words), {}}, "", environment));
  }
};

TEST_F(CudaRunStagesTest, TrainAsOneStageDoes) {
  const std::string all = "--steps 5 --eval-data data.safetensors --eval-every 2 --check-replicas 2 ";
  for (uint32_t dp : {1, 2}) {
    const Outcome one = train(1, dp, all + "--save-weights one --log-jsonl one.jsonl");
    ASSERT_EQ(one.code, 0) << one.err;
    const Outcome two = train(2, dp, all + "--save-weights two --log-jsonl two.jsonl");
    ASSERT_EQ(two.code, 0) << two.err;
    const auto expected = log("one.jsonl"), got = log("two.jsonl");
    ASSERT_EQ(got.size(), 5u);
    for (size_t i = 0; i < got.size(); ++i)
      for (const char *key : {"loss", "grad_norm", "eval_loss"})
        EXPECT_EQ(got[i].value(key, -1.0), expected[i].value(key, -1.0)) << key << " of step " << i + 1;
    EXPECT_EQ(readBytes(at("two")), readBytes(at("one")));
    // 4 / dp rows of h, 5 floats each, in each of 2 micro-batches; the norm; and dp sums 30 gradients.
    nlohmann::json sent = {{"send", {{"pp", 2 * 4 * 5 * (4 / dp)}}}, {"all_reduce", {{"pp", 8}}}};
    if (dp == 2)
      sent["all_reduce"]["dp"] = 4 * 30;
    EXPECT_EQ(got[0]["communication_bytes_by_axes"], sent);
  }
}

TEST_F(CudaRunStagesTest, ResumeOnAnotherNumberOfStages) {
  ASSERT_EQ(train(1, 1, "--steps 6 --save-weights whole").code, 0);
  ASSERT_EQ(train(2, 1, "--steps 3 --save saves").code, 0);
  for (uint32_t stages : {1, 2}) {
    const Outcome resumed = train(stages, 1, "--steps 6 --resume saves --save-weights resumed");
    ASSERT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(readBytes(at("resumed")), readBytes(at("whole"))) << stages;
  }
}

} // namespace
} // namespace ds::rt
