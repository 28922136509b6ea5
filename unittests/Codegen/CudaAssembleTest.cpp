//===- CudaAssembleTest.cpp - Random kernels through ptxas ----------------------===//
//
// The kernels of CudaFuzz as PTX: ptxas must take every one, and none may spill a register or use local
// memory, which would be arrays that are indexed at run time.
//
//===---------------------------------------------------------------------------===//
#include "RandomKernels.h"
#include "ds/Codegen/CompileCuda.h"
#include "llvm/ADT/STLExtras.h"
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <regex>
#include <unistd.h>

using namespace ds::test;

namespace {

constexpr int kKernels = 15;

/// What a command prints, both streams.
std::string outputOf(const std::string &command) {
  std::string text;
  FILE *pipe = popen((command + " 2>&1").c_str(), "r");
  for (char part[4096]; pipe && fgets(part, sizeof part, pipe);)
    text += part;
  if (pipe && pclose(pipe) != 0)
    text += "exit code other than 0\n";
  return text;
}

/// ptxas as code generation finds it; empty where there is none.
std::string findPtxas() {
  std::string path = outputOf("PATH=$PATH:/usr/local/cuda/bin command -v ptxas");
  return path.empty() || path[0] != '/' ? "" : path.substr(0, path.find('\n'));
}

/// The PTX of `kernels`, all operands on 16 bytes.
std::string writePtx(const RandomKernels &kernels, const std::string &processor) {
  KernelHarness harness(kernels.text);
  auto ops = llvm::to_vector(harness.getModule().getOps<mlir::ds::KernelOp>());
  std::vector<std::vector<uint32_t>> alignments;
  for (mlir::ds::KernelOp op : ops)
    alignments.emplace_back(op.getBuffers().size(), 16);
  auto compiled = mlir::ds::compileCudaKernels(ops, alignments, processor);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message);
  return compiled ? std::string(compiled->image.begin(), compiled->image.end() - 1) : "";
}

class CudaAssemble : public testing::TestWithParam<std::tuple<const char *, unsigned>> {};

TEST_P(CudaAssemble, TakesEveryKernelWithoutSpilling) {
  const std::string ptxas = findPtxas();
  if (ptxas.empty())
    GTEST_SKIP() << "no ptxas here";
  auto [element, seed] = GetParam();
  RandomKernels kernels = writeKernels(seed, element, kKernels);
  ASSERT_EQ(int(kernels.sources.size()), kKernels);
  for (std::string processor : {"sm_80", "sm_90"}) {
    char path[] = "/tmp/ds-assemble-XXXXXX";
    const int file = mkstemp(path);
    ASSERT_GE(file, 0);
    close(file);
    std::ofstream(path) << writePtx(kernels, processor);
    const std::string said = outputOf(ptxas + " -v -arch=" + processor + " " + path + " -o /dev/null");
    unlink(path);
    const std::regex line("(\\d+) bytes stack frame, (\\d+) bytes spill stores, (\\d+) bytes spill loads");
    int entries = 0;
    for (std::sregex_iterator it(said.begin(), said.end(), line), end; it != end; ++it, ++entries)
      EXPECT_EQ(it->str(), "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") << said;
    EXPECT_EQ(entries, kKernels) << processor << "\n" << said;
  }
}

INSTANTIATE_TEST_SUITE_P(Random, CudaAssemble,
                         testing::Combine(testing::Values("f32", "bf16", "f16"), testing::Range(1u, 3u)));

} // namespace
