//===- Kernel.h - What a program says of its kernels -------------------------===//
#ifndef DS_RUNTIME_PROGRAM_KERNEL_H
#define DS_RUNTIME_PROGRAM_KERNEL_H

#include <cstdint>
#include <string>
#include <vector>

namespace ds::rt {

/// What a kernel needs of one operand: it touches no byte but the first `bytes` from element (0, ..., 0) on.
/// Whether operands share memory is no question of safety: a kernel that is given one buffer twice computes
/// other numbers, in the same places.
struct KernelOperand {
  uint64_t bytes = 0;
  bool perUnit = false; ///< for each unit of the launch's extent, where the kernel's own is 0
};

/// A generated kernel: symbol `name` of the image, of the form
///   void f(void *const *buffers, const void *scalars, int64_t begin, int64_t end)
/// which computes work units [begin, end) of `extent`; units are independent. `buffers` are the operands'
/// element (0, ..., 0). A launch of fewer than `grain` units is not worth splitting. When extent is 0 the
/// launch's params[0] holds it (kernels that are shared by tensors of different size). `scalars` points to
/// the launch's params, as int64 each, params[0] included.
///
/// For CUDA it is an entry of the same name in the PTX image. Its parameters are 8 bytes each: the address of
/// every operand's element (0, ..., 0), then the launch's params. A launch has ceil(extent / unitsPerBlock)
/// blocks of blockThreads threads; a persistent kernel loops over the rest and may be given fewer blocks, as
/// many as run at once. Either way the result is the same bits.
///
/// A launch of a kernel with `items` has one param for each of at most so many items, their extents, and
/// the operands of the first item, then those of the second. Items run in any order and share their
/// operands of rank 0. The parameters of the CUDA entry are then the addresses of those, the blocks of all
/// items together, and a ItemTable by value.
///
/// A program for CUDA has kernels of the CPU too, for its host stream: they are in `hostImage`.
///
/// What is said here of a kernel's code is said by the image too (KernelInterface.h), and has to be the same:
/// nothing outside the machine code decides what the machine code touches.
struct Kernel {
  std::string name;
  int64_t extent = 0;
  int64_t grain = 1;         ///< CPU
  uint32_t blockThreads = 0; ///< CUDA, 1 to 1024; 0: a kernel of the CPU, see runsOnCpu
  uint32_t sharedBytes = 0;  ///< CUDA: dynamic shared memory of a block
  int64_t unitsPerBlock = 1; ///< CUDA
  bool persistent = false;   ///< CUDA: any number of blocks will do
  /// CUDA: bytes, a power of two, of which each operand's address must be a multiple.
  std::vector<uint32_t> alignments = {};
  uint32_t items = 0; ///< of one launch at most, where extent is 0; 0: launches have none
  std::vector<KernelOperand> operands = {}; ///< of a launch, or of each item
  uint32_t params = 0;                      ///< likewise
};

/// Whether the code of `kernel` is a processor's.
inline bool runsOnCpu(const Kernel &kernel) { return kernel.blockThreads == 0; }

/// What a CUDA kernel knows of its launch's items: a row of 8-byte words for each, up to Kernel::items.
/// The number of its first block, counted over all items, its elements, and the addresses of its operands
/// but those of rank 0. Rows without a item start at INT64_MAX.
struct ItemTable {
  /// What a kernel can be passed by every driver.
  static constexpr uint64_t kParameterBytes = 4096;
  /// Words of one row for so many operands.
  static uint64_t rowWords(uint64_t operands) { return 2 + operands; }
  /// Rows that fit beside the addresses of `shared` operands.
  static uint64_t mostItems(uint64_t operands, uint64_t shared) {
    const uint64_t words = kParameterBytes / 8, before = shared + 1;
    return before < words ? (words - before) / rowWords(operands) : 0;
  }
};

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_KERNEL_H
