//===- ClusterKeys.cpp - The keys of a cluster description ---------------------------===//
//
// One row a line; the order is the order of the reference.
//
//===---------------------------------------------------------------------------===//
#include "ClusterKeys.h"

namespace ds::config {
namespace {
using enum FigureKind;
#define SET(field, member) [](Cluster &c, Figure &&f) { c.field = std::move(f.member); }
#define FUNCTION(name)                                                                                       \
  [](Cluster &c, Figure &&f) { c.device.functionBytesPerSecond[name] = std::move(f.curve); }
#define COLLECTIVE(name)                                                                                     \
  [](Cluster &c, Figure &&f) { c.inside.collectiveBytesPerSecond[name] = std::move(f.curve); }

// clang-format off
constexpr ClusterKey kTable[] = {
  {"name", Text, true, "", "what plans call the cluster", SET(name, text)},
  {"base", Text, false, "", "a built-in cluster whose figures hold where this file has none", nullptr},
  {"nodes", Count, false, "nodes", "absent: as many as the ranks need", SET(nodes, integer)},
  {"devices_per_node", Count, true, "devices", "devices of a node", SET(devicesPerNode, integer)},

  {"device.name", Text, true, "", "the product", SET(device.name, text)},
  {"device.architecture", Architecture, false, "", "what programs for the device are compiled for: its compute capability, or cpu; absent: cpu, but a --target counts", SET(device.architecture, text)},
  {"device.memory_bytes", Bytes, true, "bytes", "memory of one device", SET(device.memoryBytes, integer)},
  {"device.context_bytes", Bytes, true, "bytes", "what the device's context and the libraries take of it", SET(device.contextBytes, integer)},
  {"device.communicator_bytes", Bytes, false, "bytes", "what the communicators of several ranks take beside the context; default 0", SET(device.communicatorBytes, integer)},
  {"device.launch_seconds", Positive, true, "s", "from one kernel to the next", SET(device.launchSeconds, number)},
  {"device.graph_launch_seconds", Positive, false, "s", "the same between nodes of a recorded graph, as which programs run; given launch_seconds without it counts in place of the base's; absent: as launch_seconds", SET(device.graphLaunchSeconds, number)},
  {"device.memory_bytes_per_second", Positive, true, "bytes/s", "peak of the device's memory", SET(device.memoryBytesPerSecond, number)},
  {"device.memory_efficiency", Share, true, "", "share of that peak which a streaming kernel reaches", SET(device.memoryEfficiency, number)},
  {"device.contention", Share, false, "", "share of the time of an exchange beside compute that compute loses; default 0", SET(device.contention, number)},
  {"device.attention_efficiency", Share, false, "", "share of the products' rate that fused attention reaches, of causal attention counted as the half that it computes; given without attention_shapes it counts in place of the base's; default 1", SET(device.attentionEfficiency, number)},
  {"device.eager_overhead_seconds", Positive, false, "s", "that a framework adds to each layer of a micro-batch, forward and backward, where it launches op by op and the device waits; plans by rules alone; default 0, as of programs", SET(device.eagerOverheadSeconds, number)},
  {"device.multiprocessors", Count, false, "", "that tiles of products and of attention are shared out over; absent: too few tiles cost nothing", SET(device.multiprocessors, integer)},
  {"device.fork_seconds", Positive, false, "s", "dividing one kernel among the cores and waiting for them; absent: part of the launch", SET(device.forkSeconds, number)},
  {"device.vector_flops", Positive, false, "op/s", "arithmetic of generated kernels, in additions (an exponential is 40); absent: only their bytes count", SET(device.vectorFlops, number)},
  {"device.cached_bytes_per_second", Rates, false, "bytes/s", "achieved by a kernel, by the bytes that it touches, those that it writes without reading them counted twice; absent: as memory", SET(device.cachedBytesPerSecond, curve)},
  {"device.column_bytes_per_second", Strips, false, "bytes/s", "the same of kernels that add down columns, by the bytes of each row that one unit of work takes and by all bytes; absent: as any kernel", SET(device.columnBytesPerSecond, shapes)},
  {"device.update_bytes_per_second", Rates, false, "bytes/s", "the same of kernels that write three operands again, as an optimizer's update does; absent: as any kernel", SET(device.updateBytesPerSecond, curve)},
  {"device.division_additions", Positive, false, "additions", "that take as long as a division in generated kernels; default 9", SET(device.divisionAdditions, number)},
  {"device.root_additions", Positive, false, "additions", "the same of a square root; default 11", SET(device.rootAdditions, number)},
  {"device.row_seconds", Positive, false, "s", "to add up one row of a generated kernel, beyond its elements; absent: nothing", SET(device.rowSeconds, number)},
  {"device.peak_flops.fp32", Positive, true, "op/s", "dense peak", SET(device.peakFlops[DType::F32], number)},
  {"device.peak_flops.fp16", Positive, false, "op/s", "absent: no unit for it, computed as fp32", SET(device.peakFlops[DType::F16], number)},
  {"device.peak_flops.bf16", Positive, false, "op/s", "absent: no unit for it, computed as fp32", SET(device.peakFlops[DType::BF16], number)},
  {"device.matmul_flops.fp32", Rates, true, "op/s", "achieved by matrix products, by the cube root of m * n * k", SET(device.matmulFlops[DType::F32], curve)},
  {"device.matmul_flops.fp16", Rates, false, "op/s", "the same in fp16", SET(device.matmulFlops[DType::F16], curve)},
  {"device.matmul_flops.bf16", Rates, false, "op/s", "the same in bf16", SET(device.matmulFlops[DType::BF16], curve)},

  {"device.matmul_shapes.fp32", Products, false, "op/s", "the same by m, n and k, of a b, a b^T and a^T b; absent: by the figures above", SET(device.matmulShapes[DType::F32], shapes)},
  {"device.matmul_shapes.fp16", Products, false, "op/s", "the same in fp16", SET(device.matmulShapes[DType::F16], shapes)},
  {"device.matmul_shapes.bf16", Products, false, "op/s", "the same in bf16", SET(device.matmulShapes[DType::BF16], shapes)},
  {"device.attention_shapes", Scores, false, "op/s", "achieved by fused causal attention, counted as the half that it computes, by positions and head width, forward and backward; on GPUs in 16 bits, else and where absent by attention_efficiency", SET(device.attentionShapes, shapes)},
  {"device.function_bytes_per_second.embedding_forward", Rates, false, "bytes/s", "by the bytes that are touched; absent: as memory", FUNCTION("embedding_forward")},
  {"device.function_bytes_per_second.embedding_backward", Rates, false, "bytes/s", "the same", FUNCTION("embedding_backward")},
  {"device.function_bytes_per_second.cross_entropy_forward", Rates, false, "bytes/s", "the same", FUNCTION("cross_entropy_forward")},
  {"device.function_bytes_per_second.cross_entropy_backward", Rates, false, "bytes/s", "the same", FUNCTION("cross_entropy_backward")},
  {"device.function_bytes_per_second.fill", Rates, false, "bytes/s", "the same", FUNCTION("fill")},
  {"device.function_bytes_per_second.copy", Rates, false, "bytes/s", "the same, of rows with gaps", FUNCTION("copy")},
  {"device.function_bytes_per_second.sum_of_squares", Rates, false, "bytes/s", "the same, of several tensors at once", FUNCTION("sum_of_squares")},

  {"device.kernels.tile_flops", Rates, false, "op/s", "reached by products in 16 bits within full tiles, by the seconds that the product takes; given matmul_flops without it the base's does not count; absent: by matmul_flops", SET(device.kernels.tileFlops, curve)},
  {"device.kernels.fill_seconds", Positive, false, "s", "of such a product before its first tile and after its last; default 0", SET(device.kernels.fillSeconds, number)},
  {"device.kernels.epilogue_bytes_per_second", Positive, false, "bytes/s", "of what a product reads or writes beside its operands, as the input of GELU; absent: as memory", SET(device.kernels.epilogueBytesPerSecond, number)},
  {"device.kernels.unaligned_result_flops", Positive, false, "op/s", "of products in 16 bits whose result has rows that begin at no multiple of 16 bytes; absent: half of the rate", SET(device.kernels.unalignedResultFlops, number)},
  {"device.kernels.unaligned_operand_flops", Positive, false, "op/s", "the same where only operands have such rows; absent: half of the rate", SET(device.kernels.unalignedOperandFlops, number)},
  {"device.kernels.shortest_seconds", Positive, false, "s", "that a kernel of a program takes at least, beyond the gap before it, which graph_launch_seconds is; given launch_seconds without it the base's does not count; default 0", SET(device.kernels.shortestSeconds, number)},
  {"device.kernels.column_bytes_per_second", Rates, false, "bytes/s", "of kernels that add down columns, by the sums of each column: one for a bias, two for a gain and a shift; absent: as memory", SET(device.kernels.columnBytesPerSecond, curve)},
  {"device.kernels.dropped_score_seconds", Positive, false, "s", "that attention takes for each weight of which dropout decides, beyond what it takes without; default 0", SET(device.kernels.droppedScoreSeconds, number)},
  {"device.kernels.dropped_gradient_seconds", Positive, false, "s", "the same of attention's gradient", SET(device.kernels.droppedGradientSeconds, number)},
  {"device.kernels.embedding_pair_seconds", Positive, false, "s", "that the gradient of an embedding takes for each pair of its indices, which it compares, beyond its bytes; default 0", SET(device.kernels.embeddingPairSeconds, number)},

  {"host.memory_bytes", Bytes, true, "bytes", "memory of a node", SET(host.memoryBytes, integer)},
  {"host.cores", Count, true, "cores", "of a node", SET(host.cores, integer)},
  {"host.memory_bytes_per_second", Positive, true, "bytes/s", "peak of the node's memory", SET(host.memoryBytesPerSecond, number)},
  {"host.core_bytes_per_second", Positive, false, "bytes/s", "that an optimizer's update moves on one core; absent: as much as half of the memory's peak gives", SET(host.coreBytesPerSecond, number)},
  {"host.to_device_bytes_per_second", Positive, true, "bytes/s", "one link, one way, from page-locked memory", SET(host.toDeviceBytesPerSecond, number)},
  {"host.devices_per_link", Count, true, "devices", "devices that share such a link", SET(host.devicesPerLink, integer)},

  {"inside.name", Text, true, "", "what joins the devices of a node", SET(inside.name, text)},
  {"inside.latency_seconds", Positive, true, "s", "one step of a ring", SET(inside.latencySeconds, number)},
  {"inside.bytes_per_second", Rates, true, "bytes/s", "achieved bus bandwidth of a ring (as nccl-tests counts it), by its ranks", SET(inside.busBytesPerSecond, curve)},
  {"inside.switch_bytes_per_second", Positive, false, "bytes/s", "achieved bus bandwidth of all-reduces inside the switch; absent: the switch has none", SET(inside.switchBytesPerSecond, number)},
  {"inside.point_to_point_bytes_per_second", Positive, true, "bytes/s", "between two devices, one way", SET(inside.pointToPointBytesPerSecond, number)},
  {"inside.direct_reduce_scatter", Switch, false, "", "reduce-scatters send each part straight to its rank, in one step; default false", SET(inside.directReduceScatter, flag)},
  {"inside.collective_bytes_per_second.all_gather", Rates, false, "bytes/s", "between all devices of a node, by the bytes that a rank sends, latency included; absent: by the figures above", COLLECTIVE("all_gather")},
  {"inside.collective_bytes_per_second.reduce_scatter", Rates, false, "bytes/s", "the same", COLLECTIVE("reduce_scatter")},
  {"inside.collective_bytes_per_second.all_reduce", Rates, false, "bytes/s", "the same", COLLECTIVE("all_reduce")},
  {"inside.collective_bytes_per_second.broadcast", Rates, false, "bytes/s", "the same", COLLECTIVE("broadcast")},
  {"inside.collective_bytes_per_second.all_to_all", Rates, false, "bytes/s", "the same", COLLECTIVE("all_to_all")},
  {"inside.collective_bytes_per_second.send_receive", Rates, false, "bytes/s", "the same", COLLECTIVE("send_receive")},

  {"between.name", Text, false, "", "what joins the nodes", SET(between.name, text)},
  {"between.latency_seconds", Positive, false, "s", "one hop", SET(between.latencySeconds, number)},
  {"between.port_bytes_per_second", Positive, false, "bytes/s", "line rate of one port, one way; absent: nothing joins the nodes", SET(between.portBytesPerSecond, number)},
  {"between.efficiency", Share, false, "", "share of the line rate that collectives reach; default 1", SET(between.efficiency, number)},
  {"between.ports_per_node", Count, false, "ports", "shared by all devices of the node; default 1", SET(between.portsPerNode, integer)},
  {"between.ports_per_collective", Rates, false, "ports", "that one collective with several ranks in a node drives, by its nodes; default 1", SET(between.portsPerCollective, curve)},

  {"nvme.bytes", Bytes, false, "bytes", "of a node; absent: no storage to offload to", SET(nvme.bytes, integer)},
  {"nvme.read_bytes_per_second", Positive, false, "bytes/s", "of a node", SET(nvme.readBytesPerSecond, number)},
  {"nvme.write_bytes_per_second", Positive, false, "bytes/s", "of a node", SET(nvme.writeBytesPerSecond, number)},
  {"nvme.block_bytes", Bytes, false, "bytes", "of a request, where the rates were measured: for aio.block_size", SET(nvme.blockBytes, integer)},
  {"nvme.queue_depth", Count, false, "requests", "under way there: for aio.queue_depth", SET(nvme.queueDepth, integer)},
};
// clang-format on
#undef SET
#undef FUNCTION
#undef COLLECTIVE

} // namespace

std::string_view spellExpected(FigureKind kind) {
  using enum FigureKind;
  switch (kind) {
  case Text:
    return "a string";
  case Count:
  case Bytes:
    return "an integer greater than 0";
  case Positive:
    return "a number greater than 0";
  case Share:
    return "a number greater than 0 and at most 1";
  case Switch:
    return "true or false";
  case Architecture:
    return "\"cpu\", or \"sm_\" and a compute capability as in \"sm_90\"";
  case Rates:
    return "a number, or a list of [size, rate] pairs with rising sizes, all greater than 0";
  case Products:
    return "rows [m, n, k, rate, rate, rate] over all combinations of some sizes, the last fastest, all "
           "greater "
           "than 0";
  case Strips:
    return "rows [bytes, bytes, rate] over all combinations of some sizes, the last fastest, all greater "
           "than "
           "0";
  case Scores:
    return "rows [positions, width, rate, rate] over all combinations of some sizes, the last fastest, all "
           "greater than 0";
  }
  return "";
}

std::span<const ClusterKey> clusterKeys() { return kTable; }

std::string clusterReference() {
  std::string out = "| key | expects | unit | required | meaning |\n|---|---|---|---|---|\n";
  for (const ClusterKey &key : kTable)
    out += "| `" + std::string(key.path) + "` | " + std::string(spellExpected(key.kind)) + " | " +
           std::string(key.unit) + " | " + (key.required ? "yes" : "") + " | " + std::string(key.note) +
           " |\n";
  return out;
}

} // namespace ds::config
