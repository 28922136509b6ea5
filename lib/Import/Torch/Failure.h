//===- Failure.h - The ways in which a model cannot be imported -----------------===//
//
// Importing uses exceptions, for LibTorch does; the tool's main turns them into one report.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_TORCH_FAILURE_H
#define DS_LIB_IMPORT_TORCH_FAILURE_H

#include "ds/Support/Error.h"

#include <exception>
#include <stdexcept>
#include <string>

namespace ds::ts {

/// Ends the import: the model, the inputs or the archive are wrong.
class Failure : public std::exception {
public:
  explicit Failure(Error error) : error(std::move(error)) {}
  const char *what() const noexcept override { return error.message.c_str(); }
  Error error;
};

/// A limit of the import itself was met: nothing of the model is looked at any more.
class Exhausted : public Failure {
public:
  explicit Exhausted(std::string message, std::string hint = "")
      : Failure({ExitCode::Invalid, std::move(message), std::move(hint)}) {}
};

/// The model contradicts itself or its inputs: exit code 3.
[[noreturn]] inline void fail(std::string message, std::string hint = "") {
  throw Failure({ExitCode::Invalid, std::move(message), std::move(hint)});
}

/// The operator is used in a way that is not supported. Collected: the import goes on to find the others.
class Unsupported : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};

/// The forward writes what belongs to the model and is no whole buffer. Collected, but told only of layers in
/// which no operator is missing: what those write may follow from that.
class UnsupportedWrite : public Unsupported {
public:
  using Unsupported::Unsupported;
};

} // namespace ds::ts

#endif // DS_LIB_IMPORT_TORCH_FAILURE_H
