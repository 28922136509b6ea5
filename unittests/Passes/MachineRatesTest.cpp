//===- MachineRatesTest.cpp - The rates of a module's machine --------------------------===//
#include "ds/Dialect/Machine.h"
#include "ds/Passes/CommandCost.h"

#include "mlir/Parser/Parser.h"

#include "gtest/gtest.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace mlir;
namespace dialect = mlir::ds;

namespace {
class MachineRates : public testing::Test {
protected:
  /// A module whose cluster is like a built-in one, in a file that is there for now.
  OwningOpRef<ModuleOp> makeModule(MLIRContext &context) {
    context.loadDialect<dialect::DsDialect>();
    std::ofstream(file) << R"({"name": "mine", "base": "a100-80g"})";
    OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
    dialect::Machine machine;
    machine.cluster = file;
    EXPECT_TRUE(succeeded(setMachine(*module, machine)));
    return module;
  }
  void TearDown() override { std::filesystem::remove(file); }

  const std::string file = testing::TempDir() + "machine-rates." + std::to_string(getpid()) + ".json";
};
} // namespace

/// A context that was asked to reads a cluster once, whoever asks, also several at once; another one reads it
/// itself.
TEST_F(MachineRates, AreReadOncePerContext) {
  DialectRegistry registry;
  registry.insert<dialect::DsDialect>();
  dialect::registerRates(registry);
  MLIRContext context(registry);
  OwningOpRef<ModuleOp> module = makeModule(context);
  FailureOr<::ds::cost::Rates> first = dialect::readRates(*module);
  ASSERT_TRUE(succeeded(first));
  std::filesystem::remove(file);
  std::vector<std::thread> threads;
  std::atomic<int> same = 0;
  for (int index = 0; index < 4; ++index)
    threads.emplace_back([&] {
      FailureOr<::ds::cost::Rates> rates = dialect::readRates(*module);
      same += succeeded(rates) && rates->memorySeconds(1e9) == first->memorySeconds(1e9);
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(same, 4);
}

/// What is not there is said, with its name; where nobody asked for one reading, each asks the file.
TEST_F(MachineRates, SayWhichClusterCannotBeRead) {
  MLIRContext context;
  OwningOpRef<ModuleOp> module = makeModule(context);
  ASSERT_TRUE(succeeded(dialect::readRates(*module)));
  std::filesystem::remove(file);
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said += diagnostic.str();
    return success();
  });
  EXPECT_TRUE(failed(dialect::readRates(*module)));
  EXPECT_NE(said.find("ds.machine expects a cluster that can be read, but got \"" + file + "\""),
            std::string::npos)
      << said;
}
