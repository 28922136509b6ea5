//===- Error.h - One error type for everything that is not a compiler pass -----===//
//
// Every error says what went wrong, where (file, key, source line), the limit and the value, and one hint;
// and it carries the exit code that the tools document. Passes use MLIR diagnostics instead; the drivers
// translate.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_SUPPORT_ERROR_H
#define DS_SUPPORT_ERROR_H

#include <cassert>
#include <string>
#include <utility>
#include <variant>

namespace ds {

/// Exit codes of all tools; the numbers are part of the command-line contract.
enum class ExitCode : int {
  Ok = 0,
  Usage = 2,
  Invalid = 3,      ///< invalid configuration or model
  DoesNotFit = 4,   ///< the plan exceeds the memory it was given
  Corrupt = 5,      ///< corrupt input file
  Io = 6,           ///< a file could not be read or written
  Peer = 7,         ///< a peer died, hung or disagreed
  Diverged = 8,     ///< NaN or infinity where none may be
  Device = 9,       ///< the device failed or is missing
  Internal = 70,    ///< our own mistake
  Interrupted = 75, ///< interrupted after a clean save
};

/// What a user is told when something cannot be done.
struct Error {
  ExitCode code = ExitCode::Internal;
  std::string message; ///< lower case, one sentence, no full stop: where, what, value and limit
  std::string hint;    ///< one thing to try; may be empty
};

/// The value, or the error that kept it from being made. Never throws.
template <class T>
class [[nodiscard]] Result {
public:
  Result(T value) : storage(std::move(value)) {}
  Result(Error error) : storage(std::move(error)) {}

  explicit operator bool() const { return storage.index() == 0; }
  T &operator*() { return value(); }
  const T &operator*() const { return value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }
  T &value() {
    assert(*this && "no value in a failed Result");
    return *std::get_if<0>(&storage);
  }
  const T &value() const { return const_cast<Result *>(this)->value(); }
  const Error &error() const {
    assert(!*this && "no error in a successful Result");
    return *std::get_if<1>(&storage);
  }

private:
  std::variant<T, Error> storage;
};

/// Success, or an error.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(Error error) : failure(std::move(error)), failed(true) {}
  explicit operator bool() const { return !failed; }
  const Error &error() const {
    assert(failed && "no error in a successful Status");
    return failure;
  }

private:
  Error failure;
  bool failed = false;
};

} // namespace ds

#endif // DS_SUPPORT_ERROR_H
