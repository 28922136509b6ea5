//===- Rates.h - Seconds of an op, a collective, a copy ------------------------------===//
//
// The cost model over a cluster's figures. Everything is a plain function of sizes: matrix products by a
// table of achieved rates, everything else by the bytes it moves, collectives by latency and bandwidth of the
// links their algorithm crosses. All times are seconds, all sizes bytes or operations, as doubles, because a
// trillion parameters times their bytes times ranks leaves 64 bits. What is not modelled: clock throttling,
// noise, and contention between streams beyond what a caller adds.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_COST_RATES_H
#define DS_COST_RATES_H

#include "ds/Config/Cluster.h"
#include "ds/Runtime/Program/AttentionWork.h"
#include "ds/Runtime/Program/Collective.h"

#include <string>
#include <string_view>

namespace ds::cost {

using config::DType;

/// Bytes of one element.
constexpr int64_t bytesOf(DType dtype) { return dtype == DType::F32 ? 4 : dtype == DType::I8 ? 1 : 2; }

/// Both ends of a message take as long.
using Collective = rt::CollectiveKind;

/// The ranks of a collective, and where they are: `perNode` of them share each node.
struct Group {
  int64_t ranks = 1;
  int64_t perNode = 1;
};

/// A matrix product [m, k] x [k, n], `batch` times.
struct Matmul {
  double m = 0, n = 0, k = 0;
  double batch = 1;
  bool transposeA = false, transposeB = false; ///< how the operands lie in memory
  bool isUnaligned = false;       ///< rows of an operand or the result begin at no multiple of 16 bytes
  bool isResultUnaligned = false; ///< those of the result do
  double besideBytes = 0;         ///< read or written beside operands and result, as the input of GELU is
};

/// What a generated kernel moves and computes.
struct KernelLoad {
  double bytes = 0;      ///< read and written; what is read and written again counts twice
  double freshBytes = 0; ///< those among them that are written without having been read
  double additions = 0, divisions = 0, roots = 0;
  double rows = 0; ///< sums of rows that something waits for
  double stripBytes =
      0; ///< of a kernel that adds down columns: bytes of a row that a unit takes; 0: it does not
  double columnSums = 0; ///< of such a kernel: sums of each column
  double rowVectors = 0; ///< of a kernel whose blocks of threads take rows: 16-byte vectors in one
  bool updates = false;  ///< at least three operands are read and written again, as an optimizer does
  /// Bytes of operands, fresh ones twice, and the bytes touched since their last use, which are looked up in
  /// place of the kernel's own where they are more. Empty: nothing is known.
  std::vector<std::pair<double, double>> reuse = {};
};

/// The figures of a cluster that products of `dtype` take their time from, for people.
std::string productFigures(const config::DeviceSpec &device, DType dtype);

/// The same of updates on an accelerator's host.
std::string hostUpdateFigures(const config::HostSpec &host);

/// Seconds of all that takes time.
class Rates {
public:
  /// The built-in cluster "cpu".
  Rates();
  explicit Rates(config::Cluster cluster);

  const config::Cluster &cluster() const { return machine; }

  /// The same for a program, whose kernels are nodes of a recorded graph.
  Rates ofProgram() const;

  /// One op: at least its operations at the achieved rate of their size, at least its bytes at the memory's,
  /// and a launch. An op without matrix products has its time from its bytes.
  double computeSeconds(double flops, double bytes, DType dtype) const;

  /// One matrix product, its operands read and its result written once. What it moves beside them adds to
  /// that.
  double matmulSeconds(const Matmul &shape, DType dtype) const;

  /// A convolution that is the product `shape` of windows and filters, a batch for each group, and moves
  /// `bytes`: each window is read where it lies, and not `shape`'s matrix of them.
  double convolutionSeconds(const Matmul &shape, double bytes, DType dtype) const;

  /// Fused attention in one kernel that touches `bytes`, forward or backward: what it computes at the rate of
  /// its length and width, or at a share of that of products.
  double attentionSeconds(const rt::AttentionWork &work, double bytes, DType dtype) const;

  /// One generated kernel: the longer of what it moves and what it computes, and a third of the shorter. A
  /// processor reads a line before it writes to it, so by the tables of cached bandwidth, which are of
  /// processors, fresh bytes count once more.
  double kernelSeconds(const KernelLoad &load) const;

  /// A library function that is no product, by the bytes that it touches; of an embedding's gradient by the
  /// `indices` that it compares with each other as well.
  double functionSeconds(std::string_view name, double bytes, double indices = 0) const;

  /// One kernel that the cores of an accelerator's host run on what lies in its memory, while those of
  /// `sharing` devices do so.
  double hostKernelSeconds(double bytes, int64_t sharing = 1) const;

  /// One kernel that only moves bytes of the device's memory.
  double memorySeconds(double bytes) const;

  /// The group of `ranks` ranks of which neighbours are `stride` devices apart, filled node by node.
  Group group(int64_t ranks, int64_t stride = 1) const;

  /// One collective. `bytesPerRank` is one rank's part: what it gives to a gather, what it gets of a
  /// reduce-scatter, its whole operand otherwise. One rank: 0. Where nothing joins the nodes, all ranks count
  /// as being on one: whether they may is checkRanksFit's to say.
  double collectiveSeconds(Collective kind, double bytesPerRank, const Group &group) const;
  double collectiveSeconds(Collective kind, double bytesPerRank, int64_t ranks) const {
    return collectiveSeconds(kind, bytesPerRank, group(ranks));
  }

  /// Bytes that each rank sends, the ones that the ZeRO papers count.
  static double bytesSent(Collective kind, double bytesPerRank, int64_t ranks);

  /// Bus bandwidth as nccl-tests counts it, of an all-reduce.
  double allReduceBusBandwidth(double bytes, const Group &group) const;

  /// A copy between one device and its host's page-locked memory, `sharing` devices copying at once.
  double hostCopySeconds(double bytes, int64_t sharing = 1) const;

  /// A read or write of the node's storage by one of `sharing` devices at once.
  double storageReadSeconds(double bytes, int64_t sharing = 1) const;
  double storageWriteSeconds(double bytes, int64_t sharing = 1) const;

private:
  config::Cluster machine;
};

} // namespace ds::cost

#endif // DS_COST_RATES_H
