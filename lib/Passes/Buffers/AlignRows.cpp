//===- AlignRows.cpp - Begins rows that products read where tensor cores want them -===//
//
// Rows of 50257 logits of 16 bits begin at no multiple of 16 bytes, and libraries multiply them several times
// slower than rows of 50304. Such rows are laid further apart than they are long. Nothing but strides says
// so: the allocation has the longer rows, and all that names it is a window of it,
//
//   %m = ds.alloc ... : !ds.buffer<tensor<16384x50304xbf16>, [50304, 1], device>
//   %x = ds.view %m offset 0 : ... -> !ds.buffer<tensor<16384x50257xbf16>, [50304, 1], device>
//
// so that plans count the memory between rows as any other, and no command can name an element there. Its
// price: what walks an allocation from end to end can no longer do so. So this is done only where every
// reader and writer walks rows: products, the loss of their results, and kernels of which a unit of work is a
// row. Such a kernel is made anew for buffers of the new strides.
//
//===---------------------------------------------------------------------------===//
#include "Resident/RowsApart.h"
#include "Support/JoinKernels.h"
#include "ds/Codegen/KernelClass.h"
#include "ds/Dialect/Machine.h"
#include "ds/Dialect/MeshShape.h"
#include "ds/Passes/BufferAccess.h"
#include "ds/Passes/Passes.h"
#include "ds/Passes/Phases.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::ds {
#define GEN_PASS_DEF_ALIGNROWS
#include "ds/Passes/Passes.h.inc"
} // namespace mlir::ds

using namespace mlir;
using namespace mlir::ds;
using ::ds::rt::LibraryFn;

namespace {
/// A window of an allocation, in elements.
struct Window {
  int64_t offset;
  SmallVector<int64_t> strides;
};
} // namespace

/// Where the elements of `type`, a window that starts `offset` elements after an allocation's first, lie once
/// its rows are apart; nullopt where strides cannot say it. Element e of the allocation was the one in column
/// e % elements of row e / elements. So each stride goes from row to row, or stays within one.
static std::optional<Window> moveApart(BufferType type, int64_t offset, const Rows &rows) {
  Window moved{offset / rows.elements * rows.pitch + offset % rows.elements, {}};
  int64_t lastColumn = offset % rows.elements;
  for (auto [size, stride] : llvm::zip_equal(type.getTensor().getShape(), type.getStrides())) {
    const bool isOverRows = stride % rows.elements == 0;
    moved.strides.push_back(isOverRows ? stride / rows.elements * rows.pitch : stride);
    if (!isOverRows)
      lastColumn += (size - 1) * stride;
  }
  return lastColumn < rows.elements ? std::optional(std::move(moved)) : std::nullopt;
}

/// Whether the kernel of `launch` walks rows: of one that serves any size, or treats all elements alike,
/// units of work are elements from end to end.
static bool walksRows(LaunchOp launch, SymbolTable &symbols) {
  auto kernel = symbols.lookup<KernelOp>(launch.getKernel());
  KernelClass of;
  return kernel && !kernel.isDynamic() && succeeded(classify(kernel.getBody().front(), of)) &&
         of.kind == KernelKind::Row;
}

static bool takesRows(OpOperand &use, SymbolTable &symbols) {
  Operation *op = use.getOwner();
  if (!isComputeCommand(op))
    return false;
  if (auto call = dyn_cast<CallOp>(op))
    return walksRows(call.getCallee(), call.getParams().getValue(), use.getOperandNumber());
  auto launch = dyn_cast<LaunchOp>(op);
  return launch && walksRows(launch, symbols);
}

static bool isProduct(Operation *op) {
  auto call = dyn_cast<CallOp>(op);
  return call && call.getCallee() == LibraryFn::Matmul;
}

