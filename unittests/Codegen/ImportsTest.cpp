//===- ImportsTest.cpp - What generated code calls is there ----------------------===//
//
// Every op that can be lowered, in every form of which LLVM's simplifications make another function, is
// compiled, linked and loaded; what it imports is looked up in libm itself, and its numbers are compared.
//
//===---------------------------------------------------------------------------===//

#include "KernelHarness.h"
#include "KernelLibrary.h"
#include "OperationForms.h"
#include "ds/Codegen/CompileCuda.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <set>

using namespace ds::test;

namespace {

/// libm alone: what the C library has beside it does not count.
bool isInLibm(const std::string &name) {
  static void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
  return library && dlsym(library, name.c_str());
}

/// The undefined dynamic symbols of a shared object.
std::set<std::string> importsOf(const std::vector<uint8_t> &image) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(image.data()), image.size());
  auto file = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "kernels.so"));
  std::set<std::string> names;
  EXPECT_TRUE(bool(file));
  if (!file)
    return names;
  for (auto symbol : llvm::cast<llvm::object::ELFObjectFileBase>(**file).getDynamicSymbolIterators())
    if (llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined)
      names.insert(llvm::cantFail(symbol.getName()).str());
  names.erase("");
  return names;
}

constexpr int kElements = 19;

/// x from -2.25 to 2.25 with 0 in the middle, y in another order.
std::vector<Tensor> inputsOf(const std::string &element, bool isScalar) {
  std::vector<Tensor> inputs(2,
                             Tensor{isScalar ? std::vector<int64_t>{} : std::vector<int64_t>{kElements}, {}});
  const double step = element[0] == 'f' || element[0] == 'b' ? 0.25 : 1;
  for (int k = 0; k < (isScalar ? 1 : kElements); ++k) {
    int64_t x = isScalar ? 7 : k - 9, y = isScalar ? 3 : k * 7 % kElements - 9;
    if (element == "ui8")
      x += 9, y += 9;
    inputs[0].values.push_back(double(x) * step);
    inputs[1].values.push_back(double(y) * step);
  }
  return inputs;
}

/// What one rounding of each of a few ops, or libm's last place, may change.
double toleranceOf(const std::string &element) {
  return element == "f64" ? 1e-14 : element == "f32" ? 4e-6 : element == "f16" ? 0x1p-8 : 0x1p-5;
}

