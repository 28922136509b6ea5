//===- KernelInterface.h - What kernel images say of themselves -----------------===//
//
// The code generator puts one line for each kernel into the image: how much work its code was made for, how
// many operands it reads and how far it goes in them. The program file says the same outside the machine
// code, where the verifier holds every launch to it, and the loader compares both. So a file whose tables
// were changed cannot make sound code touch what it must not.
//
// A shared object has the lines as a string, symbol ds_interfaces; PTX as comments before its first
// directive. Images that are made by hand need not have them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_KERNELINTERFACE_H
#define DS_RUNTIME_PROGRAM_KERNELINTERFACE_H

#include "ds/Runtime/Program/Program.h"

namespace ds::rt {

/// The symbol of a shared object, and what stands before each line in PTX.
inline constexpr const char *kInterfaceSymbol = "ds_interfaces";
inline constexpr const char *kInterfaceComment = "//ds ";

/// The line of one kernel, without its end. What only divides the work among threads of the CPU is left out.
inline std::string spellInterface(const Kernel &kernel) {
  std::string text = kernel.name + ": extent " + std::to_string(kernel.extent) + ", params " +
                     std::to_string(kernel.params) + ", items " + std::to_string(kernel.items) + ", operands";
  for (const KernelOperand &operand : kernel.operands)
    text += " " + std::to_string(operand.bytes) + (operand.perUnit ? " per unit" : "");
  if (kernel.blockThreads == 0)
    return text;
  text += ", threads " + std::to_string(kernel.blockThreads) + ", shared bytes " +
          std::to_string(kernel.sharedBytes) + ", units per block " + std::to_string(kernel.unitsPerBlock) +
          (kernel.persistent ? ", persistent" : "") + ", alignments";
  for (uint32_t alignment : kernel.alignments)
    text += " " + std::to_string(alignment);
  return text;
}

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_KERNELINTERFACE_H
