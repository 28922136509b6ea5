//===- InputGuard.cpp - Looks at MLIR before it is read ---------------------------===//
#include "InputGuard.h"

#include "ds/Support/Descriptor.h"
#include "ds/Support/Messages.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace ds;
using namespace ds::opt;

namespace {
enum Verdict : int { Readable = 0, Unreadable = 1 };

constexpr unsigned kSeconds = 120;              ///< for reading bytecode
constexpr uint64_t kMemory = uint64_t(4) << 30; ///< for small files
constexpr uint64_t kMemoryPerByte = 64;         ///< for large ones
} // namespace

unsigned ds::opt::nestingOf(llvm::StringRef text) {
  unsigned depth = 0, deepest = 0;
  for (size_t k = 0; k < text.size(); ++k) {
    switch (text[k]) {
    case '"': // MLIR's strings end with their line at the latest
      for (++k; k < text.size() && text[k] != '"' && text[k] != '\n'; ++k)
        k += text[k] == '\\';
      break;
    case '/':
      if (text.substr(k).starts_with("//"))
        k = std::min(text.find('\n', k), text.size());
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      deepest = std::max(deepest, ++depth);
      break;
    case '>':
      if (k > 0 && text[k - 1] == '-')
        break; // an arrow
      [[fallthrough]];
    case ')':
    case ']':
    case '}':
      depth -= depth > 0;
      break;
    default:
      break;
    }
  }
  return deepest;
}

/// Copies standard input into a file without a name, which takes its place and can be read again. False when
/// that fails.
static bool keepStandardInput() {
  const Descriptor file(memfd_create("input", MFD_CLOEXEC));
  if (!file)
    return false;
  char block[1 << 16];
  bool isGood = true;
  while (isGood) {
    ssize_t count = read(STDIN_FILENO, block, sizeof block);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0) {
      isGood = count == 0;
      break;
    }
    for (ssize_t done = 0; isGood && done < count;) {
      ssize_t written = write(file.get(), block + done, size_t(count - done));
      isGood = written > 0;
      done += written;
    }
  }
  return isGood && lseek(file.get(), 0, SEEK_SET) == 0 && dup2(file.get(), STDIN_FILENO) == STDIN_FILENO;
}

/// Reads bytecode to its end and ends the process with a verdict: nothing that it says is heard.
[[noreturn]] static void tryBytecode(llvm::MemoryBufferRef bytes, mlir::DialectRegistry &registry) {
  uint64_t memory = std::max<uint64_t>(kMemory, bytes.getBufferSize() * kMemoryPerByte);
  rlimit limits{memory, memory}, none{0, 0};
  setrlimit(RLIMIT_AS, &limits);
  setrlimit(RLIMIT_CORE, &none);
  alarm(kSeconds);
  int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  mlir::ScopedDiagnosticHandler silent(&context, [](mlir::Diagnostic &) { return mlir::success(); });
  mlir::ParserConfig config(&context, /*verifyAfterParse=*/false);
  mlir::Block block;
  bool isRead = succeeded(mlir::readBytecodeFile(bytes, &block, config));
  if (isRead)
    for (mlir::Operation &op : block)
      (void)mlir::verify(&op); // what it refuses is said by who reads the file
  _exit(isRead ? Readable : Unreadable);
}

static Status guardBytecode(const std::string &path, llvm::MemoryBufferRef bytes,
                            mlir::DialectRegistry &registry) {
  pid_t child = fork();
  if (child < 0)
    return Error{ExitCode::Io, path + ": cannot start a process that reads it", "end other processes"};
  if (child == 0)
    tryBytecode(bytes, registry);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == Readable)
    return {};
  std::string how = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM
                        ? "its reader does not end within " + std::to_string(kSeconds) + " s"
                    : WIFSIGNALED(status) ? "its reader ends by signal " + std::to_string(WTERMSIG(status))
                                          : "its sections do not fit one another";
  return Error{ExitCode::Corrupt, path + ": is damaged MLIR bytecode: " + how,
               "write the file again, with ds-opt --emit-bytecode"};
}

/// Reads text to its end, says what is wrong with it, and ends the process with a verdict.
[[noreturn]] static void tryText(llvm::StringRef text, const std::string &name,
                                 mlir::DialectRegistry &registry) {
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  context.loadAllAvailableDialects();
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, name), llvm::SMLoc());
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  // Parsers that are generated name enums as C++ does.
  mlir::ScopedDiagnosticHandler plain(&context, [](mlir::Diagnostic &said) {
    constexpr llvm::StringLiteral kNamespace = "::mlir::ds::";
    std::string text = said.str();
    if (text.find(kNamespace) == std::string::npos)
      return mlir::failure();
    for (size_t at = 0; (at = text.find(kNamespace, at)) != std::string::npos;)
      text.erase(at, kNamespace.size());
    mlir::emitError(said.getLocation()) << text;
    return mlir::success();
  });
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceFile<mlir::ModuleOp>(sources, mlir::ParserConfig(&context));
  llvm::errs().flush();
  _exit(module ? Readable : Unreadable);
}

Status ds::opt::guardText(const std::string &path, mlir::DialectRegistry &registry) {
  auto buffer = path == "-" ? llvm::MemoryBuffer::getFile("/proc/self/fd/0")
                            : llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                                          /*RequiresNullTerminator=*/false);
  if (!buffer || mlir::isBytecode(**buffer))
    return {};
  llvm::errs().flush();
  pid_t child = fork();
  if (child < 0)
    return Error{ExitCode::Io, path + ": cannot start a process that reads it", "end other processes"};
  if (child == 0)
    tryText((*buffer)->getBuffer(), path == "-" ? "<stdin>" : printableName(path), registry);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == Readable)
    return {};
  return Error{ExitCode::Invalid, path + ": is no valid model", "the diagnostics above say where"};
}

Status ds::opt::guardInput(const std::string &path, mlir::DialectRegistry &registry) {
  if (path == "-" && !keepStandardInput())
    return Error{ExitCode::Io, "cannot read standard input", "name a file"};
  // Of standard input the place is kept for who reads it.
  auto buffer = path == "-" ? llvm::MemoryBuffer::getFile("/proc/self/fd/0")
                            : llvm::MemoryBuffer::getFile(path, /*IsText=*/false,
                                                          /*RequiresNullTerminator=*/false);
  if (!buffer)
    return {};
  if (mlir::isBytecode(**buffer))
    return guardBytecode(path, (*buffer)->getMemBufferRef(), registry);
  unsigned depth = nestingOf((*buffer)->getBuffer());
  if (depth > kDeepest)
    return Error{ExitCode::Invalid,
                 path + ": brackets are nested " + std::to_string(depth) + " deep, at most " +
                     std::to_string(kDeepest) + " can be read",
                 "is this a model? None that ds-opt writes has more than about ten"};
  return {};
}
