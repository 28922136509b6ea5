//===- CudaEmulator.cpp - CUDA kernels on the CPU, thread by thread ------------===//

#include "CudaEmulator.h"
#include "../Cuda/Fibers.h"
#include "Cuda/CudaEmitter.h"
#include "KernelBody.h"
#include "MathExpansion.h"
#include "ObjectCode.h"
#include "ds/Runtime/Program/Program.h"
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::ds::codegen;

namespace ds::test {
namespace {

/// What a thread is given; EmulatedThread reads the words by number.
struct Environment {
  int64_t thread, block, blocks;
  uint32_t (*shuffle)(uint32_t, uint32_t);
  void (*blockBarrier)();
  void (*warpBarrier)();
  char *shared;
  const int64_t *table;
  uint32_t (*countUp)(int64_t, uint32_t);
};
enum Word { kThread, kBlock, kBlocks, kShuffle, kBlockBarrier, kWarpBarrier, kShared, kTable, kCountUp };

constexpr size_t kSharedBytes = 48 << 10;

/// The block that runs.
Block *theBlock;

/// The counters of the kernel that runs.
std::vector<uint32_t> theCounters;

uint32_t countUp(int64_t number, uint32_t last) {
  if (number >= static_cast<int64_t>(theCounters.size()))
    theCounters.resize(number + 1);
  const uint32_t before = theCounters[number];
  theCounters[number] = before >= last ? 0 : before + 1;
  return before;
}

/// f(operands, params, environment).
class EmulatedThread : public CudaThread {
public:
  LLVM::LLVMFuncOp makeFunction(ModuleOp module, StringRef symbol, const CudaSignature &) override {
    OpBuilder b(module.getContext());
    b.setInsertionPointToEnd(module.getBody());
    Type pointer = LLVM::LLVMPointerType::get(b.getContext());
    auto type =
        LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, pointer, pointer});
    return function = b.create<LLVM::LLVMFuncOp>(module.getLoc(), symbol, type);
  }
  Value operand(OpBuilder &b, Location loc, unsigned number) override {
    return read(b, loc, 0, number, LLVM::LLVMPointerType::get(b.getContext()));
  }
  Value param(OpBuilder &b, Location loc, unsigned number) override {
    return read(b, loc, 1, number, b.getI64Type());
  }
  Value tableWord(OpBuilder &b, Location loc, Value index, Type type) override {
    Value table = read(b, loc, 2, kTable, LLVM::LLVMPointerType::get(b.getContext()));
    return b.create<LLVM::LoadOp>(loc, type,
                                  b.create<LLVM::GEPOp>(loc, table.getType(), b.getI64Type(), table, index));
  }
  Value threadIndex(OpBuilder &b, Location loc) override { return read(b, loc, 2, kThread, b.getI64Type()); }
  Value blockIndex(OpBuilder &b, Location loc) override { return read(b, loc, 2, kBlock, b.getI64Type()); }
  Value blockCount(OpBuilder &b, Location loc) override { return read(b, loc, 2, kBlocks, b.getI64Type()); }
  Value threadIndexAnew(OpBuilder &b, Location loc) override { return threadIndex(b, loc); }
  Value shuffle(OpBuilder &b, Location loc, Value word, unsigned mask) override {
    Value bits = b.create<LLVM::ConstantOp>(loc, b.getI32Type(), b.getI32IntegerAttr(mask));
    return call(b, loc, kShuffle, b.getI32Type(), {word, bits});
  }
  void blockBarrier(OpBuilder &b, Location loc) override { call(b, loc, kBlockBarrier, Type(), {}); }
  void warpBarrier(OpBuilder &b, Location loc) override { call(b, loc, kWarpBarrier, Type(), {}); }
  Value sharedMemory(OpBuilder &b, Location loc, int64_t bytes) override {
    EXPECT_LE(bytes, int64_t(kSharedBytes));
    return read(b, loc, 2, kShared, LLVM::LLVMPointerType::get(b.getContext()));
  }
  Value countUp(OpBuilder &b, Location loc, Value number, int64_t counters, int64_t last) override {
    EXPECT_GT(counters, 0);
    Value most = b.create<LLVM::ConstantOp>(loc, b.getI32Type(), b.getI32IntegerAttr(last));
    return call(b, loc, kCountUp, b.getI32Type(), {number, most});
  }
  bool hasNativeBf16() const override { return false; }

private:
  Value read(OpBuilder &b, Location loc, unsigned argument, unsigned word, Type type) {
    Value address =
        b.create<LLVM::GEPOp>(loc, LLVM::LLVMPointerType::get(b.getContext()), b.getI64Type(),
                              function.getArgument(argument), ArrayRef<LLVM::GEPArg>{int32_t(word)});
    return b.create<LLVM::LoadOp>(loc, type, address);
  }
  Value call(OpBuilder &b, Location loc, unsigned word, Type result, ArrayRef<Value> arguments) {
    Value callee = read(b, loc, 2, word, LLVM::LLVMPointerType::get(b.getContext()));
    SmallVector<Type> types;
    for (Value argument : arguments)
      types.push_back(argument.getType());
    auto type = LLVM::LLVMFunctionType::get(result ? result : LLVM::LLVMVoidType::get(b.getContext()), types);
    SmallVector<Value> operands{callee};
    llvm::append_range(operands, arguments);
    auto made = b.create<LLVM::CallOp>(loc, type, operands);
    return result ? made.getResult() : Value();
  }

