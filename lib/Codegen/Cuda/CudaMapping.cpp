//===- CudaMapping.cpp - How a kernel's work is shared out to threads ----------===//

#include "CudaMapping.h"
#include "NodeEmitter.h"

namespace mlir::ds::codegen {

/// Bytes of the widest access.
static constexpr int64_t kAccessBytes = 16;

/// Threads of a block where nothing asks for more or fewer: up to 255 registers each.
static constexpr int64_t kBlockThreads = 256;

/// Blocks that a kernel should have if it can: more than any of the processors has multiprocessors.
static constexpr int64_t kWantedBlocks = 160;

static int64_t bytesOf(Type type) { return memoryType(type).getIntOrFloatBitWidth() / 8; }

namespace {
/// How the body uses memory along the vector dimension.
struct AccessSummary {
  int64_t narrowest = kAccessBytes; ///< bytes of the narrowest element of 16 bits or more, side by side
  int64_t loads = 0;                ///< values that differ along the dimension
  int64_t loadBytes = 0;            ///< of one element of each
  bool hasScattered = false;        ///< some address is no linear function of it
};
} // namespace

static AccessSummary summarize(const LoopNest &nest) {
  AccessSummary result;
  unsigned v = *nest.vectorDim;
  auto add = [&](Index address, Type type) {
    if (!isLinearIn(address, v))
      result.hasScattered = true;
    else if (linearCoefficient(address, v) == 1 && bytesOf(type) > 1)
      result.narrowest = std::min(result.narrowest, bytesOf(type));
  };
  for (const Node &node : nest.graph->allNodes())
    if ((node.kind == Node::Kind::Load || node.kind == Node::Kind::Table) && ((node.dims >> v) & 1)) {
      add(node.index, node.type);
      ++result.loads;
      result.loadBytes += bytesOf(node.type);
    }
  for (const NestOutput &output : nest.outputs)
    if ((output.address->dims >> v) & 1)
      add(output.address, output.value->type);
  return result;
}

/// Elements of one access: 16 bytes of the narrowest operand, as far as sizes and cuts divide.
static int64_t chooseCudaLanes(const LoopNest &nest, const AccessSummary &accesses) {
  // Cuts part the dimension in pieces in which addresses are linear.
  if (accesses.hasScattered && nest.cuts.empty())
    return 1;
  int64_t lanes = kAccessBytes / accesses.narrowest;
  if (accesses.loads > 8) // registers
    lanes = std::min<int64_t>(lanes, 4);
  auto divides = [&](int64_t n) { return ShapedType::isDynamic(n) || n % lanes == 0; };
  while (lanes > 1 && !(divides(nest.vectorSize()) && llvm::all_of(nest.cuts, divides)))
    lanes /= 2;
  return nest.vectorSize() == 0 ? 1 : lanes;
}

/// Vectors that a thread of a block of `threads` can hold in registers.
static int64_t vectorsInRegisters(const AccessSummary &accesses, int64_t lanes, int64_t threads) {
  int64_t registers = std::min<int64_t>(255, 65536 / threads) - 40;
  return std::clamp<int64_t>(registers / ((accesses.loads + 2) * lanes), 1, 4);
}

static void mapRows(const LoopNest &nest, const AccessSummary &accesses, CudaMapping &mapping) {
  int64_t rows = nest.countOuter(false), vectors = mapping.rowVectors;
  bool inRegisters = nest.countOuter(true) == 1 && vectors > 0;
  // Rows of up to a warp's reach share blocks. Few rows get more threads each.
  int64_t reach = rows >= 8 * kWantedBlocks ? 4 : 1;
  reach = std::min(reach, vectorsInRegisters(accesses, mapping.lanes, kBlockThreads));
  int64_t threads = llvm::PowerOf2Ceil(std::max<int64_t>(1, llvm::divideCeil(vectors, reach)));
  if (threads <= 32) {
    mapping.rowThreads = threads;
    mapping.blockThreads =
        std::min<int64_t>(kBlockThreads, std::max<int64_t>(32, llvm::PowerOf2Ceil(rows) * threads));
    mapping.copies = inRegisters ? llvm::divideCeil(vectors, threads) : 0;
  } else {
    // The block whose threads are least idle, from 64 threads on; ties go to more work per thread.
    int64_t least = INT64_MAX;
    for (int64_t copies = 4; copies >= 1 && inRegisters; --copies) {
      int64_t block = llvm::alignTo(std::max<int64_t>(64, llvm::divideCeil(vectors, copies)), 32);
      if (block > 1024 || copies > vectorsInRegisters(accesses, mapping.lanes, block) ||
          block * copies >= least)
        continue;
      least = block * copies;
      mapping.blockThreads = block;
      mapping.copies = copies;
    }
    if (mapping.copies == 0)
      mapping.blockThreads = vectors >= 4 * 512 ? 512 : std::clamp<int64_t>(threads / 4, 64, 256);
    mapping.rowThreads = mapping.blockThreads;
  }
  mapping.extent = rows;
  mapping.unitsPerBlock = mapping.rowsPerBlock();
}

/// Rows that a thread loads before it adds them up: a thread that waits for one row at a time leaves most of
/// memory's rate unused. As many as a quarter of its registers hold, and no more than four.
static int64_t chooseRowsAtOnce(const AccessSummary &accesses, int64_t lanes) {
  constexpr int64_t kMostRows = 4, kMostBytes = 32 * 4; // registers of 4 bytes, of the 128 of a thread
  int64_t rowBytes = std::max<int64_t>(accesses.loadBytes * lanes, 1);
  return std::clamp<int64_t>(llvm::bit_floor(uint64_t(kMostBytes / rowBytes)), 1, kMostRows);
}

static void mapColumns(const LoopNest &nest, const AccessSummary &accesses, CudaMapping &mapping) {
  int64_t rows = nest.countOuter(true);
  mapping.columnThreads = std::min<int64_t>(8, llvm::PowerOf2Ceil(std::max<int64_t>(mapping.rowVectors, 1)));
  auto tiles = [&] {
    return nest.countOuter(false) * llvm::divideCeil(mapping.rowVectors, mapping.columnThreads);
  };
  // Narrower tiles where there are too few, down to the 32 bytes that memory moves at once.
  while (mapping.lanes > 1 && tiles() < kWantedBlocks &&
         mapping.columnThreads * mapping.lanes * accesses.narrowest > 32) {
    mapping.lanes /= 2;
    mapping.rowVectors *= 2;
  }
  int64_t down = llvm::PowerOf2Ceil(std::max<int64_t>(1, llvm::divideCeil(rows, 4)));
  mapping.rowThreads = std::clamp<int64_t>(down, std::max<int64_t>(1, 32 / mapping.columnThreads),
                                           512 / mapping.columnThreads);
  mapping.blockThreads = mapping.rowThreads * mapping.columnThreads;
  mapping.rowsAtOnce = chooseRowsAtOnce(accesses, mapping.lanes);
  mapping.extent = tiles();
}

/// Whether tiles of the nest are numbered as the columns of what it stores lie.
static bool hasTilesInOrder(const LoopNest &nest) {
  if (nest.kind != ds::KernelKind::Column || nest.isEmpty() || nest.hasFullOutputs())
    return false;
  for (unsigned dim = *nest.vectorDim + 1; dim < nest.space.sizes.size(); ++dim)
    if (!nest.space.isReduced(dim))
      return false;
  return true;
}

std::optional<CudaMapping> mapParts(const LoopNest &parts, CudaMapping &mapping, const LoopNest &sums) {
  constexpr int64_t kMostThreads = 512; // of a block that adds up columns
  if (!hasTilesInOrder(parts) || !hasTilesInOrder(sums))
    return std::nullopt;
  const AccessSummary accesses = summarize(sums);
  CudaMapping result = mapToCuda(sums); // its rowThreads are the order of additions
  const int64_t width = mapping.columnThreads * mapping.lanes;
  result.lanes = std::min(mapping.lanes, chooseCudaLanes(sums, accesses));
  // As many of the block's threads as there are: the second stage must not need more registers than the
  // first, of which fewer blocks would fit a processor, and its loads are few enough to be waited for once.
  while (result.lanes > 1 && result.rowThreads * (width / result.lanes) * 2 <= mapping.blockThreads)
    result.lanes /= 2;
  result.columnThreads = width / result.lanes;
  result.rowVectors = sums.vectorSize() / result.lanes;
  result.rowsAtOnce = chooseRowsAtOnce(accesses, result.lanes);
  result.extent = sums.countOuter(false) * llvm::divideCeil(result.rowVectors, result.columnThreads);
  // A part's columns may be a piece of a longer row: no tile may reach into the next part.
  const bool areWhole = parts.vectorSize() == sums.vectorSize() ||
                        (parts.vectorSize() % width == 0 && sums.vectorSize() % width == 0);
  const int64_t threads = result.rowThreads * result.columnThreads;
  if (!areWhole || threads > kMostThreads || mapping.extent != result.extent * sums.countOuter(true))
    return std::nullopt;
  mapping.blockThreads = result.blockThreads = std::max(mapping.blockThreads, threads);
  return result;
}

CudaMapping mapToCuda(const LoopNest &nest) {
  CudaMapping mapping;
  if (nest.isEmpty())
    return mapping;
  if (!nest.vectorDim) {
    mapping.blockThreads = 32;
    return mapping;
  }
  AccessSummary accesses = summarize(nest);
  mapping.lanes = chooseCudaLanes(nest, accesses);
  if (nest.isDynamic()) {
    mapping.blockThreads = kBlockThreads;
    mapping.extent = 0;
    mapping.unitsPerBlock = kBlockThreads * mapping.lanes;
    return mapping;
  }
  mapping.rowVectors = nest.vectorSize() / mapping.lanes;
  if (nest.kind == ds::KernelKind::Row) {
    mapping.rowVectors *= nest.countOuter(true);
    mapRows(nest, accesses, mapping);
  } else if (nest.kind == ds::KernelKind::Column) {
    mapColumns(nest, accesses, mapping);
  } else {
    mapping.blockThreads = kBlockThreads;
    mapping.extent = nest.countOuter(false) * mapping.rowVectors;
    mapping.unitsPerBlock = kBlockThreads;
  }
  return mapping;
}

} // namespace mlir::ds::codegen
