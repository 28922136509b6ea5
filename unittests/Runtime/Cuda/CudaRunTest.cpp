//===- CudaRunTest.cpp - ds-run --device cuda without a GPU ------------------------------===//
//
// The real binary on the fake device: what it prints, its numbers against the CPU's, and its exit codes.
//
//===---------------------------------------------------------------------------===//
#include "RunFixture.h"
#include "ToCuda.h"

namespace ds::rt {
namespace {

using namespace test;
using testing::HasSubstr;

/// The regression, its gradients gathered over two micro-steps.
Program gathered() {
  ProgramBuilder b;
  b.program = regression();
  b.accumulate(2);
  return b.program;
}

class CudaRunTest : public RunFixture {
protected:
  CudaRunTest() {
    write(gathered(), "cpu.dsx");
    Program program = gathered();
    toCuda(program);
    write(program, "p.dsx");
  }

  /// ds-run with the fake device and more of the environment.
  Outcome runCuda(const std::string &options, std::vector<std::string> more = {},
                  const std::string &file = "p.dsx") {
    std::vector<std::string> environment = {
        "DS_CUDA_DRIVER=" DS_FAKE_CUDA, "DS_CUBLASLT=" DS_FAKE_CUDA,      "DS_NVML=" DS_FAKE_CUDA,
        "DS_CACHE_DIR=" + at("cache"),  "DS_FAKE_PROGRAM=" + at("p.dsx"), "DS_FAKE_TWIN=" + at("cpu.dsx")};
    environment.insert(environment.end(), more.begin(), more.end());
    std::istringstream words(file + " --device cuda --data data.safetensors " + options);
    return finish(start({std::istream_iterator<std::string>(words), {}}, "", environment));
  }
};

TEST_F(CudaRunTest, TrainsAsOnTheCpu) {
  const std::string options = " --steps 20 --eval-data data.safetensors --eval-every 5";
  const Outcome cuda =
      runCuda(options + " --log-jsonl cuda.jsonl --save-weights cuda.safetensors --trace trace.json");
  ASSERT_EQ(cuda.code, 0) << cuda.err;
  EXPECT_THAT(cuda.err, HasSubstr("Fake GPU (sm_90, 4 multiprocessors), driver for CUDA 13.0"));
  EXPECT_THAT(cuda.err, HasSubstr("in arenas of"));
  EXPECT_THAT(cuda.err, HasSubstr("; ready after "));
  ASSERT_EQ(runCuda(options + " --log-jsonl again.jsonl --save-weights again.safetensors").code, 0);
  std::istringstream words("cpu.dsx --data data.safetensors --log-jsonl cpu.jsonl" + options);
  ASSERT_EQ(finish(start({std::istream_iterator<std::string>(words), {}})).code, 0);
  const auto a = log("cuda.jsonl"), b = log("cpu.jsonl");
  ASSERT_EQ(a.size(), 20u);
  std::vector<std::string> phases;
  for (const auto &[phase, seconds] : a[0]["startup_seconds"].items())
    phases.push_back(phase);
  EXPECT_THAT(phases,
              testing::UnorderedElementsAre("device", "program", "files", "ranks", "kernels", "memory",
                                            "commands", "choices", "load", "states", "agreement"));
  EXPECT_FALSE(a[1].contains("startup_seconds"));
  for (size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i]["loss"].get<double>(), b[i]["loss"].get<double>(), 1e-4 * b[i]["loss"].get<double>());
    EXPECT_EQ(a[i].contains("eval_loss"), b[i].contains("eval_loss"));
  }
  EXPECT_EQ(readBytes(at("cuda.safetensors")), readBytes(at("again.safetensors")))
      << "with graphs and, for the trace, without";
  const auto trace = nlohmann::json::parse(std::ifstream(at("trace.json")));
  size_t slices = 0;
  for (const auto &event : trace["traceEvents"])
    slices += event["ph"] == "X";
  EXPECT_EQ(slices, 19u * 2 * 5) << "the first step is not measured";
}

TEST_F(CudaRunTest, StartsFromAWeightsFile) {
  ASSERT_EQ(runCuda("--steps 3 --save-weights a.safetensors").code, 0);
  ASSERT_EQ(runCuda("--steps 0 --weights a.safetensors --save-weights b.safetensors").code, 0);
  EXPECT_EQ(readBytes(at("a.safetensors")), readBytes(at("b.safetensors")));
}

