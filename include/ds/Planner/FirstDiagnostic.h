//===- FirstDiagnostic.h - Why a plan that nobody watches was not made -------------===//
//
// A question makes several plans, and what their passes say would be noise. Where one of them fails, the
// first error is the reason, and belongs to the answer.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_PLANNER_FIRSTDIAGNOSTIC_H
#define DS_PLANNER_FIRSTDIAGNOSTIC_H

#include "ds/Support/Error.h"

#include "mlir/IR/Diagnostics.h"

#include <string>

namespace ds::planner {

/// Keeps all diagnostics of `context` from being printed while it lives, and the first error for `explain`.
class FirstDiagnostic {
public:
  explicit FirstDiagnostic(mlir::MLIRContext *context)
      : handler(context, [this](mlir::Diagnostic &diagnostic) {
          if (first.empty() && diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
            first = diagnostic.str();
          return mlir::success();
        }) {}

  /// `error` with that reason behind its message; as it is where there was none.
  Error explain(Error error) const {
    if (!first.empty())
      error.message += ": " + first;
    return error;
  }

private:
  std::string first; ///< before the handler, which writes it
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace ds::planner

#endif // DS_PLANNER_FIRSTDIAGNOSTIC_H
