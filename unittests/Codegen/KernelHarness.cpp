//===- KernelHarness.cpp - Compile, load and run kernels -----------------------===//

#include "KernelHarness.h"
#include "ds/Codegen/KernelClass.h"
#include "ds/Codegen/KernelStages.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Error.h"
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

using namespace mlir;

namespace ds::test {

int64_t Tensor::size() const {
  int64_t count = 1;
  for (int64_t n : shape)
    count *= n;
  return count;
}

static unsigned byteSize(Type type) { return type.isInteger(1) ? 1 : type.getIntOrFloatBitWidth() / 8; }

static uint64_t toBits(Type type, double value) {
  if (auto floatType = dyn_cast<FloatType>(type)) {
    APFloat number(value);
    bool lossy;
    number.convert(floatType.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lossy);
    return number.bitcastToAPInt().getZExtValue();
  }
  return uint64_t(int64_t(value));
}

static double fromBits(Type type, uint64_t bits) {
  unsigned width = type.getIntOrFloatBitWidth();
  APInt integer(width, width == 64 ? bits : bits & ((uint64_t(1) << width) - 1));
  if (auto floatType = dyn_cast<FloatType>(type)) {
    APFloat number(floatType.getFloatSemantics(), integer);
    bool lossy;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    return number.convertToDouble();
  }
  if (type.isUnsignedInteger() || width == 1)
    return double(integer.getZExtValue());
  return double(integer.getSExtValue());
}

double roundTo(Type type, double value) { return fromBits(type, toBits(type, value)); }

KernelHarness::KernelHarness(const std::string &text, const std::string &cpu) : cpu(cpu) {
  DialectRegistry registry;
  registry.insert<mlir::ds::DsDialect>();
  mlir::ds::registerCodegenDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
}

void KernelHarness::load() {
  if (!module || std::exchange(isCompiled, true))
    return;
  auto target = mlir::ds::findTargetCpu(cpu);
  EXPECT_TRUE(target);
  std::vector<mlir::ds::KernelOp> forCpu;
  for (mlir::ds::KernelOp op : module->getOps<mlir::ds::KernelOp>())
    if (mlir::ds::stagesOf(op.getBody().front()).size() == 1)
      forCpu.push_back(op);
  if (forCpu.empty())
    return;
  auto compiled = mlir::ds::compileKernels(forCpu, *target);
  if (!compiled) {
    std::string text;
    llvm::raw_string_ostream(text) << *module;
    ADD_FAILURE() << compiled.error().message << text;
    return;
  }
  kernels = std::move(*compiled);
  int file = memfd_create("kernels", 0);
  EXPECT_EQ(write(file, kernels.image.data(), kernels.image.size()), ssize_t(kernels.image.size()));
  handle = dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(handle) << dlerror();
  close(file);
}

bool KernelHarness::classifies(const std::string &text, std::string *reason) {
  MLIRContext context;
  context.loadDialect<mlir::ds::DsDialect>();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  EXPECT_TRUE(module) << text;
  if (!module)
    return false;
  mlir::ds::KernelClass result;
  auto kernel = *module->getOps<mlir::ds::KernelOp>().begin();
  return succeeded(mlir::ds::classify(kernel.getBody().front(), result, reason));
}

KernelHarness::~KernelHarness() {
  if (handle)
    dlclose(handle);
}

mlir::ds::KernelOp KernelHarness::kernel(const std::string &name) {
  return module->lookupSymbol<mlir::ds::KernelOp>(name);
}

KernelHarness::Function KernelHarness::function(const std::string &name) {
  load();
  return reinterpret_cast<Function>(dlsym(handle, name.c_str()));
}

namespace {
/// Memory of one operand, with a margin of known bytes on both sides.
struct OperandMemory {
  static constexpr size_t kMargin = 256;
  Type type;
  std::vector<int64_t> shape, strides;
  std::vector<uint8_t> bytes;

