//===- TrainingRunsTest.cpp - Runs that others report, on every kind of machine -------===//
//
// Iteration times, tokens or operations per second that papers and repositories print of whole training runs,
// with as much of their settings as they give. None was used to fit the model but for the V100's rates. Runs
// are slower than benchmarks, and frameworks differ: the tolerance of each table says how far.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Estimate.h"
#include "ds/Cost/Formulas.h"

#include "AttentionKernels.h"
#include "Published.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace ds;
using namespace ds::cost;

/// What each layer of a micro-batch waits for the launches of a framework that launches op by op: 3 to 5 ms
/// are left over in such runs.
static constexpr double kEagerSeconds = 4e-3;

namespace {
/// A cluster, and what the run had of its own.
struct Machine {
  Machine(const char *name, AttentionKernel kernel = AttentionKernel::Own, double eagerSeconds = 0)
      : name(name), kernel(kernel), eagerSeconds(eagerSeconds) {}
  const char *name;
  AttentionKernel kernel;
  double eagerSeconds;
};
} // namespace

static Rates ratesOf(const Machine &machine) {
  Result<config::Cluster> cluster = config::readCluster(machine.name);
  EXPECT_TRUE(cluster) << machine.name;
  cluster->device.eagerOverheadSeconds = machine.eagerSeconds;
  return Rates(withKernel(*cluster, machine.kernel));
}

/// A GPT with another vocabulary and length.
static ModelShape gptOf(int64_t heads, int64_t hidden, int64_t layers, int64_t vocab, int64_t seq) {
  ModelShape shape = gpt(heads, hidden, layers);
  shape.vocab = vocab, shape.seq = seq;
  return shape;
}

/// A Llama: gated, without biases, dropout and a table of positions.
static ModelShape llama(int64_t heads, int64_t kvHeads, int64_t hidden, int64_t ffn, int64_t layers,
                        int64_t vocab, int64_t seq) {
  ModelShape shape = gptOf(heads, hidden, layers, vocab, seq);
  shape.kvHeads = kvHeads, shape.ffn = ffn;
  shape.gated = shape.rmsNorm = true;
  shape.biases = shape.dropout = shape.learnedPositions = shape.tied = false;
  return shape;
}

/// A plan of so many ranks: what tp and pp leave is data parallel, the batch divided over it.
static ParallelPlan planOf(int64_t ranks, int64_t batch, int64_t micro, int64_t tp = 1, int64_t pp = 1,
                           int64_t stage = 0) {
  ParallelPlan plan;
  plan.tp = tp, plan.pp = pp, plan.dp = ranks / tp / pp, plan.zeroStage = stage;
  plan.microBatch = micro, plan.accumulation = batch / plan.dp / micro;
  return plan;
}

/// With every layer computed again, as all runs of 2019 to 2022 were.
static ParallelPlan recomputing(ParallelPlan plan) {
  plan.recompute = Recompute::Full;
  return plan;
}

/// With fused attention and gradients added up in fp32, as runs since 2023 are.
static ParallelPlan modern(ParallelPlan plan) {
  plan.flashAttention = true;
  plan.gradientDtype = DType::F32;
  return plan;
}

/// What Megatron-LM calls sequence parallelism, exchanges beside products and virtual stages.
static ParallelPlan megatronCore(ParallelPlan plan, int64_t interleave) {
  plan.shardSequence = plan.overlapTensor = true;
  plan.interleave = interleave;
  return modern(plan);
}

/// Holds the step's time to the published one.
static void expectSeconds(const char *run, const Machine &machine, const ModelShape &shape,
                          const ParallelPlan &plan, double published, double tolerance) {
  Status status = checkPlan(shape, plan);
  ASSERT_TRUE(status) << run << ": " << status.error().message;
  double error = estimateStep(shape, plan, ratesOf(machine)).seconds / published - 1;
  EXPECT_LE(std::abs(error), tolerance) << run << " on " << machine.name << ": " << 100 * error << " %";
}

