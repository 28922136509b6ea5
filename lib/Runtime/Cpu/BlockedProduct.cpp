//===- BlockedProduct.cpp - Runs a 16-bit product block by block ---------------===//
#include "BlockedProduct.h"

#include <fmt/format.h>

#include <algorithm>

namespace ds::rt {
namespace {

/// Where one block of the product lies.
struct Block {
  int64_t batch, m, n, k; ///< first row, column and depth
  bool operator==(const Block &) const = default;
};

class BlockedProduct final : public Task {
public:
  BlockedProduct(const ProductBlocks &blocks, const BlockedMemory &memory, uint32_t threads, Isa isa,
                 std::string where)
      : blocks(blocks), memory(memory), threads(threads), isa(isa), where(std::move(where)) {
    if (blocks.flipped)
      std::swap(this->memory.a, this->memory.b);
  }
  ~BlockedProduct() override {
    for (const Bound &each : bound)
      api->destroy(each.primitive);
  }
  /// Makes the f32 products of all block sizes.
  Status bind(const OnednnApi &plugin);
  Status run() override;

private:
  struct Bound {
    int64_t m, n, k;
    bool accumulate;
    MatmulPrimitive *primitive;
  };

  std::byte *workspace(uint64_t offset) const { return static_cast<std::byte *>(memory.workspace) + offset; }
  int64_t batches() const;
  int64_t offsetOf(const MatmulOperand &operand, int64_t batch) const;
  void widen(const MatmulOperand &operand, const void *data, int64_t batch, int64_t row, int64_t column,
             int64_t rows, int64_t columns, bool byRows, uint64_t to) const;
  void finish(int64_t batch, int64_t m, int64_t n, int64_t rows, int64_t columns) const;
  Status multiply(int64_t m, int64_t n, int64_t k, bool accumulate);
  Status runSums(int64_t batch, int64_t m, int64_t n, int64_t rows, int64_t columns);

