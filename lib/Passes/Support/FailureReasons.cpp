//===- FailureReasons.cpp - No pass fails without a word ----------------------------===//
//
// See FailureReasons.h for the problem and the idea.
//
//===---------------------------------------------------------------------------------===//
#include "ds/Passes/FailureReasons.h"

#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

#include <atomic>

using namespace mlir;

namespace {
class FailureReasons : public PassInstrumentation {
public:
  explicit FailureReasons(MLIRContext *context)
      : handler(context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Warning) { // which a context keeps to itself
            llvm::errs() << "warning: " << diagnostic << "\n";
            return success();
          }
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            hasError = true;
          return failure(); // it is still to be shown
        }) {}

  // A pass over functions fails first, and behind it the one that runs it on all of them.
  void runAfterPassFailed(Pass *pass, Operation *op) override {
    if (!hasError)
      op->emitError("pass ") << pass->getArgument()
                             << " failed and gave no reason: a mistake of this compiler";
  }

private:
  std::atomic<bool> hasError = false; ///< functions may be worked on by several threads
  ScopedDiagnosticHandler handler;
};
} // namespace

void mlir::ds::addFailureReasons(PassManager &manager) {
  manager.addInstrumentation(std::make_unique<FailureReasons>(manager.getContext()));
}