/// The same where the paper prints operations per device and second, counted with full recomputation.
static void expectRate(const char *run, const Machine &machine, const ModelShape &shape,
                       const ParallelPlan &plan, double teraflops, double tolerance) {
  double operations = megatronFlops(shape, static_cast<double>(plan.globalBatch()));
  expectSeconds(run, machine, shape, plan,
                operations / (static_cast<double>(plan.ranks()) * teraflops * 1e12), tolerance);
}

/// The same where it prints tokens per device and second.
static void expectTokens(const char *run, const Machine &machine, const ModelShape &shape,
                         const ParallelPlan &plan, double tokens, double tolerance) {
  double all = static_cast<double>(plan.globalBatch() * shape.seq);
  expectSeconds(run, machine, shape, plan, all / static_cast<double>(plan.ranks()) / tokens, tolerance);
}

TEST(TrainingRuns, A100InThreeDimensions) {
  // MT-NLG (arXiv 2201.11990, section 3.4): iteration seconds on 280, 350 and 420 nodes, batch 1920.
  ModelShape nlg = gpt(128, 20480, 105);
  for (auto [devices, seconds] : {std::pair<int64_t, double>{2240, 60.1}, {2800, 50.2}, {3360, 44.4}})
    expectSeconds("MT-NLG", "a100-80g", nlg, recomputing(planOf(devices, 1920, 1, 8, 35)), seconds, 0.25);
  // BLOOM (arXiv 2211.05100, section 3.4.3 and BigScience's chronicles): 150 TFLOP/s on 48 nodes.
  ParallelPlan bloom = recomputing(planOf(384, 2048, 2, 4, 12, 1));
  bloom.gradientDtype = DType::F32;
  expectRate("BLOOM", "a100-80g", gptOf(112, 14336, 70, 250880, 2048), bloom, 150, 0.15);
  // OPT (arXiv 2205.01068, section 2.3): 147 TFLOP/s on 992 devices.
  expectRate("OPT", "a100-80g", gptOf(96, 12288, 96, 50272, 2048), recomputing(planOf(992, 992, 8, 8, 1, 3)),
             147, 0.15);
  // GPT-NeoX-20B (arXiv 2204.06745, section 2.2): 117 TFLOP/s on 12 nodes.
  expectRate("GPT-NeoX-20B", "a100-40g", gptOf(64, 6144, 44, 50432, 2048),
             recomputing(planOf(96, 1536, 4, 2, 4, 1)), 117, 0.20);
  // GLM-130B (arXiv 2210.02414, section 2.3): 135 TFLOP/s on 96 nodes; its MLP is gated.
  ModelShape glm = llama(96, 96, 12288, 32768, 70, 150528, 2048);
  ParallelPlan plan = recomputing(planOf(768, 4224, 1, 4, 8, 1));
  expectSeconds("GLM-130B", "a100-40g", glm, plan, stepFlops(glm, plan, true) / (768 * 135e12), 0.25);
  // LLaMA 65B (arXiv 2302.13971, section 2.4): 380 tokens per second and device on 2048, batch of 4M tokens,
  // attention of xformers.
  expectTokens("LLaMA-65B", {"a100-80g", AttentionKernel::Xformers},
               llama(64, 64, 8192, 22016, 80, 32000, 2048), modern(planOf(2048, 2048, 8, 8, 1, 3)), 380,
               0.25);
}