/// What goes wrong, what is set for it, and how ds-run ends.
TEST_F(CudaRunTest, EndsAsDocumented) {
  struct Bad {
    std::vector<std::string> environment;
    int code;
    const char *message;
  };
  const Bad cases[] = {
      {{"DS_CUDA_DRIVER=/nowhere/libcuda.so.1"}, 9, "no CUDA device: NVIDIA's driver is missing: /nowhere"},
      {{"DS_FAKE_DEVICES=0"}, 9, "no CUDA device: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE)"},
      {{"DS_FAKE_DRIVER=12040"},
       9,
       "the NVIDIA driver is too old: it supports CUDA 12.4, but 13.0 is needed"},
      {{"DS_FAKE_ARCH=80"}, 9, "p.dsx: the program was compiled for cuda:sm_90, but Fake GPU is sm_80"},
      {{"DS_FAKE_MEMORY=65536"}, 4, "p.dsx: the device arena takes"},
      {{"DS_CUBLASLT=/nowhere/libcublasLt.so"}, 9, "matrix products need cuBLASLt 13.0 or later: /nowhere"},
      {{"DS_FAKE_FAULT=ds_descend 1"}, 9, "step 1: commands[4]: the device failed: an illegal memory access"},
      {{"DS_FAKE_FAULT=ds_descend 6"}, 9, "step 3: after commands["},
  };
  for (const Bad &bad : cases) {
    const Outcome outcome = runCuda("--steps 5", bad.environment);
    EXPECT_EQ(outcome.code, bad.code) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(bad.message));
  }
}

/// NVIDIA's own libraries have every function that is used, under the names that are asked for; without a GPU
/// they then refuse.
TEST_F(CudaRunTest, FindsEveryFunctionInTheRealLibraries) {
  const std::string folder = DS_CUDA_LIBRARIES;
  const std::string driver = folder + "/stubs/libcuda.so", blas = folder + "/libcublasLt.so.13";
  if (!fs::exists(driver) || !fs::exists(blas))
    GTEST_SKIP() << "not in " << folder;
  const Outcome first = runCuda("--steps 1", {"DS_CUDA_DRIVER=" + driver});
  EXPECT_EQ(first.code, 9) << first.err;
  EXPECT_THAT(first.err, HasSubstr("no CUDA device: "));
  EXPECT_THAT(first.err, HasSubstr("CUDA error 34")); // CUDA_ERROR_STUB_LIBRARY
  const Outcome second = runCuda("--steps 1", {"DS_CUBLASLT=" + blas});
  EXPECT_EQ(second.code, 9) << second.err;
  EXPECT_THAT(second.err, HasSubstr("cuBLASLt, making a handle: "));
}

TEST_F(CudaRunTest, SaysOnceThatStepsAreNoGraphs) {
  ASSERT_EQ(runCuda("--steps 3 --log-jsonl good.jsonl").code, 0);
  const auto good = log("good.jsonl");
  EXPECT_EQ(good[0]["graph"], false) << "the first step waits after each command";
  EXPECT_EQ(good[1]["graph"], true);
  EXPECT_FALSE(good[1].contains("graph_reason"));
  const Outcome outcome = runCuda("--steps 4 --log-jsonl bad.jsonl", {"DS_FAKE_UNRECORDABLE=ds_descend"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const size_t told = outcome.err.find("ds-run: step 2: no CUDA graph can be recorded");
  EXPECT_NE(told, std::string::npos) << outcome.err;
  EXPECT_EQ(told, outcome.err.rfind("ds-run: step 2: no CUDA graph"));
  EXPECT_THAT(outcome.err, testing::Not(HasSubstr("step 3: no CUDA")));
  const auto bad = log("bad.jsonl");
  EXPECT_FALSE(bad[0].contains("graph_reason"));
  for (size_t step = 1; step < 4; ++step) {
    EXPECT_EQ(bad[step]["graph"], false);
    EXPECT_THAT(bad[step].value("graph_reason", ""), HasSubstr("commands[4]: launching the kernel"));
  }
}

TEST_F(CudaRunTest, StopsAtANaN) {
  writeData("data.safetensors", 64, 20);
  const Outcome outcome = runCuda("--steps 5");
  EXPECT_EQ(outcome.code, 8) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("step 2: the loss is nan"));
}

TEST_F(CudaRunTest, DeviceAndProgramMustAgree) {
  const Outcome wrong = runCuda("--steps 1", {}, "cpu.dsx");
  EXPECT_EQ(wrong.code, 9);
  EXPECT_THAT(wrong.err, HasSubstr("--device cuda: cpu.dsx was compiled for cpu"));
  const Outcome other = run("--data data.safetensors --steps 1");
  EXPECT_EQ(other.code, 9);
  EXPECT_THAT(other.err, HasSubstr("--device cpu: p.dsx was compiled for cuda:sm_90"));
}

} // namespace
} // namespace ds::rt