  const ProductBlocks blocks;
  BlockedMemory memory;
  const uint32_t threads;
  const Isa isa;
  const std::string where;
  const OnednnApi *api = nullptr;
  std::vector<Bound> bound;
  Block left{}, right{}; ///< what the workspace holds
};

Status BlockedProduct::bind(const OnednnApi &plugin) {
  api = &plugin;
  const MatmulMemory at{workspace(0), workspace(blocks.right), nullptr, workspace(blocks.sums),
                        workspace(blocks.scratch)};
  for (int64_t m : {blocks.blockRows, blocks.rows % blocks.blockRows})
    for (int64_t n : {blocks.blockColumns, blocks.columns % blocks.blockColumns})
      for (int64_t k : {blocks.blockDepth, blocks.depth % blocks.blockDepth})
        for (bool accumulate : {false, true}) {
          if (m == 0 || n == 0 || k == 0)
            continue;
          const MatmulDesc desc = blocks.block(m, n, k, accumulate);
          char message[256] = "";
          MatmulPrimitive *primitive =
              api->create(&desc, threads, blocks.scratchBytes, &at, message, sizeof message);
          if (!primitive)
            return Error{ExitCode::Device, fmt::format("{}: oneDNN: {}", where, message),
                         "compile the model on this machine, so that the plan knows its oneDNN"};
          bound.push_back({m, n, k, accumulate, primitive});
        }
  return {};
}

int64_t BlockedProduct::batches() const {
  int64_t count = 1;
  for (int32_t d = 0; d + 2 < blocks.desc.rank; ++d)
    count *= blocks.desc.result.shape[d];
  return count;
}

/// Elements from the operand's start to its matrix number `batch`, in row-major order of the result's batch.
int64_t BlockedProduct::offsetOf(const MatmulOperand &operand, int64_t batch) const {
  int64_t offset = 0;
  for (int32_t d = blocks.desc.rank - 2; d-- > 0;) {
    const int64_t size = blocks.desc.result.shape[d];
    offset += operand.shape[d] == 1 ? 0 : batch % size * operand.strides[d];
    batch /= size;
  }
  return offset;
}

void BlockedProduct::widen(const MatmulOperand &operand, const void *data, int64_t batch, int64_t row,
                           int64_t column, int64_t rows, int64_t columns, bool byRows, uint64_t to) const {
  const int64_t *strides = operand.strides + blocks.desc.rank - 2;
  const int64_t first = offsetOf(operand, batch) + row * strides[0] + column * strides[1];
  const auto dtype = static_cast<DType>(operand.dtype);
  widenBlock({static_cast<const std::byte *>(data) + first * byteSize(dtype),
              reinterpret_cast<float *>(workspace(to)), dtype, rows, columns, strides[byRows ? 0 : 1], byRows,
              threads},
             isa);
}

void BlockedProduct::finish(int64_t batch, int64_t m, int64_t n, int64_t rows, int64_t columns) const {
  const MatmulDesc &desc = blocks.desc;
  const int64_t *strides = desc.result.strides + desc.rank - 2;
  const auto type = static_cast<DType>(desc.result.dtype);
  const auto biasType = desc.bias < 0 ? type : static_cast<DType>(desc.bias);
  const int64_t first = offsetOf(desc.result, batch) + m * strides[0] + n * strides[1];
  const void *bias = desc.bias < 0 ? nullptr
                                   : static_cast<const std::byte *>(memory.bias) +
                                         (blocks.flipped ? m : n) * byteSize(biasType);
  finishBlock({reinterpret_cast<const float *>(workspace(blocks.sums)),
               static_cast<std::byte *>(memory.result) + first * byteSize(type), bias, type, biasType, rows,
               columns, strides[0], strides[1], blocks.flipped, desc.accumulate != 0, desc.activation == 1,
               threads},
              isa);
}

Status BlockedProduct::multiply(int64_t m, int64_t n, int64_t k, bool accumulate) {
  const auto found = std::find_if(bound.begin(), bound.end(), [&](const Bound &each) {
    return each.m == m && each.n == n && each.k == k && each.accumulate == accumulate;
  });
  char message[256] = "";
  if (api->run(found->primitive, message, sizeof message))
    return {};
  return Error{ExitCode::Device, fmt::format("{}: oneDNN: {}", where, message), ""};
}

/// The sums of one block of the result. A block of an operand that is there already is not widened again.
Status BlockedProduct::runSums(int64_t batch, int64_t m, int64_t n, int64_t rows, int64_t columns) {
  const MatmulDesc &desc = blocks.desc;
  for (int64_t k = 0; k < blocks.depth; k += blocks.blockDepth) {
    const int64_t depth = std::min(blocks.blockDepth, blocks.depth - k);
    if (const Block wanted{batch, m, -1, k}; left != wanted) {
      widen(desc.a, memory.a, batch, m, k, rows, depth, blocks.leftByRows, 0);
      left = wanted;
    }
    if (const Block wanted{batch, -1, n, k}; right != wanted) {
      widen(desc.b, memory.b, batch, k, n, depth, columns, blocks.rightByRows, blocks.right);
      right = wanted;
    }
    if (Status status = multiply(rows, columns, depth, k > 0); !status)
      return status;
  }
  return {};
}

Status BlockedProduct::run() {
  left = right = {-1, -1, -1, -1}; // the workspace is others' between runs
  for (int64_t batch = 0; batch < batches(); ++batch)
    for (int64_t n = 0; n < blocks.columns; n += blocks.blockColumns)
      for (int64_t m = 0; m < blocks.rows; m += blocks.blockRows) {
        const int64_t rows = std::min(blocks.blockRows, blocks.rows - m);
        const int64_t columns = std::min(blocks.blockColumns, blocks.columns - n);
        if (blocks.depth == 0)
          std::fill_n(reinterpret_cast<float *>(workspace(blocks.sums)), rows * columns, 0.0f);
        if (Status status = runSums(batch, m, n, rows, columns); !status)
          return status;
        finish(batch, m, n, rows, columns);
      }
  return {};
}

} // namespace

Result<std::unique_ptr<Task>> bindBlockedProduct(const ProductBlocks &blocks, const BlockedMemory &memory,
                                                 uint32_t threads, Isa isa, std::string where) {
  Result<const OnednnApi *> api = openOnednn();
  if (!api)
    return api.error();
  auto product = std::make_unique<BlockedProduct>(blocks, memory, threads, isa, std::move(where));
  if (Status status = product->bind(**api); !status)
    return status.error();
  return std::unique_ptr<Task>(std::move(product));
}

std::string describeNarrowProducts(const Program &program) {
  bool isUsed[2] = {};
  constexpr DType kTypes[] = {DType::BF16, DType::F16};
  for (const Command &command : program.commands)
    if (command.kind == CommandKind::Library && command.callee == static_cast<uint32_t>(LibraryFn::Matmul))
      for (int k = 0; k < 2; ++k)
        isUsed[k] |= program.buffers[program.operands[command.firstOperand]].dtype == kTypes[k];
  std::string text;
  for (int k = 0; k < 2; ++k) {
    if (!isUsed[k])
      continue;
    MatmulDesc desc{};
    desc.a.dtype = static_cast<int32_t>(kTypes[k]);
    const Result<bool> inBlocks = needsBlocks(desc);
    text += text.empty() ? "" : "; ";
    text +=
        fmt::format("{} {}", spell(kTypes[k]),
                    inBlocks && *inBlocks ? "as f32, block by block: no instruction here multiplies it, so "
                                            "the same numbers take longer"
                                          : "by the processor's own instructions");
  }
  return text;
}

} // namespace ds::rt