TEST(TrainingRuns, A100FullySharded) {
  // The first two run PyTorch op by op, the third with fused kernels of its own.
  const Machine eager("a100-80g", AttentionKernel::Own, kEagerSeconds);
  // pytorch.org/blog/maximizing-training: Llama 2 on 128 devices; 13B recomputes some layers, the larger all.
  expectTokens("FSDP 7B", eager, llama(32, 32, 4096, 11008, 32, 32000, 4096),
               modern(planOf(128, 256, 2, 1, 1, 3)), 3700, 0.15);
  expectTokens("FSDP 34B", eager, llama(64, 8, 8192, 22016, 48, 32000, 4096),
               modern(recomputing(planOf(128, 256, 2, 1, 1, 3))), 700, 0.15);
  expectTokens("FSDP 70B", eager, llama(64, 8, 8192, 28672, 80, 32000, 4096),
               modern(recomputing(planOf(128, 256, 2, 1, 1, 3))), 370, 0.15);
  // github.com/pytorch/torchtitan, docs/performance.md: Llama 3 on 64 devices.
  expectTokens("torchtitan 70B", eager, llama(64, 8, 8192, 28672, 80, 128256, 8192),
               modern(recomputing(planOf(64, 64, 1, 1, 1, 3))), 331, 0.15);
  expectTokens("torchtitan 8B", eager, llama(32, 8, 4096, 14336, 32, 128256, 8192),
               modern(planOf(64, 64, 1, 1, 1, 3)), 2973, 0.15);
  // github.com/jzhang38/TinyLlama: 24,000 tokens per second and device on 16.
  expectTokens("TinyLlama", "a100-40g", llama(32, 4, 2048, 5632, 22, 32000, 2048),
               modern(planOf(16, 256, 8, 1, 1, 3)), 24000, 0.15);
}

TEST(TrainingRuns, A100WithOneNode) {
  // FlashAttention-2 (arXiv 2307.08691, table 1): TFLOP/s per device of eight, with and without fused
  // attention, counted as 6 N + 12 L h s per token. The layers' sizes are GPT-3's.
  struct Row {
    int64_t heads, hidden, seq, micro;
    bool fused;
    double rate;
  };
  for (Row row : {Row{16, 2048, 2048, 4, true, 196}, Row{16, 2048, 8192, 1, true, 220},
                  Row{20, 2560, 2048, 4, true, 205}, Row{20, 2560, 8192, 1, true, 225},
                  Row{16, 2048, 2048, 4, false, 142}, Row{20, 2560, 2048, 4, false, 149}}) {
    ModelShape shape = gptOf(row.heads, row.hidden, row.hidden == 2048 ? 24 : 32, 50304, row.seq);
    shape.dropout = false;
    ParallelPlan plan = planOf(8, 256, row.micro);
    plan.flashAttention = row.fused;
    double perToken = 6 * static_cast<double>(shape.parameters()) +
                      12 * static_cast<double>(shape.layers * shape.hidden * shape.seq);
    expectTokens("FlashAttention-2", "a100-80g", shape, plan, row.rate * 1e12 / perToken, 0.25);
  }
}