  OperandMemory(mlir::ds::BufferType buffer, int64_t elements) : type(buffer.getTensor().getElementType()) {
    shape = buffer.getTensor().getShape().vec();
    for (int64_t &size : shape)
      size = ShapedType::isDynamic(size) ? elements : size;
    strides = buffer.getStrides().vec();
    int64_t last = 0;
    for (size_t k = 0; k < shape.size(); ++k)
      last += std::max<int64_t>(shape[k] - 1, 0) * strides[k];
    bytes.assign(2 * kMargin + (last + 1) * byteSize(type), 0xAB);
  }
  void *data() { return bytes.data() + kMargin; }

  /// Calls visit(element number, byte offset) for every element in row-major order.
  template <class Visit>
  void forEach(Visit visit) const {
    Tensor counter{shape, {}};
    for (int64_t number = 0, count = counter.size(); number < count; ++number) {
      int64_t rest = number, offset = 0;
      for (size_t k = shape.size(); k-- > 0; rest /= shape[k])
        offset += rest % shape[k] * strides[k];
      visit(number, kMargin + offset * byteSize(type));
    }
  }
  void write(const Tensor &tensor) {
    EXPECT_EQ(tensor.shape, shape);
    forEach([&](int64_t number, size_t offset) {
      uint64_t bits = toBits(type, tensor.values[number]);
      std::memcpy(&bytes[offset], &bits, byteSize(type));
    });
  }
  Tensor read() const {
    Tensor tensor{shape, {}};
    forEach([&](int64_t, size_t offset) {
      uint64_t bits = 0;
      std::memcpy(&bits, &bytes[offset], byteSize(type));
      tensor.values.push_back(fromBits(type, bits));
    });
    return tensor;
  }
  /// The bytes that belong to no element are as they were.
  void checkUntouched(const std::string &name) const {
    std::vector<bool> owned(bytes.size(), false);
    forEach([&](int64_t, size_t offset) { std::fill_n(owned.begin() + offset, byteSize(type), true); });
    for (size_t k = 0; k < bytes.size(); ++k)
      if (!owned[k])
        ASSERT_EQ(bytes[k], 0xAB) << name << " wrote outside its output, at byte " << ptrdiff_t(k - kMargin);
  }
};
} // namespace

std::vector<Tensor> KernelHarness::launch(const std::string &name, const std::vector<Tensor> &inputs,
                                          int64_t elements, const Launch &run) {
  mlir::ds::KernelOp op = kernel(name);
  std::vector<OperandMemory> operands;
  for (Attribute type : op.getBuffers())
    operands.emplace_back(cast<mlir::ds::BufferType>(cast<TypeAttr>(type).getValue()), elements);
  std::vector<void *> pointers;
  for (auto [k, operand] : llvm::enumerate(operands)) {
    if (k < inputs.size())
      operand.write(inputs[k]);
    pointers.push_back(operand.data());
  }
  run(pointers.data());
  std::vector<Tensor> outputs;
  for (size_t k = op.getNumInputs(); k < operands.size(); ++k) {
    operands[k].checkUntouched(name);
    outputs.push_back(operands[k].read());
  }
  return outputs;
}

std::vector<Tensor> KernelHarness::run(const std::string &name, const std::vector<Tensor> &inputs,
                                       const std::vector<double> &cuts, int64_t elements) {
  int64_t extent = 0;
  for (const mlir::ds::CompiledKernel &kernel : compiled().kernels)
    if (kernel.symbol == name)
      extent = kernel.extent ? kernel.extent : elements;
  std::vector<int64_t> bounds{0};
  for (double cut : cuts)
    bounds.push_back(int64_t(cut * double(extent)));
  bounds.push_back(extent);
  return launch(name, inputs, elements, [&](void *const *pointers) {
    // Last piece first: the order of units is the runtime's business.
    for (size_t k = bounds.size(); k-- > 1;)
      function(name)(pointers, nullptr, bounds[k - 1], bounds[k]);
  });
}

std::vector<Tensor> KernelHarness::interpret(const std::string &name, const std::vector<Tensor> &inputs) {
  return interpretBody(kernel(name).getBody().front(), inputs);
}

} // namespace ds::test
