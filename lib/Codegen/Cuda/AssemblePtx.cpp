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

/// Runs `ptxas`; what keeps it from its work, in one line, or an empty text.
static std::string run(StringRef ptxas, StringRef processor, StringRef input, StringRef output) {
  TemporaryFile log("log");
  if (log.failed)
    return "cannot write a temporary file for ptxas";
  std::string architecture = ("-arch=" + processor).str(), message;
  int status =
      llvm::sys::ExecuteAndWait(ptxas, {ptxas, architecture, input, "-o", output}, std::nullopt,
                                {std::nullopt, StringRef(log.path), StringRef(log.path)}, 0, 0, &message);
  if (status == 0)
    return "";
  auto text = llvm::MemoryBuffer::getFile(log.path);
  StringRef said = text ? (*text)->getBuffer().ltrim().take_until([](char c) { return c == '\n'; }) : "";
  if (message.empty())
    message = "exit code " + std::to_string(status);
  return (ptxas + ": " + message + (said.empty() ? "" : ": ") + said.take_front(200)).str();
}

::ds::Result<std::vector<uint8_t>> assemblePtx(ArrayRef<uint8_t> ptx, StringRef processor) {
  auto ptxas = llvm::sys::findProgramByName("ptxas");
  if (!ptxas)
    ptxas = llvm::sys::findProgramByName("ptxas", {"/usr/local/cuda/bin"});
  if (!ptxas || ptx.empty())
    return std::vector<uint8_t>();
  TemporaryFile input("ptx"), output("cubin");
  std::error_code code;
  llvm::raw_fd_ostream stream(input.path, code);
  if (input.failed || output.failed || code)
    return Error{ExitCode::Io, "cannot write a temporary file for ptxas",
                 "set TMPDIR to a writable directory"};
  stream << StringRef(reinterpret_cast<const char *>(ptx.data()), ptx.size() - 1);
  stream.close();
  if (std::string reason = run(*ptxas, processor, input.path, output.path); !reason.empty())
    return Error{ExitCode::Internal, reason, ""};
  auto cubin = llvm::MemoryBuffer::getFile(output.path);
  if (!cubin || !(*cubin)->getBuffer().starts_with("\x7f"
                                                   "ELF"))
    return Error{ExitCode::Io, *ptxas + ": it wrote no cubin", ""};
  StringRef bytes = (*cubin)->getBuffer();
  return std::vector<uint8_t>(bytes.bytes_begin(), bytes.bytes_end());
}

} // namespace mlir::ds