TEST(TrainingRuns, H100) {
  const Machine hopper("h100-80g", AttentionKernel::FlashAttention3);
  // Megatron-LM's README: vocabulary 131072, sequences of 4096, batch 1152; the degrees are ours.
  ModelShape gpt3 = gptOf(96, 12288, 96, 131072, 4096);
  gpt3.dropout = false;
  for (auto [devices, share] : {std::pair<int64_t, double>{96, 0.47}, {4608, 0.42}}) {
    ParallelPlan plan = megatronCore(planOf(devices, 1152, 1, 4, 8, 1), 12);
    double seconds = stepFlops(gpt3, plan, false) / (static_cast<double>(devices) * share * 989e12);
    expectSeconds("GPT-3 on H100", hopper, gpt3, plan, seconds, 0.15);
  }
  // Llama 3 405B (arXiv 2407.21783, table 4): 16M tokens, TP 8, PP 16.
  ModelShape llama3 = llama(128, 8, 16384, 53248, 128, 128256, 8192); // 126 layers and both ends
  for (auto [devices, rate] : {std::pair<int64_t, double>{8192, 430}, {16384, 400}}) {
    ParallelPlan plan = megatronCore(planOf(devices, 2048, 1, 8, 16, 1), 8);
    double seconds = stepFlops(llama3, plan, false) / (static_cast<double>(devices) * rate * 1e12);
    expectSeconds("Llama 3 405B", hopper, llama3, plan, seconds, 0.20);
  }
  // Nemotron-4 340B (arXiv 2406.11704, table 2): TP 8, PP 12 with virtual stages.
  ModelShape nemotron = gptOf(96, 18432, 96, 256000, 4096);
  nemotron.kvHeads = 8;
  nemotron.biases = nemotron.dropout = nemotron.learnedPositions = nemotron.tied = false;
  struct Row {
    int64_t devices, batch;
    double seconds;
  };
  for (Row row : {Row{1536, 768, 10.3}, Row{3072, 1536, 10.3}, Row{6144, 2304, 8.0}})
    expectSeconds("Nemotron-4 340B", hopper, nemotron,
                  megatronCore(planOf(row.devices, row.batch, 1, 8, 12, 1), 8), row.seconds, 0.20);
  // github.com/karpathy/llm.c, discussion 677: GPT-2 1558M on eight devices, 2^20 tokens a step.
  ModelShape xl = gptOf(25, 1600, 48, 50304, 1024);
  xl.dropout = false;
  ParallelPlan plan = planOf(8, 1024, 16, 1, 1, 1);
  plan.flashAttention = true;
  expectSeconds("llm.c 1558M", hopper, xl, plan, 2.951, 0.25);
  // pytorch.org/blog/maximizing-training: Llama 2 on 96 devices, op by op.
  const Machine eager("h100-80g", AttentionKernel::FlashAttention2, kEagerSeconds);
  expectTokens("FSDP 7B H100", eager, llama(32, 32, 4096, 11008, 32, 32000, 4096),
               modern(planOf(96, 192, 2, 1, 1, 3)), 7500, 0.25);
  expectTokens("FSDP 70B H100", eager, llama(64, 8, 8192, 28672, 80, 32000, 4096),
               modern(recomputing(planOf(96, 192, 2, 1, 1, 3))), 800, 0.25);
}

TEST(TrainingRuns, H100WithTheKernelsOf2025) {
  // NeMo 25.02 (github.com/NVIDIA/dgxc-benchmarking): steps of DGX H100 without recomputation, tensor
  // parallelism beside products, the optimizer distributed; cuDNN's attention.
  const Machine hopper("h100-80g", AttentionKernel::Cudnn);
  struct Row {
    const char *run;
    ModelShape shape;
    int64_t devices, tp, pp, sp, interleave, batch;
    double seconds;
  };
  for (const Row &row :
       {Row{"Llama 3.1 70B", llama(64, 8, 8192, 28672, 80, 128256, 8192), 64, 4, 4, 2, 5, 128, 14.66},
        Row{"Llama 3.1 405B", llama(128, 8, 16384, 53248, 128, 128256, 8192), 512, 8, 8, 2, 8, 256, 19.78},
        Row{"GPT-3 175B", gptOf(96, 12288, 96, 51200, 2048), 128, 4, 8, 1, 6, 256, 8.309},
        Row{"Llama 3 8B", llama(32, 8, 4096, 14336, 32, 128256, 4096), 8, 1, 1, 1, 1, 32, 1.32}}) {
    ModelShape shape = row.shape;
    shape.dropout = false;
    ParallelPlan plan =
        megatronCore(planOf(row.devices / row.sp, row.batch, 1, row.tp, row.pp, 1), row.interleave);
    plan.sp = row.sp;
    plan.shardSequence = row.tp > 1;
    expectSeconds(row.run, hopper, shape, plan, row.seconds, 0.15);
  }
}