  LLVM::LLVMFuncOp function;
};

void *load(const std::vector<uint8_t> &image) {
  int file = memfd_create("kernels", 0);
  EXPECT_EQ(write(file, image.data(), image.size()), ssize_t(image.size()));
  // Another spelling than the harness's: dlopen would take the same name for the same library.
  void *handle = dlopen(("/proc/self/./fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(handle) << dlerror();
  close(file);
  return handle;
}

} // namespace

CudaEmulator::CudaEmulator(KernelHarness &harness) : harness(harness) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(harness.getModule().getContext()));
  for (auto kernel : harness.getModule().getOps<mlir::ds::KernelOp>()) {
    std::string name = kernel.getSymName().str();
    auto planned = planCudaKernel(kernel, std::vector<uint32_t>(kernel.getBuffers().size(), 16));
    EXPECT_TRUE(planned) << (planned ? "" : planned.error().message);
    if (!planned)
      return;
    mappings[name] = planned->mappings[0];
    operands[name] = planned->operands;
    EmulatedThread thread;
    emitCudaKernel(*planned, name, thread, *module);
  }
  expandDoubles(*module);
  auto machine = makeTargetMachine(*mlir::ds::findTargetCpu("host"));
  auto object = makeObject(*module, **machine);
  EXPECT_TRUE(object) << (object ? "" : object.error().message);
  if (!object)
    return;
  auto image = linkSharedObject(*object);
  EXPECT_TRUE(image) << (image ? "" : image.error().message);
  if (image)
    handle = load(*image);
}

CudaEmulator::~CudaEmulator() {
  if (handle)
    dlclose(handle);
}

void CudaEmulator::execute(const std::string &name, void *const *given, const Launch &launch) {
  using Kernel = void (*)(void *const *, const int64_t *, const Environment *);
  auto kernel = reinterpret_cast<Kernel>(dlsym(handle, name.c_str()));
  theBlock = &Block::kept(mappings[name].blockThreads);
  alignas(16) static char shared[kSharedBytes];
  theCounters.clear();
  for (int64_t turn = 0; turn < launch.blocks; ++turn) {
    const int64_t number = order ? order(turn, launch.blocks) : launch.blocks - 1 - turn;
    std::memset(shared, 0xFF, sizeof shared); // NaN
    bool ended = theBlock->run([&](unsigned thread) {
      Environment environment{thread,
                              number,
                              launch.blocks,
                              [](uint32_t word, uint32_t mask) { return theBlock->shuffle(word, mask); },
                              [] { theBlock->blockBarrier(); },
                              [] { theBlock->warpBarrier(); },
                              shared,
                              launch.table.data(),
                              countUp};
      kernel(given, &launch.param, &environment);
    });
    EXPECT_TRUE(ended) << name << ": threads wait for one another for ever";
  }
  for (uint32_t counter : theCounters)
    EXPECT_EQ(counter, 0u) << name << " leaves a counter that is not 0";
}

std::vector<Tensor> CudaEmulator::run(const std::string &name, const std::vector<Tensor> &inputs,
                                      int64_t blocks, int64_t elements) {
  const CudaMapping &m = mappings[name];
  int64_t units = m.extent ? m.extent : elements;
  if (blocks == 0)
    blocks = std::max<int64_t>(1, (units + m.unitsPerBlock - 1) / m.unitsPerBlock);
  return harness.launch(name, inputs, elements, [&](void *const *given) {
    execute(name, given, {elements, {}, blocks});
  });
}

std::vector<std::vector<Tensor>> CudaEmulator::runItems(const std::string &name,
                                                        const std::vector<std::vector<Tensor>> &inputs,
                                                        const std::vector<int64_t> &elements,
                                                        int64_t blocks) {
  const CudaOperands &known = operands[name];
  Launch launch{0, {}, blocks};
  std::vector<void *> scalars;
  std::vector<std::vector<Tensor>> results(inputs.size());
  // The harness gives one item memory; the others' is alive inside.
  std::function<void(size_t)> add = [&](size_t item) {
    if (item == inputs.size()) {
      launch.table.resize(rt::ItemTable::rowWords(known.countInTable()) * known.items, INT64_MAX);
      return execute(name, scalars.data(), launch);
    }
    results[item] = harness.launch(name, inputs[item], elements[item], [&](void *const *given) {
      launch.table.insert(launch.table.end(), {launch.param, elements[item]});
      for (size_t k = 0; k < known.isScalar.size(); ++k)
        if (!known.isScalar[k])
          launch.table.push_back(reinterpret_cast<int64_t>(given[k]));
        else if (item == 0)
          scalars.push_back(given[k]);
      launch.param += (elements[item] + mappings[name].unitsPerBlock - 1) / mappings[name].unitsPerBlock;
      add(item + 1);
    });
  };
  add(0);
  return results;
}

} // namespace ds::test