bool isNear(double actual, double expected, double tolerance) {
  if (std::isnan(expected) || std::isinf(expected))
    return std::isnan(expected) ? std::isnan(actual) : actual == expected;
  return std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

using Case = std::tuple<const char *, const char *>; ///< element, processor

class Imports : public testing::TestWithParam<Case> {};

/// All forms of the element type, and the text of their kernels.
std::vector<OperationForm> writeAll(const std::string &element, const std::string &shape, std::string &text) {
  std::vector<OperationForm> forms = operationForms(element);
  for (size_t k = 0; k < forms.size(); ++k)
    text += writeKernel("k" + std::to_string(k), forms[k], element, shape);
  return forms;
}

/// Numbers of a step are computed once, in f64 of rank 0; tensors are not of it.
std::vector<std::string> shapesOf(const std::string &element) {
  return element == "f64" ? std::vector<std::string>{"", "19x"} : std::vector<std::string>{"19x"};
}

TEST_P(Imports, AreFunctionsOfLibm) {
  auto [element, processor] = GetParam();
  for (const std::string &shape : shapesOf(element)) {
    std::string text;
    std::vector<OperationForm> forms = writeAll(element, shape, text);
    KernelHarness harness(text, processor);
    ASSERT_TRUE(harness.isLoaded());
    for (const std::string &name : importsOf(harness.compiled().image)) {
      EXPECT_TRUE(isInLibm(name)) << name;
      EXPECT_TRUE(llvm::is_contained(mlir::ds::codegen::libmFunctions(), name)) << name;
    }
    const std::vector<Tensor> inputs = inputsOf(element, shape.empty());
    for (size_t k = 0; k < forms.size(); ++k) {
      const std::string name = "k" + std::to_string(k);
      const Tensor actual = harness.run(name, inputs)[0], expected = harness.interpret(name, inputs)[0];
      for (size_t e = 0; e < expected.values.size(); ++e)
        EXPECT_TRUE(isNear(actual.values[e], expected.values[e], toleranceOf(element)))
            << forms[k].lines << "of " << inputs[0].values[e] << " and " << inputs[1].values[e] << " is "
            << actual.values[e] << ", not " << expected.values[e];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Host, Imports,
                         testing::Combine(testing::Values("f64", "f32", "bf16", "f16", "i64", "i32", "i8",
                                                          "ui8"),
                                          testing::Values("host")));
// Without SSE 4.1 and fused operations the back end calls floor, and would call fma.
INSTANTIATE_TEST_SUITE_P(Plain, Imports,
                         testing::Combine(testing::Values("f64", "f32"), testing::Values("x86-64")));

/// An op without a form would be tested by nothing above.
TEST(Imports, HaveEveryOpThatHasABody) {
  std::set<std::string> written;
  for (const char *element : {"f32", "i64"})
    for (const OperationForm &form : operationForms(element))
      written.insert(form.op.substr(0, form.op.find(' ')));
  for (const std::string &op : scalarBodyOps())
    EXPECT_EQ(written.count(op), 1u) << "ds." << op << " has no form in OperationForms.cpp";
}

/// LLVM may bring in nothing but the table, and the table is what libm exports.
TEST(Imports, AreAllThatLLVMKnows) {
  llvm::TargetLibraryInfoImpl described =
      mlir::ds::codegen::describeLibrary(llvm::Triple("x86_64-unknown-linux-gnu"));
  llvm::TargetLibraryInfo library(described);
  std::set<std::string> known, table;
  for (unsigned k = 0; k < llvm::NumLibFuncs; ++k)
    if (library.has(llvm::LibFunc(k)))
      known.insert(library.getName(llvm::LibFunc(k)).str());
  for (llvm::StringRef name : mlir::ds::codegen::libmFunctions()) {
    EXPECT_TRUE(isInLibm(name.str())) << name.str();
    table.insert(name.str());
  }
  EXPECT_FALSE(known.empty());
  for (const std::string &name : known)
    EXPECT_EQ(table.count(name), 1u) << name;
  llvm::TargetLibraryInfoImpl device =
      mlir::ds::codegen::describeLibrary(llvm::Triple("nvptx64-nvidia-cuda"));
  for (unsigned k = 0; k < llvm::NumLibFuncs; ++k)
    EXPECT_FALSE(llvm::TargetLibraryInfo(device).has(llvm::LibFunc(k))) << k;
}

class DeviceImports : public testing::TestWithParam<const char *> {};

/// PTX has no library: every function is code, or there is no program.
TEST_P(DeviceImports, AreNone) {
  const std::string element = GetParam();
  for (const std::string shape : {element == "f64" ? "" : "19x"}) {
    std::string text;
    writeAll(element, shape, text);
    KernelHarness harness(text);
    for (mlir::ds::KernelOp op : harness.getModule().getOps<mlir::ds::KernelOp>()) {
      auto compiled = mlir::ds::compileCudaKernels({op}, {{16, 16, 16}}, "sm_90");
      if (!compiled) {
        // In fp64 some functions have no form, which is the model's limit and not our mistake.
        EXPECT_EQ(element, "f64") << compiled.error().message;
        EXPECT_EQ(compiled.error().code, ::ds::ExitCode::Invalid) << compiled.error().message;
        continue;
      }
      const std::string ptx(compiled->image.begin(), compiled->image.end());
      EXPECT_EQ(ptx.find(".extern"), std::string::npos) << ptx;
      EXPECT_EQ(ptx.find("call"), std::string::npos) << ptx;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, DeviceImports, testing::Values("f64", "f32", "bf16"));

} // namespace
