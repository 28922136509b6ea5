//===- FailureReasonsTest.cpp - No pass fails without a word -------------------------===//
#include "ds/Passes/FailureReasons.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

#include "gtest/gtest.h"

using namespace mlir;

namespace {

/// Fails on each function, with an error or without.
struct FailingPass : PassWrapper<FailingPass, OperationPass<func::FuncOp>> {
  explicit FailingPass(bool speaks) : speaks(speaks) {}
  StringRef getArgument() const override { return "test-fail"; }
  void runOnOperation() override {
    if (speaks)
      getOperation().emitError("has too few arguments");
    signalPassFailure();
  }
  bool speaks;
};

/// The errors of a module of one function on which such a pass runs.
std::vector<std::string> errorsOf(bool speaks) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect>();
  std::vector<std::string> errors;
  ScopedDiagnosticHandler keep(&context, [&](Diagnostic &diagnostic) { errors.push_back(diagnostic.str()); });
  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto func = builder.create<func::FuncOp>(loc, "f", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(func.addEntryBlock());
  builder.create<func::ReturnOp>(loc);
  PassManager manager(&context);
  mlir::ds::addFailureReasons(manager);
  manager.addNestedPass<func::FuncOp>(std::make_unique<FailingPass>(speaks));
  EXPECT_TRUE(failed(manager.run(*module)));
  return errors;
}

TEST(FailureReasons, OfASilentPassThereIsOne) {
  EXPECT_EQ(errorsOf(false),
            std::vector<std::string>{"pass test-fail failed and gave no reason: a mistake of this compiler"});
}

TEST(FailureReasons, OfAPassThatHasSpokenThereIsNoOther) {
  EXPECT_EQ(errorsOf(true), std::vector<std::string>{"has too few arguments"});
}

/// Warns of each function.
struct WarningPass : PassWrapper<WarningPass, OperationPass<func::FuncOp>> {
  void runOnOperation() override { getOperation().emitWarning("is long"); }
};

TEST(FailureReasons, ShowsWarnings) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect>();
  Location loc = UnknownLoc::get(&context);
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto func = builder.create<func::FuncOp>(loc, "f", builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(func.addEntryBlock());
  builder.create<func::ReturnOp>(loc);
  PassManager manager(&context);
  mlir::ds::addFailureReasons(manager);
  manager.addNestedPass<func::FuncOp>(std::make_unique<WarningPass>());
  testing::internal::CaptureStderr();
  EXPECT_TRUE(succeeded(manager.run(*module)));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: is long\n");
}

} // namespace
