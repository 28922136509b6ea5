//===- Cluster.h - The machines a plan is for ---------------------------------------===//
//
// A cluster description says what one device, its host and the links between devices can do, in figures that
// are measured or published rather than hoped for. It is read from JSON (docs/cluster.md has the schema) or
// taken from the built-in ones, whose files name the source of each figure. The cost model turns these
// figures into seconds.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_CONFIG_CLUSTER_H
#define DS_CONFIG_CLUSTER_H

#include "ds/Config/Config.h"

#include <array>
#include <map>
#include <utility>

namespace ds::config {

/// A figure that depends on a size: points in rising order of the size, joined by straight lines over the
/// logarithm of the size. Constant beyond the ends.
struct Curve {
  std::vector<std::pair<double, double>> points;

  double at(double size) const;
  bool empty() const { return points.empty(); }
};

/// Figures that depend on several sizes: given on a full grid of them, in between as if time rose with a
/// power of each size. Beyond the grid rates are as at its end; below it time is as at its beginning.
struct ShapeTable {
  std::vector<std::vector<double>> axes;  ///< rising sizes
  std::vector<std::vector<double>> rates; ///< of every combination, the last axis fastest; one per column

  bool empty() const { return rates.empty(); }
  double at(const std::vector<double> &sizes, size_t column) const;
};

/// One figure per element type.
template <class T>
class PerDtype {
public:
  T &operator[](DType dtype) { return of[static_cast<size_t>(dtype)]; }
  const T &operator[](DType dtype) const { return of[static_cast<size_t>(dtype)]; }

private:
  std::array<T, 4> of{};
};

/// What single kernels reach on a GPU, as measured command by command.
struct KernelSpec {
  Curve tileFlops; ///< of tensor cores within full tiles of a product in 16 bits, by the seconds that the
                   ///< product takes, for the clock falls under load; empty: products by matmulFlops
  double fillSeconds = 0;            ///< of such a product before its first tile and after its last
  double epilogueBytesPerSecond = 0; ///< of what a product reads or writes beside its operands; 0: as memory
  double unalignedResultFlops = 0;   ///< of products in 16 bits whose result's rows begin at no multiple
                                     ///< of 16 bytes; 0: half of the rate
  double unalignedOperandFlops = 0;  ///< the same where an operand's rows do, and the result's do not
  double shortestSeconds = 0;        ///< that a kernel takes at least, beyond the gap before it
  Curve columnBytesPerSecond;        ///< of a kernel that adds down columns, by the sums of each column;
                                     ///< empty: as any kernel
  double droppedScoreSeconds = 0;    ///< that attention takes for each weight that dropout may drop
  double droppedGradientSeconds = 0; ///< the same of its gradient
  double embeddingPairSeconds = 0;   ///< that an embedding's gradient takes for each pair of indices
};

/// What runs kernels: a GPU, or the cores of one rank.
struct DeviceSpec {
  std::string name;
  std::string architecture; ///< "cpu", "sm_90"; empty: not said
  int64_t memoryBytes = 0;
  int64_t contextBytes = 0;        ///< what the device's context and the libraries take of it
  int64_t communicatorBytes = 0;   ///< what joining several ranks takes beside that
  double launchSeconds = 0;        ///< from one kernel to the next
  double graphLaunchSeconds = 0;   ///< the same between nodes of a recorded graph; 0: as launchSeconds
  double memoryBytesPerSecond = 0; ///< peak
  double memoryEfficiency = 1;     ///< share of the peak that a streaming kernel reaches
  double contention = 0;           ///< share of the time of an exchange beside compute that compute loses
  double eagerOverheadSeconds = 0; ///< that a framework adds to each layer of a micro-batch; 0: a program's
  double attentionEfficiency = 1;  ///< share of the products' rate that fused attention reaches, where
                                   ///< attentionShapes do not count
  int64_t multiprocessors = 0;     ///< that tiles are shared out over; 0: tiles are not counted
  double forkSeconds = 0;          ///< of dividing one kernel among the cores; 0: a GPU's launch does it
  double vectorFlops = 0;          ///< arithmetic of generated kernels; 0: memory alone counts
  Curve cachedBytesPerSecond;      ///< of a kernel, by the bytes that it touches; empty: as memory
  ShapeTable columnBytesPerSecond; ///< of a kernel that adds down columns, by the bytes of a row that one
                                   ///< unit of work takes and all bytes; empty: as any kernel
  Curve updateBytesPerSecond;      ///< of a kernel that writes three streams again; empty: as any kernel
  double divisionAdditions = 9, rootAdditions = 11; ///< that take as long, in generated kernels
  double rowSeconds = 0;                            ///< to add up a row, beyond its elements
  PerDtype<double> peakFlops;                       ///< dense, operations per second; 0: no such unit
  PerDtype<Curve> matmulFlops; ///< achieved, by the cube root of m * n * k; empty: as fp32
  PerDtype<ShapeTable>
      matmulShapes;           ///< achieved, by m, n and k: of a b, a b^T and a^T b; empty: by the curve
  ShapeTable attentionShapes; ///< achieved by what causal attention computes, by positions and head width,
                              ///< forward and backward, on GPUs in 16 bits; empty: by share
  /// Of library functions, by their names and the bytes that they touch.
  std::map<std::string, Curve, std::less<>> functionBytesPerSecond;
  KernelSpec kernels; ///< of programs on a GPU
};

struct HostSpec {
  int64_t memoryBytes = 0;
  int64_t cores = 0;
  double memoryBytesPerSecond = 0;
  double coreBytesPerSecond = 0;     ///< that an update moves on one core; 0: as many as memory gives
  double toDeviceBytesPerSecond = 0; ///< of one link, one way, from page-locked memory
  int64_t devicesPerLink = 1;        ///< devices that share such a link
};

/// What joins the devices of a node.
struct InsideLink {
  std::string name;
  double latencySeconds = 0;       ///< of one step of a ring
  Curve busBytesPerSecond;         ///< achieved by a ring, by its ranks (as nccl-tests counts bus bandwidth)
  double switchBytesPerSecond = 0; ///< achieved bus bandwidth of all-reduces inside the switch; 0: none
  double pointToPointBytesPerSecond = 0;
  bool directReduceScatter = false; ///< reduce-scatters send each part straight to its rank
  /// Of collectives between all devices of a node, by their names and the bytes that a rank sends, latency
  /// included; those that are not there count by the figures above.
  std::map<std::string, Curve, std::less<>> collectiveBytesPerSecond;
};

/// What joins nodes.
struct BetweenLink {
  std::string name;
  double latencySeconds = 0;
  double portBytesPerSecond = 0; ///< line rate of one port, one way
  double efficiency = 1;         ///< share of it that collectives reach
  int64_t portsPerNode = 1;
  Curve portsPerCollective{{{1, 1}}}; ///< that a collective with several ranks in a node drives, by its nodes
};

struct NvmeSpec {
  int64_t bytes = 0;                                      ///< of a node; 0: none
  double readBytesPerSecond = 0, writeBytesPerSecond = 0; ///< of a node
  int64_t blockBytes = 0, queueDepth = 0;                 ///< that reach them; 0: not known
};

struct Cluster {
  std::string name;
  int64_t nodes = 0; ///< 0: as many as the ranks need
  int64_t devicesPerNode = 1;
  DeviceSpec device;
  HostSpec host;
  InsideLink inside;
  BetweenLink between; ///< portBytesPerSecond 0: the nodes are not joined
  NvmeSpec nvme;

  /// Devices altogether; empty where there are as many as are asked for.
  std::optional<int64_t> devices() const;
};

/// Reads a cluster: the path of a JSON file, or the name of a built-in one, or "NxDEVICE" for one node of N
/// devices of a built-in kind. The error's message has one line per mistake, with the place and the nearest
/// key; its code is Invalid, or Io when the file cannot be read.
Result<Cluster> readCluster(const std::string &fileOrName);

/// Reads a cluster from text; `name` is what messages call it.
Result<Cluster> readClusterText(std::string_view text, const std::string &name);

/// A built-in cluster that is known to exist ("cpu").
Cluster builtinCluster(std::string_view name);

/// The names of the built-in clusters, in the order of the documentation.
std::vector<std::string_view> builtinClusterNames();

/// Refuses more ranks than there are devices, and ranks on several nodes that nothing joins.
Status checkRanksFit(const Cluster &cluster, int64_t ranks);

/// The reference of all keys as a Markdown table, as docs/cluster.md has it.
std::string clusterReference();

} // namespace ds::config

#endif // DS_CONFIG_CLUSTER_H
