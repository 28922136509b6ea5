//===- CudaThread.cpp - The primitives of a CUDA thread in NVVM ----------------===//

#include "CudaThread.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::ds::codegen {

/// Address spaces.
static constexpr unsigned kGlobal = 1, kShared = 3;

LLVM::LLVMFuncOp NvvmThread::makeFunction(ModuleOp module, StringRef symbol, const CudaSignature &signature) {
  MLIRContext *context = module.getContext();
  OpBuilder b(context);
  b.setInsertionPointToEnd(module.getBody());
  numOperands = signature.operands;
  SmallVector<Type> types(signature.operands, LLVM::LLVMPointerType::get(context));
  types.append(signature.params, b.getI64Type());
  if (signature.tableWords)
    types.push_back(LLVM::LLVMPointerType::get(context));
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types);
  function = b.create<LLVM::LLVMFuncOp>(module.getLoc(), symbol, type);
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getMaxntidAttrName(),
                    b.getDenseI32ArrayAttr({int32_t(signature.blockThreads), 1, 1}));
  // One block is enough: ptxas would rather spill than have fewer of them at once.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), b.getI32IntegerAttr(1));
  if (signature.tableWords) {
    unsigned last = types.size() - 1;
    Type table = LLVM::LLVMArrayType::get(b.getI64Type(), signature.tableWords);
    function.setArgAttr(last, LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(table));
    function.setArgAttr(last, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(8));
  }
  return function;
}

Value NvvmThread::operand(OpBuilder &, Location, unsigned number) { return function.getArgument(number); }

Value NvvmThread::param(OpBuilder &, Location, unsigned number) {
  return function.getArgument(numOperands + number);
}

/// The back end keeps what is only loaded from in the memory of parameters, and takes addresses found there
/// for global ones.
Value NvvmThread::tableWord(OpBuilder &b, Location loc, Value index, Type type) {
  Value table = function.getArguments().back();
  Value address = b.create<LLVM::GEPOp>(loc, table.getType(), b.getI64Type(), table, index);
  return b.create<LLVM::LoadOp>(loc, type, address, /*alignment=*/8); // of i64 it is 4 by LLVM's default
}

/// Special registers have 32 bits.
template <class Register>
static Value readRegister(OpBuilder &b, Location loc) {
  Value narrow = b.create<Register>(loc, b.getI32Type());
  return b.create<LLVM::ZExtOp>(loc, b.getI64Type(), narrow);
}

Value NvvmThread::threadIndex(OpBuilder &b, Location loc) { return readRegister<NVVM::ThreadIdXOp>(b, loc); }
Value NvvmThread::blockIndex(OpBuilder &b, Location loc) { return readRegister<NVVM::BlockIdXOp>(b, loc); }
Value NvvmThread::blockCount(OpBuilder &b, Location loc) { return readRegister<NVVM::GridDimXOp>(b, loc); }

/// One instruction that LLVM neither moves nor merges.
static Value emitAsm(OpBuilder &b, Location loc, StringRef text, StringRef constraints, ValueRange operands) {
  return b
      .create<LLVM::InlineAsmOp>(loc, b.getI32Type(), operands, text, constraints, /*has_side_effects=*/true,
                                 /*is_align_stack=*/false, LLVM::AsmDialectAttr(), ArrayAttr())
      .getResult(0);
}

Value NvvmThread::threadIndexAnew(OpBuilder &b, Location loc) {
  return b.create<LLVM::ZExtOp>(loc, b.getI64Type(), emitAsm(b, loc, "mov.u32 $0, %tid.x;", "=r", {}));
}

static Value word(OpBuilder &b, Location loc, int32_t value) {
  return b.create<LLVM::ConstantOp>(loc, b.getI32Type(), b.getI32IntegerAttr(value));
}

Value NvvmThread::shuffle(OpBuilder &b, Location loc, Value value, unsigned mask) {
  return b.create<NVVM::ShflOp>(loc, b.getI32Type(), word(b, loc, -1), value, word(b, loc, mask),
                                word(b, loc, 31), NVVM::ShflKind::bfly, UnitAttr());
}

void NvvmThread::blockBarrier(OpBuilder &b, Location loc) { b.create<NVVM::Barrier0Op>(loc); }

void NvvmThread::warpBarrier(OpBuilder &b, Location loc) {
  b.create<NVVM::SyncWarpOp>(loc, word(b, loc, -1));
}

Value NvvmThread::sharedMemory(OpBuilder &b, Location loc, int64_t bytes) {
  auto module = function->getParentOfType<ModuleOp>();
  std::string name = (function.getSymName() + "_shared").str();
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes);
    b.create<LLVM::GlobalOp>(loc, type, /*isConstant=*/false, LLVM::Linkage::Internal, name, Attribute(),
                             /*alignment=*/16, kShared);
  }
  Value address = b.create<LLVM::AddressOfOp>(loc, LLVM::LLVMPointerType::get(b.getContext(), kShared), name);
  return b.create<LLVM::AddrSpaceCastOp>(loc, LLVM::LLVMPointerType::get(b.getContext()), address);
}

/// One instruction: a count up to `last` that begins anew, with which the thread releases what it knows to
/// the GPU and acquires what those have released that counted before. No op of the dialect says so, and LLVM
/// would take a loop of compare and swap for it. The counters are the module's, so that loading it makes them
/// 0.
Value NvvmThread::countUp(OpBuilder &b, Location loc, Value number, int64_t counters, int64_t last) {
  auto module = function->getParentOfType<ModuleOp>();
  std::string name = (function.getSymName() + "_counters").str();
  if (!module.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    auto zeros = DenseElementsAttr::get(RankedTensorType::get({counters}, b.getI32Type()), int32_t(0));
    b.create<LLVM::GlobalOp>(loc, LLVM::LLVMArrayType::get(b.getI32Type(), counters), /*isConstant=*/false,
                             LLVM::Linkage::Internal, name, zeros, /*alignment=*/4, kGlobal);
  }
  auto pointer = LLVM::LLVMPointerType::get(b.getContext(), kGlobal);
  Value first = b.create<LLVM::AddressOfOp>(loc, pointer, name);
  Value counter = b.create<LLVM::GEPOp>(loc, pointer, b.getI32Type(), first, number);
  return emitAsm(b, loc, "atom.acq_rel.gpu.global.inc.u32 $0, [$1], $2;", "=r,l,r,~{memory}",
                 {counter, word(b, loc, int32_t(last))});
}

} // namespace mlir::ds::codegen
