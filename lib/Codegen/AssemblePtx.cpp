//===- AssemblePtx.cpp - PTX through ptxas, where it is there ------------------===//
//
// A cubin only spares the driver the work at load: without ptxas a program has PTX alone.
//
//===---------------------------------------------------------------------------===//

#include "ds/Codegen/CompileCuda.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::ds {
using ::ds::Error;
using ::ds::ExitCode;

/// A file that is gone when its owner is.
namespace {
struct TemporaryFile {
  llvm::SmallString<128> path;
  explicit TemporaryFile(StringRef suffix) {
    failed = bool(llvm::sys::fs::createTemporaryFile("ds", suffix, path));
  }
  ~TemporaryFile() { llvm::sys::fs::remove(path); }
  bool failed;
};
} // namespace

::ds::Result<std::vector<uint8_t>> assemblePtx(ArrayRef<uint8_t> ptx, StringRef processor) {
  auto ptxas = llvm::sys::findProgramByName("ptxas");
  if (!ptxas)
    ptxas = llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"});
  if (!ptxas || ptx.empty())
    return std::vector<uint8_t>();
  TemporaryFile input("ptx"), output("cubin"), log("log");
  std::error_code code;
  llvm::raw_fd_ostream stream(input.path, code);
  if (input.failed || output.failed || log.failed || code)
    return Error{ExitCode::Io, "cannot write a temporary file for ptxas",
                 "set TMPDIR to a writable directory"};
  stream << StringRef(reinterpret_cast<const char *>(ptx.data()), ptx.size() - 1);
  stream.close();
  std::string architecture = ("-arch=" + processor).str();
  std::string message;
  int status =
      llvm::sys::ExecuteAndWait(*ptxas, {*ptxas, architecture, input.path, "-o", output.path}, std::nullopt,
                                {std::nullopt, StringRef(log.path), StringRef(log.path)}, 0, 0, &message);
  if (status != 0) {
    if (auto text = llvm::MemoryBuffer::getFile(log.path))
      message += (*text)->getBuffer().take_front(2000);
    return Error{ExitCode::Internal, "ptxas refuses the generated kernels: " + message, ""};
  }
  auto cubin = llvm::MemoryBuffer::getFile(output.path);
  if (!cubin)
    return Error{ExitCode::Io, "cannot read what ptxas wrote", ""};
  StringRef bytes = (*cubin)->getBuffer();
  return std::vector<uint8_t>(bytes.bytes_begin(), bytes.bytes_end());
}

} // namespace mlir::ds
