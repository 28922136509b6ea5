//===- KernelImage.cpp - Loads generated kernels -------------------------------===//
//
// The processor is checked first: a program for a newer machine is refused by name instead of ending in
// SIGILL.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Cpu/KernelImage.h"

#include "Program/ElfImage.h"
#include "Program/Verify.h"
#include "ds/Runtime/Process/CpuFeatures.h"
#include "ds/Runtime/Program/KernelInterface.h"
#include "ds/Support/Descriptor.h"
#include "ds/Support/FileSizeLimit.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace ds::rt {
namespace {

/// A memory file with the image's bytes, or none with errno set.
Descriptor writeMemoryFile(const std::vector<uint8_t> &image) {
  Descriptor file(::memfd_create("ds-kernels", MFD_CLOEXEC));
  size_t done = 0;
  while (file && done < image.size()) {
    const ssize_t count = ::write(file.get(), image.data() + done, image.size() - done);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0) {
      errno = count < 0 ? errno : ENOSPC;
      return Descriptor();
    }
    done += static_cast<size_t>(count);
  }
  return file;
}

/// The loader says in words alone whether the image is bad or the process has no room for it.
Error explainLoad(const std::string &reason) {
  const std::string message = "cannot load the kernel image: " + reason;
  if (reason.find(std::strerror(EMFILE)) != std::string::npos)
    return {ExitCode::Io, message, "raise the number of descriptors (ulimit -n)"};
  if (reason.find("failed to map") != std::string::npos ||
      reason.find(std::strerror(ENOMEM)) != std::string::npos)
    return {ExitCode::DoesNotFit, message, "raise the limit on memory (ulimit -v)"};
  return {ExitCode::Corrupt, message, "compile the model again with ds-opt"};
}

} // namespace

Result<KernelImage> KernelImage::open(const Program &program) {
  const bool isHosts = program.target != "cpu";
  const std::vector<uint8_t> &code = isHosts ? program.hostImage : program.image;
  if (Status status = checkCpuFeatures(program.targetCpu, program.cpuFeatures); !status)
    return status.error();
  KernelImage image;
  if (code.empty())
    return image;
  if (Status status = checkElf(code, "kernel image"); !status)
    return status.error();
  const Descriptor file = writeMemoryFile(code);
  if (!file)
    return Error{ExitCode::Io,
                 fmt::format("cannot hold the kernel image of {} bytes in memory: {}", code.size(),
                             std::strerror(errno)),
                 errno == EFBIG ? fileSizeHint() : "raise the number of descriptors (ulimit -n)"};
  image.library.reset(::dlopen(fmt::format("/proc/self/fd/{}", file.get()).c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!image.library)
    return explainLoad(::dlerror());
  if (const void *lines = ::dlsym(image.library.get(), kInterfaceSymbol))
    if (Status status = verifyInterfaces(program, static_cast<const char *>(lines), isHosts); !status)
      return Error{ExitCode::Corrupt, status.error().message, "compile the model again with ds-opt"};
  for (const Kernel &kernel : program.kernels) {
    const bool isElsewhere = isHosts && !runsOnCpu(kernel);
    void *symbol = isElsewhere ? nullptr : ::dlsym(image.library.get(), kernel.name.c_str());
    if (!symbol && !isElsewhere)
      return Error{ExitCode::Corrupt, fmt::format("the kernel image has no symbol '{}'", kernel.name),
                   "compile the model again with ds-opt"};
    image.functions.push_back(reinterpret_cast<KernelFunction>(symbol));
  }
  return image;
}

void KernelImage::Unload::operator()(void *library) const { ::dlclose(library); }

} // namespace ds::rt
