//===- LinkImage.cpp - A relocatable object becomes a shared object ------------===//
//
// lld runs inside the process and sees memory files only, under their names in /proc. It keeps global state,
// so one link runs at a time.
//
//===---------------------------------------------------------------------------===//

#include "KernelLibrary.h"
#include "ObjectCode.h"
#include "ds/Support/Descriptor.h"
#include "lld/Common/Driver.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

namespace mlir::ds::codegen {

namespace {
/// A file that has no name on any disk.
class MemoryFile {
public:
  explicit MemoryFile(const char *name) : descriptor(memfd_create(name, MFD_CLOEXEC)) {}
  bool isOpen() const { return bool(descriptor); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor.get()); }

  bool write(llvm::ArrayRef<char> bytes) {
    while (!bytes.empty()) {
      ssize_t written = ::write(descriptor.get(), bytes.data(), bytes.size());
      if (written <= 0)
        return false;
      bytes = bytes.drop_front(written);
    }
    return true;
  }

private:
  ::ds::Descriptor descriptor;
};

/// A pipe whose other end a thread reads to the end.
class CollectingPipe {
public:
  CollectingPipe() {
    if (pipe2(ends, O_CLOEXEC) == 0)
      reader = std::thread([this] { collect(); });
  }
  ~CollectingPipe() { finish(); }
  CollectingPipe(const CollectingPipe &) = delete;
  bool isOpen() const { return ends[1] >= 0; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(ends[1]); }

  /// Everything that was written, once all writers are done.
  std::vector<uint8_t> finish() {
    if (!reader.joinable())
      return {};
    close(ends[1]);
    reader.join();
    close(ends[0]);
    return std::move(bytes);
  }

private:
  void collect() {
    uint8_t block[1 << 16];
    while (true) {
      ssize_t count = ::read(ends[0], block, sizeof block);
      if (count < 0 && errno == EINTR)
        continue;
      if (count <= 0)
        return;
      bytes.insert(bytes.end(), block, block + count);
    }
  }

  int ends[2] = {-1, -1};
  std::thread reader;
  std::vector<uint8_t> bytes; ///< of the reader until it is joined
};
} // namespace

/// An error when the object needs a symbol that is not in the table.
static Status checkImports(llvm::ArrayRef<char> object) {
  auto file = llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(StringRef(object.data(), object.size()), "kernels.o"));
  if (!file)
    return Error{ExitCode::Internal, "generated object: " + llvm::toString(file.takeError()), ""};
  for (const llvm::object::SymbolRef &symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name)
      return Error{ExitCode::Internal, "generated object: unreadable symbol", ""};
    bool isImport = (*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty();
    if (isImport && *name != "_GLOBAL_OFFSET_TABLE_" && !llvm::is_contained(libmFunctions(), *name))
      return Error{ExitCode::Internal,
                   "generated code calls '" + name->str() + "', which kernels may not import", ""};
  }
  return {};
}

/// What the linker says is a mistake of ours, unless the system did not give it what it needs.
static Error explainLink(StringRef messages) {
  for (int limit : {EMFILE, ENFILE, ENOSPC, EFBIG, ENOMEM})
    if (messages.contains(std::strerror(limit)))
      return {ExitCode::Io, "linking the kernels: " + messages.str(),
              "raise the limits on descriptors (ulimit -n), sizes of files (-f) and memory (-v)"};
  return {ExitCode::Internal, "linking the kernels: " + messages.str(), ""};
}

Result<std::vector<uint8_t>> linkSharedObject(llvm::ArrayRef<char> object) {
  if (Status imports = checkImports(object); !imports)
    return imports.error();
  MemoryFile input("kernels.o");
  CollectingPipe output;
  if (!input.isOpen() || !output.isOpen() || !input.write(object))
    return Error{ExitCode::Io,
                 std::string("cannot hold the kernels' object in memory: ") + std::strerror(errno),
                 "raise the limits on descriptors (ulimit -n) and sizes of files (-f)"};
  std::string from = input.path(), to = output.path();
  const char *arguments[] = {"ld.lld",
                             "-shared",
                             "--no-mmap-output-file",
                             "--hash-style=gnu",
                             "--build-id=none",
                             "-znoexecstack",
                             "--threads=1",
                             "-soname",
                             "kernels.so",
                             from.c_str(),
                             "-o",
                             to.c_str()};
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  static std::mutex oneLink;
  std::lock_guard<std::mutex> lock(oneLink);
  lld::Result result = lld::lldMain(arguments, stream, stream, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0)
    return explainLink(llvm::StringRef(messages).trim());
  std::vector<uint8_t> image = output.finish();
  if (image.empty())
    return Error{ExitCode::Internal, "linking the kernels left no image", ""};
  return image;
}

} // namespace mlir::ds::codegen