/// Whether all that reads or writes `alloc`, or a window of it, takes rows that lie apart, and a product is
/// among it.
static bool isOfRows(AllocOp alloc, const Rows &rows, SymbolTable &symbols) {
  bool hasProduct = false;
  auto areTaken = [&](Value buffer) {
    return llvm::all_of(buffer.getUses(), [&](OpOperand &use) {
      hasProduct |= isProduct(use.getOwner());
      return isa<ViewOp>(use.getOwner()) || takesRows(use, symbols);
    });
  };
  if (!areTaken(alloc.getBuffer()))
    return false;
  for (Operation *user : alloc.getBuffer().getUsers()) {
    auto view = dyn_cast<ViewOp>(user);
    if (!view)
      continue;
    const bool isNested = llvm::any_of(view->getUsers(), llvm::IsaPred<ViewOp>);
    if (view.getShifts() || isNested || !areTaken(view.getResult()) ||
        !moveApart(view.getResult().getType(), static_cast<int64_t>(view.getOffset()), rows))
      return false;
  }
  return hasProduct;
}

/// Lays the rows of `alloc` apart. Requires isOfRows.
static void layApart(AllocOp alloc, const Rows &rows) {
  const BufferType packed = alloc.getBuffer().getType();
  auto typeOf = [](BufferType type, ArrayRef<int64_t> strides) {
    return BufferType::get(type.getContext(), type.getTensor(), strides, type.getSpace());
  };
  for (Operation *user : alloc.getBuffer().getUsers())
    if (auto view = dyn_cast<ViewOp>(user)) {
      const BufferType type = view.getResult().getType();
      const Window moved = *moveApart(type, static_cast<int64_t>(view.getOffset()), rows);
      view.setOffset(static_cast<uint64_t>(moved.offset));
      view.getResult().setType(typeOf(type, moved.strides));
    }
  SmallVector<int64_t> shape(packed.getTensor().getShape());
  shape.back() = rows.pitch;
  alloc.getBuffer().setType(BufferType::getContiguous(packed.getTensor().clone(shape), packed.getSpace()));
  OpBuilder builder(alloc->getContext());
  builder.setInsertionPointAfter(alloc);
  auto whole = builder.create<ViewOp>(alloc.getLoc(), typeOf(packed, moveApart(packed, 0, rows)->strides),
                                      alloc.getBuffer(), 0);
  alloc.getBuffer().replaceUsesWithIf(whole.getResult(),
                                      [](OpOperand &use) { return !isa<ViewOp>(use.getOwner()); });
  if (whole->use_empty())
    whole.erase();
}

/// The types of all buffers of `launch`, as its kernel names them.
static ArrayAttr typesOf(LaunchOp launch) {
  Builder builder(launch.getContext());
  SmallVector<Type> types(launch.getInputs().getTypes());
  llvm::append_range(types, launch.getOutputs().getTypes());
  return builder.getTypeArrayAttr(types);
}

/// Gives each launch whose buffers have other types by now a kernel for them, and drops what nobody launches
/// any more.
static void renewKernels(ModuleOp module, SymbolTable &symbols) {
  DenseMap<std::pair<Operation *, Attribute>, StringAttr> renewed; // kernel and types -> its symbol
  llvm::SetVector<Operation *> replaced;
  module.walk([&](LaunchOp launch) {
    auto kernel = symbols.lookup<KernelOp>(launch.getKernel());
    if (kernel && !kernel.isDynamic() && kernel.getBuffers() != typesOf(launch)) {
      StringAttr &name = renewed[{kernel, typesOf(launch)}];
      if (!name) {
        KernelOp copy = kernel.clone();
        copy.setBuffersAttr(typesOf(launch));
        name = symbols.insert(copy);
      }
      launch.setKernel(name);
      replaced.insert(kernel);
    }
  });
  eraseIdle(replaced, module, symbols);
}

namespace {
struct AlignRows : mlir::ds::impl::AlignRowsBase<AlignRows> {
  using AlignRowsBase::AlignRowsBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (failed(requirePhase(module, getArgument(), Phase::Scheduled)))
      return signalPassFailure();
    const MeshShape shape = getMeshShape(module);
    if (!isForCuda(module) || (stages && shape.mesh.size(shape.stages) == 1))
      return;
    SymbolTable symbols(module);
    for (func::FuncOp func : module.getOps<func::FuncOp>())
      for (AllocOp alloc : llvm::make_early_inc_range(func.getOps<AllocOp>()))
        if (const BufferType type = alloc.getBuffer().getType(); type.getSpace() == Space::Device)
          if (const std::optional<Rows> rows = findRowsApart(type.getTensor());
              rows && isOfRows(alloc, *rows, symbols))
            layApart(alloc, *rows);
    renewKernels(module, symbols);
  }
};
} // namespace
