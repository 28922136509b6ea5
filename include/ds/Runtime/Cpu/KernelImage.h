//===- KernelImage.h - The program's machine code, loaded ----------------------===//
//
// The image is an ELF shared object inside the program file. It is written to an anonymous memory file and
// opened from there: nothing touches the disk, and the system's loader does the relocations.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_CPU_KERNELIMAGE_H
#define DS_RUNTIME_CPU_KERNELIMAGE_H

#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include <memory>

namespace ds::rt {

/// A generated kernel, as Program.h describes it.
using KernelFunction = void (*)(void *const *buffers, const void *scalars, int64_t begin, int64_t end);

class KernelImage {
public:
  /// Opens the image of `program` and finds the kernels that processors run: all of a program for the CPU,
  /// those of the host stream of another. Fails with ExitCode::Device if the processor lacks a feature that
  /// the program names (checked before any code is mapped), with ExitCode::Corrupt if the image cannot be
  /// loaded or lacks a symbol.
  static Result<KernelImage> open(const Program &program);

  /// The function of program.kernels[index]; null where a device runs it.
  KernelFunction function(uint32_t index) const { return functions[index]; }

private:
  struct Unload {
    void operator()(void *library) const;
  };
  std::unique_ptr<void, Unload> library;
  std::vector<KernelFunction> functions;
};

} // namespace ds::rt

#endif // DS_RUNTIME_CPU_KERNELIMAGE_H
