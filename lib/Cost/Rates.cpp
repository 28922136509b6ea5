//===- Rates.cpp - Seconds of an op, a collective, a copy ----------------------------===//
//
// Collectives inside a node are rings: n - 1 steps for a gather or a reduce-scatter, twice that for an
// all-reduce, each with the link's latency, at the bus bandwidth that rings of n ranks reach. A switch that
// reduces does an all-reduce in two hops. Across nodes the bytes that must enter a node cross its ports while
// the ring goes on inside, so that the slower of the two counts, and latency grows with nodes, not with
// ranks; short all-reduces go up and down a tree instead.
//
//===---------------------------------------------------------------------------===//
#include "ds/Cost/Rates.h"

#include "Products.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

namespace ds::cost {

Rates::Rates() : machine(config::builtinCluster("cpu")) {}

Rates::Rates(config::Cluster cluster) : machine(std::move(cluster)) {}

Rates Rates::ofProgram() const {
  config::Cluster cluster = machine;
  if (cluster.device.graphLaunchSeconds > 0)
    cluster.device.launchSeconds = cluster.device.graphLaunchSeconds;
  cluster.device.launchSeconds += std::exchange(cluster.device.kernels.shortestSeconds, 0);
  cluster.device.graphLaunchSeconds = 0; // of a program already
  return Rates(std::move(cluster));
}

/// Operations per second of a product whose sides are `size` long.
static double matmulRate(const config::DeviceSpec &device, double size, DType dtype) {
  const config::Curve &curve = device.matmulFlops[dtype];
  const config::Curve &used = curve.empty() ? device.matmulFlops[DType::F32] : curve;
  double first = used.points.front().first;
  // Below the table the rate falls with the size: a launch's worth of latency fills the time.
  return used.at(size) * std::min(1.0, size / first);
}

double Rates::memorySeconds(double bytes) const {
  return bytes / (machine.device.memoryBytesPerSecond * machine.device.memoryEfficiency) +
         machine.device.launchSeconds;
}

double Rates::computeSeconds(double flops, double bytes, DType dtype) const {
  double moving = bytes / (machine.device.memoryBytesPerSecond * machine.device.memoryEfficiency);
  double working = flops > 0 ? flops / matmulRate(machine.device, std::cbrt(flops / 2), dtype) : 0;
  return std::max(moving, working) + machine.device.launchSeconds;
}

/// Seconds of the operations alone. A batch fills the device as one larger product would, but each product's
/// tiles stay its own.
static double workingSeconds(const Matmul &shape, const config::DeviceSpec &device, DType dtype) {
  double one = shape.m * shape.n * shape.k;
  double size = std::cbrt(one) * std::min(std::cbrt(shape.batch), 4.0);
  return one > 0 && shape.batch > 0 ? 2 * one * shape.batch / matmulRate(device, size, dtype) : 0;
}

/// A product by the table of shapes, whose rates hold the launch. Products of a batch follow one another.
static double shapeSeconds(const Matmul &shape, const config::ShapeTable &table) {
  // With both operands transposed the mean of the two forms counts: nothing in a training step has it.
  auto rate = [&](size_t form) { return table.at({shape.m, shape.n, shape.k}, form); };
  double each = shape.transposeA && shape.transposeB ? (rate(1) + rate(2)) / 2
                                                     : rate(shape.transposeA   ? 2
                                                            : shape.transposeB ? 1
                                                                               : 0);
  return 2 * shape.m * shape.n * shape.k * shape.batch / each;
}

/// Share of what a GPU's multiprocessors compute for a product that is of use: tiles reach beyond the result
/// (tile quantisation), and the last wave of tiles does not fill the device (wave quantisation; NVIDIA,
/// Matrix Multiplication Background User's Guide, section 3). Rates are measured with half a wave empty on
/// average, so only what is worse than that counts; less than one wave is what small sizes have in the table
/// of rates.
static double usefulShare(const Matmul &shape, const config::DeviceSpec &device) {
  if (device.multiprocessors == 0 || shape.m <= 0 || shape.n <= 0)
    return 1;
  // Tiles are at least as fine as a 64th, or for short sides as the 32 and 16 that cuBLAS has kernels for.
  auto padded = [](double size) {
    double step = size > 256 ? 64 : size > 16 ? 32 : 16;
    return std::ceil(size / step) * step;
  };
  auto filled = [&](double rows, double columns) {
    double tiles = shape.batch * std::ceil(shape.m / rows) * std::ceil(shape.n / columns);
    double waves = tiles / static_cast<double>(device.multiprocessors);
    return waves > 1 ? std::min(1.0, (waves + 0.5) / std::ceil(waves)) : 1;
  };
  // The library takes half tiles where these end better.
  double wave = std::max(filled(128, 128), filled(128, 64));
  return wave * shape.m * shape.n / (padded(shape.m) * padded(shape.n));
}

/// Share of the rate that 16-bit products reach whose rows begin at no multiple of 16 bytes: nanoGPT's step
/// became a quarter longer by a vocabulary of 50257 in place of 50304, whose products are a quarter of it.
static constexpr double kUnalignedShare = 0.5;

/// What an epilogue moves beside a product's operands, after the last summand.
static double besideSeconds(const Matmul &shape, const config::DeviceSpec &device) {
  const double rate = device.kernels.epilogueBytesPerSecond;
  return shape.besideBytes / (rate > 0 ? rate : device.memoryBytesPerSecond * device.memoryEfficiency);
}

double Rates::matmulSeconds(const Matmul &shape, DType dtype) const {
  const config::DeviceSpec &device = machine.device;
  const double beside = besideSeconds(shape, device);
  const config::ShapeTable &table = device.matmulShapes[dtype];
  double bytes = static_cast<double>(bytesOf(dtype)) * shape.batch *
                 (shape.m * shape.k + shape.k * shape.n + shape.m * shape.n);
  const bool isNarrow = dtype != DType::F32;
  if (std::optional<double> odd = isNarrow ? unalignedSeconds(shape, device) : std::nullopt)
    return std::max(*odd + device.launchSeconds, memorySeconds(bytes)) + beside;
  if (!table.empty() && shape.m * shape.n * shape.k > 0)
    return shapeSeconds(shape, table) + beside;
  if (isNarrow && !device.kernels.tileFlops.empty())
    return std::max(tiledSeconds(shape, device) + device.launchSeconds, memorySeconds(bytes)) + beside;
  double useful = usefulShare(shape, device);
  if (shape.isUnaligned && isNarrow && device.multiprocessors > 0)
    useful *= kUnalignedShare;
  const double working = workingSeconds(shape, device, dtype) / useful;
  return std::max(working + device.launchSeconds, memorySeconds(bytes)) + beside;
}

double Rates::convolutionSeconds(const Matmul &shape, double bytes, DType dtype) const {
  const config::ShapeTable &table = machine.device.matmulShapes[dtype];
  double working = table.empty() ? workingSeconds(shape, machine.device, dtype) + machine.device.launchSeconds
                                 : shapeSeconds(shape, table);
  return std::max(working, memorySeconds(bytes));
}

/// Share of a GPU's multiprocessors that have one of the blocks of 128 queries which attention is divided
/// into (arXiv 2307.08691, section 3.2); rates are measured with many more.
static double filledShare(const rt::AttentionWork &work, const config::DeviceSpec &device) {
  constexpr double kBlockQueries = 128;
  double blocks = work.heads * std::ceil(work.queries / kBlockQueries);
  return device.multiprocessors > 0 ? std::min(1.0, blocks / static_cast<double>(device.multiprocessors)) : 1;
}

/// What a gradient that is added up in any order reaches of forward's rate of the same sizes. Tables have the
/// gradient that repeats its bits. Of cuDNN 9.19.1 NVIDIA publishes, on an H200, for 64 query and 8 key heads
/// of 128, causal, forward and backward, TFLOP/s: 484 and 370 at 2048 positions, 591 and 474 at 4096, 644 and
/// 541 at 8192, 673 and 579 at 16384, 688 and 581 at 32768: 0.76 to 0.86.
static constexpr double kFastGradientShare = 0.8;

/// Operations per second of a fused attention by the table of `device`.
static double attentionRate(const rt::AttentionWork &work, const config::DeviceSpec &device) {
  const std::vector<double> at = {work.keys, work.width};
  if (!work.isGradient)
    return device.attentionShapes.at(at, 0);
  const double exact = device.attentionShapes.at(at, 1);
  return work.isFast ? std::max(exact, kFastGradientShare * device.attentionShapes.at(at, 0)) : exact;
}

double Rates::attentionSeconds(const rt::AttentionWork &work, double bytes, DType dtype) const {
  const config::DeviceSpec &device = machine.device;
  double flops = rt::attentionFlops(work);
  // A GPU's table is of its 16-bit units, a processor's of what its library computes in.
  bool isTableFor = dtype != DType::F32 || !device.architecture.starts_with("sm_");
  if (device.attentionShapes.empty() || !isTableFor)
    return computeSeconds(flops / device.attentionEfficiency, bytes, dtype);
  const double perWeight =
      work.isGradient ? device.kernels.droppedGradientSeconds : device.kernels.droppedScoreSeconds;
  return device.launchSeconds + device.forkSeconds +
         flops / (attentionRate(work, device) * filledShare(work, device)) +
         (work.drops ? work.heads * work.queries * work.keys * perWeight : 0);
}

/// Of a kernel whose operands lie as far away as if it touched `reach` bytes, by the table of what it does.
static double bandwidth(const KernelLoad &load, double reach, const config::DeviceSpec &device) {
  if (load.stripBytes > 0 && !device.columnBytesPerSecond.empty())
    return device.columnBytesPerSecond.at({load.stripBytes, reach}, 0);
  if (load.updates && !device.updateBytesPerSecond.empty())
    return device.updateBytesPerSecond.at(reach);
  return device.cachedBytesPerSecond.at(reach);
}

/// Share of a block's threads that have a part of a row, of which each takes 16 bytes at a time: a row of
/// 1600 elements of 16 bits is 200 vectors, for 7 warps of 32 threads (224). Short rows share blocks.
static double busyShare(const KernelLoad &load) {
  constexpr double kWarp = 32;
  if (load.rowVectors <= kWarp)
    return 1;
  return load.rowVectors / (std::ceil(load.rowVectors / kWarp) * kWarp);
}

/// Seconds of a kernel's memory alone.
static double movingSeconds(const KernelLoad &load, const config::DeviceSpec &device) {
  if (load.columnSums > 0 && !device.kernels.columnBytesPerSecond.empty())
    return load.bytes / device.kernels.columnBytesPerSecond.at(load.columnSums);
  if (device.cachedBytesPerSecond.empty())
    return load.bytes / (device.memoryBytesPerSecond * device.memoryEfficiency * busyShare(load));
  if (load.reuse.empty())
    return (load.bytes + load.freshBytes) / bandwidth(load, load.bytes, device);
  double seconds = 0;
  for (auto [bytes, since] : load.reuse)
    seconds += bytes / bandwidth(load, std::max(load.bytes, since), device);
  return seconds;
}

double Rates::kernelSeconds(const KernelLoad &load) const {
  const config::DeviceSpec &device = machine.device;
  double moving = movingSeconds(load, device);
  double work =
      load.additions + load.divisions * device.divisionAdditions + load.roots * device.rootAdditions;
  double working = device.vectorFlops > 0 ? work / device.vectorFlops + load.rows * device.rowSeconds : 0.0;
  // Loads run ahead of arithmetic, but not all the time: of the shorter part a third was seen to be left.
  double seconds = std::max(moving, working) + std::min(moving, working) / 3;
  // What takes less than dividing it stays on one core.
  return device.launchSeconds + seconds + (seconds > device.forkSeconds ? device.forkSeconds : 0.0);
}

double Rates::functionSeconds(std::string_view name, double bytes, double indices) const {
  if (indices > 0) // each token reads all others' indices
    return functionSeconds(name, bytes) + indices * indices * machine.device.kernels.embeddingPairSeconds;
  auto known = machine.device.functionBytesPerSecond.find(name);
  if (known == machine.device.functionBytesPerSecond.end())
    return memorySeconds(bytes);
  // Measured with all that is in it; below the first size nothing gets shorter.
  return std::max(bytes, known->second.points.front().first) / known->second.at(bytes);
}

Group Rates::group(int64_t ranks, int64_t stride) const {
  assert(ranks > 0 && stride > 0 && "a group has ranks");
  int64_t perNode = std::max<int64_t>(1, machine.devicesPerNode / stride);
  return {ranks, std::min(ranks, perNode)};
}

double Rates::bytesSent(Collective kind, double bytesPerRank, int64_t ranks) {
  double others = static_cast<double>(ranks - 1), all = static_cast<double>(ranks);
  switch (kind) {
  case Collective::AllGather:
  case Collective::ReduceScatter:
    return others * bytesPerRank;
  case Collective::AllReduce:
    return 2 * others / all * bytesPerRank;
  case Collective::AllToAll:
    return others / all * bytesPerRank;
  case Collective::Broadcast:
  case Collective::Send:
  case Collective::Recv:
    return ranks > 1 ? bytesPerRank : 0;
  }
  return 0;
}

/// Steps of a ring, or hops of what is no ring.
static double stepsOf(Collective kind, double ranks) {
  switch (kind) {
  case Collective::AllGather:
  case Collective::ReduceScatter:
    return ranks - 1;
  case Collective::AllReduce:
    return 2 * (ranks - 1);
  case Collective::Broadcast:
    return std::ceil(std::log2(ranks));
  case Collective::AllToAll:
  case Collective::Send:
  case Collective::Recv:
    return 1;
  }
  return 0;
}

/// An all-reduce by a switch that adds.
static double switchSeconds(double bytes, int64_t ranks, const config::InsideLink &link) {
  // Bus bandwidth is counted as if a ring had moved the bytes.
  return 2 * link.latencySeconds +
         Rates::bytesSent(Collective::AllReduce, bytes, ranks) / link.switchBytesPerSecond;
}

/// A collective among ranks of one node.
static double insideSeconds(Collective kind, double bytesPerRank, int64_t ranks,
                            const config::Cluster &machine) {
  if (ranks <= 1)
    return 0;
  const config::InsideLink &link = machine.inside;
  double sent = Rates::bytesSent(kind, bytesPerRank, ranks);
  const bool isMessage = rt::traitsOf(kind).isMessage;
  // Measured between all ranks of the node; below the first size only latency is left.
  auto measured = link.collectiveBytesPerSecond.find(isMessage ? "send_receive" : rt::spell(kind));
  if (measured != link.collectiveBytesPerSecond.end() && ranks == machine.devicesPerNode)
    return std::max(sent, measured->second.points.front().first) / measured->second.at(sent);
  if (isMessage)
    return link.latencySeconds + sent / link.pointToPointBytesPerSecond;
  double steps = stepsOf(kind, static_cast<double>(ranks));
  if (link.directReduceScatter && kind == Collective::ReduceScatter)
    steps = 1;
  double ring = steps * link.latencySeconds + sent / link.busBytesPerSecond.at(static_cast<double>(ranks));
  if (kind == Collective::AllReduce && link.switchBytesPerSecond > 0)
    return std::min(ring, switchSeconds(bytesPerRank, ranks, link));
  return ring;
}

/// The part of a collective that crosses nodes.
static double betweenSeconds(Collective kind, double bytesPerRank, const Group &group,
                             const config::Cluster &machine) {
  const config::BetweenLink &link = machine.between;
  double nodes = std::ceil(static_cast<double>(group.ranks) / static_cast<double>(group.perNode));
  double local = static_cast<double>(group.perNode);
  // Ports of one collective: its devices' share of the node's, and no more than it drives.
  double share = static_cast<double>(link.portsPerNode) / static_cast<double>(machine.devicesPerNode);
  double ports = std::max(std::min(share, 1.0), std::min(share * local, link.portsPerCollective.at(nodes)));
  double rate = link.portBytesPerSecond * link.efficiency * ports;
  double entering =
      Rates::bytesSent(kind, bytesPerRank, static_cast<int64_t>(nodes)); // of one whole part per node
  if (kind == Collective::AllGather || kind == Collective::ReduceScatter || kind == Collective::AllToAll)
    entering *= local;
  double latency = stepsOf(kind, nodes) * link.latencySeconds;
  double seconds = latency + entering / rate;
  if (kind == Collective::AllReduce) {
    // A double binary tree: everything up and down once, with a hop per level.
    double tree = 2 * std::ceil(std::log2(nodes)) * link.latencySeconds + 2 * bytesPerRank / rate;
    seconds = std::min(seconds, tree);
  }
  return seconds;
}

double Rates::collectiveSeconds(Collective kind, double bytesPerRank, const Group &group) const {
  if (group.ranks <= 1 || bytesPerRank <= 0)
    return 0;
  double launch = machine.device.launchSeconds;
  if (group.ranks <= group.perNode || machine.between.portBytesPerSecond <= 0)
    return launch + insideSeconds(kind, bytesPerRank, group.ranks, machine);
  double between = betweenSeconds(kind, bytesPerRank, group, machine);
  // Inside, each rank passes on what came in from other nodes as well.
  bool parts = kind == Collective::AllGather || kind == Collective::ReduceScatter;
  double nodes = static_cast<double>(group.ranks) / static_cast<double>(group.perNode);
  double inside = insideSeconds(kind, parts ? bytesPerRank * nodes : bytesPerRank, group.perNode, machine);
  return launch + std::max(between, inside) +
         stepsOf(kind, static_cast<double>(group.perNode)) * machine.inside.latencySeconds;
}

double Rates::allReduceBusBandwidth(double bytes, const Group &group) const {
  return bytesSent(Collective::AllReduce, bytes, group.ranks) /
         collectiveSeconds(Collective::AllReduce, bytes, group);
}

/// Share of the host's memory bandwidth that an update on its cores reaches: 10B parameters in 2.57 s on
/// DGX-2 (arXiv 2101.06840, table 4).
static constexpr double kHostUpdateEfficiency = 0.5;

double Rates::hostKernelSeconds(double bytes, int64_t sharing) const {
  double rate = machine.host.memoryBytesPerSecond * kHostUpdateEfficiency;
  if (machine.host.coreBytesPerSecond > 0)
    rate = std::min(rate, machine.host.coreBytesPerSecond * static_cast<double>(machine.host.cores));
  return bytes * static_cast<double>(sharing) / rate;
}

std::string hostUpdateFigures(const config::HostSpec &host) {
  const char *memory = "host.memory_bytes_per_second";
  return host.coreBytesPerSecond > 0 ? std::string("host.core_bytes_per_second, ") + memory : memory;
}

double Rates::hostCopySeconds(double bytes, int64_t sharing) const {
  double onLink = static_cast<double>(std::min(sharing, machine.host.devicesPerLink));
  double perDevice = std::min(machine.host.toDeviceBytesPerSecond / onLink,
                              machine.host.memoryBytesPerSecond / static_cast<double>(sharing));
  return machine.device.launchSeconds + bytes / perDevice;
}

double Rates::storageReadSeconds(double bytes, int64_t sharing) const {
  assert(machine.nvme.bytes > 0 && "the cluster has storage");
  return bytes * static_cast<double>(sharing) / machine.nvme.readBytesPerSecond;
}

double Rates::storageWriteSeconds(double bytes, int64_t sharing) const {
  assert(machine.nvme.bytes > 0 && "the cluster has storage");
  return bytes * static_cast<double>(sharing) / machine.nvme.writeBytesPerSecond;
}

} // namespace ds::cost
