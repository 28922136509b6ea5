//===- FirstDiagnosticTest.cpp - Reasons reach who asked for several plans ----------===//
#include "ds/Planner/FirstDiagnostic.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace ds;
using namespace ds::planner;

namespace {

TEST(FirstDiagnosticTest, KeepsTheFirstErrorAlone) {
  mlir::MLIRContext context;
  const mlir::Location place = mlir::UnknownLoc::get(&context);
  const Error failed{ExitCode::Invalid, "the model could not be planned", "look"};
  std::string printed;
  mlir::ScopedDiagnosticHandler outer(&context, [&](mlir::Diagnostic &diagnostic) {
    printed += diagnostic.str();
    return mlir::success();
  });
  {
    const FirstDiagnostic quiet(&context);
    EXPECT_EQ(quiet.explain(failed).message, "the model could not be planned");
    mlir::emitWarning(place) << "a warning";
    EXPECT_EQ(quiet.explain(failed).message, "the model could not be planned") << "a warning is no reason";
    mlir::emitError(place) << "forward has no layer 7";
    mlir::emitError(place) << "which follows";
    const Error told = quiet.explain(failed);
    EXPECT_EQ(told.message, "the model could not be planned: forward has no layer 7");
    EXPECT_EQ(told.code, ExitCode::Invalid);
    EXPECT_EQ(told.hint, "look");
  }
  EXPECT_EQ(printed, "");
  mlir::emitError(place) << "heard again";
  EXPECT_EQ(printed, "heard again");
}

} // namespace