TEST(TrainingRuns, V100WithTensorParallelism) {
  // Megatron-LM (arXiv 1909.08053, section 5.1): 39 TFLOP/s on one device, scaled weakly.
  struct Row {
    int64_t heads, hidden, layers, tp;
    double alone, parallel; // efficiency on tp devices with batch 8, on 64 tp devices with batch 512
  };
  for (Row row : {Row{16, 1536, 40, 1, 1, 0.96}, Row{20, 1920, 54, 2, 0.95, 0.83},
                  Row{24, 2304, 64, 4, 0.82, 0.79}, Row{32, 3072, 72, 8, 0.77, 0.74}}) {
    ModelShape shape = gptOf(row.heads, row.hidden, row.layers, 51200, 1024);
    ParallelPlan plan = recomputing(planOf(row.tp, 8, 8, row.tp));
    plan.dtype = plan.gradientDtype = DType::F16;
    expectRate("Megatron-LM", "dgx-2", shape, plan, 39 * row.alone, 0.12);
    plan.dp = 64;
    expectRate("Megatron-LM, 64 replicas", "dgx-2", shape, plan, 39 * row.parallel, 0.12);
  }
}

TEST(TrainingRuns, V100WithZero) {
  // ZeRO (arXiv 1910.02054, section 10.2 and table 5): 38 TFLOP/s on 400 devices for 8B to 100B.
  struct Row {
    int64_t tp, layers, hidden, micro;
  };
  for (Row row : {Row{4, 72, 3072, 64}, Row{4, 98, 4096, 32}, Row{4, 88, 6144, 12}, Row{16, 132, 6144, 64},
                  Row{16, 100, 8192, 32}, Row{16, 125, 8192, 32}}) {
    ParallelPlan plan = recomputing(planOf(400, row.micro * 400 / row.tp, row.micro, row.tp, 1, 2));
    plan.partitionCheckpoints = true;
    plan.dtype = plan.gradientDtype = DType::F16;
    expectRate("ZeRO", "dgx-2", gptOf(row.hidden / 128, row.hidden, row.layers, 51200, 1024), plan, 38, 0.20);
  }
}

TEST(TrainingRuns, V100WithOffload) {
  // ZeRO-Offload (arXiv 2101.06840, section 6.2.2): 10B on one device at 40 TFLOP/s.
  ParallelPlan plan = recomputing(planOf(1, 128, 8, 1, 1, 2));
  plan.optimizerHome = Home::Cpu;
  plan.dtype = plan.gradientDtype = DType::F16;
  expectRate("ZeRO-Offload 10B", "1x-v100-32g", gptOf(32, 4096, 50, 51200, 1024), plan, 40, 0.20);
  // ZeRO-Infinity (arXiv 2104.07857, figure 5a): 0.5T at 49 and 20T at 34 TFLOP/s per device of 512.
  struct Row {
    int64_t hidden, layers, tp, micro;
    Home parameter;
    double rate;
  };
  for (Row row : {Row{18432, 124, 1, 7, Home::Device, 49}, Row{90112, 205, 8, 10, Home::Nvme, 34}}) {
    ParallelPlan infinity = recomputing(planOf(512, row.micro * 512 / row.tp, row.micro, row.tp, 1, 3));
    infinity.parameterHome = row.parameter;
    infinity.optimizerHome = row.parameter == Home::Nvme ? Home::Nvme : Home::Cpu;
    infinity.checkpointHome = Home::Cpu;
    infinity.dtype = infinity.gradientDtype = DType::F16;
    expectRate("ZeRO-Infinity", "dgx-2", gptOf(row.hidden / 256, row.hidden, row.layers, 51200, 1024),
               infinity, row.rate, 0.25);
  }
}

TEST(TrainingRuns, ConsumerDevices) {
  // tylerromero.com/posts/nanogpt-speedrun-worklog: llm.c's PyTorch trainer, GPT-2 124M on two RTX 4090, half
  // a million tokens a step: 221,000 tokens per second.
  ModelShape small = gptOf(12, 768, 12, 50304, 1024);
  small.dropout = false;
  ParallelPlan plan = planOf(2, 512, 16);
  plan.flashAttention = true;
  expectTokens("GPT-2 124M", "2x-rtx4090", small, plan, 221000 / 2.0, 0.20);
}
